//! What an operator decides about a bucket. The names and defaults are those of the original's
//! configuration (docs/specification/engine.md, section 9) where it has them.

mod bucket_type;
mod compression_mode;
mod conflict_resolution;
mod durability;
mod level_min;
mod named;

use std::time::Duration;

use storage::JournalOptions;
use vbucket::eviction::{EvictionPolicy, FilterOptions, StrategyKind, frequency_counter};

pub use bucket_type::{BucketType, FullPolicy};
pub use compression_mode::CompressionMode;
pub use conflict_resolution::ConflictResolution;
pub use durability::{DurabilityConfig, DurabilityMinLevel};
pub use named::Named;

pub(crate) use level_min::LevelMin;

/// How documents leave memory and are found again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EvictionConfig {
    /// What leaves (`item_eviction_policy`).
    pub policy: EvictionPolicy,
    /// Who leaves first (`item_eviction_strategy`).
    pub strategy: StrategyKind,
    /// How keys on disk are remembered.
    pub filter: FilterOptions,
    /// Keys of one vBucket that may be looked up in its file at once, in percent of its documents
    /// in memory (`ht_temp_items_allowed_percent`).
    pub lookups_max_percent: usize,
    /// How often the pager looks whether memory is full if nobody wakes it.
    pub pager_interval: Duration,
    /// What the decayer leaves of frequency counters, in percent (`item_freq_decayer_percent`).
    pub decay_percent: u8,
}

impl Named for EvictionPolicy {
    const WHAT: &str = "eviction policy";
    const NAMES: &[(&str, Self)] = &[
        ("value_only", Self::ValueOnly),
        ("full_eviction", Self::Full),
        ("value", Self::ValueOnly),
        ("full", Self::Full),
    ];
}

impl Default for EvictionConfig {
    fn default() -> Self {
        Self {
            policy: EvictionPolicy::default(),
            strategy: StrategyKind::default(),
            filter: FilterOptions::default(),
            lookups_max_percent: 10,
            pager_interval: Duration::from_secs(5),
            decay_percent: frequency_counter::DECAY_PERCENT,
        }
    }
}

/// Where documents become durable first, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PersistenceMode {
    /// In the bucket's journal.
    #[default]
    Journal,
    /// In the file of each vBucket.
    Files,
}

/// Where documents become durable first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// In a journal, all vBuckets' together; their files follow.
    Journal(JournalOptions),
    /// In the file of each vBucket.
    Files,
}

impl Named for PersistenceMode {
    const WHAT: &str = "persistence";
    const NAMES: &[(&str, Self)] = &[("journal", Self::Journal), ("files", Self::Files)];
}

/// How files follow the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApplyConfig {
    /// Time in which each file that is behind is written once, unless it presses.
    pub cycle: Duration,
    /// Tasks that write files.
    pub applier_count: usize,
}

/// Segments of a full journal.
const SEGMENTS: u64 = 16;
/// Segments are multiples of this, bytes.
const SEGMENT_UNIT: u64 = 1 << 20;
/// Batches of the largest size that a journal has room for, at least.
const BATCHES_MIN: u64 = 8;
/// Bytes of a batch for a journal, however large that is: groups are gathered in memory.
const JOURNAL_BATCH_BYTES_MAX: usize = 256 << 20;
/// Flushers that commit files: each serves every n-th vBucket.
const FILE_FLUSHER_COUNT: usize = 2;
/// vBuckets whose batches such a flusher takes at a time.
const FILE_GROUP_VBUCKETS_MAX: usize = 8;

impl Default for Persistence {
    fn default() -> Self {
        Self::Journal(JournalOptions::default())
    }
}

impl Persistence {
    /// A journal that takes `journal_bytes_max` on the disk, in segments of a sixteenth of it; or
    /// none.
    pub fn new(mode: PersistenceMode, journal_bytes_max: u64) -> Self {
        match mode {
            PersistenceMode::Journal => {
                let segment_bytes = (journal_bytes_max / SEGMENTS).max(1);
                let segment_bytes =
                    segment_bytes.checked_next_multiple_of(SEGMENT_UNIT).unwrap_or(SEGMENT_UNIT);
                let options = JournalOptions::default();
                Self::Journal(JournalOptions {
                    segment_bytes,
                    // Without room for another segment nothing could be left for the files.
                    bytes_max: journal_bytes_max.max(2 * segment_bytes),
                    ..options
                })
            }
            PersistenceMode::Files => Self::Files,
        }
    }

    pub(crate) fn journal(self) -> Option<JournalOptions> {
        match self {
            Self::Journal(options) => Some(options),
            Self::Files => None,
        }
    }

