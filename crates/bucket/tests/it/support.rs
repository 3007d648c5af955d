//! A machine: a disk, a clock, a pool without threads, one bucket, and the power switch.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bucket::{
    ApplyConfig, Bucket, BucketConfig, Completion, Completions, Incoming, OpenError, Write,
};
use bucket::{Attempted, Persistence, Refused, Session, Surroundings};
use document::{ItemMeta, KeyBuf, Seqno, VbUuid, Vbid};
use executor::DeterministicPool;
use platform::simulated::SimulatedFiles;
use platform::{Clock, Entropy, Files, WallTime};
use storage::JournalOptions;
use vbucket::{Found, Mutation, StoreMode, Waiter, WriteCondition, Written};

pub(crate) const DIRECTORY: &str = "/data/bucket";
pub(crate) const VBID: Vbid = Vbid(0);
pub(crate) const OTHER: Vbid = Vbid(1);
const RUNS_MAX: usize = 10_000;

/// Records completions.
#[derive(Default)]
pub(crate) struct Heard(Mutex<Vec<(u64, Completion)>>);

impl Completions for Heard {
    fn complete(&self, waiter: Waiter, completion: Completion) {
        self.0.lock().unwrap().push((waiter.0, completion));
    }

    fn release_memory(&self) {}
}

impl Heard {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().unwrap().is_empty()
    }

    pub(crate) fn take(&self) -> Vec<(u64, Completion)> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

pub(crate) struct Machine {
    pub(crate) files: SimulatedFiles,
    pub(crate) clock: Clock,
    pub(crate) config: BucketConfig,
    pub(crate) driver: DeterministicPool,
    pub(crate) bucket: Bucket,
    pub(crate) session: Session,
    pub(crate) heard: Arc<Heard>,
    starts: u64,
}

/// A small bucket whose background rounds never come unasked, and whose files follow the journal at
/// once.
pub(crate) fn config() -> BucketConfig {
    BucketConfig {
        vbucket_count: 4,
        expiry_pager_interval: Duration::from_secs(1_000_000),
        defragmenter_interval: Duration::from_secs(1_000_000),
        flush_interval: Duration::ZERO,
        apply: ApplyConfig { cycle: Duration::ZERO, applier_count: 1 },
        persistence: Persistence::Journal(JournalOptions {
            segment_bytes: 256 << 10,
            bytes_max: 2 << 20,
            group_bytes_max: 128 << 10,
            portion_bytes: 4096,
        }),
        ..BucketConfig::named("test")
    }
}

/// The same without a journal.
pub(crate) fn files_config() -> BucketConfig {
    BucketConfig { persistence: Persistence::Files, ..config() }
}

pub(crate) fn key(name: &str) -> KeyBuf {
    KeyBuf::in_default_collection(name.as_bytes()).unwrap()
}

impl Machine {
    /// A machine with an empty bucket that serves.
    pub(crate) fn new() -> Self {
        Self::with(config())
    }

    pub(crate) fn with(config: BucketConfig) -> Self {
        let mut machine = Self::begin(SimulatedFiles::new(), config).unwrap();
        machine.run();
        machine
    }

    /// A machine whose bucket is open; nothing has run yet.
    pub(crate) fn begin(files: SimulatedFiles, config: BucketConfig) -> Result<Self, OpenError> {
        let clock = Clock::simulated(WallTime(1_700_000_000_000_000_000));
        Self::start(files, clock, config, 1)
    }

    fn start(
        files: SimulatedFiles,
        clock: Clock,
        config: BucketConfig,
        starts: u64,
    ) -> Result<Self, OpenError> {
        let seen = Arc::new(files.clone());
        Self::start_with(files, seen, clock, config, starts)
    }

    /// The same, with a bucket that sees `files` as `seen`.
    fn start_with(
        files: SimulatedFiles,
        seen: Arc<dyn Files>,
        clock: Clock,
        config: BucketConfig,
        starts: u64,
    ) -> Result<Self, OpenError> {
        let driver = DeterministicPool::new(clock.clone(), starts);
        let heard = Arc::new(Heard::default());
        let surroundings = Surroundings {
            clock: clock.clone(),
            files: seen,
            pool: driver.pool().clone(),
            completions: heard.clone(),
            entropy: Entropy::simulated(starts << 32),
        };
        let bucket = Bucket::open(surroundings, config.clone(), Path::new(DIRECTORY))?;
        let session = Session::default();
        Ok(Self { files, clock, config, driver, bucket, session, heard, starts })
    }

    /// Runs background tasks until none has anything to do now.
    pub(crate) fn run(&mut self) {
        self.driver.run_until_idle(RUNS_MAX);
    }

    pub(crate) fn advance(&mut self, duration: Duration) {
        self.driver.advance(duration, RUNS_MAX);
    }

    /// The power goes and comes back; the bucket is opened, nothing has run yet.
    pub(crate) fn power_cut(self, seed: u64) -> Self {
        self.files.power_cut(seed);
        self.restart()
    }

