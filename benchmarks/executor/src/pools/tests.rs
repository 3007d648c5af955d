//! What every pool under test must do, or its figures mean nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use executor::TaskKind;
use platform::{Random, seeds::seeds};

use super::cb3::Cb3;
use super::folly_wrapper::{FollyWrapper, FollyWrapperDrained};
use super::rayon_pool::Rayon;
use super::settee::{Settee, SetteeAdd};
use super::tokio_pool::Tokio;
use crate::baton::{Baton, Waiting};
use crate::pool_under_test::{ArmsTimers, PoolThreads, PoolUnderTest, RepeatsTasks, WakesTasks};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
const THREADS: PoolThreads = PoolThreads { non_io: 3, others: 1 };

/// Waits for something that happens soon.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn each_schedule_runs_once<P: PoolUnderTest>() {
    const CALLERS: usize = 4;
    const TASKS: usize = 500;
    let pool = P::start(THREADS);
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        for caller in 0..CALLERS {
            let (pool, sender) = (&pool, sender.clone());
            scope.spawn(move || {
                for task in 0..TASKS {
                    let sender = sender.clone();
                    let number = caller * TASKS + task;
                    pool.schedule(move || sender.send(number).expect("the test listens"));
                }
            });
        }
    });
    drop(sender);
    let mut ran: Vec<usize> = (0..CALLERS * TASKS)
        .map(|_| receiver.recv_timeout(PATIENCE).expect("every task runs"))
        .collect();
    ran.sort_unstable();
    assert!(ran.into_iter().eq(0..CALLERS * TASKS), "{}: once each", P::NAME);
    pool.shutdown();
    assert!(receiver.recv().is_err(), "{}: nothing runs twice, tasks are destroyed", P::NAME);
}

#[test]
fn a_task_runs_exactly_once_for_each_schedule() {
    each_schedule_runs_once::<Settee>();
    each_schedule_runs_once::<SetteeAdd>();
    each_schedule_runs_once::<Cb3>();
    each_schedule_runs_once::<FollyWrapper>();
    each_schedule_runs_once::<FollyWrapperDrained>();
    each_schedule_runs_once::<Tokio>();
    each_schedule_runs_once::<Rayon>();
}

/// Each wake is waited for, so each must bring exactly one run: often the wake comes while the run
/// before has posted, but not ended.
fn each_wake_is_followed_by_a_run<P: WakesTasks>() {
    const WAKES: u64 = 2_000;
    let pool = P::start(THREADS);
    std::thread::scope(|scope| {
        for waiting in Waiting::ALL {
            let pool = &pool;
            scope.spawn(move || {
                let baton = Baton::for_this_thread();
                let sleepers = [(); 2].map(|()| pool.sleeper(|| baton.count_and_post()));
                for number in 1..=WAKES {
                    pool.wake(&sleepers[usize::from(number % 3 == 0)]);
                    baton.wait(waiting);
                    assert_eq!(baton.runs(), number, "{}", P::NAME);
                }
            });
        }
    });
    pool.shutdown();
}

#[test]
fn a_wake_is_not_lost_and_brings_one_run() {
    each_wake_is_followed_by_a_run::<Settee>();
    each_wake_is_followed_by_a_run::<Cb3>();
    each_wake_is_followed_by_a_run::<FollyWrapper>();
    each_wake_is_followed_by_a_run::<Tokio>();
}

fn a_task_is_never_two_runs_at_once<P: WakesTasks>() {
    let pool = P::start(THREADS);
    let is_running = Arc::new(AtomicBool::new(false));
    let runs = Arc::new(AtomicU64::new(0));
    let (inside, counted) = (is_running.clone(), runs.clone());
    let sleeper = pool.sleeper(move || {
        assert!(!inside.swap(true, Ordering::AcqRel), "a run begins after the last has ended");
        std::thread::yield_now();
        inside.store(false, Ordering::Release);
        counted.fetch_add(1, Ordering::AcqRel);
    });
    for _ in 0..2_000 {
        pool.wake(&sleeper);
    }
    let before_last = runs.load(Ordering::Acquire);
    pool.wake(&sleeper);
    eventually("a run follows the last wake", || runs.load(Ordering::Acquire) > before_last);
    pool.shutdown();
    assert!(!is_running.load(Ordering::Acquire), "{}: shutdown waits for the run", P::NAME);
}

