//! Waking, snoozing and cancelling.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use executor::{Next, Shutdown, TaskContext, TaskHandle};
use platform::Clock;

use crate::support::{COMPUTE, NOTIFY, Tombstone, gate, next, pause, pool};

#[test]
fn a_wake_is_never_lost_however_many_threads_wake() {
    let pool = pool(3);
    let owner = pool.register_owner("bucket");
    // Each waker adds work before it wakes; a lost wake leaves work behind at the end.
    let work = Arc::new(AtomicU64::new(0));
    let done = Arc::new(AtomicU64::new(0));
    let handles: Vec<TaskHandle> = (0..4)
        .map(|_| {
            let (work, done) = (work.clone(), done.clone());
            let is_running = Arc::new(AtomicBool::new(false));
            let task = move |_: &TaskContext<'_>| {
                assert!(!is_running.swap(true, Ordering::SeqCst), "two runs at the same time");
                done.fetch_add(work.swap(0, Ordering::SeqCst), Ordering::SeqCst);
                assert!(is_running.swap(false, Ordering::SeqCst));
                Next::Sleep
            };
            pool.schedule_asleep(&owner, &COMPUTE, task).unwrap()
        })
        .collect();
    const WAKES: u64 = 20_000;
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (handles, work) = (&handles, &work);
            scope.spawn(move || {
                for wake in 0..WAKES {
                    work.fetch_add(1, Ordering::SeqCst);
                    handles[(wake as usize + thread) % handles.len()].wake();
                }
            });
        }
    });
    let (finished, wait) = channel();
    let expected = 4 * WAKES;
    let counted = done.clone();
    let check = move |_: &TaskContext<'_>| {
        if counted.load(Ordering::SeqCst) < expected {
            return Next::Again;
        }
        finished.send(()).unwrap();
        Next::Finished
    };
    pool.schedule(&owner, &NOTIFY, check).unwrap();
    next(&wait);
    assert_eq!(done.load(Ordering::SeqCst), expected);
}

#[test]
fn every_wake_of_a_sleeping_task_is_one_run() {
    let pool = pool(2);
    let owner = pool.register_owner("bucket");
    let (ran, runs) = channel();
    let task = move |_: &TaskContext<'_>| {
        ran.send(()).unwrap();
        Next::Sleep
    };
    let handle = pool.schedule_asleep(&owner, &COMPUTE, task).unwrap();
    // The wake may come before the previous run has ended: the hardest moment.
    for _ in 0..20_000 {
        handle.wake();
        next(&runs);
    }
    owner.unregister(Shutdown::Force);
    assert!(runs.try_recv().is_err(), "no run without a wake");
}

#[test]
fn wakes_during_a_run_cause_exactly_one_further_run() {
    let pool = pool(2);
    let owner = pool.register_owner("bucket");
    let (ran, runs) = channel();
    let (open, gate) = gate();
    let task = move |_: &TaskContext<'_>| {
        ran.send(()).unwrap();
        gate.pass();
        Next::Sleep
    };
    let handle = pool.schedule(&owner, &COMPUTE, task).unwrap();
    next(&runs);
    (0..10).for_each(|_| handle.wake());
    open.send(()).unwrap();
    next(&runs);
    open.send(()).unwrap();
    assert!(runs.recv_timeout(Duration::from_millis(100)).is_err(), "ten wakes, one run");
}

#[test]
fn a_task_that_wakes_itself_runs_again() {
    let pool = pool(1);
    let owner = pool.register_owner("bucket");
    let (finished, wait) = channel();
    let mut runs = 0;
    let task = move |context: &TaskContext<'_>| {
        runs += 1;
        if runs == 1_000 {
            finished.send(()).unwrap();
            return Next::Finished;
        }
        context.handle().wake();
        Next::Sleep
    };
    pool.schedule(&owner, &COMPUTE, task).unwrap();
    next(&wait);
}

#[test]
fn a_task_with_more_to_do_lets_others_run_between() {
    let pool = pool(1);
    let owner = pool.register_owner("bucket");
    let (finished, wait) = channel();
    let is_enough = Arc::new(AtomicBool::new(false));
    let stop = is_enough.clone();
    let busy = move |_: &TaskContext<'_>| {
        if stop.load(Ordering::SeqCst) { Next::Finished } else { Next::Again }
    };
    pool.schedule(&owner, &COMPUTE, busy).unwrap();
    let other = move |_: &TaskContext<'_>| {
        is_enough.store(true, Ordering::SeqCst);
        finished.send(()).unwrap();
        Next::Finished
    };
    pool.schedule(&owner, &COMPUTE, other).unwrap();
    next(&wait);
    owner.unregister(Shutdown::Drain);
}

#[test]
fn a_quick_task_does_not_wait_for_a_long_one() {
    let pool = pool(1);
    let owner = pool.register_owner("bucket");
    let (began, begun) = channel();
    let (open, gate) = gate();
    let long = move |_: &TaskContext<'_>| {
        began.send(()).unwrap();
        gate.pass();
        Next::Finished
    };
    pool.schedule(&owner, &COMPUTE, long).unwrap();
    next(&begun);
    let (ran, runs) = channel();
    let quick = move |_: &TaskContext<'_>| {
        ran.send(()).unwrap();
        Next::Finished
    };
    pool.schedule(&owner, &NOTIFY, quick).unwrap();
    next(&runs);
    open.send(()).unwrap();
}

