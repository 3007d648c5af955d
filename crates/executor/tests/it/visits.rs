//! Visitors that go through vBuckets in the background.

use std::collections::VecDeque;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use document::{Map, Vbid};
use executor::{
    DeterministicPool, Interrupt, Revisit, Shutdown, Task, TaskHandle, VbucketVisitor, VisitOrder,
    VisitOutcome, VisitTask, visit_async,
};
use platform::seeds::seeds;
use platform::{Clock, Random};

use crate::support::{COMPUTE, Gate, RUNS_MAX, Tombstone, gate, lock, next, pool, simulated_pool};

const MILLISECOND: Duration = Duration::from_millis(1);

/// What a [`Scripted`] visitor is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Begin,
    Visit(u16),
    Complete(VisitOutcome),
}
use Told::{Begin, Complete, Visit};

/// A visitor that answers from a script and writes down what it is told.
pub(crate) struct Scripted {
    told: Arc<Mutex<Vec<Told>>>,
    clock: Clock,
    /// What a visit takes.
    cost: Duration,
    /// Answers for each vBucket; then `No`.
    revisits: Map<Vbid, VecDeque<Revisit>>,
    /// Answers in turn; then `Continue`.
    interrupts: VecDeque<Interrupt>,
}

impl Scripted {
    pub(crate) fn new(clock: &Clock) -> (Self, Arc<Mutex<Vec<Told>>>) {
        let told = Arc::<Mutex<Vec<Told>>>::default();
        let visitor = Self {
            told: told.clone(),
            clock: clock.clone(),
            cost: Duration::ZERO,
            revisits: Map::default(),
            interrupts: VecDeque::new(),
        };
        (visitor, told)
    }

    pub(crate) fn revisits(mut self, vbid: u16, answers: &[Revisit]) -> Self {
        self.revisits.insert(Vbid(vbid), answers.iter().copied().collect());
        self
    }

    pub(crate) fn interrupts(mut self, answers: &[Interrupt]) -> Self {
        self.interrupts = answers.iter().copied().collect();
        self
    }

    fn cost(mut self, cost: Duration) -> Self {
        self.cost = cost;
        self
    }
}

impl VbucketVisitor for Scripted {
    fn begin(&mut self) {
        lock(&self.told).push(Begin);
    }

    fn should_interrupt(&mut self) -> Interrupt {
        self.interrupts.pop_front().unwrap_or(Interrupt::Continue)
    }

    fn visit(&mut self, vbid: Vbid) -> Revisit {
        lock(&self.told).push(Visit(vbid.0));
        self.clock.advance(self.cost);
        self.revisits.get_mut(&vbid).and_then(VecDeque::pop_front).unwrap_or(Revisit::No)
    }

    fn complete(&mut self, outcome: VisitOutcome) {
        lock(&self.told).push(Complete(outcome));
    }
}

fn start(driver: &DeterministicPool, order: VisitOrder, visitor: Scripted) -> TaskHandle {
    let owner = driver.pool().register_owner("bucket");
    visit_async(driver.pool(), &owner, &COMPUTE, order, visitor).expect("the owner is there")
}

/// What a visitor is told from the beginning to the end, without time passing between runs.
fn story(order: VisitOrder, script: impl FnOnce(Scripted) -> Scripted) -> Vec<Told> {
    let (mut driver, clock) = simulated_pool();
    let (visitor, told) = Scripted::new(&clock);
    start(&driver, order, script(visitor));
    driver.run_until_idle(RUNS_MAX);
    let told = lock(&told);
    told.clone()
}

const FINISHED: Told = Complete(VisitOutcome::Finished);
const STOPPED: Told = Complete(VisitOutcome::Stopped);

#[test]
fn each_vbucket_is_visited_in_the_order_that_was_asked_for() {
    let even = |vbid: Vbid| vbid.0.is_multiple_of(2);
    let descending = |one: Vbid, other: Vbid| other.cmp(&one);
    let orders = [
        (VisitOrder::ascending(4), vec![0, 1, 2, 3]),
        (VisitOrder::of([7, 2, 9].map(Vbid)), vec![7, 2, 9]),
        (VisitOrder::ascending(7).filtered(even), vec![0, 2, 4, 6]),
        (VisitOrder::ascending(7).filtered(even).sorted_by(descending), vec![6, 4, 2, 0]),
        (VisitOrder::ascending(0), vec![]),
    ];
    for (order, expected) in orders {
        let mut expected: Vec<_> = expected.into_iter().map(Visit).collect();
        expected.insert(0, Begin);
        expected.push(FINISHED);
        assert_eq!(story(order, |visitor| visitor), expected);
    }
}

