//! Which of the tasks that wait goes first.

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use executor::{ExecutorPool, Next, Owner, TaskContext, TaskKind, TaskName, ThreadCounts};

use crate::support::{COMPUTE, gate, next, options, pause, start};

static URGENT: TaskName = TaskName::new("Urgent", TaskKind::NonIo).priority(0);
static USUAL: TaskName = TaskName::new("Usual", TaskKind::NonIo).priority(5);
static LAZY: TaskName = TaskName::new("Lazy", TaskKind::NonIo).priority(15);
static QUICK: TaskName = TaskName::new("QuickOrder", TaskKind::NonIo).quick();

/// The order in which one thread runs tasks of these names, pushed while it was busy. The answer
/// has their indices.
fn order_of(names: &[&'static TaskName]) -> Vec<usize> {
    let pool = start(options(ThreadCounts { normal: 1, quick: 0 }));
    let owner = pool.register_owner("bucket");
    let open = block(&pool, &owner);
    let (ran, runs) = channel();
    for (index, name) in names.iter().enumerate() {
        let ran = ran.clone();
        let task = move |_: &TaskContext<'_>| {
            ran.send(index).unwrap();
            Next::Finished
        };
        pool.schedule(&owner, name, task).unwrap();
    }
    open.send(()).unwrap();
    names.iter().map(|_| next(&runs)).collect()
}

/// Keeps the only thread busy until something is sent.
fn block(pool: &ExecutorPool, owner: &Owner) -> Sender<()> {
    let (open, gate) = gate();
    let (began, begun) = channel();
    let task = move |_: &TaskContext<'_>| {
        began.send(()).unwrap();
        gate.pass();
        Next::Finished
    };
    pool.schedule(owner, &COMPUTE, task).unwrap();
    next(&begun);
    open
}

#[test]
fn the_most_urgent_goes_first_and_equals_keep_their_order() {
    let names = [&LAZY, &USUAL, &URGENT, &LAZY, &URGENT, &USUAL];
    assert_eq!(order_of(&names), [2, 4, 1, 5, 0, 3]);
}

#[test]
fn one_of_thirty_two_is_the_one_that_has_waited_longest() {
    let names: Vec<_> = std::iter::once(&LAZY).chain([&URGENT; 70]).collect();
    let order = order_of(&names);
    let place = order.iter().position(|&index| index == 0).unwrap();
    assert_eq!(place, 31, "31 urgent ones go ahead, not 70");
    let urgent: Vec<_> = order.into_iter().filter(|&index| index != 0).collect();
    assert!(urgent.is_sorted(), "of one priority they keep their order");
}

#[test]
fn quick_tasks_go_ahead_but_every_ninth_time_a_normal_one_gets_its_turn() {
    let names: Vec<_> = [&URGENT; 2].into_iter().chain([&QUICK; 20]).collect();
    let order = order_of(&names);
    let places = [0, 1].map(|normal| order.iter().position(|&index| index == normal).unwrap());
    assert_eq!(places, [8, 17]);
}

/// In each kind: one thread runs a long task, another one sleeps, and that one must come for what
/// follows, although tasks of this name have been brief until then.
#[test]
fn a_long_task_delays_nobody_while_a_thread_sleeps() {
    static BRIEF: [TaskName; 4] = [
        TaskName::new("BriefReader", TaskKind::Reader),
        TaskName::new("BriefWriter", TaskKind::Writer),
        TaskName::new("BriefAuxIo", TaskKind::AuxIo),
        TaskName::new("BriefNonIo", TaskKind::NonIo),
    ];
    let mut options = options(ThreadCounts { normal: 2, quick: 0 });
    for kind in TaskKind::ALL {
        options.set_threads(kind, ThreadCounts { normal: 2, quick: 0 });
    }
    let pool = start(options);
    let owner = pool.register_owner("bucket");
    for name in &BRIEF {
        let (ran, runs) = channel();
        let brief = || {
            let ran = ran.clone();
            move |_: &TaskContext<'_>| {
                ran.send(()).unwrap();
                Next::Finished
            }
        };
        // On a busy machine threads of low priority get little of it.
        let rounds = if name.kind().is_low_priority() { 3 } else { 60 };
        for _ in 0..rounds {
            // So the pool learns that tasks of this name are brief.
            (0..80).for_each(|_| drop(pool.schedule(&owner, name, brief()).unwrap()));
            (0..80).for_each(|_| next(&runs));
            // Both threads sleep. The first task calls one of them; what comes until that one is
            // awake calls nobody, and stays behind when it takes the first task.
            pause(Duration::from_millis(2));
            let (open, gate) = gate();
            let long = move |_: &TaskContext<'_>| {
                gate.pass();
                Next::Finished
            };
            pool.schedule(&owner, name, long).unwrap();
            pool.schedule(&owner, name, brief()).unwrap();
            let waited = runs.recv_timeout(Duration::from_secs(10));
            assert!(waited.is_ok(), "{name:?}: a task waits behind a long one");
            open.send(()).unwrap();
        }
    }
}
