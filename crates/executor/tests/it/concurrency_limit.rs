//! Semaphores for tasks.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use executor::{
    ConcurrencyLimit, DeterministicPool, Next, Owner, Permit, Shutdown, TaskContext, TaskHandle,
};
use platform::Random;
use platform::seeds::seeds;

use crate::support::{COMPUTE, RUNS_MAX, lock, next, pool, simulated_pool};

/// Permits that tasks hold, in the order in which they got them.
type Held = Arc<Mutex<Vec<(u32, Permit)>>>;

/// A task that asks for one permit, puts it into `held` and ends.
fn schedule(
    driver: &DeterministicPool,
    owner: &Owner,
    limit: &ConcurrencyLimit,
    held: &Held,
    number: u32,
) -> TaskHandle {
    let (mut place, held) = (limit.place(), held.clone());
    let task = move |context: &TaskContext<'_>| {
        let Some(permit) = place.try_acquire(context.handle()) else { return Next::Sleep };
        lock(&held).push((number, permit));
        Next::Finished
    };
    driver.pool().schedule(owner, &COMPUTE, task).expect("the owner is there")
}

fn numbers(held: &Held) -> Vec<u32> {
    lock(held).iter().map(|(number, _)| *number).collect()
}

/// Gives back the permit that has been held longest.
fn release_first(held: &Held) {
    let permit = lock(held).remove(0);
    drop(permit);
}

#[test]
fn waiters_get_permits_in_the_order_in_which_they_asked() {
    let (mut driver, _) = simulated_pool();
    let owner = driver.pool().register_owner("bucket");
    let (limit, held) = (ConcurrencyLimit::new(2), Held::default());
    for number in 0..6 {
        schedule(&driver, &owner, &limit, &held, number);
    }
    driver.run_until_idle(RUNS_MAX);
    for first in 0..4 {
        assert_eq!(numbers(&held), [first, first + 1]);
        assert_eq!((limit.taken_count(), limit.waiting_count()), (2, 4 - first as usize));
        release_first(&held);
        assert_eq!(driver.run_until_idle(RUNS_MAX), 1, "one permit, one wake");
    }
    lock(&held).clear();
    assert_eq!(limit.taken_count(), 0);
}

#[test]
fn nobody_gets_ahead_of_a_waiter_that_was_granted_a_permit() {
    let (mut driver, _) = simulated_pool();
    let owner = driver.pool().register_owner("bucket");
    let (limit, held) = (ConcurrencyLimit::new(1), Held::default());
    for number in 0..2 {
        schedule(&driver, &owner, &limit, &held, number);
        driver.run_until_idle(RUNS_MAX);
    }
    release_first(&held);
    // The permit is number 1's, which has not run yet.
    schedule(&driver, &owner, &limit, &held, 2);
    driver.run_until_idle(RUNS_MAX);
    assert_eq!(numbers(&held), [1]);
    assert_eq!((limit.taken_count(), limit.waiting_count()), (1, 1));
}

#[test]
fn a_waiter_woken_for_another_reason_sleeps_on_and_keeps_its_turn() {
    let (mut driver, _) = simulated_pool();
    let owner = driver.pool().register_owner("bucket");
    let (limit, held) = (ConcurrencyLimit::new(1), Held::default());
    schedule(&driver, &owner, &limit, &held, 0);
    driver.run_until_idle(RUNS_MAX);
    let first = schedule(&driver, &owner, &limit, &held, 1);
    driver.run_until_idle(RUNS_MAX);
    schedule(&driver, &owner, &limit, &held, 2);
    driver.run_until_idle(RUNS_MAX);
    for _ in 0..3 {
        first.wake();
        assert_eq!(driver.run_until_idle(RUNS_MAX), 1);
    }
    assert_eq!(limit.waiting_count(), 2);
    release_first(&held);
    driver.run_until_idle(RUNS_MAX);
    assert_eq!(numbers(&held), [1]);
}

#[test]
fn the_capacity_changes_while_permits_are_out() {
    let (mut driver, _) = simulated_pool();
    let owner = driver.pool().register_owner("bucket");
    let (limit, held) = (ConcurrencyLimit::new(0), Held::default());
    for number in 0..8 {
        schedule(&driver, &owner, &limit, &held, number);
    }
    driver.run_until_idle(RUNS_MAX);
    assert_eq!((limit.capacity(), limit.taken_count(), limit.waiting_count()), (0, 0, 8));
    limit.set_capacity(4);
    driver.run_until_idle(RUNS_MAX);
    assert_eq!(numbers(&held).len(), 4);
    limit.set_capacity(2);
    for taken in [3, 2] {
        release_first(&held);
        assert_eq!(driver.run_until_idle(RUNS_MAX), 0, "above the new capacity");
        assert_eq!(limit.taken_count(), taken);
    }
    release_first(&held);
    assert_eq!(driver.run_until_idle(RUNS_MAX), 1);
    assert_eq!((limit.taken_count(), limit.waiting_count()), (2, 3));
}

