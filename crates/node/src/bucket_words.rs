//! What is said of a bucket while the node runs: names and values, under the original's names where
//! it has them. A client says them, and they are kept in the bucket's directory.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use bucket::{
    BucketType, CompressionMode, ConflictResolution, DurabilityMinLevel, EvictionPolicy,
    FullPolicy, Named, SETTINGS_NAME,
};
use cluster::Uuid;
use document::limits::VBUCKET_COUNT_MAX;
use document::{DurabilityLevel, MAX_TTL_SECONDS_MAX};
use platform::{FileErrorKind, Files};
use server::{BucketRefusal, BucketWords};

use crate::bucket_settings::BucketSettings;
use crate::kept_files::KeptFiles;

/// More replicas than this no chain of the protocol has.
const REPLICA_COUNT_MAX: usize = 3;
/// Settings of the original's that mean nothing here, and are taken.
const IGNORED: [&str; 5] = ["backend", "couch_bucket", "dbname", "ht_size", "ht_locks"];

/// Whether something may be said of a bucket that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The bucket is to be made.
    Making,
    /// It runs.
    Running,
}

impl BucketSettings {
    /// These settings, but for what `words` say.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub(crate) fn with_words(
        &self,
        words: &BucketWords,
        moment: Moment,
    ) -> Result<Self, BucketRefusal> {
        let mut settings = self.clone();
        for (name, value) in words {
            let refuse = |why: String| BucketRefusal::Invalid(name.clone(), why);
            settings.say(name, value).map_err(refuse)?;
            if moment == Moment::Running {
                self.check_fixed(&settings).map_err(refuse)?;
            }
        }
        Ok(settings)
    }

    fn say(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "uuid" => {
                let uuid = Uuid::parse(value).ok_or("a uuid has 32 hexadecimal digits")?;
                self.uuid = Some(uuid.to_string());
            }
            "max_size" => {
                self.memory_quota_bytes = number(value)?;
                self.has_part_of_rest = false;
            }
            "num_replicas" => {
                self.replica_count = number(value)?;
                if self.replica_count > REPLICA_COUNT_MAX {
                    return Err(format!("at most {REPLICA_COUNT_MAX}"));
                }
            }
            "max_vbuckets" => {
                let count: u16 = number(value)?;
                if !count.is_power_of_two() || count > VBUCKET_COUNT_MAX {
                    return Err(format!(
                        "the number of vBuckets is a power of two, at most {VBUCKET_COUNT_MAX}"
                    ));
                }
                self.vbuckets = Some(count);
            }
            "bucket_type" => {
                // The original has a word of its own for the one.
                let value = if value == "persistent" { "couchbase" } else { value };
                self.bucket_type = Some(BucketType::by_name(value)?);
            }
            "conflict_resolution_type" => {
                self.conflict_resolution = Some(ConflictResolution::by_name(value)?);
            }
            "item_eviction_policy" => self.eviction_policy = EvictionPolicy::by_name(value)?,
            "ephemeral_full_policy" => self.ephemeral_full_policy = FullPolicy::by_name(value)?,
            "compression_mode" => self.compression = CompressionMode::by_name(value)?,
            "durability_min_level" => {
                self.durability_min_level = DurabilityMinLevel::by_name(value)?;
            }
            "durability_impossible_fallback" => {
                self.durability_impossible_fallback = truth(value)?;
            }
            "flush_enabled" => self.enable_flush = truth(value)?,
            "max_ttl" => {
                self.max_ttl_seconds = number(value)?;
                if self.max_ttl_seconds > MAX_TTL_SECONDS_MAX {
                    return Err(format!("at most {MAX_TTL_SECONDS_MAX} seconds"));
                }
            }
            name if IGNORED.contains(&name) => {}
            name => return Err(format!("there is no setting `{name}` of a bucket")),
        }
        Ok(())
    }

    /// Refuses what a bucket that runs cannot become.
    fn check_fixed(&self, wanted: &Self) -> Result<(), String> {
        let fixed = |what: &str| Err(format!("{what} is fixed when the bucket is made"));
        let bucket_type = self.bucket_type.unwrap_or_default();
        if wanted.bucket_type.unwrap_or_default() != bucket_type {
            return fixed("the type");
        }
        if wanted.vbuckets != self.vbuckets {
            return fixed("the number of vBuckets");
        }
        if wanted.conflict_resolution.unwrap_or_default()
            != self.conflict_resolution.unwrap_or_default()
        {
            return fixed("how conflicts are resolved");
        }
        if wanted.uuid != self.uuid {
            return fixed("the uuid");
        }
        let changes_whole = wanted.ephemeral_full_policy != self.ephemeral_full_policy;
        if changes_whole && bucket_type != BucketType::Ephemeral {
            return Err("documents leave for good in ephemeral buckets alone".to_owned());
        }
        let changes_memory = wanted.eviction_policy != self.eviction_policy;
        if changes_memory && bucket_type != BucketType::Couchbase {
            return Err("an ephemeral bucket has no files that anything could leave for".to_owned());
        }
        let level = wanted.durability_min_level;
        let persists = level.0.is_some_and(|level| level != DurabilityLevel::Majority);
        let changes_level = level != self.durability_min_level;
        if changes_level && persists && bucket_type == BucketType::Ephemeral {
            // Every write would be refused from now on.
            return Err("an ephemeral bucket persists nothing: none or majority".to_owned());
        }
        if wanted.durability_impossible_fallback != self.durability_impossible_fallback {
            return fixed("what becomes of durable writes without replicas");
        }
        Ok(())
    }

    /// What is kept of them in the bucket's directory: what is not in its description.
    pub(crate) fn words(&self) -> BucketWords {
        let quota =
            (!self.has_part_of_rest).then(|| ("max_size", self.memory_quota_bytes.to_string()));
        let words = [
            ("num_replicas", self.replica_count.to_string()),
            ("item_eviction_policy", self.eviction_policy.name().to_owned()),
            ("ephemeral_full_policy", self.ephemeral_full_policy.name().to_owned()),
            ("compression_mode", self.compression.name().to_owned()),
            ("durability_min_level", self.durability_min_level.name().to_owned()),
            ("durability_impossible_fallback", self.durability_impossible_fallback.to_string()),
            ("flush_enabled", self.enable_flush.to_string()),
            ("max_ttl", self.max_ttl_seconds.to_string()),
        ];
        let words = quota.into_iter().chain(words);
        words.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// What a plan says of the bucket, for nodes that are to have the same one.
    pub(crate) fn planned_words(&self) -> BTreeMap<String, String> {
        let fixed = [
            ("bucket_type", self.bucket_type.unwrap_or_default().name()),
            ("conflict_resolution_type", self.conflict_resolution.unwrap_or_default().name()),
        ];
        let fixed = fixed.map(|(name, value)| (name.to_owned(), value.to_owned()));
        self.words().into_iter().chain(fixed).collect()
    }

    /// Keeps them in the bucket's directory, durably.
    pub(crate) fn keep(&self, kept: &KeptFiles, directory: &Path) -> Result<(), BucketRefusal> {
        let words: serde_json::Map<_, _> =
            self.words().into_iter().map(|(name, value)| (name, value.into())).collect();
        let text = serde_json::to_vec_pretty(&words).expect("names and values are JSON");
        // A start must not find what was refused.
        let replaced = kept.replace(&directory.join(SETTINGS_NAME), &text);
        replaced.map_err(|error| BucketRefusal::Failed(error.to_string()))
    }

    /// Keeps in the directory of a bucket that is being restored what was `kept` of it where it was
    /// backed up.
    ///
    /// # Errors
    /// This version does not know one of them, or the disk does not take them.
    pub fn keep_restored(
        kept: &BTreeMap<String, String>,
        files: &dyn Files,
        directory: &Path,
    ) -> anyhow::Result<()> {
        if kept.is_empty() {
            return Ok(());
        }
        // A start that did not know one of them would be refused.
        Self::default().with_words(&kept.clone().into_iter().collect(), Moment::Making)?;
        let text = serde_json::to_vec_pretty(kept)?;
        Ok(files.replace_all(&directory.join(SETTINGS_NAME), &text)?)
    }

    /// These settings, but for those that are kept in the bucket's directory.
    ///
    /// # Errors
    /// They cannot be read, in words for people.
    pub(crate) fn with_kept(&self, files: &dyn Files, directory: &Path) -> anyhow::Result<Self> {
        let path = directory.join(SETTINGS_NAME);
        let content = match files.read_all(&path) {
            Err(error) if error.kind == FileErrorKind::NotFound => return Ok(self.clone()),
            content => content?,
        };
        let read = || -> anyhow::Result<Self> {
            let words: BTreeMap<String, String> = serde_json::from_slice(&content)?;
            Ok(self.with_words(&words.into_iter().collect(), Moment::Making)?)
        };
        read().with_context(|| {
            format!(
                "{} cannot be read; use the version that wrote it where that is a newer one, put \
                 it back from a copy of the directory, or move it away: the bucket has the quota, \
                 eviction, durability and time to live of a start then, until `settee bucket \
                 edit` says them again",
                path.display()
            )
        })
    }
}

