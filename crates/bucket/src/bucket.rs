//! The bucket: its parts, how it opens and how it ends.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use document::{VbUuid, Vbid, VbucketState};
use executor::{ExecutorPool, Owner, Shutdown};
use platform::{Clock, Files, Instant};
use storage::{BacklogUsage, JournalUsage, StorageError};
use vbucket::checkpoint::CheckpointLimits;
use vbucket::eviction::{EvictionOptions, InitialFrequency};
use vbucket::{Effect, HashSeed, MemoryAccount, Now, Refusal, Vbucket};

use crate::absent_vbuckets::AbsentVbuckets;
use crate::backing_store::BackingStore;
use crate::bucket_file::{self, BucketFile};
use crate::bucket_type::{BucketType, EphemeralSettings};
use crate::checkpoint_memory::{CheckpointMarks, CheckpointState};
use crate::compaction::Compactions;
use crate::completion::Completions;
use crate::compression::Compression;
use crate::config::{BucketConfig, EvictionConfig};
use crate::memory_limits::MemoryLimits;
use crate::refused::Refused;
use crate::session::Session;
use crate::start_up::OpenError;
use crate::statistics::Counters;
use crate::stream_observer::Observer;
use crate::tasks::{
    Appliers, CheckpointRecovery, Compactors, CompressorHandle, Destroyers, FetchQueue,
    FlushQueues, Pager, PersistenceTimeouts, PurgerHandle, SyncWriteTimeouts, Wakeable, Wanted,
    WarmupState,
};
use crate::timings::Timings;
use crate::vbucket_slot::VbucketSlot;
use crate::write_gate::{WriteBlock, WriteGate, WritePath};

/// The outside world of a bucket.
#[derive(Clone)]
pub struct Surroundings {
    /// Time.
    pub clock: Clock,
    /// Files.
    pub files: Arc<dyn Files>,
    /// Threads for background tasks.
    pub pool: ExecutorPool,
    /// Where completions go.
    pub completions: Arc<dyn Completions>,
    /// Decides vBucket uuids and the layout of hash tables.
    pub random_seed: u64,
}

/// What writes see of the memory in use is off by one part in so many of the quota, at most.
/// Source: engine facts, section 2.5.
const ESTIMATE_PARTS: u64 = 200;

/// One bucket. A handle: clones are the same bucket.
#[derive(Clone)]
pub struct Bucket(pub(crate) Arc<BucketCore>);

/// What the handles and the tasks of a bucket share.
pub(crate) struct BucketCore {
    pub(crate) config: BucketConfig,
    pub(crate) description: BucketFile,
    pub(crate) directory: PathBuf,
    pub(crate) clock: Clock,
    pub(crate) files: Arc<dyn Files>,
    pub(crate) store: BackingStore,
    pub(crate) absent: AbsentVbuckets,
    pub(crate) slots: Box<[VbucketSlot]>,
    pub(crate) account: MemoryAccount,
    pub(crate) limits: MemoryLimits,
    pub(crate) pager: Pager,
    pub(crate) decayer: Wakeable,
    pub(crate) quota_change: Wakeable,
    eviction: EvictionOptions,
    pub(crate) compression: Compression,
    pub(crate) compressor: CompressorHandle,
    pub(crate) ephemeral: EphemeralSettings,
    pub(crate) purger: PurgerHandle,
    pub(crate) gate: WriteGate,
    pub(crate) counters: Counters,
    pub(crate) timings: Timings,
    pub(crate) checkpoint_marks: CheckpointMarks,
    pub(crate) checkpoint_recovery: CheckpointRecovery,
    pub(crate) destroyers: Destroyers,
    pub(crate) compactions: Compactions,
    pub(crate) compactors: Compactors,
    pub(crate) flush_queues: FlushQueues,
    pub(crate) appliers: Appliers,
    pub(crate) fetch_queue: FetchQueue,
    pub(crate) persistence_timeouts: PersistenceTimeouts,
    pub(crate) sync_write_timeouts: SyncWriteTimeouts,
    pub(crate) warmup: WarmupState,
    pub(crate) completions: Arc<dyn Completions>,
    pub(crate) observer: Observer,
    owner: Owner,
    hash_seed: HashSeed,
    /// The next vBucket uuid is made from this.
    uuid_seed: AtomicU64,
}

