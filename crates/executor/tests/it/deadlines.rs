//! Deadlines on the real clock: never early, seldom late, replaced, forgotten.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use executor::{ExecutorPool, Next, Owner, TaskContext, TaskHandle};
use platform::seeds::seeds;
use platform::{Clock, Instant, Random};

use crate::support::{COMPUTE, TellOnPanic, next, pause, pool};

/// A task that tells when it runs.
fn teller(pool: &ExecutorPool, owner: &Owner) -> (TaskHandle, Receiver<Instant>) {
    let (told, runs) = channel();
    let task = move |_: &TaskContext<'_>| {
        told.send(Clock::real().now()).unwrap();
        Next::Sleep
    };
    (pool.schedule_asleep(owner, &COMPUTE, task).unwrap(), runs)
}

#[test]
fn thousands_of_deadlines_are_never_early_and_none_is_lost() {
    const TIMERS: usize = 4_000;
    let clock = Clock::real();
    for seed in seeds(1) {
        let _seed = TellOnPanic(seed);
        let mut random = Random::from_seed(seed);
        let pool = pool(2);
        let owner = pool.register_owner("bucket");
        let (told, runs) = channel();
        for _ in 0..TIMERS {
            let due_ns = Arc::new(AtomicU64::new(u64::MAX));
            let (told, due) = (told.clone(), due_ns.clone());
            let task = move |context: &TaskContext<'_>| {
                told.send((context.started().0, due.load(Ordering::SeqCst))).unwrap();
                Next::Finished
            };
            let handle = pool.schedule_asleep(&owner, &COMPUTE, task).unwrap();
            let duration = Duration::from_micros(random.below(500_000));
            due_ns.store(clock.now().after(duration).0, Ordering::SeqCst);
            handle.snooze(duration);
        }
        let mut late_ns: Vec<u64> = (0..TIMERS)
            .map(|_| {
                let (started, due) = next(&runs);
                assert!(started >= due, "early by {} ns", due - started);
                started - due
            })
            .collect();
        late_ns.sort_unstable();
        let (median, maximum) = (late_ns[TIMERS / 2], late_ns[TIMERS - 1]);
        // How late is for the machine to say: a busy one, or a sanitizer, makes everything late.
        println!("late by {median} ns in the median, {maximum} ns at most");
        assert_eq!(pool.timer_count(), 0);
    }
}

#[test]
fn the_last_snooze_holds_whether_it_is_earlier_later_or_zero() {
    let clock = Clock::real();
    let pool = pool(1);
    let owner = pool.register_owner("bucket");
    // The snoozes, one after the other, in milliseconds.
    for snoozes in [&[3_600_000, 20][..], &[20, 80], &[20, 80, 40], &[3_600_000, 0], &[30, 30]] {
        let (handle, runs) = teller(&pool, &owner);
        snoozes.iter().for_each(|&snooze| handle.snooze(Duration::from_millis(snooze)));
        let before = clock.now();
        let last = Duration::from_millis(snoozes[snoozes.len() - 1]);
        let ran = next(&runs);
        // The last snooze was made before `before`, by as little as this thread needs.
        let slack = Duration::from_millis(5);
        assert!(ran.after(slack) >= before.after(last), "{snoozes:?}");
        assert!(runs.recv_timeout(Duration::from_millis(100)).is_err(), "{snoozes:?}: one run");
        assert!(handle.cancel());
    }
}

#[test]
fn a_cancelled_task_does_not_run_at_its_deadline() {
    let pool = pool(1);
    let owner = pool.register_owner("bucket");
    let handles: Vec<_> = (0..100).map(|_| teller(&pool, &owner)).collect();
    for (handle, _) in &handles {
        handle.snooze(Duration::from_millis(40));
    }
    assert!(handles.iter().all(|(handle, _)| handle.cancel()));
    pause(Duration::from_millis(120));
    assert!(handles.iter().all(|(_, runs)| runs.try_recv().is_err()));
    assert_eq!((owner.task_count(), pool.timer_count()), (0, 0));
}

/// A deadline that a wake has ended stays in the wheel until its time: one look for each of those
/// times. One more is spent where a slot of the wheel's second level, 640 ms, begins: there its
/// entries move down.
#[test]
fn forgotten_deadlines_cost_at_most_one_wakeup_each() {
    const TIMERS: u64 = 8;
    let pool = pool(1);
    let owner = pool.register_owner("bucket");
    for number in 0..TIMERS {
        let (handle, runs) = teller(&pool, &owner);
        handle.snooze(Duration::from_millis(300 + 20 * number));
        handle.wake();
        next(&runs);
    }
    pause(Duration::from_millis(100));
    let before = pool.wakeups();
    pause(Duration::from_millis(500));
    let wakeups = pool.wakeups() - before;
    assert!(wakeups <= TIMERS + 1, "{wakeups} wakeups");
    assert_eq!(pool.timer_count(), 0);
    let before = pool.wakeups();
    pause(Duration::from_millis(300));
    assert_eq!(pool.wakeups(), before, "then nothing is left to wake up for");
}
