//! A bucket with its hub on a simulated machine.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bucket::{ApplyConfig, Attempted, Bucket, BucketConfig, Completion, Completions, Incoming};
use bucket::{Persistence, PersistenceMode, Refused, Session, Surroundings, Write};
use document::{
    Cas, DurabilityLevel, Item, ItemBuilder, ItemMeta, Key, KeyBuf, RevSeqno, Seqno, Vbid,
};
use executor::DeterministicPool;
use platform::accounts::AccountId;
use platform::simulated::SimulatedFiles;
use platform::{Clock, Entropy, Files, WallTime};
use replication::Hub;
use vbucket::{ItemAction, SyncWriteEnd, SyncWriteRequest, VisitPosition};
use vbucket::{Waiter, WriteCondition, Written};

pub(crate) const VBID: Vbid = Vbid(0);
/// Longer than a flush is deferred.
const MOMENT: Duration = Duration::from_millis(60);
const RUNS_MAX: usize = 100_000;

/// Remembers which durable writes have been committed, and where, and which are ambiguous.
#[derive(Default)]
pub(crate) struct Committed(Mutex<Vec<(Waiter, Seqno)>>, Mutex<Vec<Waiter>>);

impl Committed {
    pub(crate) fn take(&self) -> Vec<(Waiter, Seqno)> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    pub(crate) fn take_ambiguous(&self) -> Vec<Waiter> {
        std::mem::take(&mut *self.1.lock().unwrap())
    }
}

impl Completions for Committed {
    fn complete(&self, waiter: Waiter, completion: Completion) {
        match completion {
            Completion::SyncWrite(SyncWriteEnd::Committed { mutation, .. }) => {
                self.0.lock().unwrap().push((waiter, mutation.seqno));
            }
            Completion::SyncWrite(SyncWriteEnd::Ambiguous(_)) => {
                self.1.lock().unwrap().push(waiter);
            }
            _ => {}
        }
    }

    fn release_memory(&self) {}
}

pub(crate) struct Machine {
    pub(crate) clock: Clock,
    pub(crate) driver: DeterministicPool,
    pub(crate) bucket: Bucket,
    pub(crate) hub: Arc<Hub>,
    pub(crate) committed: Arc<Committed>,
    session: Session,
}

/// A small bucket whose background rounds never come unasked. Files follow the journal at once.
pub(crate) fn config() -> BucketConfig {
    BucketConfig {
        vbucket_count: 4,
        expiry_pager_interval: Duration::from_secs(1_000_000),
        defragmenter_interval: Duration::from_secs(1_000_000),
        apply: ApplyConfig { cycle: Duration::ZERO, applier_count: 1 },
        persistence: Persistence::new(PersistenceMode::Journal, 2 << 20),
        ..BucketConfig::named("test")
    }
}

pub(crate) fn key(name: &str) -> KeyBuf {
    KeyBuf::in_default_collection(name.as_bytes()).unwrap()
}

impl Machine {
    pub(crate) fn new() -> Self {
        Self::with(config())
    }

    pub(crate) fn with(config: BucketConfig) -> Self {
        Self::on(Arc::new(SimulatedFiles::new()), config)
    }

    pub(crate) fn on(files: Arc<dyn Files>, config: BucketConfig) -> Self {
        Self::start(files, config, 7)
    }

    /// A start whose branches of history have names of their own, by `seed`.
    pub(crate) fn start(files: Arc<dyn Files>, config: BucketConfig, seed: u64) -> Self {
        let clock = Clock::simulated(WallTime(1_700_000_000_000_000_000));
        let driver = DeterministicPool::new(clock.clone(), 1);
        let committed = Arc::<Committed>::default();
        let surroundings = Surroundings {
            clock: clock.clone(),
            files,
            pool: driver.pool().clone(),
            completions: committed.clone(),
            entropy: Entropy::simulated(seed),
        };
        let bucket = Bucket::open(surroundings, config, Path::new("/data/bucket")).unwrap();
        let hub = Hub::new(&bucket);
        bucket.observe_streams(hub.clone());
        let session = Session::default();
        let mut machine = Self { clock, driver, bucket, hub, committed, session };
        machine.run();
        machine
    }

    /// Runs background tasks for a moment: what is not urgent is flushed, too.
    pub(crate) fn run(&mut self) {
        self.driver.advance(MOMENT, RUNS_MAX);
    }

    pub(crate) fn set(&mut self, name: &str, value: &[u8]) -> Seqno {
        self.set_in(VBID, name, value)
    }