#[test]
fn equal_vbuckets_keep_their_order_when_sorted() {
    let by_parity = |one: Vbid, other: Vbid| (one.0 % 2).cmp(&(other.0 % 2));
    let order = VisitOrder::ascending(6).sorted_by(by_parity);
    assert_eq!(order.vbids(), [0, 2, 4, 1, 3, 5].map(Vbid));
}

#[test]
fn a_shuffle_loses_nothing_and_brings_every_order_about_equally_often() {
    let mut counts = std::collections::BTreeMap::new();
    for seed in seeds(6_000) {
        let order = VisitOrder::ascending(3).shuffled(&mut Random::from_seed(seed));
        *counts.entry(order.vbids().to_vec()).or_insert(0) += 1;
        let mut sorted = order.vbids().to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2].map(Vbid), "seed {seed}");
    }
    // Only the usual number of seeds is enough for statistics.
    if counts.values().sum::<u32>() == 6_000 {
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|count| (850..1_150).contains(count)), "{counts:?}");
    }
}

#[test]
fn a_run_pauses_between_vbuckets_when_its_time_slice_has_passed() {
    let (mut driver, clock) = simulated_pool();
    let (visitor, told) = Scripted::new(&clock);
    start(&driver, VisitOrder::ascending(7), visitor.cost(MILLISECOND * 10));
    assert_eq!(driver.run_until_idle(RUNS_MAX), 3);
    let expected = [
        vec![Begin, Visit(0), Visit(1), Visit(2)],
        vec![Begin, Visit(3), Visit(4), Visit(5)],
        vec![Begin, Visit(6), FINISHED],
    ];
    assert_eq!(*lock(&told), expected.concat());
}

#[test]
fn every_run_visits_a_vbucket_however_short_its_slice() {
    let (mut driver, clock) = simulated_pool();
    let owner = driver.pool().register_owner("bucket");
    let (visitor, told) = Scripted::new(&clock);
    let task = VisitTask::new(clock, "Visits", VisitOrder::ascending(3), visitor)
        .time_slice(Duration::ZERO);
    driver.pool().schedule(&owner, &COMPUTE, task).unwrap();
    assert_eq!(driver.run_until_idle(RUNS_MAX), 3);
    let expected = [Begin, Visit(0), Begin, Visit(1), Begin, Visit(2), FINISHED];
    assert_eq!(*lock(&told), expected);
}

#[test]
fn a_visitor_that_pauses_goes_on_where_it_was() {
    use Interrupt::{Continue, Pause};
    let told = story(VisitOrder::ascending(3), |visitor| {
        visitor.interrupts(&[Pause, Pause, Continue, Pause, Continue])
    });
    let expected = [Begin, Begin, Begin, Visit(0), Begin, Visit(1), Visit(2), FINISHED];
    assert_eq!(told, expected);
}

#[test]
fn a_visitor_that_stops_is_completed_and_visits_no_more() {
    use Interrupt::{Continue, Stop};
    let stop = |visitor: Scripted| visitor.interrupts(&[Continue, Stop]);
    assert_eq!(story(VisitOrder::ascending(3), stop), [Begin, Visit(0), STOPPED]);
    let stop_at_once = |visitor: Scripted| visitor.interrupts(&[Stop]);
    assert_eq!(story(VisitOrder::ascending(3), stop_at_once), [Begin, STOPPED]);
}

#[test]
fn a_vbucket_that_is_not_done_is_visited_again_at_once() {
    use Revisit::YesNow;
    let told = story(VisitOrder::ascending(3), |visitor| visitor.revisits(1, &[YesNow, YesNow]));
    let expected = [Begin, Visit(0), Visit(1), Visit(1), Visit(1), Visit(2), FINISHED];
    assert_eq!(told, expected);
}

