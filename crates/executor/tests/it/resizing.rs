//! More and fewer threads while tasks run.

use std::sync::mpsc::channel;
use std::time::Duration;

use executor::{ExecutorPool, Next, Owner, Shutdown, TaskContext, TaskKind, ThreadCounts};
use platform::threads::{NICE_LOWEST, own_cpus, own_nice};

use crate::support::{FLUSH, NOTIFY, next, options, pause, pool, start};

const KIND: TaskKind = TaskKind::NonIo;

fn normal(count: usize) -> ThreadCounts {
    ThreadCounts { normal: count, quick: 0 }
}

#[test]
fn growing_and_shrinking_under_load_loses_no_task() {
    let pool = pool(2);
    let owner = pool.register_owner("bucket");
    const TASKS: usize = 20_000;
    let (ran, runs) = channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..TASKS {
                let ran = ran.clone();
                pool.add(&owner, KIND, move || ran.send(()).unwrap()).unwrap();
            }
        });
        for round in 0..60 {
            let counts = ThreadCounts { normal: [1, 5, 0, 3][round % 4], quick: round % 2 };
            pool.set_threads(KIND, counts).unwrap();
            assert_eq!(pool.threads(KIND), counts);
        }
        pool.set_threads(KIND, normal(1)).unwrap();
    });
    (0..TASKS).for_each(|_| next(&runs));
    owner.unregister(Shutdown::Drain);
    assert!(runs.try_recv().is_err(), "each runs once");
}

#[test]
fn without_threads_tasks_wait_for_later_ones() {
    let pool = start(options(normal(1)));
    let owner = pool.register_owner("bucket");
    for _ in 0..20 {
        pool.set_threads(KIND, normal(0)).unwrap();
        let (ran, runs) = channel();
        for _ in 0..10 {
            let ran = ran.clone();
            pool.add(&owner, KIND, move || ran.send(()).unwrap()).unwrap();
        }
        pool.set_threads(KIND, normal(2)).unwrap();
        (0..10).for_each(|_| next(&runs));
    }
    pool.set_threads(KIND, normal(0)).unwrap();
    let (ran, runs) = channel();
    pool.add(&owner, KIND, move || ran.send(()).unwrap()).unwrap();
    pause(Duration::from_millis(50));
    assert!(runs.try_recv().is_err(), "a thread that was told to end takes no task any more");
    assert_eq!(pool.queued_count(KIND), 1);
}

#[test]
fn quick_threads_go_on_when_the_normal_ones_end() {
    let pool = pool(1);
    let owner = pool.register_owner("bucket");
    for _ in 0..300 {
        let (ran, runs) = channel();
        let quick = move |_: &TaskContext<'_>| {
            ran.send(()).unwrap();
            Next::Finished
        };
        pool.set_threads(KIND, ThreadCounts { normal: 0, quick: 1 }).unwrap();
        pool.schedule(&owner, &NOTIFY, quick).unwrap();
        next(&runs);
        pool.set_threads(KIND, ThreadCounts { normal: 1, quick: 1 }).unwrap();
    }
}

/// Occupies `count` threads of `kind` at once and asks each for `answer`.
fn ask_threads<T: Send + 'static>(
    pool: &ExecutorPool,
    owner: &Owner,
    kind: TaskKind,
    count: usize,
    answer: fn() -> T,
) -> Vec<T> {
    let all_here = std::sync::Arc::new(std::sync::Barrier::new(count));
    let (told, answers) = channel();
    for _ in 0..count {
        let (all_here, told) = (all_here.clone(), told.clone());
        let ask = move || {
            all_here.wait();
            told.send(answer()).unwrap();
        };
        pool.add(owner, kind, ask).unwrap();
    }
    (0..count).map(|_| next(&answers)).collect()
}

fn name_and_nice() -> (String, i32) {
    (std::thread::current().name().unwrap_or_default().to_owned(), own_nice().unwrap())
}

#[test]
fn added_threads_have_the_names_and_the_priority_of_their_kind() {
    let pool = pool(1);
    let owner = pool.register_owner("bucket");
    let usual = own_nice().unwrap();
    for kind in TaskKind::ALL {
        pool.set_threads(kind, normal(3)).unwrap();
        let nice = if kind.is_low_priority() { NICE_LOWEST } else { usual };
        let expected: Vec<_> =
            (0..3).map(|number| (format!("{}{number}", kind.pool_name()), nice)).collect();
        let mut threads = ask_threads(&pool, &owner, kind, 3, name_and_nice);
        threads.sort();
        assert_eq!(threads, expected);
    }
}

#[test]
fn quick_threads_say_so_in_their_names() {
    let pool = pool(1);
    let owner = pool.register_owner("bucket");
    pool.set_threads(KIND, ThreadCounts { normal: 0, quick: 1 }).unwrap();
    let (told, answers) = channel();
    let task = move |_: &TaskContext<'_>| {
        told.send(name_and_nice().0).unwrap();
        Next::Finished
    };
    pool.schedule(&owner, &NOTIFY, task).unwrap();
    assert_eq!(next(&answers), "QuickNonIoPool0");
}

#[test]
fn threads_stay_on_the_cpus_that_they_are_given() {
    let cpu = *own_cpus().unwrap().last().unwrap();
    let mut options = options(normal(2));
    options.cpus = Some(vec![cpu]);
    let pool = start(options);
    let owner = pool.register_owner("bucket");
    for cpus in ask_threads(&pool, &owner, KIND, 2, || own_cpus().unwrap()) {
        assert_eq!(cpus, [cpu]);
    }
}

/// A flusher that sleeps while its kind has no threads runs when it has some again.
#[test]
fn a_task_woken_without_threads_runs_later() {
    let pool = pool(1);
    let owner = pool.register_owner("bucket");
    let (ran, runs) = channel();
    let task = move |_: &TaskContext<'_>| {
        ran.send(()).unwrap();
        Next::Sleep
    };
    let handle = pool.schedule_asleep(&owner, &FLUSH, task).unwrap();
    pool.set_threads(TaskKind::Writer, normal(0)).unwrap();
    handle.snooze(Duration::from_millis(1));
    pause(Duration::from_millis(60));
    pool.set_threads(TaskKind::Writer, normal(1)).unwrap();
    next(&runs);
}