#[test]
fn a_task_that_is_woken_all_the_time_never_runs_twice_at_once() {
    a_task_is_never_two_runs_at_once::<Settee>();
    a_task_is_never_two_runs_at_once::<Cb3>();
    a_task_is_never_two_runs_at_once::<FollyWrapper>();
    a_task_is_never_two_runs_at_once::<Tokio>();
}

/// `early` is by how much the design lets a timer fire before its time.
fn a_timer_fires_in_its_time<P: ArmsTimers>(early: Duration) {
    for seed in seeds(1) {
        let mut random = Random::from_seed(seed);
        let pool = P::start(THREADS);
        let mut timers: Vec<_> = (0..40).map(|_| pool.timer()).collect();
        let mut deadlines = Vec::new();
        for timer in &mut timers {
            let delay = Duration::from_millis(20 + random.below(250));
            // Before the call: what fires `delay` after this is not early.
            deadlines.push(Some(Instant::now() + delay));
            pool.arm(timer, delay);
        }
        pool.settle();
        eventually("every timer fires", || {
            for (timer, deadline) in timers.iter().zip(&mut deadlines) {
                if pool.has_fired(timer)
                    && let Some(at) = deadline.take()
                {
                    let missing = at.saturating_duration_since(Instant::now());
                    assert!(missing <= early, "{}: {missing:?} early, seed {seed}", P::NAME);
                }
            }
            deadlines.iter().all(Option::is_none)
        });
        pool.shutdown();
    }
}

#[test]
fn timers_fire_and_not_before_their_design_permits() {
    let exact = Duration::ZERO;
    a_timer_fires_in_its_time::<Settee>(exact);
    a_timer_fires_in_its_time::<Cb3>(exact);
    a_timer_fires_in_its_time::<FollyWrapper>(FollyWrapper::TICK);
    a_timer_fires_in_its_time::<FollyWrapperDrained>(FollyWrapperDrained::TICK);
    a_timer_fires_in_its_time::<Tokio>(exact);
}

fn only_the_last_arm_counts<P: ArmsTimers>() {
    let pool = P::start(THREADS);
    let (soon, late) = (Duration::from_millis(60), Duration::from_secs(3600));
    let mut later = pool.timer();
    let mut earlier = pool.timer();
    pool.arm(&mut later, soon);
    pool.arm(&mut earlier, late);
    pool.arm(&mut later, late);
    pool.arm(&mut earlier, soon);
    eventually("a timer that was armed for an earlier time fires then", || {
        pool.has_fired(&earlier)
    });
    std::thread::sleep(4 * soon);
    assert!(!pool.has_fired(&later), "{}: it was armed for a later time", P::NAME);
    pool.shutdown();
}

#[test]
fn a_timer_can_be_armed_again_for_an_earlier_or_later_time() {
    only_the_last_arm_counts::<Settee>();
    only_the_last_arm_counts::<Cb3>();
    only_the_last_arm_counts::<FollyWrapper>();
    only_the_last_arm_counts::<FollyWrapperDrained>();
    only_the_last_arm_counts::<Tokio>();
}

fn tasks_of_every_kind_repeat<P: RepeatsTasks>() {
    let pool = P::start_for_all_kinds(THREADS);
    let (sender, receiver) = channel();
    for kind in TaskKind::ALL {
        let sender = sender.clone();
        let mut left = 5;
        pool.repeat(kind, move || {
            left -= 1;
            sender.send(kind).expect("the test listens");
            left > 0
        });
    }
    drop(sender);
    let mut ran: Vec<TaskKind> = (0..5 * TaskKind::ALL.len())
        .map(|_| receiver.recv_timeout(PATIENCE).expect("it runs again"))
        .collect();
    ran.sort_unstable();
    let expected: Vec<TaskKind> = TaskKind::ALL.iter().flat_map(|&kind| [kind; 5]).collect();
    assert_eq!(ran, expected, "{}", P::NAME);
    pool.shutdown();
    assert!(receiver.recv().is_err(), "{}: no run follows the last", P::NAME);
}

#[test]
fn a_task_repeats_until_it_is_done() {
    tasks_of_every_kind_repeat::<Settee>();
    tasks_of_every_kind_repeat::<FollyWrapper>();
    tasks_of_every_kind_repeat::<Tokio>();
}