    /// Bytes that one vBucket hands over at a time, at most: of a journal a small part, so that a
    /// batch finds room while files follow with others.
    pub(crate) fn batch_bytes_max(self) -> usize {
        self.journal().map_or(usize::MAX, |journal| {
            let part = (journal.bytes_max - journal.reserve_bytes()) / BATCHES_MIN;
            usize::try_from(part).unwrap_or(usize::MAX).min(JOURNAL_BATCH_BYTES_MAX)
        })
    }

    /// There is one journal, and one task that writes it.
    pub fn flusher_count(self) -> usize {
        if self == Self::Files { FILE_FLUSHER_COUNT } else { 1 }
    }

    /// vBuckets whose batches go to storage together.
    pub(crate) fn group_vbuckets_max(self) -> usize {
        if self == Self::Files { FILE_GROUP_VBUCKETS_MAX } else { usize::MAX }
    }
}

/// The configuration of one bucket.
#[derive(Clone, Debug)]
pub struct BucketConfig {
    // What it is. Number of vBuckets and type are fixed when it is made.
    /// The bucket's name.
    pub name: String,
    /// The identity of a bucket that is to be made, 32 hexadecimal digits; `None`: any.
    pub uuid: Option<String>,
    /// vBuckets: a power of two, fixed when the bucket is made.
    pub vbucket_count: u16,
    /// Whether a bucket that is there must have as many; otherwise it keeps its own number.
    pub demands_vbucket_count: bool,
    /// Where documents are kept. Fixed when the bucket is made; `None`: as it was made, and on disk
    /// in a new one.
    pub bucket_type: Option<BucketType>,
    /// Which version of a document wins that came about elsewhere (`conflict_resolution_type`).
    /// Fixed when the bucket is made; `None`: as it was made, and by revision in a new one.
    pub conflict_resolution: Option<ConflictResolution>,

    // What writers are promised.
    /// Durable writes.
    pub durability: DurabilityConfig,
    /// How long SEQNO_PERSISTENCE waits at most.
    pub seqno_persistence_timeout: Duration,

    // Memory of documents, and how they leave it.
    /// Bytes that documents may take in memory, to begin with. Writes are refused above
    /// [`BucketConfig::mutation_memory_ratio`] of it.
    pub memory_quota_bytes: u64,
    /// Part of the quota above which writes are refused (`mutation_mem_ratio`).
    pub mutation_memory_ratio: f64,
    /// Part of the quota at which the pager stops, and up to which warmup loads values
    /// (`mem_low_wat_percent`).
    pub memory_low_watermark: f64,
    /// Part of the quota above which the pager evicts (`mem_high_wat_percent`).
    pub memory_high_watermark: f64,
    /// How often a smaller quota looks whether it can come into force
    /// (`bucket_quota_change_task_poll_interval`).
    pub quota_poll_interval: Duration,
    /// How documents leave memory.
    pub eviction: EvictionConfig,
    /// How often documents are deleted whose time is over and that nobody reads.
    pub expiry_pager_interval: Duration,

    // Memory of logs.
    /// Part of the quota that checkpoints may take.
    pub checkpoint_memory_ratio: f64,
    /// Part of the checkpoints' quota from which on their memory is recovered.
    pub checkpoint_memory_upper_mark: f64,
    /// Part of the checkpoints' quota down to which it is recovered.
    pub checkpoint_memory_lower_mark: f64,
    /// Tasks that free what has left the logs.
    pub checkpoint_destruction_tasks: usize,

    // How values are kept, and pages filled.
    /// What happens to compressed values, to begin with.
    pub compression: CompressionMode,
    /// The longest life of a document whose collection says nothing of it, in seconds; 0: none
    /// (`max_ttl`).
    pub max_ttl_seconds: u32,
    /// A value is kept compressed when it takes at least so many times its bytes inflated, to begin
    /// with.
    pub min_compression_ratio: f64,
    /// How long the compressor sleeps between two runs.
    pub item_compressor_interval: Duration,
    /// How long the compressor runs.
    pub item_compressor_chunk_duration: Duration,
    /// How long the defragmenter sleeps between two rounds.
    pub defragmenter_interval: Duration,
    /// How long the defragmenter runs before it pauses for a multiple of that.
    pub defragmenter_chunk_duration: Duration,
    /// Bytes that the process occupies beyond what its buckets use, below which the defragmenter
    /// does nothing.
    pub defragmenter_wasted_bytes_min: u64,

    // A bucket without files.
    /// What an ephemeral bucket does when its memory is full, to begin with.
    pub ephemeral_full_policy: FullPolicy,
    /// Seconds for which an ephemeral bucket keeps tombstones, to begin with.
    pub ephemeral_metadata_purge_age_seconds: u64,
    /// Seconds between two searches for old tombstones, to begin with.
    pub ephemeral_metadata_purge_interval_seconds: u64,
    /// How long such a search goes on without a break.
    pub ephemeral_metadata_purge_chunk_duration: Duration,

