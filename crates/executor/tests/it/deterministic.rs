//! The pool without threads.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use executor::{DeterministicPool, Next, Shutdown, TaskContext, TaskKind};
use platform::seeds::seeds;
use platform::{Clock, Instant, Random, WallTime};

use crate::support::{COMPUTE, FLUSH};

const RUNS_MAX: usize = 10_000;

fn pool(seed: u64) -> DeterministicPool {
    DeterministicPool::new(Clock::simulated(WallTime(0)), seed)
}

#[test]
fn nothing_runs_until_told() {
    let mut driver = pool(1);
    let owner = driver.pool().register_owner("bucket");
    let ran = Arc::new(Mutex::new(Vec::new()));
    for kind in TaskKind::ALL {
        let ran = ran.clone();
        driver.pool().add(&owner, kind, move || ran.lock().unwrap().push(kind)).unwrap();
    }
    assert!(ran.lock().unwrap().is_empty());
    assert!(driver.run_one());
    assert_eq!(ran.lock().unwrap().len(), 1);
    assert_eq!(driver.run_until_idle(RUNS_MAX), 3);
    assert!(!driver.run_one());
    assert_eq!(driver.pool().wakeups(), 0);
}

#[test]
fn deadlines_pass_in_order_at_their_exact_time() {
    let mut driver = pool(1);
    let owner = driver.pool().register_owner("bucket");
    let times = Arc::new(Mutex::new(Vec::new()));
    for period in [3, 5] {
        let times = times.clone();
        let task = move |context: &TaskContext<'_>| {
            times.lock().unwrap().push((context.started(), period));
            Next::SleepFor(Duration::from_secs(period))
        };
        driver.pool().schedule(&owner, &COMPUTE, task).unwrap();
    }
    assert_eq!(driver.advance(Duration::from_secs(10), RUNS_MAX), 7);
    let seconds = |second: u64| Instant(second * 1_000_000_000);
    let expected = [(0, 3), (0, 5), (3, 3), (5, 5), (6, 3), (9, 3), (10, 5)];
    let expected: Vec<_> = expected.map(|(at, period)| (seconds(at), period)).to_vec();
    assert_eq!(*times.lock().unwrap(), expected);
    assert_eq!(driver.pool().clock().now(), seconds(10));
}

#[test]
fn of_the_answer_and_a_snooze_during_the_run_the_earlier_deadline_holds() {
    for (answer, snooze, expected) in [(5, 9, 5), (9, 5, 5)] {
        let mut driver = pool(1);
        let owner = driver.pool().register_owner("bucket");
        let task = move |context: &TaskContext<'_>| {
            context.handle().snooze(Duration::from_secs(snooze));
            Next::SleepFor(Duration::from_secs(answer))
        };
        driver.pool().schedule(&owner, &COMPUTE, task).unwrap();
        assert_eq!(driver.run_until_idle(RUNS_MAX), 1);
        assert_eq!(driver.advance(Duration::from_secs(expected - 1), RUNS_MAX), 0);
        assert_eq!(driver.advance(Duration::from_secs(1), RUNS_MAX), 1);
    }
}

#[test]
fn a_snooze_during_a_run_that_ends_asleep_holds() {
    let mut driver = pool(1);
    let owner = driver.pool().register_owner("bucket");
    let mut is_first = true;
    let task = move |context: &TaskContext<'_>| {
        if std::mem::take(&mut is_first) {
            context.handle().snooze(Duration::from_secs(2));
        }
        Next::Sleep
    };
    driver.pool().schedule(&owner, &COMPUTE, task).unwrap();
    assert_eq!(driver.advance(Duration::from_secs(100), RUNS_MAX), 2);
}

#[test]
fn unregister_ends_tasks_without_threads() {
    for shutdown in [Shutdown::Drain, Shutdown::Force] {
        let driver = pool(1);
        let owner = driver.pool().register_owner("bucket");
        let runs = Arc::new(Mutex::new(0));
        let counter = runs.clone();
        let task = move |_: &TaskContext<'_>| {
            *counter.lock().unwrap() += 1;
            Next::Sleep
        };
        driver.pool().schedule_asleep(&owner, &FLUSH, task).unwrap();
        owner.unregister(shutdown);
        let expected = if shutdown == Shutdown::Drain { 1 } else { 0 };
        assert_eq!(*runs.lock().unwrap(), expected);
        assert_eq!(Arc::strong_count(&runs), 1, "the task is destroyed");
    }
}

#[test]
fn the_same_seed_gives_the_same_order() {
    for seed in seeds(20) {
        let order = || {
            let mut driver = pool(seed);
            let owner = driver.pool().register_owner("bucket");
            let order = Arc::new(Mutex::new(Vec::new()));
            let mut random = Random::from_seed(seed);
            for number in 0..40 {
                let order = order.clone();
                let kind = TaskKind::ALL[random.below(4) as usize];
                let work = move || order.lock().unwrap().push(number);
                driver.pool().add(&owner, kind, work).unwrap();
            }
            assert_eq!(driver.run_until_idle(RUNS_MAX), 40);
            Arc::into_inner(order).unwrap().into_inner().unwrap()
        };
        assert_eq!(order(), order(), "seed {seed}");
    }
}

#[test]
#[should_panic(expected = "tasks are still waiting after 10 runs")]
fn a_task_that_never_rests_is_noticed() {
    let mut driver = pool(1);
    let owner = driver.pool().register_owner("bucket");
    driver.pool().schedule(&owner, &COMPUTE, |_: &TaskContext<'_>| Next::Again).unwrap();
    driver.run_until_idle(10);
}