#[test]
fn a_snoozed_task_runs_at_its_deadline_and_not_before() {
    let clock = Clock::real();
    let pool = pool(1);
    let owner = pool.register_owner("bucket");
    let (ran, runs) = channel();
    let task = move |context: &TaskContext<'_>| {
        ran.send(context.started()).unwrap();
        Next::Sleep
    };
    let handle = pool.schedule_asleep(&owner, &COMPUTE, task).unwrap();
    for milliseconds in [0, 1, 5, 30] {
        let due = clock.now().after(Duration::from_millis(milliseconds));
        handle.snooze(Duration::from_millis(milliseconds));
        assert!(next(&runs) >= due, "a deadline is never early");
    }
}

#[test]
fn a_wake_ends_a_snooze() {
    let pool = pool(1);
    let owner = pool.register_owner("bucket");
    let (ran, runs) = channel();
    let task = move |_: &TaskContext<'_>| {
        ran.send(()).unwrap();
        Next::Sleep
    };
    let handle = pool.schedule_asleep(&owner, &COMPUTE, task).unwrap();
    handle.snooze(Duration::from_millis(50));
    handle.wake();
    next(&runs);
    assert!(runs.recv_timeout(Duration::from_millis(150)).is_err(), "the deadline is spent");
    assert_eq!(pool.timer_count(), 0);
}

#[test]
fn a_task_has_one_deadline_however_often_it_is_snoozed() {
    let pool = pool(1);
    let owner = pool.register_owner("bucket");
    let handle = pool.schedule_asleep(&owner, &COMPUTE, |_: &TaskContext<'_>| Next::Sleep).unwrap();
    for seconds in [3_600, 7_200, 1_800, u64::MAX] {
        handle.snooze(Duration::from_secs(seconds));
        assert_eq!(pool.timer_count(), 1);
    }
    owner.unregister(Shutdown::Force);
    assert_eq!(pool.timer_count(), 0, "a destroyed task has no deadline");
    handle.snooze(Duration::from_millis(1));
    assert_eq!(pool.timer_count(), 0, "a dead task gets none");
}

#[test]
fn a_cancelled_sleeper_is_destroyed_by_the_pool_without_a_run() {
    let pool = pool(1);
    let owner = pool.register_owner("bucket");
    let (died, deaths) = channel();
    let tombstone = Tombstone(died);
    let task = move |_: &TaskContext<'_>| {
        let _owned = &tombstone;
        panic!("a cancelled task does not run")
    };
    let handle = pool.schedule_asleep(&owner, &COMPUTE, task).unwrap();
    assert!(handle.cancel());
    assert!(!handle.cancel(), "a task ends once");
    assert_eq!(next(&deaths), "NonIoPool0");
    handle.wake();
    owner.unregister(Shutdown::Drain);
}

#[test]
fn a_task_cancelled_during_its_run_ends_with_that_run() {
    let pool = pool(1);
    let owner = pool.register_owner("bucket");
    let (ran, runs) = channel();
    let (died, deaths) = channel();
    let (open, gate) = gate();
    let tombstone = Tombstone(died);
    let task = move |_: &TaskContext<'_>| {
        let _owned = &tombstone;
        ran.send(()).unwrap();
        gate.pass();
        Next::Again
    };
    let handle = pool.schedule(&owner, &COMPUTE, task).unwrap();
    next(&runs);
    handle.wake();
    assert!(handle.cancel());
    assert!(handle.is_dead());
    assert!(deaths.try_recv().is_err(), "it is still running");
    open.send(()).unwrap();
    next(&deaths);
    assert!(runs.try_recv().is_err(), "no further run");
}

#[test]
fn cancels_and_wakes_from_many_threads_destroy_each_task_once() {
    let pool = pool(2);
    let owner = pool.register_owner("bucket");
    let (died, deaths) = channel();
    const TASKS: usize = 500;
    for _ in 0..TASKS {
        let tombstone = Tombstone(died.clone());
        let task = move |_: &TaskContext<'_>| {
            let _owned = &tombstone;
            Next::SleepFor(Duration::from_micros(50))
        };
        let handle = pool.schedule(&owner, &COMPUTE, task).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..10).for_each(|_| handle.wake()));
            let first = scope.spawn(|| handle.cancel());
            let second = handle.cancel();
            assert!(first.join().unwrap() != second, "exactly one cancel ends the task");
        });
    }
    (0..TASKS).for_each(|_| drop(next(&deaths)));
    owner.unregister(Shutdown::Drain);
    assert!(deaths.try_recv().is_err());
}

#[test]
fn an_idle_pool_makes_no_wakeups() {
    let pool = pool(2);
    let owner = pool.register_owner("bucket");
    let (ran, runs) = channel();
    let task = move |_: &TaskContext<'_>| {
        ran.send(()).unwrap();
        Next::Sleep
    };
    let handle = pool.schedule(&owner, &COMPUTE, task).unwrap();
    next(&runs);
    pause(Duration::from_millis(100));
    let at_first = pool.wakeups();
    handle.wake();
    next(&runs);
    assert!(pool.wakeups() > at_first, "the counter counts");
    handle.snooze(Duration::from_secs(3_600));
    pause(Duration::from_millis(100));
    let before = pool.wakeups();
    pause(Duration::from_millis(300));
    assert_eq!(pool.wakeups(), before);
}
