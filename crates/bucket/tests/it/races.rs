//! Durable writes while everybody who has a say in them speaks at once, on real threads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use bucket::{
    Attempted, Bucket, BucketConfig, Completion, Completions, Incoming, Refused, Session, Write,
};
use bucket::{StreamObserver, Surroundings};
use document::{Datatype, DurabilityLevel, Operation, Seqno, Vbid, VbucketState};
use executor::{ExecutorPool, PoolOptions};
use platform::files::RealFiles;
use platform::{Clock, Entropy};
use vbucket::checkpoint::CursorId;
use vbucket::{SyncWriteEnd, SyncWriteRequest, Topology, Waiter, WriteCondition, Written};

use crate::paths::give_attribute;
use crate::prepares::{announce, begin, receive, snapshot};
use crate::support::{VBID, config, files_config, key};

const PATIENCE: Duration = Duration::from_secs(60);
const WRITERS: u64 = 4;
const WRITES: u64 = 300;
const REPLICA: &str = "n_1";
const LEVELS: [DurabilityLevel; 3] = [
    DurabilityLevel::Majority,
    DurabilityLevel::MajorityAndPersistOnMaster,
    DurabilityLevel::PersistToMajority,
];

/// What became of durable writes: their ends by waiter, and who waits for one.
#[derive(Default)]
struct Ends {
    found: Mutex<BTreeMap<u64, Vec<Completion>>>,
    arrived: Condvar,
}

impl Completions for Ends {
    fn complete(&self, waiter: Waiter, completion: Completion) {
        self.found.lock().unwrap().entry(waiter.0).or_default().push(completion);
        self.arrived.notify_all();
    }

    fn release_memory(&self) {}
}

impl Ends {
    fn wait_for(&self, waiter: u64) -> bool {
        let found = self.found.lock().unwrap();
        let (found, waited) =
            self.arrived.wait_timeout_while(found, PATIENCE, |f| !f.contains_key(&waiter)).unwrap();
        assert!(!waited.timed_out(), "write {waiter} has not ended");
        matches!(found[&waiter][..], [Completion::SyncWrite(SyncWriteEnd::Committed { .. })])
    }
}

/// A bucket whose tasks have threads of their own.
struct Node {
    bucket: Bucket,
    ends: Arc<Ends>,
    pool: ExecutorPool,
    clock: Clock,
    _directory: tempfile::TempDir,
}

fn topology() -> Option<Topology> {
    Some(vec![vec![Some("n_0".to_owned()), Some(REPLICA.to_owned())]])
}

impl Node {
    fn start(config: BucketConfig) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (clock, ends) = (Clock::real(), Arc::<Ends>::default());
        let pool = ExecutorPool::start(clock.clone(), PoolOptions::for_cpus(2)).unwrap();
        let surroundings = Surroundings {
            clock: clock.clone(),
            files: Arc::new(RealFiles),
            pool: pool.clone(),
            completions: ends.clone(),
            entropy: Entropy::simulated(1),
        };
        let bucket = Bucket::open(surroundings, config, &directory.path().join("b")).unwrap();
        assert!(bucket.wait_until_serving(PATIENCE));
        Self { bucket, ends, pool, clock, _directory: directory }
    }

    /// Begins a durable write of a document of its own. Says whether it is under way.
    fn write(&self, session: &mut Session, number: u64) -> bool {
        let level = LEVELS[(number % 3) as usize];
        let deadline = self.clock.now().after(PATIENCE);
        let request = SyncWriteRequest { level, deadline, waiter: Waiter(number) };
        let condition = WriteCondition { sync_write: Some(request), ..WriteCondition::default() };
        let key = key(&number.to_string());
        let set = Write::set(VBID, key.as_key(), Incoming::plain(b"value"));
        let stored = self.bucket.store(session, Write { condition, ..set });
        match stored {
            Ok(Attempted::Answered(Written::Begun)) => true,
            Err(Refused::NotMyVbucket) => false,
            other => panic!("write {number}: {other:?}"),
        }
    }

    fn high_seqno(&self) -> Seqno {
        self.bucket.on_vbucket(VBID, |vbucket, _, _| vbucket.high_seqno()).unwrap()
    }

    fn stop(&self) {
        assert_eq!(self.bucket.shut_down(), Ok(()));
        self.pool.shutdown();
    }
}

/// Says that it is over when it goes, by a failure, too.
struct EndsWith<'a>(&'a AtomicBool);

impl Drop for EndsWith<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Says until the end that the replica has everything, and now and then what comes next, too: an
/// acknowledgement may be here before the write that it is for.
fn acknowledge_until(node: &Node, is_over: &AtomicBool) {
    let mut round = 0;
    while !is_over.load(Ordering::Acquire) {
        round += 1;
        let seqno = Seqno(node.high_seqno().0 + round % 2);
        node.bucket.on_vbucket(VBID, |vbucket, now, effects| {
            vbucket.acknowledge(REPLICA, seqno, now, effects);
        });
        thread::yield_now();
    }
}

#[test]
fn each_write_ends_once_however_acknowledgements_and_flushes_meet_it() {
    for config in [config(), files_config()] {
        let node = Node::start(config);
        node.bucket.set_vbucket_state(VBID, VbucketState::Active, topology()).unwrap();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| acknowledge_until(&node, &is_over));
            let _end = EndsWith(&is_over);
            thread::scope(|writers| {
                for writer in 0..WRITERS {
                    let node = &node;
                    writers.spawn(move || {
                        let mut session = Session::default();
                        for number in (0..WRITES).map(|write| writer * WRITES + write) {
                            assert!(node.write(&mut session, number));
                            assert!(node.ends.wait_for(number), "write {number} is committed");
                        }
                    });
                }
            });
        });
        let found = node.ends.found.lock().unwrap();
        assert_eq!(found.len() as u64, WRITERS * WRITES);
        assert!(found.values().all(|ends| ends.len() == 1), "each has one end");
        drop(found);
        assert_eq!(node.high_seqno(), Seqno(2 * WRITERS * WRITES), "a prepare and a commit each");
        node.stop();
    }
}

