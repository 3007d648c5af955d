//! A node with its disk, and what clients ask of its vBucket.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bucket::{Attempted, BucketConfig, BucketType, CompactionOrder, Incoming, Session};
use bucket::{StreamObserver, Write};
use document::{CollectionId, DurabilityLevel, ItemMeta, Key, Manifest, Seqno, Vbid, VbucketState};
use platform::Random;
use platform::simulated::SimulatedFiles;
use vbucket::Topology;
use vbucket::checkpoint::CursorId;
use vbucket::{
    RecoveryStep, SyncWriteRequest, Vbucket, VisitPosition, Waiter, WriteCondition, Written,
};

use super::client::{Documents, open};
use crate::support::{Machine, VBID};

/// vBuckets beside the one that the model is about.
const FLOODED: [Vbid; 3] = [Vbid(1), Vbid(2), Vbid(3)];

/// How often a role is tried.
const ROLE_ATTEMPTS_MAX: usize = 40;

/// A node, whose machine is made anew at each start.
pub(super) struct Node {
    files: SimulatedFiles,
    config: BucketConfig,
    pub(super) machine: Machine,
    session: Session,
    /// What its replica was told to hold.
    pub(super) held: Arc<Held>,
}

/// Hears what a replica holds.
#[derive(Default)]
pub(super) struct Held(Mutex<Option<Seqno>>);

impl Held {
    /// The highest since this was asked.
    pub(super) fn take(&self) -> Option<Seqno> {
        self.0.lock().unwrap().take()
    }
}

impl StreamObserver for Held {
    fn log_grew(&self, _: Vbid) {}

    fn cursor_dropped(&self, _: Vbid, _: CursorId) {}

    fn role_changed(&self, _: Vbid, _: Option<VbucketState>) {}

    fn prepares_held(&self, _: Vbid, seqno: Seqno) {
        let mut held = self.0.lock().unwrap();
        *held = (*held).max(Some(seqno));
    }
}

/// How durable a write is to be, and who hears of it.
pub(super) type Durability = Option<(DurabilityLevel, Waiter)>;

/// What a client hears of a document.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Value(Vec<u8>),
    Nothing,
    /// Nobody may say yet.
    Refused,
}

impl Node {
    pub(super) fn new(config: &BucketConfig, seed: u64) -> Self {
        let files = SimulatedFiles::new();
        let machine = Machine::start(Arc::new(files.clone()), config.clone(), seed);
        let (config, session, held) = (config.clone(), Session::default(), Arc::default());
        let node = Self { files, config, machine, session, held };
        node.begin();
        for vbid in FLOODED {
            node.machine.bucket.set_vbucket_state(vbid, VbucketState::Active, None).unwrap();
        }
        node
    }

    /// Hears what its replica holds.
    fn begin(&self) {
        self.held.take();
        self.machine.hub.subscribe(VBID, Arc::<Held>::clone(&self.held));
    }

    /// Loses what it has not written to its disk, and starts again.
    pub(super) fn crash(&mut self, seed: u64) {
        self.machine.driver.pool().shutdown();
        self.fill_disk(false);
        self.files.power_cut(seed);
        self.machine = Machine::start(Arc::new(self.files.clone()), self.config.clone(), seed);
        self.begin();
        if self.is_ephemeral() {
            self.take_role(VbucketState::Replica);
        }
    }

    pub(super) fn is_ephemeral(&self) -> bool {
        self.config.bucket_type == Some(BucketType::Ephemeral)
    }

    /// Of an active vBucket durable writes wait for the other node.
    pub(super) fn take_role(&mut self, state: VbucketState) {
        match state {
            VbucketState::Active => self.be_active_with(Some("other")),
            _ => self.change_role(state, None),
        }
    }

    /// Is active, with another node or without.
    pub(super) fn be_active_with(&mut self, other: Option<&str>) {
        let topology = vec![vec![Some("this".to_owned()), other.map(str::to_owned)]];
        self.change_role(VbucketState::Active, Some(topology));
    }

    /// What a full journal has no room for is tried again.
    fn change_role(&mut self, state: VbucketState, topology: Option<Topology>) {
        self.fill_disk(false);
        for _ in 0..ROLE_ATTEMPTS_MAX {
            let bucket = &self.machine.bucket;
            if bucket.set_vbucket_state(VBID, state, topology.clone()).is_ok() {
                return;
            }
            self.machine.run();
        }
        panic!("the role is never durable");
    }

    fn with<T: Default>(&self, look: impl FnOnce(&Vbucket) -> T) -> T {
        let mut seen = T::default();
        self.machine.bucket.with_vbucket(VBID, |vbucket| seen = look(vbucket));
        seen
    }

    pub(super) fn is_dead(&self) -> bool {
        self.with(|vbucket| vbucket.state() == VbucketState::Dead)
    }

    pub(super) fn is_flushed(&self) -> bool {
        self.with(Vbucket::is_flushed)
    }

    /// Durable writes that have not ended.
    pub(super) fn prepare_count(&self) -> usize {
        self.with(Vbucket::prepare_count)
    }

    /// Other vBuckets are written to, which takes room of the journal.
    pub(super) fn flood(&mut self, random: &mut Random) {
        for vbid in FLOODED {
            for _ in 0..random.below(12) {
                let key = key_in(CollectionId::DEFAULT, &format!("key{}", random.below(20)));
                let value = vec![7; usize::try_from(random.below(20_000)).unwrap()];
                let write = Write::set(vbid, Key::from_trusted(&key), Incoming::plain(&value));
                // If memory is short there are enough of them.
                self.machine.bucket.store(&mut self.session, write).ok();
            }
        }
    }

