//! The timer thread: falling asleep while deadlines come, on simulated time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use shuttle::thread;

use super::crew::{BRIEF, Crew, NORMAL, Tally, adds_to};
use super::{explore_some, join};
use crate::owner::terms::Shutdown;
use crate::pool::ExecutorPool;
use crate::task::cell::TaskHandle;
use crate::task::kind::TaskClass;
use crate::task::{Next, TaskContext};

const RANDOM_COUNT: usize = 700;
const NORMAL_THREAD: &[TaskClass] = &[TaskClass::Normal];

/// Time as the timer thread sees it.
struct Time {
    pool: ExecutorPool,
    thread: thread::JoinHandle<()>,
}

impl Time {
    fn start(pool: &ExecutorPool) -> Self {
        let inside = pool.clone();
        let thread = thread::spawn(move || {
            let core = inside.core();
            core.timers.run(&core.clock, |limit| core.relieve_overdue(limit));
        });
        Self { pool: pool.clone(), thread }
    }

    fn advance(&self, duration: Duration) {
        self.pool.clock().advance(duration);
        self.pool.core().timers.end_sleep_at(self.pool.clock().now());
    }

    fn stop(self) {
        self.pool.core().timers.stop();
        self.thread.join().unwrap();
    }
}

const fn nanoseconds(count: u64) -> Duration {
    Duration::from_nanos(count)
}

/// Every thread snoozes a task of its own, sometimes again and again; the last one holds.
fn snooze_and_wait(snoozes: &'static [&'static [u64]]) {
    explore_some(RANDOM_COUNT, move || {
        let crew = Crew::new(NORMAL_THREAD);
        let time = Time::start(&crew.pool);
        let owner = crew.pool.register_owner("owner");
        let tally = Arc::new(Tally::default());
        let too_early = Arc::new(AtomicU64::new(0));
        let handles: Vec<_> = snoozes
            .iter()
            .map(|durations| {
                let (tally, too_early) = (tally.clone(), too_early.clone());
                let due = *durations.last().unwrap();
                let task = move |context: &TaskContext<'_>| {
                    let is_early = context.started().0 < due;
                    too_early.fetch_add(u64::from(is_early), Ordering::SeqCst);
                    tally.add();
                    Next::Finished
                };
                let handle = crew.pool.schedule_asleep(&owner, &NORMAL, task).unwrap();
                let snooze = move || {
                    durations.iter().for_each(|&duration| handle.snooze(nanoseconds(duration)));
                };
                thread::spawn(snooze)
            })
            .collect();
        join(handles);
        let mut dues: Vec<u64> = snoozes.iter().map(|all| *all.last().unwrap()).collect();
        dues.sort_unstable();
        let mut now = 0;
        for (number, due) in (1..).zip(dues) {
            time.advance(nanoseconds(due - now));
            now = due;
            tally.wait_for(number);
        }
        assert_eq!(too_early.load(Ordering::SeqCst), 0, "never early");
        time.stop();
        crew.stop();
    });
}

#[test]
fn the_timer_thread_does_not_sleep_through_a_deadline() {
    snooze_and_wait(&[&[10]]);
    snooze_and_wait(&[&[10], &[5]]);
    snooze_and_wait(&[&[20, 7], &[9, 12]]);
}

/// The worker believes that what it leaves behind need not wait long, and is wrong, twice.
#[test]
fn a_task_behind_one_that_turns_out_long_gets_a_thread_in_a_while() {
    explore_some(RANDOM_COUNT, || {
        let crew = Crew::new(&[TaskClass::Normal, TaskClass::Normal, TaskClass::Normal]);
        let time = Time::start(&crew.pool);
        let owner = crew.pool.register_owner("owner");
        let (begun, ended) = (Arc::new(Tally::default()), Arc::new(Tally::default()));
        for _ in 0..2 {
            let follower = Arc::new(Tally::default());
            let (begun, ended, awaited) = (begun.clone(), ended.clone(), follower.clone());
            let waits = move |_: &TaskContext<'_>| {
                begun.add();
                awaited.wait_for(1);
                ended.add();
                Next::Finished
            };
            crew.pool.schedule(&owner, &BRIEF, waits).unwrap();
            crew.pool.schedule(&owner, &BRIEF, adds_to(&follower)).unwrap();
        }
        // Time moves on while each of them runs, and not while nothing happens: nobody but the
        // timer thread can help then, and it must have been told.
        for number in 1..=2 {
            begun.wait_for(number);
            time.advance(Duration::from_millis(1));
        }
        ended.wait_for(2);
        time.stop();
        crew.stop();
    });
}

/// A snooze and the end of a task come at the same time: whoever is later removes the timer.
fn ends_without_a_timer(answer: Next, end: fn(&TaskHandle)) {
    explore_some(RANDOM_COUNT, move || {
        let crew = Crew::new(NORMAL_THREAD);
        let owner = crew.pool.register_owner("owner");
        let task = move |_: &TaskContext<'_>| answer;
        let handle = crew.pool.schedule_asleep(&owner, &NORMAL, task).unwrap();
        let act = |act: fn(&TaskHandle)| {
            let handle = handle.clone();
            thread::spawn(move || act(&handle))
        };
        let threads = vec![
            act(|handle| handle.snooze(nanoseconds(5))),
            act(|handle| handle.snooze(nanoseconds(3))),
            act(TaskHandle::wake),
            act(end),
        ];
        join(threads);
        owner.core.end_tasks(Shutdown::Force);
        owner.core.wait_until_empty();
        assert_eq!(crew.pool.timer_count(), 0);
        crew.stop();
    });
}

#[test]
fn a_task_that_has_ended_leaves_no_timer() {
    ends_without_a_timer(Next::SleepFor(nanoseconds(9)), |handle| assert!(handle.cancel()));
    ends_without_a_timer(Next::Finished, TaskHandle::wake);
}