fn number<T: std::str::FromStr>(value: &str) -> Result<T, String> {
    value.parse().map_err(|_| "this is not a whole number, or too large a one".to_owned())
}

fn truth(value: &str) -> Result<bool, String> {
    value.parse().map_err(|_| "say true or false".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[(&str, &str)]) -> BucketWords {
        words.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_is_kept_is_read_back() {
        let files = platform::simulated::SimulatedFiles::new();
        let kept = KeptFiles::new(std::sync::Arc::new(files.clone()));
        let directory = Path::new("/bucket");
        files.create_directories(directory).unwrap();
        let before = BucketSettings::default();
        let said = words(&[
            ("max_size", "104857600"),
            ("num_replicas", "2"),
            ("item_eviction_policy", "full_eviction"),
            ("compression_mode", "active"),
            ("durability_min_level", "majority"),
            ("flush_enabled", "true"),
            ("max_ttl", "3600"),
        ]);
        let settings = before.with_words(&said, Moment::Making).unwrap();
        settings.keep(&kept, directory).unwrap();
        let read = before.with_kept(&files, directory).unwrap();
        assert_eq!(read.words(), settings.words());
        assert_ne!(read.words(), before.words());
        let rest = BucketSettings { has_part_of_rest: true, ..before };
        rest.keep(&kept, directory).unwrap();
        assert!(rest.with_kept(&files, directory).unwrap().has_part_of_rest);
        settings.keep(&kept, directory).unwrap();
        assert!(!rest.with_kept(&files, directory).unwrap().has_part_of_rest);
    }

    #[test]
    fn what_was_kept_elsewhere_is_kept_of_what_is_restored() {
        let files = platform::simulated::SimulatedFiles::new();
        let directory = Path::new("/bucket");
        files.create_directories(directory).unwrap();
        let kept = |words: &[(&str, &str)]| {
            let words = words.iter().map(|(name, value)| ((*name).into(), (*value).into()));
            BucketSettings::keep_restored(&words.collect(), &files, directory)
        };
        let started = BucketSettings { has_part_of_rest: true, ..BucketSettings::default() };
        let read = || started.with_kept(&files, directory).unwrap();
        kept(&[]).unwrap();
        assert_eq!(read().words(), started.words(), "the start says it");
        kept(&[("max_ttl", "60")]).unwrap();
        assert_eq!((read().max_ttl_seconds, read().has_part_of_rest), (60, true));
        kept(&[("max_size", "104857600"), ("flush_enabled", "true")]).unwrap();
        assert_eq!((read().memory_quota_bytes, read().has_part_of_rest), (100 << 20, false));
        assert!(read().enable_flush);
        let unknown = kept(&[("of_another_version", "1")]).unwrap_err().to_string();
        assert!(unknown.contains("of_another_version"), "{unknown}");
    }

    #[test]
    fn what_a_plan_says_makes_the_same_bucket() {
        let before = BucketSettings::default();
        let said = words(&[("bucket_type", "ephemeral"), ("conflict_resolution_type", "lww")]);
        let settings = before.with_words(&said, Moment::Making).unwrap();
        let planned: BucketWords = settings.planned_words().into_iter().collect();
        let again = before.with_words(&planned, Moment::Making).unwrap();
        assert_eq!(again.planned_words(), settings.planned_words());
        assert_ne!(again.planned_words(), before.planned_words());
        assert!(again.with_words(&planned, Moment::Running).is_ok(), "nothing of it changes");
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_name() {
        let settings = BucketSettings::default();
        for (name, value, moment) in [
            ("max_size", "much", Moment::Making),
            ("num_replicas", "4", Moment::Making),
            ("max_vbuckets", "100", Moment::Making),
            ("bucket_type", "memcached", Moment::Making),
            ("max_ttl", "2147483648", Moment::Making),
            ("other", "1", Moment::Making),
            ("bucket_type", "ephemeral", Moment::Running),
            ("ephemeral_full_policy", "fail_new_data", Moment::Running),
            ("conflict_resolution_type", "lww", Moment::Running),
        ] {
            let refused = settings.with_words(&words(&[(name, value)]), moment).unwrap_err();
            let is_it = matches!(&refused, BucketRefusal::Invalid(of, _) if of == name);
            assert!(is_it, "{name}={value}: {refused}");
        }
        let said = words(&[("bucket_type", "ephemeral")]);
        let ephemeral = settings.with_words(&said, Moment::Making).unwrap();
        let full = words(&[("item_eviction_policy", "full_eviction")]);
        assert!(ephemeral.with_words(&full, Moment::Running).is_err());
        let persists = words(&[("durability_min_level", "persist_to_majority")]);
        assert!(ephemeral.with_words(&persists, Moment::Running).is_err());
        assert!(settings.with_words(&persists, Moment::Running).is_ok());
        let majority = words(&[("durability_min_level", "majority")]);
        assert!(ephemeral.with_words(&majority, Moment::Running).is_ok());
        let full = settings.with_words(&full, Moment::Running).unwrap();
        assert_eq!(full.eviction_policy, EvictionPolicy::Full);
        let fails = words(&[("ephemeral_full_policy", "fail_new_data")]);
        let fails = ephemeral.with_words(&fails, Moment::Running).unwrap();
        assert_eq!(fails.ephemeral_full_policy, FullPolicy::FailNewData);
        let same = words(&[("bucket_type", "persistent"), ("conflict_resolution_type", "seqno")]);
        assert!(settings.with_words(&same, Moment::Running).is_ok(), "what it is already");
    }
}
