//! Where and when tasks are destroyed.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use executor::{Next, OwnerScope, Shutdown, TaskContext, TaskHandle, TaskKind, TaskName};

use crate::support::{COMPUTE, Tombstone, gate, next, pause, pool};

static DROPPABLE: TaskName = TaskName::new("Droppable", TaskKind::NonIo).may_be_dropped();

/// Does something when it is dropped.
struct OnDrop<F: FnMut() + Send>(F);

impl<F: FnMut() + Send> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

thread_local! {
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

struct Scope(Arc<AtomicU64>);

impl OwnerScope for Scope {
    fn within(&self, work: &mut dyn FnMut()) {
        assert!(!IS_INSIDE.replace(true), "not twice");
        work();
        IS_INSIDE.set(false);
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn runs_and_destructions_are_within_the_owners_scope() {
    let pool = pool(1);
    let entered = Arc::new(AtomicU64::new(0));
    let owner = pool.register_owner_within("bucket", Scope(entered.clone()));
    let (told, answers) = channel();
    let make = || {
        let (ran, destroyed) = (told.clone(), told.clone());
        let on_drop = OnDrop(move || destroyed.send(("destroyed", IS_INSIDE.get())).unwrap());
        move |_: &TaskContext<'_>| {
            let _owned = &on_drop;
            ran.send(("ran", IS_INSIDE.get())).unwrap();
            Next::Finished
        }
    };
    pool.schedule(&owner, &COMPUTE, make()).unwrap();
    assert_eq!([next(&answers), next(&answers)], [("ran", true), ("destroyed", true)]);
    pool.schedule_asleep(&owner, &COMPUTE, make()).unwrap();
    owner.unregister(Shutdown::Force);
    assert_eq!(answers.try_recv().unwrap(), ("destroyed", true), "by whoever unregisters, too");
    assert_eq!(entered.load(Ordering::SeqCst), 3);
}

/// Wherever the task is destroyed: by a worker after a run, by one after a cancel, by whoever
/// unregisters the owner of a sleeper and of a queued task.
#[test]
fn a_destructor_may_do_all_that_a_pool_offers() {
    let pool = pool(2);
    let ways: [fn(&TaskHandle); 4] =
        [|handle| assert!(handle.cancel()), TaskHandle::wake, |_| {}, TaskHandle::wake];
    for (way, act) in ways.into_iter().enumerate() {
        let mortal = pool.register_owner("mortal");
        let (other, heir) = (pool.register_owner("other"), pool.register_owner("heir"));
        let sleeper = |_: &TaskContext<'_>| Next::Sleep;
        let asleep = pool.schedule_asleep(&heir, &COMPUTE, sleeper).unwrap();
        pool.schedule_asleep(&other, &COMPUTE, sleeper).unwrap();
        let (inside, (done, wait)) = (pool.clone(), channel());
        let will = OnDrop(move || {
            asleep.wake();
            asleep.snooze(Duration::from_secs(60));
            inside.add(&heir, TaskKind::Reader, || {}).unwrap();
            other.unregister(Shutdown::Drain);
            assert!(inside.timer_count() <= 1);
            done.send(inside.workload().len()).unwrap();
            asleep.cancel();
        });
        let task = move |_: &TaskContext<'_>| {
            let _owned = &will;
            Next::Finished
        };
        let handle = pool.schedule_asleep(&mortal, &COMPUTE, task).unwrap();
        act(&handle);
        if way >= 2 {
            mortal.unregister(Shutdown::Force);
        }
        assert_eq!(next(&wait), TaskKind::ALL.len());
        // The sleeper of this round is destroyed a moment after it was cancelled.
        while pool.timer_count() > 0 {
            std::thread::yield_now();
        }
    }
}

#[test]
fn force_does_not_wait_for_threads_that_are_busy_with_others() {
    let pool = pool(1);
    let (doomed, other) = (pool.register_owner("doomed"), pool.register_owner("other"));
    let (open, gate) = gate();
    let (began, begun) = channel();
    let busy = move || {
        began.send(()).unwrap();
        gate.pass();
    };
    pool.add(&other, TaskKind::NonIo, busy).unwrap();
    next(&begun);
    let (died, deaths) = channel();
    for _ in 0..10 {
        let tombstone = Tombstone(died.clone());
        let one_shot = move || {
            let _owned = tombstone;
            panic!("force starts no run");
        };
        pool.add(&doomed, TaskKind::NonIo, one_shot).unwrap();
    }
    doomed.unregister(Shutdown::Force);
    let here = std::thread::current().name().unwrap_or_default().to_owned();
    assert_eq!(deaths.try_iter().collect::<Vec<_>>(), vec![here; 10]);
    assert_eq!((pool.queued_count(TaskKind::NonIo), other.task_count()), (0, 1));
    open.send(()).unwrap();
}

#[test]
fn a_drain_destroys_without_a_run_what_may_be_dropped() {
    let pool = pool(1);
    let (owner, other) = (pool.register_owner("bucket"), pool.register_owner("other"));
    let (open, gate) = gate();
    let (began, begun) = channel();
    let busy = move || {
        began.send(()).unwrap();
        gate.pass();
    };
    pool.add(&other, TaskKind::NonIo, busy).unwrap();
    next(&begun);
    let (died, deaths) = channel();
    let make = || {
        let tombstone = Tombstone(died.clone());
        move |_: &TaskContext<'_>| -> Next {
            let _owned = &tombstone;
            panic!("a drain starts no run of it")
        }
    };
    pool.schedule_asleep(&owner, &DROPPABLE, make()).unwrap();
    pool.schedule(&owner, &DROPPABLE, make()).unwrap();
    owner.unregister(Shutdown::Drain);
    assert_eq!(deaths.try_iter().count(), 2, "although the only thread is busy");
    open.send(()).unwrap();
}