#[test]
fn a_vbucket_that_cannot_be_visited_well_comes_last() {
    use Revisit::YesLater;
    let told = story(VisitOrder::ascending(3), |visitor| visitor.revisits(0, &[YesLater]));
    assert_eq!(told, [Begin, Visit(0), Visit(1), Visit(2), Visit(0), FINISHED]);
}

#[test]
fn a_whole_round_of_deferred_vbuckets_backs_off() {
    use Revisit::{YesLater, YesNow};
    let (mut driver, clock) = simulated_pool();
    let (visitor, told) = Scripted::new(&clock);
    // 0 is done at once. 1 and 2 are deferred twice; then 1 makes progress once.
    let visitor = visitor
        .revisits(1, &[YesLater, YesLater, YesNow, YesLater])
        .revisits(2, &[YesLater, YesLater]);
    start(&driver, VisitOrder::ascending(3), visitor);
    let take = || std::mem::take(&mut *lock(&told));
    driver.run_until_idle(RUNS_MAX);
    assert_eq!(take(), [Begin, Visit(0), Visit(1), Visit(2)]);
    assert_eq!(driver.advance(MILLISECOND * 99, RUNS_MAX), 0);
    driver.advance(MILLISECOND, RUNS_MAX);
    assert_eq!(take(), [Begin, Visit(1), Visit(2)]);
    driver.advance(MILLISECOND * 100, RUNS_MAX);
    assert_eq!(take(), [Begin, Visit(1), Visit(1), Visit(2), Visit(1), FINISHED]);
}

#[test]
fn a_round_with_any_progress_does_not_back_off() {
    use Revisit::{YesLater, YesNow};
    let (mut driver, clock) = simulated_pool();
    let (visitor, told) = Scripted::new(&clock);
    let visitor = visitor
        .revisits(0, &[YesLater, YesLater])
        .revisits(1, &[YesNow, YesLater])
        .revisits(2, &[YesLater]);
    start(&driver, VisitOrder::ascending(3), visitor);
    driver.run_until_idle(RUNS_MAX);
    // The first visit of 0 came before the progress of 1, so 0 is asked again.
    assert_eq!(*lock(&told), [Begin, Visit(0), Visit(1), Visit(1), Visit(2), Visit(0)]);
}

#[test]
fn a_wake_ends_the_back_off() {
    let (mut driver, clock) = simulated_pool();
    let (visitor, told) = Scripted::new(&clock);
    let task = start(&driver, VisitOrder::ascending(1), visitor.revisits(0, &[Revisit::YesLater]));
    driver.run_until_idle(RUNS_MAX);
    task.wake();
    driver.run_until_idle(RUNS_MAX);
    assert_eq!(*lock(&told), [Begin, Visit(0), Begin, Visit(0), FINISHED]);
    assert!(task.is_dead());
}

#[test]
fn visits_complete_exactly_once_whatever_ends_them() {
    let half = Duration::from_millis(25);
    for ending in 0..5 {
        let (mut driver, clock) = simulated_pool();
        let owner = driver.pool().register_owner("bucket");
        let (visitor, told) = Scripted::new(&clock);
        let visitor = visitor.cost(half);
        let order = VisitOrder::ascending(4);
        if ending == 0 {
            owner.unregister(Shutdown::Force);
            visit_async(driver.pool(), &owner, &COMPUTE, order, visitor).unwrap_err();
        } else {
            let task = visit_async(driver.pool(), &owner, &COMPUTE, order, visitor).unwrap();
            assert!(driver.run_one() && driver.run_one());
            match ending {
                1 => assert!(task.cancel()),
                2 => owner.unregister(Shutdown::Drain),
                3 => owner.unregister(Shutdown::Force),
                _ => {}
            }
            driver.run_until_idle(RUNS_MAX);
        }
        let told = lock(&told);
        let expected = if ending == 4 { FINISHED } else { STOPPED };
        assert_eq!(told.last(), Some(&expected), "ending {ending}");
        let completions = told.iter().filter(|told| matches!(told, Complete(_))).count();
        assert_eq!(completions, 1, "ending {ending}");
        let visits = told.iter().filter(|told| matches!(told, Visit(_))).count();
        assert_eq!(visits, [0, 2, 2, 2, 4][ending]);
    }
}

