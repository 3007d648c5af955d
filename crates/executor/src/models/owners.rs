//! Owners: ending all tasks while others schedule, wake and put to sleep.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use shuttle::thread;

use super::crew::{Crew, NORMAL};
use super::{explore_some, join};
use crate::owner::Owner;
use crate::owner::terms::Shutdown;
use crate::pool::ExecutorPool;
use crate::task::kind::{TaskClass, TaskKind};
use crate::task::name::TaskName;
use crate::task::{Next, Task, TaskContext};

const RANDOM_COUNT: usize = 700;
const THREADS: &[TaskClass] = &[TaskClass::Normal, TaskClass::Normal];

static DROPPABLE: TaskName = TaskName::new("Droppable", TaskKind::NonIo).may_be_dropped();

/// What the tasks of an owner did: the observer's.
#[derive(Default)]
struct Observed {
    /// `unregister` has returned.
    is_gone: AtomicBool,
    runs_too_late: AtomicU64,
    made: AtomicU64,
    destroyed: AtomicU64,
    destroyed_too_late: AtomicU64,
    /// Tasks that were told, in a run, that their owner goes.
    told: AtomicU64,
}

/// A task that sleeps after each run and tells what happens to it.
struct Sleeper {
    observed: Arc<Observed>,
    is_told: bool,
}

impl Sleeper {
    fn new(observed: &Arc<Observed>) -> Self {
        observed.made.fetch_add(1, Ordering::SeqCst);
        Self { observed: observed.clone(), is_told: false }
    }
}

impl Task for Sleeper {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        let is_gone = self.observed.is_gone.load(Ordering::SeqCst);
        self.observed.runs_too_late.fetch_add(u64::from(is_gone), Ordering::SeqCst);
        if context.is_shutting_down() && !std::mem::replace(&mut self.is_told, true) {
            self.observed.told.fetch_add(1, Ordering::SeqCst);
        }
        Next::Sleep
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let is_gone = self.observed.is_gone.load(Ordering::SeqCst);
        self.observed.destroyed_too_late.fetch_add(u64::from(is_gone), Ordering::SeqCst);
        self.observed.destroyed.fetch_add(1, Ordering::SeqCst);
    }
}

fn unregister(owner: &Owner, shutdown: Shutdown) {
    owner.core.end_tasks(shutdown);
    owner.core.wait_until_empty();
}

/// `setup` makes tasks and threads that do something to them while the owner is unregistered.
fn race(
    shutdown: Shutdown,
    setup: impl Fn(&ExecutorPool, &Owner, &Arc<Observed>) -> Vec<thread::JoinHandle<()>>
    + Send
    + Sync
    + 'static,
) {
    explore_some(RANDOM_COUNT, move || {
        let crew = Crew::new(THREADS);
        let owner = crew.pool.register_owner("owner");
        let observed = Arc::new(Observed::default());
        let threads = setup(&crew.pool, &owner, &observed);
        unregister(&owner, shutdown);
        let destroyed = observed.destroyed.load(Ordering::SeqCst);
        observed.is_gone.store(true, Ordering::SeqCst);
        let is_scheduling = !threads.is_empty();
        join(threads);
        crew.stop();
        let load = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
        assert_eq!(owner.task_count(), 0);
        assert_eq!(load(&observed.runs_too_late), 0, "a run after unregister");
        assert_eq!(load(&observed.destroyed), load(&observed.made), "each is destroyed once");
        assert!(is_scheduling || destroyed == load(&observed.made));
    });
}

const WAYS: [Shutdown; 2] = [Shutdown::Drain, Shutdown::Force];

#[test]
fn a_task_that_is_woken_or_cancelled_meanwhile_ends() {
    for shutdown in WAYS {
        race(shutdown, |pool, owner, observed| {
            let sleeper = Sleeper::new(observed);
            let first = pool.schedule_asleep(owner, &NORMAL, sleeper).unwrap();
            let second = pool.schedule(owner, &NORMAL, Sleeper::new(observed)).unwrap();
            let wake = thread::spawn(move || {
                first.wake();
                second.wake();
                first.cancel();
            });
            vec![wake]
        });
    }
}