#[test]
fn a_document_with_attributes_is_stored_whoever_else_stores_it() {
    let node = Node::start(config());
    node.bucket.set_vbucket_state(VBID, VbucketState::Active, None).unwrap();
    give_attribute(&node.bucket, &mut Session::default(), "key");
    let value = vec![b'v'; 4 << 10];
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let (mut session, key) = (Session::default(), key("key"));
                for write in 0..2000 {
                    let set = Write::set(VBID, key.as_key(), Incoming::plain(&value));
                    let stored = node.bucket.store(&mut session, set);
                    let is_done = matches!(stored, Ok(Attempted::Answered(Written::Done(_))));
                    assert!(is_done, "write {write}: {stored:?}");
                }
            });
        }
    });
    let of_datatype = node.bucket.statistics().datatype_counts;
    assert_eq!(of_datatype[usize::from(Datatype::XATTR.bits())], 1, "the attribute is there still");
    node.stop();
}

#[test]
fn writes_end_when_the_vbucket_goes_whatever_else_happens() {
    let node = Node::start(config());
    node.bucket.set_vbucket_state(VBID, VbucketState::Active, topology()).unwrap();
    let (is_over, left) = (AtomicBool::new(false), AtomicU64::new(WRITERS));
    let deadline = node.clock.now().after(PATIENCE);
    thread::scope(|scope| {
        scope.spawn(|| acknowledge_until(&node, &is_over));
        let _end = EndsWith(&is_over);
        for writer in 0..WRITERS {
            let (node, left) = (&node, &left);
            scope.spawn(move || {
                let mut session = Session::default();
                for number in (0..WRITES).map(|write| writer * WRITES + write) {
                    // Refused while the vBucket plays another role.
                    while !node.write(&mut session, number) {
                        assert!(node.clock.now() < deadline, "it is active again and again");
                        thread::yield_now();
                    }
                }
                left.fetch_sub(1, Ordering::AcqRel);
            });
        }
        while left.load(Ordering::Acquire) > 0 && node.clock.now() < deadline {
            for state in [VbucketState::Dead, VbucketState::Replica, VbucketState::Active] {
                let topology = topology().filter(|_| state == VbucketState::Active);
                node.bucket.set_vbucket_state(VBID, state, topology).unwrap();
            }
        }
        // What is left is acknowledged, or ambiguous with the last change.
        node.bucket.set_vbucket_state(VBID, VbucketState::Dead, None).unwrap();
    });
    for number in 0..WRITERS * WRITES {
        node.ends.wait_for(number);
    }
    let found = node.ends.found.lock().unwrap();
    assert_eq!(found.len() as u64, WRITERS * WRITES);
    for (number, ends) in &*found {
        let [Completion::SyncWrite(end)] = &ends[..] else { panic!("{number}: {ends:?}") };
        assert!(matches!(end, SyncWriteEnd::Committed { .. } | SyncWriteEnd::Ambiguous(_)));
    }
    drop(found);
    node.stop();
}

/// Checks what a replica says that it holds, on whatever thread it says it.
#[derive(Default)]
struct Witness {
    bucket: OnceLock<Bucket>,
    /// In the order of the calls.
    told: Mutex<Vec<Seqno>>,
}

impl StreamObserver for Witness {
    fn log_grew(&self, _vbid: Vbid) {}

    fn cursor_dropped(&self, _vbid: Vbid, _cursor: CursorId) {}

    fn role_changed(&self, _vbid: Vbid, _state: Option<VbucketState>) {}

    fn prepares_held(&self, vbid: Vbid, seqno: Seqno) {
        let bucket = self.bucket.get().expect("the test has said which");
        let persisted = bucket.on_vbucket(vbid, |vbucket, _, _| vbucket.persisted_seqno());
        assert!(persisted >= Some(seqno), "{seqno} is told while {persisted:?} is on disk");
        self.told.lock().unwrap().push(seqno);
    }
}

#[test]
fn a_replica_says_what_it_holds_when_it_does_and_no_sooner() {
    const PREPARES: u64 = 2_000;
    let node = Node::start(config());
    let bucket = &node.bucket;
    let witness = Arc::<Witness>::default();
    assert!(witness.bucket.set(bucket.clone()).is_ok());
    bucket.observe_streams(witness.clone());
    bucket.set_vbucket_state(VBID, VbucketState::Replica, None).unwrap();
    begin(bucket);
    // Snapshots of one to seven prepares: their ends and the flusher's race for each.
    let mut seqno = 0;
    while seqno < PREPARES {
        let end = PREPARES.min(seqno + 1 + seqno % 7);
        announce(bucket, snapshot(seqno + 1, end, false));
        let prepare = Operation::Prepare(DurabilityLevel::PersistToMajority);
        for number in seqno + 1..=end {
            receive(bucket, &number.to_string(), number, prepare, false);
        }
        seqno = end;
    }
    let deadline = node.clock.now().after(PATIENCE);
    while !witness.told.lock().unwrap().contains(&Seqno(PREPARES)) {
        assert!(node.clock.now() < deadline, "the last one is told");
        thread::yield_now();
    }
    let mut told = witness.told.lock().unwrap().clone();
    let count = told.len();
    told.sort_unstable();
    told.dedup();
    assert_eq!(told.len(), count, "each seqno is told once");
    node.stop();
}
