//! Deadlines of heads of queues.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use executor::{HeadTimeout, Shutdown};
use platform::seeds::seeds;
use platform::{Clock, Instant, Random};

use crate::support::{COMPUTE, NOTIFY, RUNS_MAX, lock, next, pause, pool, simulated_pool};

fn seconds(seconds: u64) -> Instant {
    Instant(seconds * 1_000_000_000)
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn the_call_comes_at_the_deadline_wherever_that_moved() {
    // (deadlines set at seconds 0, 1, 2, ..., when the call comes)
    let cases: [(&[Option<u64>], Option<u64>); 9] = [
        (&[], None),
        (&[Some(5)], Some(5)),
        (&[Some(50), Some(5)], Some(5)),
        (&[Some(5), Some(50)], Some(50)),
        (&[Some(5), None], None),
        (&[Some(5), None, Some(9)], Some(9)),
        (&[Some(9), Some(50), Some(7), Some(20), Some(8)], Some(8)),
        (&[None, None, Some(1)], Some(2)),
        (&[Some(2), Some(50), Some(50), Some(9)], Some(9)),
    ];
    for (deadlines, expected) in cases {
        let (mut driver, _) = simulated_pool();
        let owner = driver.pool().register_owner("bucket");
        let calls = Arc::new(Mutex::new(Vec::new()));
        let called = calls.clone();
        let on_due = move |now| {
            lock(&called).push(now);
            None
        };
        let timeout = HeadTimeout::schedule(driver.pool(), &owner, &COMPUTE, on_due).unwrap();
        for deadline in deadlines {
            timeout.set_deadline(deadline.map(seconds));
            assert_eq!(timeout.deadline(), deadline.map(seconds));
            driver.advance(SECOND, RUNS_MAX);
        }
        let looks = driver.advance(SECOND * 1_000, RUNS_MAX);
        assert!(looks <= deadlines.len(), "{looks} runs");
        let expected: Vec<_> = expected.into_iter().map(seconds).collect();
        assert_eq!(*lock(&calls), expected, "{deadlines:?}");
        assert_eq!(timeout.deadline(), None);
        assert_eq!(driver.pool().timer_count(), 0, "{deadlines:?}");
    }
}

#[test]
fn a_deadline_that_keeps_moving_on_costs_one_run_a_timeout() {
    let (mut driver, clock) = simulated_pool();
    let owner = driver.pool().register_owner("bucket");
    let on_due = |_| panic!("it is never due");
    let timeout = HeadTimeout::schedule(driver.pool(), &owner, &COMPUTE, on_due).unwrap();
    let mut runs = 0;
    for _ in 0..3_000 {
        timeout.set_deadline(Some(clock.now().after(SECOND * 30)));
        runs += driver.advance(Duration::from_millis(100), RUNS_MAX);
    }
    assert!((1..=10).contains(&runs), "{runs} runs in 300 seconds");
}

#[test]
fn the_call_answers_the_next_deadline() {
    let (mut driver, _) = simulated_pool();
    let owner = driver.pool().register_owner("bucket");
    let calls = Arc::new(Mutex::new(Vec::new()));
    let called = calls.clone();
    let mut left = VecDeque::from([7, 7, 3, 20]);
    let on_due = move |now| {
        lock(&called).push(now);
        left.pop_front().map(seconds)
    };
    let timeout = HeadTimeout::schedule(driver.pool(), &owner, &COMPUTE, on_due).unwrap();
    timeout.set_deadline(Some(seconds(5)));
    driver.advance(SECOND * 100, RUNS_MAX);
    assert_eq!(*lock(&calls), [5, 7, 7, 7, 20].map(seconds));
}

#[test]
fn of_the_answer_and_a_deadline_set_during_the_call_the_earlier_holds() {
    for (set, answered, expected) in
        [(Some(9), None, 9), (Some(9), Some(12), 9), (Some(12), Some(9), 9), (None, Some(9), 9)]
    {
        let (mut driver, _) = simulated_pool();
        let owner = driver.pool().register_owner("bucket");
        let calls = Arc::new(Mutex::new(Vec::new()));
        let own = Arc::new(Mutex::new(None::<HeadTimeout>));
        let (called, inside) = (calls.clone(), own.clone());
        let on_due = move |now| {
            let mut called = lock(&called);
            called.push(now);
            if called.len() > 1 {
                return None;
            }
            lock(&inside).as_ref().unwrap().set_deadline(set.map(seconds));
            answered.map(seconds)
        };
        let timeout = HeadTimeout::schedule(driver.pool(), &owner, &COMPUTE, on_due).unwrap();
        timeout.set_deadline(Some(seconds(5)));
        *lock(&own) = Some(timeout);
        driver.advance(SECOND * 100, RUNS_MAX);
        assert_eq!(*lock(&calls), [5, expected].map(seconds), "{set:?} {answered:?}");
        lock(&own).take();
    }
}

#[test]
fn a_new_entry_never_moves_the_deadline_of_the_head_back() {
    let (mut driver, _) = simulated_pool();
    let owner = driver.pool().register_owner("bucket");
    let timeout = HeadTimeout::schedule(driver.pool(), &owner, &COMPUTE, |_| None).unwrap();
    for (expected_by, deadline) in [(9, 9), (12, 9), (5, 5), (9, 5)] {
        timeout.expect_by(seconds(expected_by));
        assert_eq!(timeout.deadline(), Some(seconds(deadline)));
    }
    driver.advance(SECOND * 4, RUNS_MAX);
    assert!(timeout.deadline().is_some());
    driver.advance(SECOND, RUNS_MAX);
    assert_eq!(timeout.deadline(), None);
}

#[test]
fn neither_a_wake_nor_a_drain_makes_it_early() {
    let (mut driver, _) = simulated_pool();
    let owner = driver.pool().register_owner("bucket");
    let on_due = |_| panic!("it is not due");
    let timeout = HeadTimeout::schedule(driver.pool(), &owner, &COMPUTE, on_due).unwrap();
    timeout.set_deadline(Some(seconds(5)));
    timeout.task().wake();
    assert_eq!(driver.advance(SECOND * 4, RUNS_MAX), 1);
    owner.unregister(Shutdown::Drain);
    timeout.set_deadline(Some(seconds(4)));
    assert_eq!(driver.advance(SECOND * 4, RUNS_MAX), 0, "a timeout that has ended is silent");
}

#[test]
fn on_a_real_clock_no_call_is_early_and_none_is_lost() {
    let pool = pool(1);
    let owner = pool.register_owner("bucket");
    let (called, calls) = channel();
    let on_due = move |now| {
        called.send(now).unwrap();
        None
    };
    let timeout = HeadTimeout::schedule(&pool, &owner, &NOTIFY, on_due).unwrap();
    for milliseconds in [0, 1, 13, 40] {
        let deadline = pool.clock().now().after(Duration::from_millis(milliseconds));
        timeout.set_deadline(Some(deadline.after(SECOND * 3_600)));
        timeout.set_deadline(Some(deadline));
        assert!(next(&calls) >= deadline);
        assert!(calls.try_recv().is_err(), "one deadline, one call");
    }
}

/// A queue whose entries have deadlines of their own, in any order, and what serves it.
#[derive(Default)]
struct Entries(Mutex<Vec<Instant>>);

impl Entries {
    fn take_due(&self, now: Instant) -> (u64, Option<Instant>) {
        let mut entries = lock(&self.0);
        let before = entries.len();
        entries.retain(|&deadline| deadline > now);
        ((before - entries.len()) as u64, entries.iter().min().copied())
    }
}

#[test]
fn racing_threads_that_add_entries_lose_none() {
    const THREADS: u64 = 4;
    const ENTRIES: u64 = 1_000;
    for seed in seeds(3) {
        let pool = pool(2);
        let owner = pool.register_owner("bucket");
        let entries = Arc::new(Entries::default());
        let ended = Arc::new(AtomicU64::new(0));
        let (finished, wait) = channel();
        let on_due = {
            let (entries, ended) = (entries.clone(), ended.clone());
            move |now| {
                let (due, next) = entries.take_due(now);
                if ended.fetch_add(due, Ordering::SeqCst) + due == THREADS * ENTRIES && due > 0 {
                    finished.send(()).unwrap();
                }
                next
            }
        };
        let timeout = HeadTimeout::schedule(&pool, &owner, &NOTIFY, on_due).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (timeout, entries, clock) = (&timeout, &entries, pool.clock());
                scope.spawn(move || add(timeout, entries, clock, seed * THREADS + thread, ENTRIES));
            }
        });
        next(&wait);
        assert_eq!(ended.load(Ordering::SeqCst), THREADS * ENTRIES, "seed {seed}");
        assert!(lock(&entries.0).is_empty());
    }
}

fn add(timeout: &HeadTimeout, entries: &Entries, clock: &Clock, seed: u64, count: u64) {
    let mut random = Random::from_seed(seed);
    for number in 0..count {
        let deadline = clock.now().after(Duration::from_micros(random.below(5_000)));
        lock(&entries.0).push(deadline);
        timeout.expect_by(deadline);
        if number % 100 == 0 {
            pause(Duration::from_millis(1));
        }
    }
}
