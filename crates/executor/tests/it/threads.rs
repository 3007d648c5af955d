//! Threads: names, priorities, shutdown, panics, statistics.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::time::Duration;

use executor::{Next, Shutdown, TaskContext, TaskKind};
use platform::threads::{NICE_LOWEST, own_nice};

use crate::support::{COMPUTE, Tombstone, next, pause, pool};

#[test]
fn each_kind_runs_on_its_own_threads_at_its_own_priority() {
    let pool = pool(1);
    let owner = pool.register_owner("bucket");
    let usual = own_nice().unwrap();
    for kind in TaskKind::ALL {
        let (told, answers) = channel();
        let work = move || {
            let name = std::thread::current().name().unwrap_or_default().to_owned();
            told.send((name, own_nice().unwrap())).unwrap();
        };
        pool.add(&owner, kind, work).unwrap();
        let (name, nice) = next(&answers);
        assert_eq!(name, format!("{}0", kind.pool_name()));
        let expected = if kind.is_low_priority() { NICE_LOWEST } else { usual };
        assert_eq!(nice, expected, "{kind:?}");
    }
}

#[test]
fn shutdown_destroys_all_tasks_and_joins_all_threads() {
    let pool = pool(2);
    let (died, deaths) = channel();
    let owner = pool.register_owner("bucket");
    for _ in 0..20 {
        let tombstone = Tombstone(died.clone());
        let task = move |_: &TaskContext<'_>| {
            let _owned = &tombstone;
            Next::Again
        };
        pool.schedule(&owner, &COMPUTE, task).unwrap();
    }
    pool.shutdown();
    assert_eq!(deaths.try_iter().count(), 20);
    pool.shutdown();
    assert!(pool.add(&owner, TaskKind::NonIo, || {}).is_err());
    let late = pool.register_owner("late");
    assert!(pool.add(&late, TaskKind::NonIo, || {}).is_err());
}

#[test]
fn dropping_the_last_handle_shuts_the_pool_down() {
    let first = pool(1);
    let second = first.clone();
    let owner = first.register_owner("bucket");
    let (died, deaths) = channel();
    let tombstone = Tombstone(died);
    let task = move |_: &TaskContext<'_>| {
        let _owned = &tombstone;
        Next::Sleep
    };
    first.schedule_asleep(&owner, &COMPUTE, task).unwrap();
    drop(first);
    assert!(deaths.try_recv().is_err(), "a handle is left");
    drop(second);
    assert_eq!(deaths.try_iter().count(), 1);
}

#[test]
fn a_panic_of_a_task_reaches_whoever_waits_for_its_owner() {
    let pool = pool(1);
    let owner = pool.register_owner("bucket");
    pool.add(&owner, TaskKind::NonIo, || panic!("the task is wrong")).unwrap();
    let waited = catch_unwind(AssertUnwindSafe(|| owner.unregister(Shutdown::Drain)));
    let message = waited.unwrap_err();
    assert_eq!(message.downcast_ref::<&str>(), Some(&"the task is wrong"));
}

#[test]
fn statistics_count_runs_and_the_slow_ones_by_name() {
    let pool = pool(1);
    let owner = pool.register_owner("bucket");
    let mut is_first = true;
    let task = move |context: &TaskContext<'_>| {
        if std::mem::take(&mut is_first) {
            pause(Duration::from_millis(30));
        }
        if context.is_shutting_down() { Next::Finished } else { Next::Sleep }
    };
    pool.schedule(&owner, &COMPUTE, task).unwrap();
    pool.add(&owner, TaskKind::Reader, || {}).unwrap();
    owner.unregister(Shutdown::Drain);
    let all = pool.statistics();
    let names: Vec<&str> = all.iter().map(|statistics| statistics.name.name()).collect();
    assert_eq!(names, ["Compute", "OneShotReader"]);
    let compute = &all[0];
    assert_eq!(compute.run_time_ns.count(), compute.queue_time_ns.count());
    assert!(compute.run_time_ns.max() >= 30_000_000);
    assert_eq!(compute.slow_runs, 1);
    assert_eq!((all[1].run_time_ns.count(), all[1].slow_runs), (1, 0));
}
