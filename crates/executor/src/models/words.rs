//! The task word: runs, pushes and destructions under racing wakes and cancels.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use shuttle::thread;

use super::{explore_all, explore_some, join};
use crate::task::state::{Ended, TaskState, Then};

/// More interleavings than any model here has.
const INTERLEAVINGS_MAX: usize = 200_000;

const RANDOM_COUNT: usize = 2_000;

/// What a thread does.
#[derive(Clone, Copy, Debug)]
enum Act {
    Wake,
    /// Also looks whether the task lives on: then it must run.
    WakeAndLook,
    Cancel,
    /// What an owner does to a sleeper that shall not run again.
    CancelAndDestroy,
}

/// A task, its queue (with room for one) and what happened. Who pushes it runs it at once, as a
/// worker might. The counters are not the model's: they are the observer.
struct Observed {
    state: TaskState,
    answers: &'static [Ended],
    is_queued: AtomicBool,
    is_running: AtomicBool,
    wakes: AtomicU64,
    /// Wakes that had returned, or were about to, when the last run began.
    wakes_seen: AtomicU64,
    /// Wakes after which the task was alive.
    wakes_due: AtomicU64,
    runs: AtomicU64,
    again: AtomicU64,
    destroyed: AtomicU64,
    cancelled: AtomicU64,
}

impl Observed {
    fn new(state: TaskState, answers: &'static [Ended]) -> Self {
        Self {
            state,
            answers,
            is_queued: AtomicBool::new(false),
            is_running: AtomicBool::new(false),
            wakes: AtomicU64::new(0),
            wakes_seen: AtomicU64::new(0),
            wakes_due: AtomicU64::new(0),
            runs: AtomicU64::new(0),
            again: AtomicU64::new(0),
            destroyed: AtomicU64::new(0),
            cancelled: AtomicU64::new(0),
        }
    }

    fn act(&self, act: Act) {
        match act {
            Act::Wake => {
                self.wakes.fetch_add(1, Ordering::SeqCst);
                self.follow(self.state.notify());
            }
            Act::WakeAndLook => {
                let wake = self.wakes.fetch_add(1, Ordering::SeqCst) + 1;
                let then = self.state.notify();
                if !self.state.is_dead() {
                    self.wakes_due.fetch_max(wake, Ordering::SeqCst);
                }
                self.follow(then);
            }
            Act::Cancel | Act::CancelAndDestroy => {
                let (then, was_alive) = self.state.cancel();
                self.cancelled.fetch_add(u64::from(was_alive), Ordering::SeqCst);
                let takes_it = matches!(act, Act::CancelAndDestroy) && then == Then::Push;
                self.follow(if takes_it { Then::Destroy } else { then });
            }
        }
    }

    fn follow(&self, mut then: Then) {
        while then == Then::Push {
            assert!(!self.is_queued.swap(true, Ordering::SeqCst), "pushed while it was queued");
            let may_run = self.state.begin_run();
            assert!(self.is_queued.swap(false, Ordering::SeqCst), "taken twice");
            then = if may_run { self.run() } else { Then::Destroy };
        }
        if then == Then::Destroy {
            self.state.bury();
            assert_eq!(self.destroyed.fetch_add(1, Ordering::SeqCst), 0, "destroyed twice");
        }
    }

    fn run(&self) -> Then {
        assert!(!self.is_running.swap(true, Ordering::SeqCst), "two runs at the same time");
        assert_eq!(self.destroyed.load(Ordering::SeqCst), 0, "run after its destruction");
        self.wakes_seen.store(self.wakes.load(Ordering::SeqCst), Ordering::SeqCst);
        let number = self.runs.fetch_add(1, Ordering::SeqCst) as usize;
        let answer = self.answers.get(number).copied().unwrap_or(Ended::Asleep);
        self.again.fetch_add(u64::from(answer == Ended::MoreToDo), Ordering::SeqCst);
        self.is_running.store(false, Ordering::SeqCst);
        self.state.end_run(answer)
    }

    fn check(&self, first_pushes: u64) {
        let load = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
        let (runs, wakes) = (load(&self.runs), load(&self.wakes));
        assert!(runs <= first_pushes + wakes + load(&self.again), "a run that nobody asked for");
        assert_eq!(load(&self.destroyed), u64::from(self.state.is_dead()));
        if !self.state.is_dead() {
            assert!(!self.state.is_queued() && !self.state.is_running());
            assert_eq!(load(&self.wakes_seen), wakes, "a wake was lost");
        }
    }
}

