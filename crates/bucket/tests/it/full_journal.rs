//! A full journal is an ordinary state: roles become durable, batches find room, stops end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bucket::{
    ApplyConfig, Bucket, BucketConfig, Completion, Completions, Incoming, Persistence, Write,
};
use bucket::{Session, Surroundings};
use document::{Seqno, Vbid, VbucketState};
use executor::{ExecutorPool, PoolOptions};
use platform::files::RealFiles;
use platform::threads::pause;
use platform::{Clock, Entropy};
use storage::JournalOptions;
use tracing::Level;
use vbucket::Waiter;

use crate::heard_log::HeardLog;
use crate::support::{Machine, OTHER, VBID, Waits, config, key};

const PATIENCE: Duration = Duration::from_secs(60);
const CYCLE: Duration = Duration::from_secs(10);

/// A bucket with a journal of 2 MiB whose files are behind for a while.
fn lazy_config() -> BucketConfig {
    BucketConfig { apply: ApplyConfig { cycle: CYCLE, applier_count: 2 }, ..config() }
}

struct Nobody;

impl Completions for Nobody {
    fn complete(&self, _: Waiter, _: Completion) {}

    fn release_memory(&self) {}
}

/// The same bucket on real files, with threads of its own.
struct Node {
    bucket: Bucket,
    pool: ExecutorPool,
    _directory: tempfile::TempDir,
}

impl Node {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = Clock::real();
        let pool = ExecutorPool::start(clock.clone(), PoolOptions::for_cpus(2)).unwrap();
        let surroundings = Surroundings {
            clock,
            files: Arc::new(RealFiles),
            pool: pool.clone(),
            completions: Arc::new(Nobody),
            entropy: Entropy::simulated(1),
        };
        let path = directory.path().join("b");
        // So that a stop has some ten times the journal to write, and not a hundred.
        let config = BucketConfig { memory_quota_bytes: 64 << 20, ..lazy_config() };
        let bucket = Bucket::open(surroundings, config, &path).unwrap();
        assert!(bucket.wait_until_serving(PATIENCE));
        Self { bucket, pool, _directory: directory }
    }

    /// Stores documents until it is told to stop; what is refused is tried again.
    fn write(&self, vbid: Vbid, is_over: &AtomicBool) {
        let mut session = Session::default();
        for number in 0_u64.. {
            if is_over.load(Ordering::Acquire) {
                return;
            }
            let key = key(&(number % 1000).to_string());
            let write = Write::set(vbid, key.as_key(), Incoming::plain(&[7; 3000]));
            let stored = self.bucket.store(&mut session, write);
            if stored.is_err() {
                pause(Duration::from_millis(1));
            }
        }
    }

    fn full_waits(&self) -> u64 {
        self.bucket.statistics().journal_full_waits
    }
}

fn wait_until(what: impl Fn() -> bool) {
    let clock = Clock::real();
    let began = clock.now();
    while !what() {
        assert!(clock.now().since(began) < PATIENCE, "it has not come about");
        pause(Duration::from_millis(1));
    }
}

#[test]
fn a_stop_with_a_full_journal_loses_nothing() {
    for round in 0..3 {
        let (node, is_over) = (Node::start(), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| node.write(VBID, &is_over));
            wait_until(|| node.full_waits() > 0);
            pause(Duration::from_millis(20 * round));
            is_over.store(true, Ordering::Release);
        });
        assert_eq!(node.bucket.shut_down(), Ok(()), "round {round}");
        node.pool.shutdown();
    }
}

#[test]
fn roles_become_durable_while_writers_keep_the_journal_full() {
    let (node, is_over) = (Node::start(), AtomicBool::new(false));
    thread::scope(|scope| {
        for vbid in [VBID, OTHER] {
            scope.spawn({
                let (node, is_over) = (&node, &is_over);
                move || node.write(vbid, is_over)
            });
        }
        wait_until(|| node.full_waits() > 0);
        let states = [VbucketState::Dead, VbucketState::Active];
        for state in states.into_iter().cycle().take(20) {
            let set = node.bucket.set_vbucket_state(OTHER, state, None);
            if set.is_err() {
                is_over.store(true, Ordering::Release);
            }
            set.unwrap();
            pause(Duration::from_millis(5));
        }
        is_over.store(true, Ordering::Release);
    });
    assert_eq!(node.bucket.shut_down(), Ok(()));
    node.pool.shutdown();
}