impl Bucket {
    /// Opens the bucket in `directory`, making it when there is none, and begins to load it.
    /// vBuckets serve as soon as they are loaded.
    pub fn open(
        surroundings: Surroundings,
        mut config: BucketConfig,
        directory: &Path,
    ) -> Result<Self, OpenError> {
        let Surroundings { clock, files, pool, completions, random_seed } = surroundings;
        files.create_directories(directory)?;
        let description = bucket_file::open_or_create(&*files, directory, &config)?;
        config.vbucket_count = description.vbucket_count;
        let last_stop = bucket_file::last_stop(&*files, directory, &config)?;
        let was_clean = last_stop.was_clean;
        let absent = AbsentVbuckets::open(&*files, directory)?;
        let options = storage::StoreOptions {
            clock: clock.clone(),
            open_files_max: config.open_files_max,
            journal: config.persistence.journal(),
        };
        let bucket_type = description.bucket_type;
        let keeps_journal = options.journal.is_some();
        let (store, mut report) =
            BackingStore::open(bucket_type, &files, directory, options, &last_stop)?;
        bucket_file::begin_run(&*files, directory, keeps_journal)?;
        let count = usize::from(config.vbucket_count);
        let bucket = Self(Arc::new(BucketCore {
            slots: std::iter::repeat_with(VbucketSlot::default).take(count).collect(),
            account: MemoryAccount::default(),
            limits: MemoryLimits::new(&config),
            pager: Pager::default(),
            decayer: Wakeable::default(),
            quota_change: Wakeable::default(),
            eviction: eviction_options(&config.eviction),
            compression: Compression::new(config.compression, config.min_compression_ratio),
            compressor: CompressorHandle::default(),
            ephemeral: EphemeralSettings::new(&config),
            purger: PurgerHandle::default(),
            gate: WriteGate::default(),
            counters: Counters::default(),
            timings: Timings::default(),
            checkpoint_marks: CheckpointMarks::default(),
            checkpoint_recovery: CheckpointRecovery::default(),
            destroyers: Destroyers::new(config.checkpoint_destruction_tasks),
            compactions: Compactions::new(&config),
            compactors: Compactors::default(),
            flush_queues: FlushQueues::new(config.persistence, config.flush_interval),
            appliers: Appliers::default(),
            fetch_queue: FetchQueue::new(config.vbucket_count, config.fetches_waiting_max),
            persistence_timeouts: PersistenceTimeouts::default(),
            sync_write_timeouts: SyncWriteTimeouts::new(config.vbucket_count),
            warmup: WarmupState::new(clock.now(), was_clean),
            owner: pool.register_owner(&config.name),
            hash_seed: HashSeed::new(random_seed),
            uuid_seed: AtomicU64::new(random_seed),
            directory: directory.to_path_buf(),
            config,
            description,
            clock,
            files,
            store,
            absent,
            completions,
            observer: Observer::default(),
        }));
        bucket.0.follow_quota();
        bucket.report_ignored(&report);
        bucket.forget_absent(&mut report);
        bucket.create_missing_vbuckets(&report);
        bucket.note_unreadable_vbuckets(&report);
        crate::tasks::start(&bucket, &pool, report.vbuckets)
            .map_err(|_| OpenError::ExecutorIsGone)?;
        Ok(bucket)
    }

    /// The configuration, as it was at opening.
    pub fn config(&self) -> &BucketConfig {
        &self.0.config
    }

    /// The bucket's identity: 32 hexadecimal digits.
    pub fn uuid(&self) -> &str {
        &self.0.description.uuid
    }

    /// How full its journal is; `None` without one.
    pub fn journal_usage(&self) -> Option<JournalUsage> {
        self.0.store.journal_usage()
    }

    /// How far its files are behind the journal.
    pub fn backlog(&self) -> BacklogUsage {
        self.0.store.backlog()
    }

    /// For whom its tasks run.
    pub fn task_owner(&self) -> &Owner {
        self.0.owner()
    }

    /// What its background work took.
    pub fn timings(&self) -> &Timings {
        &self.0.timings
    }

    /// Ends all background tasks after flushing everything. On success the files hold every
    /// document and the next start is a clean one; otherwise this many vBuckets have documents that
    /// are not on disk.
    pub fn shut_down(&self) -> Result<(), usize> {
        // A compaction is not worth waiting for.
        self.0.compactions.close();
        self.0.owner.unregister(Shutdown::Drain);
        let is_unflushed = |slot: &&VbucketSlot| {
            slot.lock()
                .as_ref()
                .is_some_and(|vbucket| !vbucket.is_flushed() && vbucket.has_history())
        };
        let unflushed_count = self.0.slots.iter().filter(is_unflushed).count();
        if unflushed_count > 0 {
            return Err(unflushed_count);
        }
        // Otherwise the journal has it all, and the next start reads it.
        self.0.close_journal();
        Ok(())
    }

    /// The time of an operation.
    pub(crate) fn time_of(&self, session: &Session) -> Now {
        session.now.unwrap_or_else(|| self.0.now())
    }

    /// Runs `operation` on the vBucket under its lock and carries out the effects after it.
    pub(crate) fn attempt<T>(
        &self,
        session: &mut Session,
        vbid: Vbid,
        operation: impl FnOnce(&mut Vbucket, &mut Vec<Effect>) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let Some(slot) = self.0.slot(vbid) else { return Err(Refusal::NotActive) };
        let result = match slot.lock().as_mut() {
            None => Err(slot.why_not_here()),
            Some(vbucket) => {
                if let Some(item) = session.fetched.take() {
                    session.effects.extend(vbucket.restore_value(item).map(Effect::Release));
                }
                match operation(vbucket, &mut session.effects) {
                    Err(Refusal::NotYetActive) if !vbucket.park(session.waiter) => {
                        Err(Refusal::TooManyParked)
                    }
                    result => result,
                }
            }
        };
        self.0.carry_out(vbid, &mut session.effects);
        result
    }