/// Every thread of `threads` does its acts; the task answers its runs with `answers`. A new task is
/// run by one more thread.
fn race(is_new: bool, threads: &'static [&'static [Act]], answers: &'static [Ended]) {
    let model = move || {
        let state = if is_new { TaskState::notified() } else { TaskState::asleep() };
        let task = Arc::new(Observed::new(state, answers));
        let handles: Vec<_> = threads
            .iter()
            .map(|acts| {
                let task = task.clone();
                thread::spawn(move || acts.iter().for_each(|&act| task.act(act)))
            })
            .collect();
        if is_new {
            task.follow(Then::Push);
        }
        join(handles);
        task.check(u64::from(is_new));
        let cancels = threads.iter().flat_map(|acts| acts.iter());
        let cancels = cancels.filter(|act| matches!(act, Act::Cancel | Act::CancelAndDestroy));
        let cancels = cancels.count();
        let ends_itself =
            answers.iter().any(|&answer| matches!(answer, Ended::Done | Ended::DoneUnlessNotified));
        let cancelled = task.cancelled.load(Ordering::SeqCst);
        assert!(cancelled <= 1, "a task is cancelled once");
        let is_woken =
            task.wakes_seen.load(Ordering::SeqCst) >= task.wakes_due.load(Ordering::SeqCst);
        assert!(cancelled == 1 || is_woken, "a wake was lost to the end of the task");
        assert!(cancels == 0 || cancelled == 1 || ends_itself, "a cancel was lost");
    };
    let acts: usize = threads.iter().map(|acts| acts.len()).sum();
    if acts + usize::from(is_new) <= 2 {
        explore_all(INTERLEAVINGS_MAX, model);
    } else {
        explore_some(RANDOM_COUNT, model);
    }
}

/// One answer each, and two that differ.
const ANSWERS: &[&[Ended]] = &[
    &[Ended::Asleep],
    &[Ended::MoreToDo],
    &[Ended::DoneUnlessNotified, Ended::DoneUnlessNotified, Ended::DoneUnlessNotified],
    &[Ended::Done],
    &[Ended::MoreToDo, Ended::Done],
];

#[test]
fn wakes_of_two_threads_are_neither_lost_nor_doubled() {
    for answers in ANSWERS {
        if !answers.contains(&Ended::Done) && !answers.contains(&Ended::DoneUnlessNotified) {
            race(false, &[&[Act::Wake], &[Act::Wake]], answers);
        }
        race(true, &[&[Act::Wake], &[Act::Wake]], answers);
    }
}

#[test]
fn wakes_of_three_threads_are_not_lost() {
    race(false, &[&[Act::Wake], &[Act::Wake], &[Act::Wake]], &[]);
    race(false, &[&[Act::Wake, Act::Wake], &[Act::Wake]], &[]);
}

#[test]
fn a_task_that_ends_unless_it_was_woken_hears_every_wake_before_its_end() {
    const ANSWERS: &[Ended] = &[Ended::DoneUnlessNotified, Ended::DoneUnlessNotified];
    race(true, &[&[Act::WakeAndLook]], ANSWERS);
    race(true, &[&[Act::WakeAndLook], &[Act::WakeAndLook]], ANSWERS);
}

#[test]
fn a_cancel_destroys_once_whatever_the_run_answers() {
    for answers in ANSWERS {
        for act in [&[Act::Cancel][..], &[Act::CancelAndDestroy]] {
            let threads: &'static [_] = vec![act, &[Act::Wake]].leak();
            race(true, threads, answers);
            race(false, threads, answers);
        }
    }
}

#[test]
fn of_two_cancels_one_ends_the_task() {
    for answers in ANSWERS {
        race(true, &[&[Act::Cancel], &[Act::CancelAndDestroy]], answers);
        race(false, &[&[Act::Cancel], &[Act::Wake], &[Act::Cancel]], answers);
    }
}

#[test]
fn wakes_during_a_run_add_up_to_exactly_one_further_run() {
    explore_some(RANDOM_COUNT, || {
        let task = Arc::new(Observed::new(TaskState::notified(), &[]));
        assert!(task.state.begin_run());
        let wakers: Vec<_> = (0..3)
            .map(|_| {
                let task = task.clone();
                thread::spawn(move || task.act(Act::Wake))
            })
            .collect();
        join(wakers);
        assert_eq!(task.runs.load(Ordering::SeqCst), 0, "the first run has not ended");
        task.follow(task.state.end_run(Ended::Asleep));
        assert_eq!(task.runs.load(Ordering::SeqCst), 1);
    });
}