#[test]
fn a_dead_waiter_is_skipped() {
    let (mut driver, _) = simulated_pool();
    let owner = driver.pool().register_owner("bucket");
    let (limit, held) = (ConcurrencyLimit::new(1), Held::default());
    let mut tasks = Vec::new();
    for number in 0..4 {
        tasks.push(schedule(&driver, &owner, &limit, &held, number));
        driver.run_until_idle(RUNS_MAX);
    }
    // Number 1 is destroyed before the release, number 2 only cancelled.
    tasks[1].cancel();
    driver.run_until_idle(RUNS_MAX);
    assert_eq!(limit.waiting_count(), 2);
    tasks[2].cancel();
    release_first(&held);
    assert_eq!((limit.taken_count(), limit.waiting_count()), (1, 0), "number 2 is passed over");
    driver.run_until_idle(RUNS_MAX);
    assert_eq!(numbers(&held), [3]);
    assert_eq!((limit.taken_count(), limit.waiting_count()), (1, 0));
}

#[test]
fn a_permit_granted_to_a_task_that_dies_before_it_runs_goes_on_to_the_next() {
    let (mut driver, _) = simulated_pool();
    let owner = driver.pool().register_owner("bucket");
    let (limit, held) = (ConcurrencyLimit::new(1), Held::default());
    let mut tasks = Vec::new();
    for number in 0..3 {
        tasks.push(schedule(&driver, &owner, &limit, &held, number));
        driver.run_until_idle(RUNS_MAX);
    }
    release_first(&held);
    tasks[1].cancel();
    driver.run_until_idle(RUNS_MAX);
    assert_eq!(numbers(&held), [2]);
    lock(&held).clear();
    assert_eq!((limit.taken_count(), limit.waiting_count()), (0, 0));
}

#[test]
fn an_owner_that_goes_takes_no_permit_along() {
    for shutdown in [Shutdown::Drain, Shutdown::Force] {
        let (mut driver, _) = simulated_pool();
        let (mortal, heir) =
            (driver.pool().register_owner("mortal"), driver.pool().register_owner("heir"));
        let (limit, held) = (ConcurrencyLimit::new(1), Held::default());
        for (number, owner) in [&heir, &mortal, &mortal, &heir].into_iter().enumerate() {
            schedule(&driver, owner, &limit, &held, number as u32);
            driver.run_until_idle(RUNS_MAX);
        }
        release_first(&held);
        mortal.unregister(shutdown);
        // Drained, number 1 fetches its permit in its last run.
        lock(&held).retain(|(number, _)| *number == 3);
        driver.run_until_idle(RUNS_MAX);
        assert_eq!(numbers(&held), [3], "{shutdown:?}");
    }
}

#[test]
fn on_threads_the_limit_holds_and_no_permit_is_lost_whoever_is_cancelled() {
    const TASKS: usize = 60;
    const TURNS: usize = 50;
    for seed in seeds(4) {
        let pool = pool(4);
        let owner = pool.register_owner("bucket");
        let limit = ConcurrencyLimit::new(3);
        let working = Arc::new(AtomicUsize::new(0));
        let (ended, ends) = channel();
        let tasks: Vec<_> = (0..TASKS)
            .map(|_| {
                let (mut place, working, ended) = (limit.place(), working.clone(), ended.clone());
                let mut turns = TURNS;
                let task = move |context: &TaskContext<'_>| {
                    let Some(permit) = place.try_acquire(context.handle()) else {
                        return Next::Sleep;
                    };
                    let at_work = working.fetch_add(1, Ordering::SeqCst) + 1;
                    assert!(at_work <= 3, "{at_work} at work");
                    std::thread::yield_now();
                    working.fetch_sub(1, Ordering::SeqCst);
                    drop(permit);
                    turns -= 1;
                    if turns > 0 {
                        return Next::Again;
                    }
                    ended.send(()).unwrap();
                    Next::Finished
                };
                pool.schedule(&owner, &COMPUTE, task).unwrap()
            })
            .collect();
        let mut random = Random::from_seed(seed);
        let doomed: Vec<_> = tasks.iter().filter(|_| random.below(3) == 0).collect();
        for (index, task) in doomed.iter().enumerate() {
            limit.set_capacity(1 + index % 3);
            task.cancel();
            std::thread::yield_now();
        }
        limit.set_capacity(3);
        for _ in 0..TASKS - doomed.len() {
            next(&ends);
        }
        owner.unregister(Shutdown::Force);
        assert_eq!((limit.taken_count(), limit.waiting_count()), (0, 0), "seed {seed}");
    }
}

#[test]
fn a_permit_may_be_given_back_by_any_thread() {
    let pool = pool(1);
    let owner = pool.register_owner("bucket");
    let limit = ConcurrencyLimit::new(1);
    let (got, permits) = channel();
    for _ in 0..100 {
        let (mut place, got) = (limit.place(), got.clone());
        let task = move |context: &TaskContext<'_>| {
            let Some(permit) = place.try_acquire(context.handle()) else { return Next::Sleep };
            got.send(permit).unwrap();
            Next::Finished
        };
        pool.schedule(&owner, &COMPUTE, task).unwrap();
    }
    for _ in 0..100 {
        let permit = next(&permits);
        assert!(permits.recv_timeout(Duration::ZERO).is_err(), "one permit at a time");
        drop(permit);
    }
}
