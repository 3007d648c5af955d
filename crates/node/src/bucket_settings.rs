//! What a bucket of a node is to be, and what that comes to for the bucket.

use std::time::Duration;

use bucket::{
    ApplyConfig, BucketConfig, BucketType, CompressionMode, ConflictResolution, DurabilityConfig,
    DurabilityMinLevel, EvictionConfig, EvictionPolicy, FullPolicy, Persistence, PersistenceMode,
};

/// A bucket that a node can start with. Whoever makes one has checked that its values are right
/// and go together.
#[derive(Clone, Debug)]
pub struct BucketSettings {
    /// Whether clients may empty it.
    pub enable_flush: bool,
    /// The name.
    pub name: String,
    /// Its identity, 32 hexadecimal digits, if it is to have a certain one when it is made.
    pub uuid: Option<String>,
    /// Copies beside the active one that a cluster of enough nodes has.
    pub replica_count: usize,
    /// How many vBuckets: a power of two, fixed when it is made.
    pub vbuckets: Option<u16>,
    /// Where the documents are; fixed when it is made.
    pub bucket_type: Option<BucketType>,
    /// Which version of a document wins that came about elsewhere; fixed when it is made.
    pub conflict_resolution: Option<ConflictResolution>,
    /// Memory for documents.
    pub memory_quota_bytes: u64,
    /// Whether nobody has said how much, and it has an equal part of what other buckets leave.
    pub has_part_of_rest: bool,
    /// What makes a write durable: the journal, or each vBucket's file.
    pub persistence: PersistenceMode,
    /// What the journal may take on the disk.
    pub journal_size_bytes: u64,
    /// Whether it starts although the journal that was in use is gone.
    pub accept_lost_journal: bool,
    /// With a journal, the time between two flushes of writes that nobody waits for; 0: at once.
    pub flush_interval: Duration,
    /// The time in which each file that is behind the journal is written once; 0: at once.
    pub apply_cycle: Duration,
    /// How long a range scan is kept that nobody goes on with.
    pub range_scan_idle_time: Duration,
    /// Between two log lines about how far work is that takes longer.
    pub progress_interval: Duration,
    /// How durable every write is at least.
    pub durability_min_level: DurabilityMinLevel,
    /// Whether durable writes go by this node alone where fewer copies are placed than a majority.
    pub durability_impossible_fallback: bool,
    /// What an ephemeral bucket does when its memory is full.
    pub ephemeral_full_policy: FullPolicy,
    /// What leaves memory when it is full.
    pub eviction_policy: EvictionPolicy,
    /// What happens to compressed values.
    pub compression: CompressionMode,
    /// The longest life of a document whose collection says nothing of it; 0: none.
    pub max_ttl_seconds: u32,
}

/// What a bucket is when nobody says anything.
impl Default for BucketSettings {
    fn default() -> Self {
        let bucket = BucketConfig::named("default");
        Self {
            enable_flush: false,
            name: bucket.name,
            uuid: None,
            replica_count: 0,
            vbuckets: None,
            bucket_type: None,
            conflict_resolution: None,
            memory_quota_bytes: platform::process::memory_limit_bytes() / 10 * 6,
            has_part_of_rest: false,
            persistence: PersistenceMode::default(),
            journal_size_bytes: 512 << 20,
            accept_lost_journal: false,
            flush_interval: bucket.flush_interval,
            apply_cycle: bucket.apply.cycle,
            range_scan_idle_time: bucket.range_scan_idle_time_max,
            progress_interval: bucket.progress_interval,
            durability_min_level: bucket.durability.level_min,
            durability_impossible_fallback: bucket.durability.falls_back_to_master,
            ephemeral_full_policy: bucket.ephemeral_full_policy,
            eviction_policy: bucket.eviction.policy,
            compression: bucket.compression,
            max_ttl_seconds: bucket.max_ttl_seconds,
        }
    }
}

impl BucketSettings {
    /// The bucket, which may keep so many files open.
    pub fn bucket_config(&self, open_files_max: usize) -> BucketConfig {
        let defaults = BucketConfig::named(&self.name);
        BucketConfig {
            uuid: self.uuid.clone(),
            vbucket_count: self.vbuckets.unwrap_or(defaults.vbucket_count),
            demands_vbucket_count: self.vbuckets.is_some(),
            memory_quota_bytes: self.memory_quota_bytes,
            bucket_type: self.bucket_type,
            conflict_resolution: self.conflict_resolution,
            persistence: Persistence::new(self.persistence, self.journal_size_bytes),
            accepts_lost_journal: self.accept_lost_journal,
            durability: DurabilityConfig {
                level_min: self.durability_min_level,
                falls_back_to_master: self.durability_impossible_fallback,
                ..defaults.durability
            },
            flush_interval: self.flush_interval,
            apply: ApplyConfig { cycle: self.apply_cycle, ..defaults.apply },
            range_scan_idle_time_max: self.range_scan_idle_time,
            progress_interval: self.progress_interval,
            ephemeral_full_policy: self.ephemeral_full_policy,
            compression: self.compression,
            max_ttl_seconds: self.max_ttl_seconds,
            eviction: EvictionConfig { policy: self.eviction_policy, ..defaults.eviction },
            open_files_max,
            ..defaults
        }
    }
}
