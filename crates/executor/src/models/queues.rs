//! The ready queue: threads that fall asleep while tasks come.

use std::sync::Arc;

use shuttle::thread;

use super::crew::{Crew, NORMAL, QUICK, Tally, adds_to};
use super::{explore_some, join};
use crate::task::kind::TaskClass;
use crate::task::name::TaskName;
use crate::task::{Next, TaskContext};

const RANDOM_COUNT: usize = 700;
const N: TaskClass = TaskClass::Normal;
const Q: TaskClass = TaskClass::Quick;
const ONE: &[TaskClass] = &[N];
const TWO: &[TaskClass] = &[N, N];
const THREE: &[TaskClass] = &[N, N, N];
const MIXED: &[TaskClass] = &[N, Q];

fn name_of(class: TaskClass) -> &'static TaskName {
    match class {
        TaskClass::Normal => &NORMAL,
        TaskClass::Quick => &QUICK,
    }
}

/// Each of `pushers` schedules one task after the other; `meanwhile` goes on beside them. All tasks
/// must run, once, and all threads must end.
fn push_and_stop(
    classes: &'static [TaskClass],
    pushers: &'static [&'static [TaskClass]],
    meanwhile: impl Fn(&mut Crew) + Send + Sync + 'static,
) {
    explore_some(RANDOM_COUNT, move || {
        let mut crew = Crew::new(classes);
        let owner = crew.pool.register_owner("owner");
        let tally = Arc::new(Tally::default());
        let handles: Vec<_> = pushers
            .iter()
            .map(|classes| {
                let (pool, owner, tally) = (crew.pool.clone(), owner.clone(), tally.clone());
                thread::spawn(move || {
                    for class in *classes {
                        pool.schedule(&owner, name_of(*class), adds_to(&tally)).unwrap();
                    }
                })
            })
            .collect();
        meanwhile(&mut crew);
        join(handles);
        let expected = pushers.iter().map(|classes| classes.len() as u32).sum();
        tally.wait_for(expected);
        crew.stop();
        assert_eq!(tally.count(), expected, "each task runs once");
        assert_eq!(owner.task_count(), 0);
    });
}

#[test]
fn no_thread_sleeps_while_a_task_waits() {
    push_and_stop(ONE, &[&[N, N], &[Q]], |_| {});
    push_and_stop(TWO, &[&[N, N], &[N]], |_| {});
    push_and_stop(THREE, &[&[N], &[N], &[Q]], |_| {});
    push_and_stop(MIXED, &[&[N, Q], &[Q]], |_| {});
}

#[test]
fn stop_ends_threads_that_search_sleep_or_are_called() {
    explore_some(RANDOM_COUNT, || Crew::new(THREE).stop());
    explore_some(RANDOM_COUNT, || Crew::new(MIXED).stop());
}

/// The first task does not end before the second has run: another thread must come for that.
fn blocked_task_is_relieved(
    classes: &'static [TaskClass],
    first: &'static TaskName,
    second: &'static TaskName,
) {
    explore_some(RANDOM_COUNT, move || {
        let crew = Crew::new(classes);
        let owner = crew.pool.register_owner("owner");
        let (blocker, follower) = (Arc::new(Tally::default()), Arc::new(Tally::default()));
        let (ended, awaited) = (blocker.clone(), follower.clone());
        let waits = move |_: &TaskContext<'_>| {
            awaited.wait_for(1);
            ended.add();
            Next::Finished
        };
        crew.pool.schedule(&owner, first, waits).unwrap();
        crew.pool.schedule(&owner, second, adds_to(&follower)).unwrap();
        blocker.wait_for(1);
        crew.stop();
    });
}

#[test]
fn a_task_that_waits_behind_a_long_one_gets_a_thread() {
    blocked_task_is_relieved(TWO, &NORMAL, &NORMAL);
    blocked_task_is_relieved(TWO, &QUICK, &NORMAL);
    blocked_task_is_relieved(MIXED, &NORMAL, &QUICK);
    blocked_task_is_relieved(THREE, &NORMAL, &QUICK);
}

#[test]
fn a_thread_that_ends_loses_no_task() {
    push_and_stop(TWO, &[&[N, N], &[N]], |crew| crew.retire(0));
    push_and_stop(THREE, &[&[N], &[Q]], |crew| {
        crew.retire(0);
        crew.retire(1);
    });
}

/// A thread that is about to end counts as about to look for tasks, also for quick ones; what it
/// does not take any more must go to a quick thread.
#[test]
fn a_normal_thread_that_ends_leaves_quick_tasks_to_the_quick_threads() {
    push_and_stop(MIXED, &[&[Q], &[Q]], |crew| crew.retire(0));
    push_and_stop(MIXED, &[&[Q], &[N]], |crew| crew.retire(1));
}

#[test]
fn a_kind_without_threads_keeps_its_tasks_for_later_ones() {
    push_and_stop(ONE, &[&[N, Q], &[N]], |crew| {
        crew.retire(0);
        crew.start(N);
        crew.relieve();
    });
}
