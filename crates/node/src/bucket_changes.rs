//! Which buckets the node has, changed while it runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bucket::MEMORY_QUOTA_BYTES_MIN;
use document::limits::BUCKET_NAME_SIZE_MAX;
use executor::{Owner, Shutdown};
use server::{BUCKET_COUNT_MAX, BucketAdministrator, BucketRefusal, BucketWords, Server};

use crate::bucket_opener::BucketOpener;
use crate::bucket_settings::BucketSettings;
use crate::bucket_words::Moment;
use crate::buckets::{NodeBucket, NodeBuckets};
use crate::closing::{Closing, Leaving};
use crate::membership::Membership;
use crate::quota_shares::{least_bytes, part_of_rest};

/// Makes, changes and deletes buckets, one at a time. Calls may wait for files.
pub struct BucketChanges {
    opener: BucketOpener,
    buckets: Arc<NodeBuckets>,
    membership: Arc<Membership>,
    server: Arc<Server>,
    /// For whom buckets are closed.
    owner: Owner,
    leaving: Leaving,
    /// Memory for documents of all buckets, at most.
    buckets_bytes_max: u64,
    /// Held while the set of buckets, or the settings of one, change.
    changing: Mutex<()>,
}

impl BucketChanges {
    pub(crate) fn new(
        opener: BucketOpener,
        buckets: &Arc<NodeBuckets>,
        membership: &Arc<Membership>,
        server: &Arc<Server>,
        buckets_bytes_max: u64,
    ) -> Self {
        Self {
            owner: opener.world.pool.register_owner("buckets"),
            opener,
            buckets: Arc::clone(buckets),
            membership: Arc::clone(membership),
            server: Arc::clone(server),
            leaving: Leaving::default(),
            buckets_bytes_max,
            changing: Mutex::default(),
        }
    }

    /// Memory for documents of all buckets, at most.
    pub fn buckets_bytes_max(&self) -> u64 {
        self.buckets_bytes_max
    }

    /// Says whether there could be such a bucket now.
    ///
    /// # Errors
    /// There could not.
    pub fn check_new(&self, name: &str, words: &BucketWords) -> Result<(), BucketRefusal> {
        self.checked_new(name, words).map(drop)
    }

    fn checked_new(
        &self,
        name: &str,
        words: &BucketWords,
    ) -> Result<BucketSettings, BucketRefusal> {
        let refuse = |what: &str, why: String| BucketRefusal::Invalid(what.to_owned(), why);
        if !is_bucket_name(name) {
            let why = format!(
                "Bucket name can only contain characters in range A-Z, a-z, 0-9 as well as \
                 underscore, period, dash and percent, up to {BUCKET_NAME_SIZE_MAX}, and does not \
                 begin with a period"
            );
            return Err(refuse("name", why));
        }
        if self.buckets.get(name).is_some() {
            return Err(BucketRefusal::Exists);
        }
        if self.leaving.contains(name) {
            let why = "the bucket that had this name is still being deleted; try again";
            return Err(BucketRefusal::Failed(why.to_owned()));
        }
        let files = &*self.opener.world.files;
        let is_there = self.opener.places.has_bucket(files, name);
        if is_there.map_err(|error| BucketRefusal::Failed(error.to_string()))? {
            return Err(BucketRefusal::Exists);
        }
        if self.buckets.all().len() >= BUCKET_COUNT_MAX {
            let why = format!("Cannot create more than {BUCKET_COUNT_MAX} buckets");
            return Err(refuse("_", why));
        }
        let settings = self.opener.new_settings(name).with_words(words, Moment::Making)?;
        self.check_quota(name, settings.memory_quota_bytes, 0)?;
        Ok(settings)
    }

    /// Whether the bucket of that name, which has `own_bytes` now, may have so many.
    fn check_quota(&self, name: &str, bytes: u64, own_bytes: u64) -> Result<(), BucketRefusal> {
        let refuse = |why: String| Err(BucketRefusal::Invalid("max_size".to_owned(), why));
        if bytes < MEMORY_QUOTA_BYTES_MIN {
            let least = MEMORY_QUOTA_BYTES_MIN >> 20;
            return refuse(format!("RAM quota cannot be less than {least} MiB"));
        }
        let all = self.buckets.all();
        let others = all.iter().filter(|other| other.name() != name);
        let others: u64 = others.map(claimed_bytes).sum();
        let free = self.buckets_bytes_max.saturating_sub(others);
        // A bucket may always have less than it has.
        if bytes > free && bytes > own_bytes {
            return refuse(format!(
                "RAM quota specified is too large to be provisioned into this cluster: {} MiB of \
                 the node's {} MiB are free",
                free >> 20,
                self.buckets_bytes_max >> 20
            ));
        }
        Ok(())
    }