    /// The disk is full, or is so no more.
    pub(super) fn fill_disk(&self, is_full: bool) {
        self.files.set_capacity(if is_full { 0 } else { u64::MAX });
    }

    pub(super) fn follow_manifest(&self, manifest: &Manifest) {
        if self.machine.bucket.manifest().uid < manifest.uid {
            self.fill_disk(false);
            self.machine.bucket.set_manifest(manifest.clone()).unwrap();
        }
    }

    fn condition(&self, durability: Durability) -> WriteCondition {
        let deadline = self.machine.clock.now().after(Duration::from_secs(1_000));
        let request = |(level, waiter)| SyncWriteRequest { level, deadline, waiter };
        WriteCondition { sync_write: durability.map(request), ..WriteCondition::default() }
    }

    /// Whether it has happened, or is under way.
    pub(super) fn set(
        &mut self,
        key: &[u8],
        value: &[u8],
        expiry: u32,
        durability: Durability,
    ) -> bool {
        let set = Write::set(VBID, Key::from_trusted(key), Incoming::plain(value));
        let meta = ItemMeta { expiry, ..set.meta };
        let write = Write { meta, condition: self.condition(durability), ..set };
        let stored = self.machine.bucket.store(&mut self.session, write);
        stored.is_ok_and(|stored| stored.answer().is_some())
    }

    /// The same of a deletion.
    pub(super) fn delete(&mut self, key: &[u8], durability: Durability) -> bool {
        let (key, condition) = (Key::from_trusted(key), self.condition(durability));
        let deleted = self.machine.bucket.delete(&mut self.session, VBID, key, condition);
        deleted.is_ok_and(|deleted: Attempted<Written>| deleted.answer().is_some())
    }

    /// It lives on for another while, if it is in memory.
    pub(super) fn touch(&mut self, key: &[u8], expiry: u32) -> bool {
        let touched =
            self.machine.bucket.touch(&mut self.session, VBID, Key::from_trusted(key), expiry);
        touched.is_ok_and(|touched| touched.answer().is_some())
    }

    pub(super) fn evict(&mut self, key: &[u8]) {
        let key = Key::from_trusted(key);
        // What is not there, or not in the file yet, stays.
        self.machine.bucket.evict(&mut self.session, VBID, key).ok();
    }

    /// Reads once; what it wants of the file comes later.
    pub(super) fn look(&mut self, key: &[u8]) -> Option<Heard> {
        match self.machine.bucket.get(&mut self.session, VBID, Key::from_trusted(key)) {
            Ok(found) => Some(Heard::Value(found.answer()?.item.value().to_vec())),
            Err(bucket::Refused::NotFound | bucket::Refused::UnknownCollection) => {
                Some(Heard::Nothing)
            }
            Err(_) => Some(Heard::Refused),
        }
    }

    /// Reads until there is an answer.
    pub(super) fn get(&mut self, key: &[u8]) -> Heard {
        for _ in 0..5 {
            if let Some(heard) = self.look(key) {
                return heard;
            }
            self.machine.run();
        }
        panic!("{key:?} is never found");
    }

    /// Readers have stood still for so long.
    pub(super) fn recover_memory(&self, step: RecoveryStep, stands_for: Duration) {
        self.machine.bucket.on_vbucket(VBID, |vbucket, now, effects| {
            vbucket.recover_memory(step, now.monotonic.after(stands_for), effects);
        });
    }

    /// The wall clock.
    pub(super) fn seconds(&self) -> u32 {
        self.machine.clock.wall_time().seconds()
    }

    /// Documents expire.
    pub(super) fn pass_time(&mut self) {
        self.machine.driver.advance(Duration::from_secs(2), 100_000);
    }

    /// Forgets its tombstones, and what was in collections that are gone.
    pub(super) fn purge(&mut self) {
        self.fill_disk(false);
        if self.is_ephemeral() {
            self.machine.bucket.on_vbucket(VBID, |vbucket, _, effects| {
                let mut from = Some(VisitPosition::default());
                while let Some(position) = from {
                    from = vbucket.purge_tombstones(position, usize::MAX, u32::MAX, effects);
                }
                while vbucket.purge_events(u32::MAX, effects) {}
            });
        } else {
            let order = CompactionOrder { drop_deletes: true, ..CompactionOrder::default() };
            self.machine.bucket.compact(VBID, order, |_| {}).unwrap();
            self.machine.run();
        }
    }

    /// All that it has, as somebody hears who begins with nothing.
    pub(super) fn documents(&mut self, features: &[protocol::Feature]) -> Documents {
        let mut whole = open(&self.machine, "whole", features);
        let answer = whole.resume(&self.machine, VBID, u64::MAX);
        assert!(matches!(answer, replication::Answer::Value(_)), "{answer:?}");
        whole.take_all(&mut self.machine);
        whole.streams.remove(&VBID).map_or_else(Documents::new, |it| it.documents)
    }
}

/// The key of the document `name` in a collection.
pub(super) fn key_in(collection: CollectionId, name: &str) -> Vec<u8> {
    let mut key = document::key::encode_collection(collection);
    key.extend(name.as_bytes());
    key
}
