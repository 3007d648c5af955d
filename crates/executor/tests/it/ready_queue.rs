//! vBuckets that wait for their task.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use document::Vbid;
use executor::{Next, Shutdown, TaskContext, VbucketReadyQueue, VbucketReadyTask};
use platform::Random;
use platform::seeds::seeds;

use crate::support::{COMPUTE, FLUSH, RUNS_MAX, lock, next, pool, simulated_pool};

#[test]
fn the_queue_agrees_with_a_model() {
    for seed in seeds(50) {
        let mut random = Random::from_seed(seed);
        let count = 1 + random.below(200) as u16;
        let queue = VbucketReadyQueue::new(count);
        let (mut model, mut is_wake_pending) = (VecDeque::new(), false);
        for _ in 0..2_000 {
            let vbid = Vbid(random.below(u64::from(count)) as u16);
            match random.below(20) {
                0 => {
                    queue.begin_serving();
                    is_wake_pending = false;
                }
                1..=9 => assert_eq!(queue.pop(), model.pop_front(), "seed {seed}"),
                _ => {
                    let is_new = !model.contains(&vbid);
                    assert_eq!(queue.push(vbid), is_new && !is_wake_pending, "seed {seed}");
                    if is_new {
                        is_wake_pending = true;
                        model.push_back(vbid);
                    }
                }
            }
            assert_eq!(queue.len(), model.len(), "seed {seed}");
            assert_eq!(queue.contains(vbid), model.contains(&vbid), "seed {seed}");
        }
    }
}

#[test]
fn the_queue_holds_every_vbucket_at_once() {
    for count in [0, 1, 63, 64, 65, 1024] {
        let queue = VbucketReadyQueue::new(count);
        for round in 0..3 {
            let woken = (0..count).rev().filter(|&id| queue.push(Vbid(id))).count();
            assert_eq!(woken, usize::from(count > 0 && round == 0), "nobody serves");
            assert_eq!(queue.len(), usize::from(count));
            let popped: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
            assert_eq!(popped, (0..count).rev().map(Vbid).collect::<Vec<_>>());
        }
    }
}

#[test]
#[should_panic(expected = "as many vBuckets as there are")]
fn a_vbucket_that_does_not_exist_is_a_bug() {
    VbucketReadyQueue::new(100).push_and_wake(Vbid(100), &{
        let (driver, _) = simulated_pool();
        let owner = driver.pool().register_owner("bucket");
        let task = |_: &TaskContext<'_>| Next::Sleep;
        driver.pool().schedule_asleep(&owner, &COMPUTE, task).unwrap()
    });
}

#[test]
fn a_run_serves_until_its_time_slice_has_passed() {
    for (slice, runs) in
        [(None, 4), (Some(Duration::from_millis(10)), 10), (Some(Duration::ZERO), 10)]
    {
        let (mut driver, clock) = simulated_pool();
        let owner = driver.pool().register_owner("bucket");
        let queue = Arc::new(VbucketReadyQueue::new(16));
        let served = Arc::new(Mutex::new(Vec::new()));
        let serve = {
            let (served, clock) = (served.clone(), clock.clone());
            move |vbid| {
                clock.advance(Duration::from_millis(10));
                lock(&served).push(vbid);
            }
        };
        let mut task = VbucketReadyTask::new(clock, queue.clone(), serve);
        if let Some(slice) = slice {
            task = task.time_slice(slice);
        }
        let task = driver.pool().schedule(&owner, &FLUSH, task).unwrap();
        driver.run_until_idle(RUNS_MAX);
        (0..10).for_each(|id| queue.push_and_wake(Vbid(id), &task));
        // Three at 10 ms each make 30 ms; the tenth is alone. With shorter slices the last run
        // finds that nothing is left.
        let all_runs = if slice.is_none() { runs } else { runs + 1 };
        assert_eq!(driver.run_until_idle(RUNS_MAX), all_runs, "{slice:?}");
        assert_eq!(*lock(&served), (0..10).map(Vbid).collect::<Vec<_>>());
    }
}

#[test]
fn a_vbucket_pushed_while_it_is_served_is_served_once_more() {
    let (mut driver, clock) = simulated_pool();
    let owner = driver.pool().register_owner("bucket");
    let queue = Arc::new(VbucketReadyQueue::new(4));
    let served = Arc::new(Mutex::new(Vec::new()));
    let serve = {
        let (served, queue) = (served.clone(), queue.clone());
        move |vbid| {
            let mut served = lock(&served);
            served.push(vbid);
            if served.len() == 1 {
                assert!(!queue.contains(vbid));
                assert!(queue.push(vbid), "the run has begun");
                assert!(!queue.push(vbid));
            }
        }
    };
    // Pushed before there is a task: a task that is scheduled awake finds it.
    assert!(queue.push(Vbid(2)));
    assert!(!queue.push(Vbid(3)));
    let task = VbucketReadyTask::new(clock, queue.clone(), serve);
    driver.pool().schedule(&owner, &FLUSH, task).unwrap();
    driver.run_until_idle(RUNS_MAX);
    assert_eq!(*lock(&served), [Vbid(2), Vbid(3), Vbid(2)]);
    assert!(queue.is_empty());
}

#[test]
fn a_drained_task_serves_everything_first() {
    let (driver, clock) = simulated_pool();
    let owner = driver.pool().register_owner("bucket");
    let queue = Arc::new(VbucketReadyQueue::new(8));
    let task = VbucketReadyTask::new(clock, queue.clone(), |_| {}).time_slice(Duration::ZERO);
    let task = driver.pool().schedule(&owner, &FLUSH, task).unwrap();
    (0..8).for_each(|id| queue.push_and_wake(Vbid(id), &task));
    owner.unregister(Shutdown::Drain);
    assert!(queue.is_empty());
}

#[test]
fn no_push_of_racing_producers_is_lost_and_no_vbucket_is_served_twice_at_once() {
    const PRODUCERS: u64 = 4;
    const PUSHES: u64 = 20_000;
    const VBUCKETS: u16 = 130;
    let pool = pool(2);
    let owner = pool.register_owner("bucket");
    let queue = Arc::new(VbucketReadyQueue::new(VBUCKETS));
    let work: Arc<Vec<_>> = Arc::new((0..VBUCKETS).map(|_| AtomicU64::new(0)).collect());
    let (finished, wait) = channel();
    let serve = {
        let (work, is_serving, mut done) = (work.clone(), AtomicBool::new(false), 0);
        move |vbid: Vbid| {
            assert!(!is_serving.swap(true, Ordering::SeqCst));
            // Relaxed: the push itself must carry the work over.
            done += work[usize::from(vbid.0)].swap(0, Ordering::Relaxed);
            if done == PRODUCERS * PUSHES {
                finished.send(()).ok();
            }
            is_serving.store(false, Ordering::SeqCst);
        }
    };
    let task = VbucketReadyTask::new(pool.clock().clone(), queue.clone(), serve);
    let task = pool.schedule(&owner, &COMPUTE, task.time_slice(Duration::from_micros(50))).unwrap();
    std::thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let (queue, work, task) = (&queue, &work, &task);
            scope.spawn(move || {
                let mut random = Random::from_seed(producer);
                for _ in 0..PUSHES {
                    let id = random.below(u64::from(VBUCKETS)) as u16;
                    work[usize::from(id)].fetch_add(1, Ordering::Relaxed);
                    queue.push_and_wake(Vbid(id), task);
                }
            });
        }
    });
    next(&wait);
    assert!(work.iter().all(|work| work.load(Ordering::SeqCst) == 0));
}
