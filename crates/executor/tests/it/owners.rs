//! Registering owners and ending their tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use executor::{Next, OwnerIsGone, Shutdown, TaskContext, TaskKind};

use crate::support::{COMPUTE, FLUSH, Tombstone, gate, next, pause, pool};

#[test]
fn an_owner_without_tasks_unregisters_at_once_and_for_good() {
    let pool = pool(1);
    for shutdown in [Shutdown::Drain, Shutdown::Force] {
        let owner = pool.register_owner("bucket");
        owner.unregister(shutdown);
        owner.unregister(Shutdown::Force);
        let refused = pool.schedule(&owner, &COMPUTE, |_: &TaskContext<'_>| Next::Finished);
        assert_eq!(refused.unwrap_err(), OwnerIsGone);
        assert_eq!(owner.task_count(), 0);
    }
}

#[test]
fn force_destroys_sleepers_without_another_run() {
    let pool = pool(1);
    let owner = pool.register_owner("bucket");
    let (died, deaths) = channel();
    for _ in 0..10 {
        let tombstone = Tombstone(died.clone());
        let task = move |_: &TaskContext<'_>| {
            let _owned = &tombstone;
            panic!("force starts no run")
        };
        pool.schedule_asleep(&owner, &COMPUTE, task).unwrap();
    }
    assert_eq!(owner.task_count(), 10);
    owner.unregister(Shutdown::Force);
    assert_eq!(deaths.try_iter().count(), 10, "all are destroyed when unregister returns");
}

#[test]
fn drain_runs_every_task_at_least_once_more_whatever_it_answers() {
    let pool = pool(2);
    for last in [Next::Finished, Next::Sleep, Next::SleepFor(Duration::from_secs(3_600))] {
        let owner = pool.register_owner("bucket");
        let last_runs = Arc::new(AtomicU64::new(0));
        let counter = last_runs.clone();
        let mut left = 3;
        let task = move |context: &TaskContext<'_>| {
            if !context.is_shutting_down() {
                return Next::Sleep;
            }
            left -= 1;
            if left > 0 {
                return Next::Again;
            }
            counter.fetch_add(1, Ordering::SeqCst);
            last
        };
        pool.schedule_asleep(&owner, &FLUSH, task).unwrap();
        owner.unregister(Shutdown::Drain);
        assert_eq!(last_runs.load(Ordering::SeqCst), 1, "{last:?}");
        assert_eq!(pool.timer_count(), 0);
    }
}

#[test]
fn drain_lets_a_running_task_run_once_more() {
    let pool = pool(1);
    let owner = pool.register_owner("bucket");
    let (began, begun) = channel();
    let (open, gate) = gate();
    let saw_shutdown = Arc::new(AtomicBool::new(false));
    let saw = saw_shutdown.clone();
    let task = move |context: &TaskContext<'_>| {
        saw.store(context.is_shutting_down(), Ordering::SeqCst);
        began.send(()).unwrap();
        gate.pass();
        Next::Sleep
    };
    pool.schedule(&owner, &FLUSH, task).unwrap();
    next(&begun);
    std::thread::scope(|scope| {
        let unregister = scope.spawn(|| owner.unregister(Shutdown::Drain));
        while pool.schedule(&owner, &COMPUTE, |_: &TaskContext<'_>| Next::Finished).is_ok() {}
        open.send(()).unwrap();
        open.send(()).unwrap();
        unregister.join().unwrap();
    });
    assert!(saw_shutdown.load(Ordering::SeqCst));
}

#[test]
fn force_waits_for_a_running_task() {
    let pool = pool(1);
    let owner = pool.register_owner("bucket");
    let (began, begun) = channel();
    let (open, gate) = gate();
    let (died, deaths) = channel();
    let tombstone = Tombstone(died);
    let task = move |_: &TaskContext<'_>| {
        let _owned = &tombstone;
        began.send(()).unwrap();
        gate.pass();
        Next::Again
    };
    pool.schedule(&owner, &COMPUTE, task).unwrap();
    next(&begun);
    std::thread::scope(|scope| {
        let unregister = scope.spawn(|| owner.unregister(Shutdown::Force));
        pause(Duration::from_millis(50));
        assert!(!unregister.is_finished(), "the task still runs");
        open.send(()).unwrap();
        unregister.join().unwrap();
    });
    assert_eq!(deaths.try_iter().count(), 1);
    assert!(begun.try_recv().is_err(), "no second run");
}

#[test]
fn scheduling_while_unregistering_is_done_or_refused_but_never_hangs() {
    let pool = pool(2);
    for round in 0..50 {
        let shutdown = if round % 2 == 0 { Shutdown::Drain } else { Shutdown::Force };
        let owner = pool.register_owner("bucket");
        let (died, deaths) = channel();
        let accepted = std::thread::scope(|scope| {
            let (pool, other) = (&pool, owner.clone());
            let scheduler = scope.spawn(move || {
                (0..200)
                    .take_while(|_| {
                        let tombstone = Tombstone(died.clone());
                        let task = move |_: &TaskContext<'_>| {
                            let _owned = &tombstone;
                            Next::Finished
                        };
                        pool.schedule(&other, &COMPUTE, task).is_ok()
                    })
                    .count()
            });
            owner.unregister(shutdown);
            scheduler.join().unwrap()
        });
        // A task that is being refused counts for a moment.
        assert_eq!(owner.task_count(), 0, "none slips in behind");
        // A refused task is destroyed as well, by its caller.
        let refused = usize::from(accepted < 200);
        assert_eq!(deaths.iter().count(), accepted + refused);
    }
}

#[test]
fn owners_do_not_touch_each_others_tasks() {
    let pool = pool(1);
    let (first, second) = (pool.register_owner("first"), pool.register_owner("second"));
    assert_eq!(first.name(), "first");
    let (ran, runs) = channel();
    let task = move |_: &TaskContext<'_>| {
        ran.send(()).unwrap();
        Next::Sleep
    };
    let handle = pool.schedule_asleep(&second, &COMPUTE, task).unwrap();
    first.unregister(Shutdown::Force);
    handle.wake();
    next(&runs);
}

#[test]
fn a_destructor_may_schedule() {
    struct Schedules(Option<Box<dyn FnOnce() + Send>>);
    impl Drop for Schedules {
        fn drop(&mut self) {
            if let Some(schedule) = self.0.take() {
                schedule();
            }
        }
    }
    let pool = pool(1);
    let (mortal, heir) = (pool.register_owner("mortal"), pool.register_owner("heir"));
    let (ran, runs) = channel();
    let inside = pool.clone();
    let will = Schedules(Some(Box::new(move || {
        inside.add(&heir, TaskKind::NonIo, move || ran.send(()).unwrap()).unwrap();
    })));
    let task = move |_: &TaskContext<'_>| {
        let _owned = &will;
        Next::Sleep
    };
    pool.schedule_asleep(&mortal, &COMPUTE, task).unwrap().cancel();
    next(&runs);
    mortal.unregister(Shutdown::Drain);
}