#[test]
fn both_ways_of_ending_end_tasks_of_every_answer() {
    let pool = pool(2);
    for shutdown in [Shutdown::Drain, Shutdown::Force] {
        for answer in [Next::Finished, Next::Sleep, Next::SleepFor(Duration::from_millis(1))] {
            let owner = pool.register_owner("bucket");
            let (died, deaths) = channel();
            for number in 0..40 {
                let tombstone = Tombstone(died.clone());
                let task = move |_: &TaskContext<'_>| {
                    let _owned = &tombstone;
                    answer
                };
                match number % 2 {
                    0 => drop(pool.schedule(&owner, &COMPUTE, task).unwrap()),
                    _ => pool.schedule_asleep(&owner, &COMPUTE, task).unwrap().wake(),
                }
            }
            owner.unregister(shutdown);
            assert_eq!(deaths.try_iter().count(), 40, "{shutdown:?} {answer:?}");
            assert_eq!(owner.task_count(), 0);
        }
    }
}

#[test]
fn the_time_that_destroying_a_task_takes_is_not_the_next_ones() {
    static MORTAL: TaskName = TaskName::new("Mortal", TaskKind::Writer);
    static NEXT_ONE: TaskName = TaskName::new("NextOne", TaskKind::Writer);
    struct DiesSlowly;
    impl Drop for DiesSlowly {
        fn drop(&mut self) {
            pause(Duration::from_millis(150));
        }
    }
    let pool = pool(1);
    let owner = pool.register_owner("bucket");
    let (open, gate) = gate();
    let (ran, runs) = channel();
    let dies_slowly = DiesSlowly;
    let mortal = move |_: &TaskContext<'_>| {
        let _owned = &dies_slowly;
        gate.pass();
        Next::Finished
    };
    pool.schedule(&owner, &MORTAL, mortal).unwrap();
    let next_one = move |_: &TaskContext<'_>| {
        ran.send(()).unwrap();
        Next::Finished
    };
    pool.schedule(&owner, &NEXT_ONE, next_one).unwrap();
    open.send(()).unwrap();
    next(&runs);
    owner.unregister(Shutdown::Drain);
    let statistics = owner.statistics();
    let next_one = statistics.iter().find(|task| task.name.name() == "NextOne").unwrap();
    assert!(next_one.run_time_ns.max() < 100_000_000, "{}", next_one.run_time_ns.max());
    assert!(next_one.queue_time_ns.max() >= 150_000_000, "{}", next_one.queue_time_ns.max());
}
