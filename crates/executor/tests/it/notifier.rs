//! Tasks that know whether they were notified.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use executor::{Next, Notifier, Shutdown, TaskContext};

use crate::support::{COMPUTE, RUNS_MAX, lock, next, pool, simulated_pool};

#[test]
fn a_run_knows_whether_it_was_notified_or_its_time_has_passed() {
    let (mut driver, _) = simulated_pool();
    let owner = driver.pool().register_owner("bucket");
    let runs = Arc::new(Mutex::new(Vec::new()));
    let seen = runs.clone();
    let work = move |is_notified: bool, context: &TaskContext<'_>| {
        lock(&seen).push((context.started().0 / 1_000_000_000, is_notified));
        Next::SleepFor(Duration::from_secs(10))
    };
    let notifier = Notifier::schedule_asleep(driver.pool(), &owner, &COMPUTE, work).unwrap();
    assert_eq!(driver.advance(Duration::from_secs(1), RUNS_MAX), 0, "it sleeps at first");
    notifier.notify();
    driver.advance(Duration::from_secs(12), RUNS_MAX);
    notifier.notify();
    driver.advance(Duration::from_secs(9), RUNS_MAX);
    notifier.task().wake();
    driver.run_until_idle(RUNS_MAX);
    let expected = [(1, true), (11, false), (13, true), (22, false)];
    assert_eq!(*lock(&runs), expected);
}

#[test]
fn notifications_before_a_run_add_up_and_one_during_it_causes_another() {
    let (mut driver, _) = simulated_pool();
    let owner = driver.pool().register_owner("bucket");
    let own = Arc::new(Mutex::new(None::<Notifier>));
    let inside = own.clone();
    let mut left = 3;
    let work = move |is_notified: bool, _: &TaskContext<'_>| {
        assert!(is_notified);
        left -= 1;
        if left > 0 {
            let own = lock(&inside);
            let own = own.as_ref().unwrap();
            assert!(own.notify(), "the one that led here has been seen");
            assert!(!own.notify());
        }
        Next::Sleep
    };
    let notifier = Notifier::schedule_asleep(driver.pool(), &owner, &COMPUTE, work).unwrap();
    *lock(&own) = Some(notifier.clone());
    assert!(notifier.notify());
    assert!(!notifier.notify());
    assert!(!notifier.notify());
    assert_eq!(driver.run_until_idle(RUNS_MAX), 3);
}

#[test]
fn notifying_a_task_that_has_ended_is_harmless() {
    let (mut driver, _) = simulated_pool();
    let owner = driver.pool().register_owner("bucket");
    let work = |_: bool, _: &TaskContext<'_>| Next::Finished;
    let notifier = Notifier::schedule_asleep(driver.pool(), &owner, &COMPUTE, work).unwrap();
    notifier.notify();
    assert_eq!(driver.run_until_idle(RUNS_MAX), 1);
    notifier.notify();
    assert_eq!(driver.run_until_idle(RUNS_MAX), 0);
    owner.unregister(Shutdown::Drain);
    assert!(Notifier::schedule_asleep(driver.pool(), &owner, &COMPUTE, work).is_err());
}

/// Four threads add work and notify. Returns (notifications that woke, notified runs, other runs).
fn race(answer: Next) -> (u64, u64, u64) {
    const NOTIFICATIONS: u64 = 20_000;
    const THREADS: u64 = 4;
    let pool = pool(2);
    let owner = pool.register_owner("bucket");
    let work = Arc::new(AtomicU64::new(0));
    let runs = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let (finished, wait) = channel();
    let body = {
        let (work, runs) = (work.clone(), runs.clone());
        let (is_running, mut done) = (AtomicBool::new(false), 0);
        move |is_notified: bool, context: &TaskContext<'_>| {
            assert!(!is_running.swap(true, Ordering::SeqCst), "two runs at the same time");
            runs[usize::from(is_notified)].fetch_add(1, Ordering::SeqCst);
            let before = done;
            // Relaxed: the notification itself must carry the work over.
            done += work.swap(0, Ordering::Relaxed);
            if done == NOTIFICATIONS * THREADS && done > before {
                finished.send(()).expect("the test waits");
            }
            is_running.store(false, Ordering::SeqCst);
            if context.is_shutting_down() { Next::Finished } else { answer }
        }
    };
    let notifier =
        Notifier::schedule_asleep(&pool, &owner, &COMPUTE, body).expect("the owner is there");
    let woke = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..NOTIFICATIONS {
                    work.fetch_add(1, Ordering::Relaxed);
                    woke.fetch_add(u64::from(notifier.notify()), Ordering::Relaxed);
                }
            });
        }
    });
    next(&wait);
    // A last run, which sees the last notification if no other has.
    owner.unregister(Shutdown::Drain);
    (woke.into_inner(), runs[1].load(Ordering::SeqCst), runs[0].load(Ordering::SeqCst))
}

#[test]
fn no_notification_is_lost_and_each_that_wakes_is_one_run() {
    let (woke, notified, others) = race(Next::Sleep);
    assert_eq!(notified, woke);
    assert!(others <= 1, "nobody but the drain wakes the task for another reason");
}

#[test]
fn no_notification_is_lost_among_runs_for_other_reasons() {
    for answer in [Next::SleepFor(Duration::from_micros(20)), Next::Again] {
        let (woke, notified, _) = race(answer);
        assert_eq!(notified, woke, "{answer:?}");
    }
}