#[test]
fn the_description_says_where_the_visits_are() {
    let (mut driver, clock) = simulated_pool();
    let (visitor, _) = Scripted::new(&clock);
    let task = VisitTask::new(clock, "Expired items", VisitOrder::ascending(1), visitor);
    assert_eq!(task.describe().as_deref(), Some("Expired items"));
    let owner = driver.pool().register_owner("bucket");
    let descriptions = Arc::new(Mutex::new(Vec::new()));
    let (visitor, _) = Scripted::new(driver.pool().clock());
    let order = VisitOrder::of([Vbid(5), Vbid(1023)]);
    let clock = driver.pool().clock().clone();
    let mut task = VisitTask::new(clock, "Visits", order, visitor).time_slice(Duration::ZERO);
    let written = descriptions.clone();
    let described = move |context: &executor::TaskContext<'_>| {
        let next = task.run(context);
        lock(&written).extend(task.describe());
        next
    };
    driver.pool().schedule(&owner, &COMPUTE, described).unwrap();
    driver.run_until_idle(RUNS_MAX);
    assert_eq!(*lock(&descriptions), ["Visits on vb:5", "Visits on vb:1023"]);
}

#[test]
fn any_script_visits_every_vbucket_until_it_is_done() {
    for seed in seeds(300) {
        let mut random = Random::from_seed(seed);
        let (mut driver, clock) = simulated_pool();
        let count = random.below(20) as u16;
        let (mut visitor, told) = Scripted::new(&clock);
        let mut expected_visits = usize::from(count);
        for id in 0..count {
            let answers: Vec<_> = (0..random.below(6))
                .map(|_| if random.below(2) == 0 { Revisit::YesNow } else { Revisit::YesLater })
                .collect();
            expected_visits += answers.len();
            visitor = visitor.revisits(id, &answers);
        }
        let pauses: Vec<_> = (0..random.below(60))
            .map(|_| if random.below(4) == 0 { Interrupt::Pause } else { Interrupt::Continue })
            .collect();
        let cost = MILLISECOND * random.below(30) as u32;
        let order = VisitOrder::ascending(count).shuffled(&mut random);
        start(&driver, order, visitor.interrupts(&pauses).cost(cost));
        driver.advance(Duration::from_secs(60), RUNS_MAX);
        let told = lock(&told);
        let visits = told.iter().filter(|told| matches!(told, Visit(_))).count();
        assert_eq!(visits, expected_visits, "seed {seed}");
        assert_eq!(told.last(), Some(&FINISHED), "seed {seed}");
    }
}

/// A visitor that waits at a gate in each visit.
struct Slow {
    gate: Gate,
    tell: Sender<&'static str>,
    _tombstone: Tombstone,
}

impl VbucketVisitor for Slow {
    fn visit(&mut self, _vbid: Vbid) -> Revisit {
        self.tell.send("visit").expect("the test listens");
        self.gate.pass();
        self.tell.send("visited").expect("the test listens");
        Revisit::No
    }

    fn complete(&mut self, outcome: VisitOutcome) {
        assert_eq!(outcome, VisitOutcome::Stopped);
        self.tell.send("complete").expect("the test listens");
    }
}

#[test]
fn on_threads_a_cancelled_visitor_is_completed_after_the_visit_it_is_in() {
    let pool = pool(1);
    let owner = pool.register_owner("bucket");
    let (open, gate) = gate();
    let (tell, told) = channel();
    let (died, deaths) = channel();
    let visitor = Slow { gate, tell, _tombstone: Tombstone(died) };
    let clock = pool.clock().clone();
    let task = VisitTask::new(clock, "Slow", VisitOrder::ascending(9), visitor);
    let task = pool.schedule(&owner, &COMPUTE, task.time_slice(Duration::ZERO)).unwrap();
    assert_eq!(next(&told), "visit");
    assert!(task.cancel());
    open.send(()).unwrap();
    assert_eq!([next(&told), next(&told)], ["visited", "complete"]);
    assert_eq!(next(&deaths), "NonIoPool0", "the pool destroys visitors");
    assert!(told.recv().is_err());
}