    // The way to the disk, and back.
    /// Where documents become durable first.
    pub persistence: Persistence,
    /// Whether to go on without a journal that was in use when the node ended.
    pub accepts_lost_journal: bool,
    /// Bytes of one vBucket's items that a flush takes at most (plus the last checkpoint).
    pub flush_batch_bytes_max: usize,
    /// With a journal, time from one flush of what nobody waits for to the next. What clients were
    /// only told to be in memory is durable so much later, at most, and the time of a flush.
    pub flush_interval: Duration,
    /// Pause between a failed flush and the next try.
    pub flush_retry_interval: Duration,
    /// How files follow the journal.
    pub apply: ApplyConfig,
    /// Files that the bucket keeps open at most.
    pub open_files_max: usize,
    /// How long a scan is kept that nobody goes on with.
    pub range_scan_idle_time_max: Duration,
    /// Between two log lines about how far work is that takes longer.
    pub progress_interval: Duration,
    /// Requests that may wait for values from files at most; more are answered "temporary failure".
    pub fetches_waiting_max: usize,

    // Compaction, and what leaves files.
    /// The part of a file, in percent, from which on it is compacted if nothing needs it, to begin
    /// with; 0 for never.
    pub compaction_fragmentation_percent: u8,
    /// Bytes below which files are not compacted on their own, to begin with.
    pub compaction_file_bytes_min: u64,
    /// How often fragmented files are looked for.
    pub compaction_interval: Duration,
    /// Bytes a second that compactions write together, at most, to begin with; 0 for no limit.
    pub compaction_bytes_per_second: u64,
    /// Bytes after which a compaction syncs its file (`fsync_after_every_n_bytes_written`).
    pub compaction_sync_bytes: u64,
    /// Compactions at a time, as a part of the threads that write
    /// (`compaction_max_concurrent_ratio`).
    pub compaction_concurrency_ratio: f64,
    /// Seconds for which files keep tombstones, to begin with (`persistent_metadata_purge_age`).
    pub persistent_metadata_purge_age_seconds: u64,
    /// Whether files keep tombstones that do not say when they were made
    /// (`retain_erroneous_tombstones`).
    pub retain_erroneous_tombstones: bool,
}

impl BucketConfig {
    /// Bytes of one vBucket's items that a flush takes at most.
    pub(crate) fn batch_bytes_max(&self) -> usize {
        self.flush_batch_bytes_max.min(self.persistence.batch_bytes_max())
    }

    /// The defaults for a bucket called `name`.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            vbucket_count: 1024,
            uuid: None,
            demands_vbucket_count: false,
            durability: DurabilityConfig::default(),
            bucket_type: None,
            conflict_resolution: None,
            ephemeral_full_policy: FullPolicy::AutoDelete,
            ephemeral_metadata_purge_age_seconds: 60,
            ephemeral_metadata_purge_interval_seconds: 60,
            ephemeral_metadata_purge_chunk_duration: Duration::from_millis(20),
            memory_quota_bytes: 1 << 30,
            mutation_memory_ratio: 0.93,
            memory_low_watermark: 0.75,
            memory_high_watermark: 0.85,
            quota_poll_interval: Duration::from_secs(30),
            eviction: EvictionConfig::default(),
            checkpoint_memory_ratio: 0.2,
            checkpoint_memory_upper_mark: 0.9,
            checkpoint_memory_lower_mark: 0.6,
            checkpoint_destruction_tasks: 2,
            compression: CompressionMode::Passive,
            max_ttl_seconds: 0,
            min_compression_ratio: 1.2,
            item_compressor_interval: Duration::from_millis(250),
            item_compressor_chunk_duration: Duration::from_millis(20),
            defragmenter_interval: Duration::from_secs(10),
            defragmenter_chunk_duration: Duration::from_millis(2),
            defragmenter_wasted_bytes_min: 32 << 20,
            compaction_fragmentation_percent: 30,
            compaction_file_bytes_min: 1 << 20,
            compaction_interval: Duration::from_secs(30),
            compaction_bytes_per_second: 32 << 20,
            compaction_sync_bytes: 1 << 20,
            compaction_concurrency_ratio: 0.5,
            persistent_metadata_purge_age_seconds: 3 * 24 * 60 * 60,
            retain_erroneous_tombstones: false,
            expiry_pager_interval: Duration::from_secs(600),
            seqno_persistence_timeout: Duration::from_secs(30),
            flush_batch_bytes_max: 8 << 20,
            persistence: Persistence::default(),
            accepts_lost_journal: false,
            flush_interval: Duration::from_millis(50),
            apply: ApplyConfig { cycle: Duration::from_secs(10), applier_count: 4 },
            flush_retry_interval: Duration::from_secs(1),
            open_files_max: 2048,
            range_scan_idle_time_max: Duration::from_secs(180),
            progress_interval: Duration::from_secs(2),
            fetches_waiting_max: 10_000,
        }
    }
}
