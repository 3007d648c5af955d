//! Visits that somebody else paces.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, OnceLock};

use document::Vbid;
use executor::{
    Interrupt, Revisit, Shutdown, StepOutcome, TaskHandle, VbucketVisitor, VisitOrder,
    VisitOutcome, visit_stepwise,
};

use crate::support::{COMPUTE, RUNS_MAX, lock, next, pool, simulated_pool};
use crate::visits::Told::{Begin, Complete, Visit};
use crate::visits::{Scripted, Told};
use StepOutcome::{AllDeferred, Ended, MoreToDo};

/// What each step did: what the visitor was told, and what the continuation was.
fn steps(
    script: impl FnOnce(Scripted) -> Scripted,
    vbuckets: u16,
) -> Vec<(Vec<Told>, StepOutcome)> {
    let (mut driver, clock) = simulated_pool();
    let owner = driver.pool().register_owner("bucket");
    let (visitor, told) = Scripted::new(&clock);
    let steps = Arc::new(Mutex::new(Vec::new()));
    let order = VisitOrder::ascending(vbuckets);
    let (written, seen) = (steps.clone(), told.clone());
    let continuation = move |outcome| {
        let told = std::mem::take(&mut *lock(&seen));
        lock(&written).push((told, outcome));
    };
    let visitor = script(visitor);
    let task = visit_stepwise(driver.pool(), &owner, &COMPUTE, order, visitor, continuation)
        .expect("the owner is there");
    assert_eq!(driver.run_until_idle(RUNS_MAX), 0, "it sleeps at first");
    while !task.is_dead() {
        task.wake();
        assert_eq!(driver.run_until_idle(RUNS_MAX), 1, "it sleeps in between");
    }
    assert!(lock(&told).is_empty(), "the last continuation comes last");
    let steps = lock(&steps);
    steps.clone()
}

const FINISHED: Told = Complete(VisitOutcome::Finished);
const STOPPED: Told = Complete(VisitOutcome::Stopped);

#[test]
fn each_wake_visits_one_vbucket_and_continues() {
    let expected = [
        (vec![Begin, Visit(0)], MoreToDo),
        (vec![Begin, Visit(1)], MoreToDo),
        (vec![Begin, Visit(2), FINISHED], Ended),
    ];
    assert_eq!(steps(|visitor| visitor, 3), expected);
    assert_eq!(steps(|visitor| visitor, 0), [(vec![Begin, FINISHED], Ended)]);
}

#[test]
fn revisits_pauses_and_stops_are_steps_of_their_own() {
    let revisited = |visitor: Scripted| {
        visitor.revisits(0, &[Revisit::YesNow, Revisit::YesLater]).revisits(1, &[Revisit::YesLater])
    };
    let expected = [
        (vec![Begin, Visit(0)], MoreToDo),
        (vec![Begin, Visit(0)], MoreToDo),
        (vec![Begin, Visit(1)], AllDeferred),
        (vec![Begin, Visit(0)], MoreToDo),
        (vec![Begin, Visit(1), FINISHED], Ended),
    ];
    assert_eq!(steps(revisited, 2), expected);
    let stopped = |visitor: Scripted| {
        visitor.interrupts(&[Interrupt::Continue, Interrupt::Pause, Interrupt::Stop])
    };
    let expected =
        [(vec![Begin, Visit(0)], MoreToDo), (vec![Begin], MoreToDo), (vec![Begin, STOPPED], Ended)];
    assert_eq!(steps(stopped, 3), expected);
}

#[test]
fn the_continuation_says_exactly_once_that_the_visits_have_ended() {
    for ending in 0..4 {
        let (mut driver, clock) = simulated_pool();
        let owner = driver.pool().register_owner("bucket");
        let (visitor, told) = Scripted::new(&clock);
        let (outcome, outcomes) = channel();
        let continuation = move |step| outcome.send(step).unwrap();
        let order = VisitOrder::ascending(3);
        if ending == 0 {
            owner.unregister(Shutdown::Force);
        }
        let task = visit_stepwise(driver.pool(), &owner, &COMPUTE, order, visitor, continuation);
        if let Ok(task) = task {
            task.wake();
            driver.run_until_idle(RUNS_MAX);
            assert_eq!(outcomes.try_recv(), Ok(MoreToDo));
            match ending {
                1 => owner.unregister(Shutdown::Drain),
                2 => owner.unregister(Shutdown::Force),
                _ => assert!(task.cancel()),
            }
            driver.run_until_idle(RUNS_MAX);
        }
        assert_eq!(outcomes.iter().collect::<Vec<_>>(), [Ended], "ending {ending}");
        assert_eq!(lock(&told).last(), Some(&STOPPED), "ending {ending}");
    }
}

/// A visitor that writes down its number and the vBucket.
struct Numbered(usize, std::sync::mpsc::Sender<(usize, u16)>);

impl VbucketVisitor for Numbered {
    fn visit(&mut self, vbid: Vbid) -> Revisit {
        self.1.send((self.0, vbid.0)).expect("the test listens");
        Revisit::No
    }
}

#[test]
fn the_visits_of_two_owners_take_turns_on_threads() {
    const VBUCKETS: u16 = 500;
    let pool = pool(2);
    let owners = ["first", "second"].map(|name| pool.register_owner(name));
    let tasks: Arc<[OnceLock<TaskHandle>; 2]> = Arc::default();
    let (visited, visits) = channel();
    for (number, owner) in owners.iter().enumerate() {
        let others = tasks.clone();
        let continuation = move |_| {
            if let Some(other) = others[1 - number].get() {
                other.wake();
            }
        };
        let (order, visitor) = (VisitOrder::ascending(VBUCKETS), Numbered(number, visited.clone()));
        let task = visit_stepwise(&pool, owner, &COMPUTE, order, visitor, continuation).unwrap();
        tasks[number].set(task).unwrap();
    }
    drop(visited);
    tasks[0].get().unwrap().wake();
    for step in 0..VBUCKETS {
        assert_eq!(next(&visits), (0, step));
        assert_eq!(next(&visits), (1, step));
    }
    assert!(visits.recv().is_err(), "both tasks are gone");
}