    pub(crate) fn set_in(&mut self, vbid: Vbid, name: &str, value: &[u8]) -> Seqno {
        let key = key(name);
        self.write(Write::set(vbid, key.as_key(), Incoming::plain(value)))
    }

    pub(crate) fn write(&mut self, write: Write<'_>) -> Seqno {
        let stored = self.bucket.store(&mut self.session, write);
        stored.unwrap().answer().and_then(Written::done).unwrap().seqno
    }

    pub(crate) fn delete(&mut self, name: &str) -> Seqno {
        let (key, condition) = (key(name), WriteCondition::default());
        let deleted = self.bucket.delete(&mut self.session, VBID, key.as_key(), condition);
        deleted.unwrap().answer().and_then(Written::done).unwrap().seqno
    }

    /// Writes unless memory is short.
    pub(crate) fn try_set(&mut self, name: &str, value: &[u8]) -> Option<Seqno> {
        let key = key(name);
        let write = Write::set(VBID, key.as_key(), Incoming::plain(value));
        let stored = self.bucket.store(&mut self.session, write);
        stored.ok().and_then(Attempted::answer)?.done().map(|mutation| mutation.seqno)
    }

    /// Why a write does not happen.
    pub(crate) fn refused(&mut self, name: &str, value: &[u8]) -> Refused {
        let key = key(name);
        let write = Write::set(VBID, key.as_key(), Incoming::plain(value));
        let stored = self.bucket.store(&mut self.session, write);
        stored.unwrap_err()
    }

    /// Begins a durable write. Returns whether it is under way.
    pub(crate) fn set_durable(&mut self, name: &str, value: &[u8], level: DurabilityLevel) -> bool {
        self.set_durable_for(Waiter(1), name, value, level)
    }

    /// The same for somebody who is told of its end.
    pub(crate) fn set_durable_for(
        &mut self,
        waiter: Waiter,
        name: &str,
        value: &[u8],
        level: DurabilityLevel,
    ) -> bool {
        self.set_durable_at(waiter, key(name).as_key(), value, level)
    }

    /// The same of a document in any collection.
    pub(crate) fn set_durable_at(
        &mut self,
        waiter: Waiter,
        key: Key<'_>,
        value: &[u8],
        level: DurabilityLevel,
    ) -> bool {
        let deadline = self.clock.now().after(Duration::from_secs(1_000));
        let request = SyncWriteRequest { level, deadline, waiter };
        let condition = WriteCondition { sync_write: Some(request), ..WriteCondition::default() };
        let set = Write::set(VBID, key, Incoming::plain(value));
        let stored = self.bucket.store(&mut self.session, Write { condition, ..set });
        stored == Ok(Attempted::Answered(Written::Begun))
    }

    /// Deletes what is there, unless memory is short.
    pub(crate) fn try_delete(&mut self, name: &str) -> Option<Seqno> {
        let (key, condition) = (key(name), WriteCondition::default());
        let deleted = self.bucket.delete(&mut self.session, VBID, key.as_key(), condition);
        deleted.ok().and_then(Attempted::answer)?.done().map(|mutation| mutation.seqno)
    }

    /// Memory that the bucket has given and nobody gives back, until there is none for a backfill
    /// beside `unsent_bytes`.
    pub(crate) fn hold_memory(&self, unsent_bytes: u64) -> Vec<Item> {
        let mut account = AccountId::NOBODY;
        self.bucket.on_vbucket(VBID, |vbucket, _, effects| {
            let look = |item: &Item| {
                account = item.account();
                ItemAction::Keep
            };
            vbucket.visit_items(VisitPosition::default(), usize::MAX, look, effects);
        });
        assert_ne!(account, AccountId::NOBODY, "there are documents");
        let (name, value) = (key("held"), vec![7; 100_000]);
        let mut held = Vec::new();
        while self.bucket.has_room_to_backfill(unsent_bytes) {
            let builder = ItemBuilder::new(name.as_key(), ItemMeta::default(), &value);
            held.push(builder.charged_to(account).finish(Cas(1), Seqno(1), RevSeqno(1)));
        }
        held
    }

    pub(crate) fn high_seqno(&self) -> Seqno {
        let mut seqno = Seqno(0);
        self.bucket.with_vbucket(VBID, |vbucket| seqno = vbucket.high_seqno());
        seqno
    }

    pub(crate) fn uuid(&self) -> u64 {
        let mut uuid = 0;
        self.bucket.with_vbucket(VBID, |vbucket| uuid = vbucket.uuid().0);
        uuid
    }
}