/// Refused tasks are destroyed by the caller, perhaps after unregister has returned.
#[test]
fn a_task_that_is_scheduled_meanwhile_ends_or_is_refused() {
    for shutdown in WAYS {
        race(shutdown, |pool, owner, observed| {
            let (pool, owner, observed) = (pool.clone(), owner.clone(), observed.clone());
            vec![thread::spawn(move || {
                let awake = pool.schedule(&owner, &NORMAL, Sleeper::new(&observed));
                let asleep = pool.schedule_asleep(&owner, &NORMAL, Sleeper::new(&observed));
                assert!(awake.is_ok() || asleep.is_err(), "once refused, always refused");
            })]
        });
    }
}

/// A run that a wake before the drain has brought about may have begun when the drain comes, and
/// must not put the task to sleep.
#[test]
fn a_drain_tells_a_task_that_is_about_to_run() {
    explore_some(3 * RANDOM_COUNT, || {
        let crew = Crew::new(&[TaskClass::Normal]);
        let owner = crew.pool.register_owner("owner");
        let observed = Arc::new(Observed::default());
        let asleep = Sleeper::new(&observed);
        crew.pool.schedule_asleep(&owner, &NORMAL, asleep).unwrap().wake();
        unregister(&owner, Shutdown::Drain);
        assert_eq!(observed.told.load(Ordering::SeqCst), 1);
        crew.stop();
    });
}

#[test]
fn a_drain_lets_every_task_run_and_tells_it() {
    explore_some(RANDOM_COUNT, || {
        let crew = Crew::new(THREADS);
        let owner = crew.pool.register_owner("owner");
        let observed = Arc::new(Observed::default());
        let asleep = Sleeper::new(&observed);
        let handle = crew.pool.schedule_asleep(&owner, &NORMAL, asleep).unwrap();
        crew.pool.schedule(&owner, &NORMAL, Sleeper::new(&observed)).unwrap();
        let wake = thread::spawn(move || handle.wake());
        unregister(&owner, Shutdown::Drain);
        assert_eq!(observed.told.load(Ordering::SeqCst), 2);
        assert_eq!(observed.destroyed.load(Ordering::SeqCst), 2);
        wake.join().unwrap();
        crew.stop();
    });
}

#[test]
fn a_drain_destroys_what_may_be_dropped() {
    race(Shutdown::Drain, |pool, owner, observed| {
        let asleep = Sleeper::new(observed);
        let handle = pool.schedule_asleep(owner, &DROPPABLE, asleep).unwrap();
        pool.schedule(owner, &DROPPABLE, Sleeper::new(observed)).unwrap();
        vec![thread::spawn(move || handle.wake())]
    });
}

/// Whoever unregisters destroys what is pushed while it waits: no thread may be free to do it.
#[test]
fn force_needs_no_thread_of_the_pool() {
    explore_some(RANDOM_COUNT, || {
        let crew = Crew::new(&[]);
        let owner = crew.pool.register_owner("owner");
        let observed = Arc::new(Observed::default());
        let sleeper = Sleeper::new(&observed);
        let handle = crew.pool.schedule_asleep(&owner, &NORMAL, sleeper).unwrap();
        let (pool, scheduling, made) = (crew.pool.clone(), owner.clone(), observed.clone());
        let schedule = thread::spawn(move || {
            drop(pool.schedule(&scheduling, &NORMAL, Sleeper::new(&made)));
        });
        let wake = thread::spawn(move || handle.wake());
        unregister(&owner, Shutdown::Force);
        join(vec![schedule, wake]);
        assert_eq!(owner.task_count(), 0, "none slips in behind");
        let destroyed = observed.destroyed.load(Ordering::SeqCst);
        assert_eq!(destroyed, observed.made.load(Ordering::SeqCst));
        crew.stop();
    });
}

#[test]
fn two_may_unregister_the_same_owner() {
    race(Shutdown::Drain, |pool, owner, observed| {
        pool.schedule_asleep(owner, &NORMAL, Sleeper::new(observed)).unwrap();
        pool.schedule(owner, &NORMAL, Sleeper::new(observed)).unwrap();
        let owner = owner.clone();
        vec![thread::spawn(move || unregister(&owner, Shutdown::Force))]
    });
}
