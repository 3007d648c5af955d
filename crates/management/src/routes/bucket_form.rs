//! The form that says what a bucket is to be, read into the words of the engine. Source:
//! docs/specification/clients.md, section 10; the original's REST documentation.

use std::collections::BTreeMap;

use super::named_bucket::Fields;
use crate::bucket_order::BucketOrder;

/// MiB that a bucket has to have when it is made over REST, as the original demands.
const QUOTA_MIB_MIN: u64 = 100;

/// Fields of the original's that change nothing here.
const IGNORED: [&str; 22] = [
    "accessScannerEnabled",
    "allowedTimePeriod[abortOutside]",
    "allowedTimePeriod[fromHour]",
    "allowedTimePeriod[fromMinute]",
    "allowedTimePeriod[toHour]",
    "allowedTimePeriod[toMinute]",
    "authType",
    "autoCompactionDefined",
    "databaseFragmentationThreshold[percentage]",
    "databaseFragmentationThreshold[size]",
    "historyRetentionCollectionDefault",
    "otherBucketsRamQuotaMB",
    "parallelDBAndViewCompaction",
    "priority",
    "proxyPort",
    "purgeInterval",
    "rank",
    "replicaIndex",
    "saslPassword",
    "threadsNumber",
    "viewFragmentationThreshold[percentage]",
    "viewFragmentationThreshold[size]",
];

/// What these fields of a form say of a new bucket, whose name is said elsewhere.
///
/// # Errors
/// What is wrong with them, by field.
pub fn new_bucket_order(
    fields: BTreeMap<String, String>,
) -> Result<BucketOrder, BTreeMap<String, String>> {
    let mut form = BucketForm::read(fields);
    form.check_new();
    if form.errors.is_empty() { Ok(form.order) } else { Err(form.errors) }
}

/// What a form says.
#[derive(Debug, Default)]
pub(super) struct BucketForm {
    pub(super) order: BucketOrder,
    /// The field that has said each of these, in their order.
    fields: Vec<String>,
    /// What is wrong, by field.
    pub(super) errors: Fields,
}

impl BucketForm {
    /// Reads what is said of a bucket, whose name is said elsewhere.
    pub(super) fn read(fields: Fields) -> Self {
        let mut form = Self::default();
        for (field, value) in fields {
            match word_of(&field, &value) {
                Ok(Some((name, value))) => form.say(&field, name, value),
                Ok(None) => {}
                Err(why) => {
                    form.errors.insert(field, why.to_owned());
                }
            }
        }
        form
    }

    fn say(&mut self, field: &str, name: &str, value: String) {
        self.order.push((name.to_owned(), value));
        self.fields.push(field.to_owned());
    }

    /// Adds what is wrong with a form for a new bucket, and what it leaves unsaid.
    pub(super) fn check_new(&mut self) {
        self.check_new_type();
        self.check_new_quota();
    }

    /// Each type has eviction policies of its own, and a bucket without files persists nothing: in
    /// one that demands it nobody could write.
    fn check_new_type(&mut self) {
        let is_ephemeral = self.said("bucket_type") == Some("ephemeral");
        let foreign = if is_ephemeral { "item_eviction_policy" } else { "ephemeral_full_policy" };
        if self.said(foreign).is_some() {
            let why = if is_ephemeral {
                "Eviction policy must be either 'noEviction' or 'nruEviction' for ephemeral buckets"
            } else {
                "Eviction policy must be either 'valueOnly' or 'fullEviction' for couchbase buckets"
            };
            self.errors.insert(self.field_of(foreign), why.to_owned());
        }
        if !is_ephemeral {
            return;
        }
        if self.said("ephemeral_full_policy").is_none() {
            // The engine's own default deletes documents of who has not asked for that.
            self.say("evictionPolicy", "ephemeral_full_policy", "fail_new_data".to_owned());
        }
        let level = "durability_min_level";
        if self.said(level).is_some_and(|level| !matches!(level, "none" | "majority")) {
            let why = "Durability minimum level must be either none or majority for ephemeral \
                buckets";
            self.errors.insert(self.field_of(level), why.to_owned());
        }
    }

    fn check_new_quota(&mut self) {
        let quota = self.said("max_size").and_then(|bytes| bytes.parse().ok());
        let mib = quota.map(|bytes: u64| bytes >> 20);
        let is_wrong =
            self.errors.contains_key("ramQuota") || self.errors.contains_key("ramQuotaMB");
        let why = match mib {
            None if is_wrong => return,
            None => "The RAM Quota must be specified and must be a positive integer.".to_owned(),
            Some(mib) if mib < QUOTA_MIB_MIN => {
                format!("RAM quota cannot be less than {QUOTA_MIB_MIN} MiB")
            }
            Some(_) => return,
        };
        self.errors.insert("ramQuota".to_owned(), why);
    }