    /// The process dies, the operating system does not.
    pub(crate) fn restart(self) -> Self {
        self.try_restart().unwrap()
    }

    /// The same with a bucket that sees its files as `seen`.
    pub(crate) fn restart_seeing(
        self,
        seen: impl FnOnce(SimulatedFiles) -> Arc<dyn Files>,
    ) -> Self {
        self.driver.pool().shutdown();
        let Self { files, clock, config, starts, .. } = self;
        let seen = seen(files.clone());
        Self::start_with(files, seen, clock, config, starts + 1).unwrap()
    }

    pub(crate) fn try_restart(self) -> Result<Self, OpenError> {
        // Goes on with the panic of a task, if there was one.
        self.driver.pool().shutdown();
        let Self { files, clock, config, starts, .. } = self;
        clock.advance(Duration::from_secs(1));
        Self::start(files, clock, config, starts + 1)
    }

    /// Stops in order and starts again.
    pub(crate) fn stop_and_start(self) -> Self {
        self.bucket.shut_down().unwrap();
        self.restart()
    }

    pub(crate) fn set(
        &mut self,
        vbid: Vbid,
        name: &str,
        value: &[u8],
    ) -> Result<Mutation, Unanswered> {
        self.store(StoreMode::Set, vbid, name, value, 0)
    }

    pub(crate) fn store(
        &mut self,
        mode: StoreMode,
        vbid: Vbid,
        name: &str,
        value: &[u8],
        expiry: u32,
    ) -> Result<Mutation, Unanswered> {
        let meta = ItemMeta { expiry, ..ItemMeta::default() };
        let key = key(name);
        let set = Write::set(vbid, key.as_key(), Incoming::plain(value));
        written(self.bucket.store(&mut self.session, Write { mode, meta, ..set }))
    }

    pub(crate) fn delete(&mut self, vbid: Vbid, name: &str) -> Result<Mutation, Unanswered> {
        let condition = WriteCondition::default();
        written(self.bucket.delete(&mut self.session, vbid, key(name).as_key(), condition))
    }

    pub(crate) fn find(&mut self, vbid: Vbid, name: &str) -> Result<Found, Unanswered> {
        answered(self.bucket.get(&mut self.session, vbid, key(name).as_key()))
    }

    /// The value of a document, fetched from its file if need be.
    pub(crate) fn get(&mut self, vbid: Vbid, name: &str) -> Result<Vec<u8>, Unanswered> {
        let mut found = self.find(vbid, name);
        if matches!(found, Err(Waits)) {
            self.run();
            found = self.find(vbid, name);
        }
        found.map(|found| found.item.value().to_vec())
    }

    pub(crate) fn evict(&mut self, vbid: Vbid, name: &str) -> Result<(), Unanswered> {
        answered(self.bucket.evict(&mut self.session, vbid, key(name).as_key()))
    }

    /// Asks to be told once `seqno` is persisted.
    pub(crate) fn wait(&mut self, waiter: u64, vbid: Vbid, seqno: Seqno) -> Result<(), Unanswered> {
        self.session.waiter = Waiter(waiter);
        answered(self.bucket.wait_for_persistence(&mut self.session, vbid, seqno))
    }

    pub(crate) fn persisted(&self, vbid: Vbid) -> Seqno {
        let mut seqno = Seqno(0);
        self.bucket.with_vbucket(vbid, |vbucket| seqno = vbucket.persisted_seqno());
        seqno
    }

    pub(crate) fn high_seqno(&self, vbid: Vbid) -> Seqno {
        let mut seqno = Seqno(0);
        self.bucket.with_vbucket(vbid, |vbucket| seqno = vbucket.high_seqno());
        seqno
    }

    /// Names of the branches of a vBucket's history, newest first.
    pub(crate) fn branches(&self, vbid: Vbid) -> Vec<VbUuid> {
        let mut branches = Vec::new();
        self.bucket.with_vbucket(vbid, |vbucket| {
            branches = vbucket.failover_entries().iter().map(|entry| entry.uuid).collect();
        });
        branches
    }
}

/// Why an operation has no answer at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// It waits.
    Waits,
    /// It was refused.
    No(Refused),
}

pub(crate) use Unanswered::{No, Waits};

impl PartialEq<Refused> for Unanswered {
    fn eq(&self, refused: &Refused) -> bool {
        *self == No(*refused)
    }
}

/// The answer of an operation.
pub(crate) fn answered<T>(result: Result<Attempted<T>, Refused>) -> Result<T, Unanswered> {
    result.map_err(No)?.answer().ok_or(Waits)
}

/// The answer of a write that is not durable.
pub(crate) fn written(result: Result<Attempted<Written>, Refused>) -> Result<Mutation, Unanswered> {
    answered(result).map(|written| written.done().expect("it is not durable"))
}