/// A bucket whose journal is full, and whose files are behind.
fn full() -> Machine {
    let mut machine = Machine::with(lazy_config());
    for number in 0..1000 {
        for vbid in [VBID, OTHER] {
            machine.set(vbid, &number.to_string(), &[7; 3000]).unwrap();
        }
    }
    while machine.bucket.statistics().journal_full_waits == 0 {
        if !machine.driver.run_one() {
            machine.advance(Duration::from_millis(5));
        }
    }
    machine
}

#[test]
fn a_role_becomes_durable_ahead_of_the_items_that_wait_for_room() {
    for state in [VbucketState::Dead, VbucketState::Replica, VbucketState::Pending] {
        let machine = full();
        let (persisted, applies) = (machine.persisted(OTHER), machine.bucket.statistics().applies);
        assert!(persisted < machine.high_seqno(OTHER));
        machine.bucket.set_vbucket_state(OTHER, state, None).unwrap();
        let applied = machine.bucket.statistics().applies - applies;
        assert_eq!(applied, 0, "no file has to follow for that");
        let mut machine = machine.power_cut(0);
        machine.run();
        let found = machine.bucket.on_vbucket(OTHER, |vbucket, _, _| vbucket.state());
        assert_eq!(found, Some(state));
        assert_eq!(machine.high_seqno(OTHER), persisted);
    }
}

#[test]
fn a_group_as_large_as_the_journal_waits_for_files_and_not_for_ever() {
    let options = JournalOptions {
        segment_bytes: 64 << 10,
        bytes_max: 128 << 10,
        group_bytes_max: 32 << 10,
        portion_bytes: 4096,
    };
    let persistence = Persistence::Journal(options);
    let mut machine = Machine::with(BucketConfig { persistence, ..lazy_config() });
    for number in 1..=4 {
        let seqno = machine.set(VBID, &number.to_string(), &[7; 100 << 10]).unwrap().seqno;
        if let Err(refused) = machine.wait(number, VBID, seqno) {
            assert_eq!(refused, Waits);
            machine.run();
            // Far less than a cycle: who waits for room hurries those who make it.
            machine.advance(Duration::from_millis(500));
            machine.advance(Duration::from_millis(500));
            assert_eq!(machine.heard.take(), [(number, Completion::Persisted)]);
        }
    }
    assert!(machine.bucket.statistics().journal_full_waits > 0);
}

#[test]
fn one_vbucket_hands_over_a_small_part_of_the_journal_at_a_time() {
    let mut machine = Machine::with(BucketConfig { memory_quota_bytes: 8 << 30, ..lazy_config() });
    for number in 0..1000 {
        machine.set(VBID, &number.to_string(), &[7; 4096]).unwrap();
    }
    let before = machine.bucket.statistics().commits;
    machine.advance(CYCLE);
    assert_eq!(machine.persisted(VBID), Seqno(1000));
    let commits = machine.bucket.statistics().commits - before;
    let batch_bytes = 1000 * 4096 / commits;
    let journal = machine.bucket.journal_usage().unwrap();
    assert!(batch_bytes <= journal.bytes_max / 8, "{commits} batches");
}

#[test]
fn a_full_disk_is_told_once_a_minute_and_not_by_each_applier_each_second() {
    let mut machine = Machine::with(lazy_config());
    machine.set(VBID, "key", b"value").unwrap();
    machine.run();
    let heard = HeardLog::default();
    heard.during(|| {
        machine.files.set_capacity(0);
        for _ in 0..100 {
            machine.advance(Duration::from_secs(1));
        }
    });
    assert!(heard.has(Level::WARN, "no room is made ready for the journal"), "{heard:?}");
    assert!(heard.count(Level::WARN) <= 3, "{heard:?}");
}