    /// Turns a vBucket's refusal into the bucket's; what is only in the file is fetched.
    pub(crate) fn answer<T>(
        &self,
        session: &Session,
        vbid: Vbid,
        result: Result<T, Refusal>,
    ) -> Result<T, Refused> {
        result.map_err(|refusal| {
            let wanted = match refusal {
                Refusal::Ejected(metadata) => Wanted::Value(metadata),
                Refusal::Absent(lookup) => Wanted::Document(lookup),
                refusal => return Refused::from_refusal(&refusal),
            };
            self.0.begin_fetch(vbid, wanted, session.waiter)
        })
    }

    /// Sees to it that a wait for persistence ends at `deadline`.
    pub(crate) fn expect_timeout(&self, deadline: Instant) {
        self.0.persistence_timeouts.expect_by(deadline);
    }
}

impl BucketCore {
    pub(crate) fn now(&self) -> Now {
        Now { monotonic: self.clock.now(), wall: self.clock.wall_time() }
    }

    /// The frequency counter of documents that come into memory.
    pub(crate) fn initial_frequency(&self) -> &InitialFrequency {
        &self.eviction.initial_frequency
    }

    /// For whom the bucket's tasks run.
    pub(crate) fn owner(&self) -> &Owner {
        &self.owner
    }

    pub(crate) fn slot(&self, vbid: Vbid) -> Option<&VbucketSlot> {
        self.slots.get(usize::from(vbid.0))
    }

    pub(crate) fn file_is_damaged(&self, vbid: Vbid) -> bool {
        self.slot(vbid).is_some_and(VbucketSlot::file_is_damaged)
    }

    /// All vBuckets in order.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (Vbid, &VbucketSlot)> {
        self.slots.iter().zip(0..).map(|(slot, vbid)| (Vbid(vbid), slot))
    }

    /// Sets the marks that depend on the quota: at once those of a smaller quota that waits.
    pub(crate) fn follow_quota(&self) {
        let size_max = self.checkpoint_marks.follow(self.limits.wanted_bytes(), &self.config);
        let batch_bytes_max = self.config.batch_bytes_max();
        self.account.set_checkpoint_limits(CheckpointLimits {
            with_streams_bytes: size_max.min(self.config.persistence.batch_bytes_max()),
            // What a flush takes at a time.
            alone_bytes: size_max
                .max(batch_bytes_max)
                .min(self.config.persistence.batch_bytes_max()),
        });
        self.account.set_estimate_drift_max(self.limits.wanted_bytes() / ESTIMATE_PARTS);
    }

    /// How much of their memory checkpoints have used up.
    pub(crate) fn checkpoint_state(&self) -> CheckpointState {
        self.checkpoint_marks.state(self.account.checkpoints_bytes())
    }

    pub(crate) fn new_vbucket(&self, vbid: Vbid, state: VbucketState) -> Vbucket {
        let seed = self.hash_seed.clone();
        let (uuid, account) = (self.new_uuid(), self.account.clone());
        let mut vbucket =
            Vbucket::new(vbid, state, uuid, seed, account).with_eviction(self.eviction.clone());
        vbucket.set_durability_limits(self.config.durability.limits());
        match self.description.bucket_type {
            BucketType::Couchbase => vbucket,
            BucketType::Ephemeral => vbucket.ephemeral(),
        }
    }

    pub(crate) fn restored_vbucket(&self, restored: vbucket::Restored) -> Vbucket {
        let mut vbucket = Vbucket::restore(restored, self.hash_seed.clone(), self.account.clone())
            .with_eviction(self.eviction.clone());
        vbucket.set_durability_limits(self.config.durability.limits());
        vbucket
    }

    /// A name for a branch of history: 48 random bits, never 0.
    pub(crate) fn new_uuid(&self) -> VbUuid {
        let step = self.uuid_seed.fetch_add(1, Ordering::Relaxed);
        VbUuid((platform::Random::from_seed(step).next_u64() >> 16).max(1))
    }

    /// Notes what the disk said to the flush of a vBucket; logs when that is news.
    pub(crate) fn note_disk(&self, vbid: Vbid, path: WritePath, error: Option<&StorageError>) {
        let block = error.map(|error| match error {
            StorageError::NoSpace { .. } => WriteBlock::DiskFull,
            _ => WriteBlock::DiskFailed,
        });
        if block == Some(WriteBlock::DiskFull) {
            self.note_growth();
        }
        if !self.gate.note_write(vbid, path, block) {
            return;
        }
        match error {
            Some(error) => {
                tracing::error!(%error, "flushing fails; writes are refused until it succeeds");
            }
            None => tracing::info!("flushing succeeds again; writes are let in"),
        }
    }
}

fn eviction_options(config: &EvictionConfig) -> EvictionOptions {
    EvictionOptions {
        policy: config.policy,
        filter: config.filter,
        lookups_max_percent: config.lookups_max_percent,
        initial_frequency: InitialFrequency::default(),
    }
}