    /// Changes a bucket, or only says whether it could be.
    ///
    /// # Errors
    /// It is as it was.
    pub fn change(
        &self,
        name: &str,
        words: &BucketWords,
        is_trial: bool,
    ) -> Result<(), BucketRefusal> {
        let _changing = self.lock();
        let known = self.buckets.get(name).ok_or(BucketRefusal::NotFound)?;
        let before = known.settings();
        let settings = before.with_words(words, Moment::Running)?;
        if settings.memory_quota_bytes != before.memory_quota_bytes {
            self.check_quota(name, settings.memory_quota_bytes, before.memory_quota_bytes)?;
        }
        if is_trial {
            return Ok(());
        }
        let bucket = known.bucket();
        if settings.memory_quota_bytes != bucket.memory_quota_bytes() {
            let set = bucket.set_memory_quota(settings.memory_quota_bytes);
            set.map_err(|error| BucketRefusal::Invalid("max_size".to_owned(), error.to_string()))?;
        }
        let files = &*self.opener.world.files;
        let path = self.opener.places.bucket(files, name);
        let path = path.map_err(|error| BucketRefusal::Failed(error.to_string()))?;
        settings.keep(files, &path)?;
        bucket.set_compression_mode(settings.compression);
        bucket.set_durability_min_level(settings.durability_min_level);
        self.server.enable_flush(name, settings.enable_flush);
        tracing::info!(bucket = name, "the bucket was changed");
        self.buckets.put(known.with_settings(settings));
        self.share_rest(None);
        Ok(())
    }

    /// Gives those buckets whose quota nobody has said what the others leave, of which `coming` is
    /// one that is not there yet.
    fn share_rest(&self, coming: Option<&BucketSettings>) {
        let all = self.buckets.all();
        let settings = all.iter().map(NodeBucket::settings).chain(coming);
        let part = part_of_rest(settings, self.buckets_bytes_max);
        for known in all.iter().filter(|known| known.settings().has_part_of_rest) {
            if known.settings().memory_quota_bytes == part {
                continue;
            }
            if let Err(error) = known.bucket().set_memory_quota(part) {
                tracing::warn!(%error, bucket = known.name(), part, "the quota stays as it was");
                continue;
            }
            let settings = BucketSettings { memory_quota_bytes: part, ..known.settings().clone() };
            self.buckets.put(known.with_settings(settings));
        }
    }

    /// Ends the closing of buckets: what is left of them is for the next start.
    pub(crate) fn stop(&self) {
        self.owner.unregister(Shutdown::Force);
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BucketAdministrator for BucketChanges {
    fn create(&self, name: &str, words: &BucketWords) -> Result<(), BucketRefusal> {
        let _changing = self.lock();
        let settings = self.checked_new(name, words)?;
        self.membership.check_alone()?;
        self.share_rest(Some(&settings));
        let made = self.opener.make(settings);
        if made.is_err() {
            self.share_rest(None);
        }
        let bucket = made.map_err(|error| BucketRefusal::Failed(format!("{error:#}")))?;
        self.buckets.put(bucket.clone());
        self.membership.add_bucket(&bucket);
        tracing::info!(bucket = name, uuid = bucket.bucket().uuid(), "the bucket was made");
        Ok(())
    }

    fn delete(&self, name: &str, done: Box<dyn FnOnce() + Send>) -> Result<(), BucketRefusal> {
        let _changing = self.lock();
        let known = self.buckets.get(name).ok_or(BucketRefusal::NotFound)?;
        self.membership.check_alone()?;
        let files = &self.opener.world.files;
        let failed = |error: platform::FileError| BucketRefusal::Failed(error.to_string());
        let directory = self.opener.places.bucket(&**files, name).map_err(failed)?;
        // From here on it is gone, whatever happens.
        if let Err(error) = bucket::mark_deleted(&**files, &directory) {
            if bucket::unmark_deleted(&**files, &directory).is_ok() {
                return Err(failed(error));
            }
            tracing::warn!(%error, bucket = name, "nobody knows whether the bucket is deleted");
        }
        self.buckets.remove(name);
        self.share_rest(None);
        let departure = self.membership.remove_bucket(name);
        tracing::info!(bucket = name, "the bucket was deleted");
        let closing = Closing {
            name: name.to_owned(),
            files: Arc::clone(files),
            directory,
            bucket: known.bucket().clone(),
            departure,
            done,
        };
        drop(known);
        if closing.begin(&self.opener.world.pool, &self.owner, &self.leaving).is_err() {
            tracing::info!(bucket = name, "the node stops: the next start removes what is left");
        }
        Ok(())
    }
}

/// Bytes that others cannot have because of a bucket.
fn claimed_bytes(bucket: &NodeBucket) -> u64 {
    match bucket.settings().has_part_of_rest {
        true => least_bytes(bucket.bucket()),
        false => bucket.settings().memory_quota_bytes,
    }
}

/// Whether a bucket can be called so.
pub fn is_bucket_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._%-".contains(&byte);
    (1..=BUCKET_NAME_SIZE_MAX).contains(&name.len())
        && name.bytes().all(is_allowed)
        && !name.starts_with('.')
}