    /// What was said under this name.
    fn said(&self, name: &str) -> Option<&str> {
        let word = self.order.iter().find(|(known, _)| known == name);
        word.map(|(_, value)| value.as_str())
    }

    /// The field that has said something under this name.
    pub(super) fn field_of(&self, name: &str) -> String {
        let mut said = self.order.iter().zip(&self.fields);
        let field = said.find(|((known, _), _)| known == name).map(|(_, field)| field.clone());
        field.unwrap_or_else(|| name.to_owned())
    }
}

type Word = (&'static str, String);

/// What a field says, if that means anything; otherwise what is wrong with it.
fn word_of(field: &str, value: &str) -> Result<Option<Word>, &'static str> {
    let word = |name, value: &str| Ok(Some((name, value.to_owned())));
    match (field, value) {
        ("bucketType", "couchbase" | "membase") => word("bucket_type", "persistent"),
        ("bucketType", "ephemeral") => word("bucket_type", "ephemeral"),
        ("bucketType", "memcached") => Err("memcached buckets are no longer supported"),
        ("bucketType", _) => Err("invalid bucket type"),
        ("ramQuota" | "ramQuotaMB", mib) => match mib.parse::<u64>() {
            Ok(mib) if mib > 0 && mib < u64::MAX >> 20 => {
                word("max_size", &(mib << 20).to_string())
            }
            _ => Err("The RAM Quota must be specified and must be a positive integer."),
        },
        ("evictionPolicy", "valueOnly") => word("item_eviction_policy", "value_only"),
        ("evictionPolicy", "fullEviction") => word("item_eviction_policy", "full_eviction"),
        ("evictionPolicy", "noEviction") => word("ephemeral_full_policy", "fail_new_data"),
        ("evictionPolicy", "nruEviction") => word("ephemeral_full_policy", "auto_delete"),
        // Nothing of a bucket changes by a restart of it.
        ("noRestart", "true" | "false") => Ok(None),
        ("noRestart", _) => Err("noRestart can only be true or false"),
        ("evictionPolicy", _) => Err("Eviction policy must be either 'valueOnly' or \
            'fullEviction', and of ephemeral buckets 'noEviction' or 'nruEviction'"),
        ("durabilityMinLevel", "none" | "majority") => word("durability_min_level", value),
        ("durabilityMinLevel", "majorityAndPersistActive") => {
            word("durability_min_level", "majority_and_persist_on_master")
        }
        ("durabilityMinLevel", "persistToMajority") => {
            word("durability_min_level", "persist_to_majority")
        }
        ("durabilityMinLevel", _) => Err("Durability minimum level must be one of: none, \
            majority, majorityAndPersistActive, persistToMajority"),
        ("replicaNumber", "0" | "1" | "2" | "3") => word("num_replicas", value),
        ("replicaNumber", _) => Err("The replica number must be specified and must be an integer \
            from 0 to 3"),
        ("compressionMode", "off" | "passive" | "active") => word("compression_mode", value),
        ("compressionMode", _) => Err("compressionMode can be set to 'off', 'passive' or 'active'"),
        ("flushEnabled", "1" | "true") => word("flush_enabled", "true"),
        ("flushEnabled", "0" | "false") => word("flush_enabled", "false"),
        ("flushEnabled", _) => Err("flushEnabled can only be 1 or 0"),
        ("conflictResolutionType", "seqno" | "lww") => word("conflict_resolution_type", value),
        // There are no rules that users write. SDKs know this answer.
        ("conflictResolutionType", "custom") => Err("Conflict resolution type 'custom' is \
            supported only with developer preview enabled"),
        ("conflictResolutionType", _) => Err("Conflict resolution type must be 'seqno' or 'lww'"),
        ("maxTTL", seconds) => match seconds.parse::<u32>() {
            Ok(seconds) if i32::try_from(seconds).is_ok() => word("max_ttl", &seconds.to_string()),
            _ => Err("Max TTL must be an integer between 0 and 2147483647"),
        },
        ("numVBuckets" | "numVbuckets", count) => match count.parse::<u16>() {
            Ok(count) => word("max_vbuckets", &count.to_string()),
            Err(_) => Err("The number of vbuckets is a power of two"),
        },
        ("storageBackend", "couchstore" | "undefined") => Ok(None),
        ("storageBackend", _) => Err("storage backend must be couchstore"),
        ("historyRetentionBytes" | "historyRetentionSeconds", "0") => Ok(None),
        ("historyRetentionBytes" | "historyRetentionSeconds", _) => {
            Err("History Retention can only used with Magma")
        }
        (field, _) if IGNORED.contains(&field) => Ok(None),
        _ => Err("Unsupported key"),
    }
}
