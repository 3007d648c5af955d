//! Everything at once on real threads, against a model of what must come of it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use executor::{
    ExecutorPool, Next, Owner, Shutdown, Task, TaskContext, TaskHandle, TaskKind, TaskName,
    ThreadCounts,
};
use platform::seeds::seeds;
use platform::{Clock, Random};

use crate::support::{PATIENCE, pause, pool};

const THREADS: u64 = 16;
const OWNERS: usize = 3;
/// The threads act for so long, then all must come to rest.
const ROUND: Duration = Duration::from_millis(150);
const SECONDS_DEFAULT: u64 = 2;
/// Tasks of an owner, beyond which no more are made until it is unregistered.
const TASKS_MAX: usize = 2_000;

static NAMES: [TaskName; 4] = [
    TaskName::new("Stress", TaskKind::NonIo),
    TaskName::new("StressUrgent", TaskKind::NonIo).priority(0).expected(Duration::ZERO),
    TaskName::new("StressQuick", TaskKind::NonIo).quick(),
    TaskName::new("StressWriter", TaskKind::Writer),
];

/// What is known of a task.
#[derive(Default)]
struct Known {
    is_one_shot: bool,
    is_accepted: AtomicBool,
    is_cancelled: AtomicBool,
    is_running: AtomicBool,
    /// Wakes and snoozes that were about to be done.
    asked: AtomicU64,
    /// Of those, how many the last run found when it began.
    seen: AtomicU64,
    runs: AtomicU64,
    runs_told: AtomicU64,
    destroyed: AtomicU32,
}

/// An owner and its tasks.
struct Life {
    owner: Owner,
    /// [`Owner::unregister`] has returned.
    is_gone: Arc<AtomicBool>,
    is_forced: AtomicBool,
    tasks: Mutex<Vec<(Arc<Known>, Option<TaskHandle>)>>,
}

struct Restless {
    known: Arc<Known>,
    is_gone: Arc<AtomicBool>,
    random: Random,
}

impl Task for Restless {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        let known = &self.known;
        let asked = known.asked.load(Ordering::SeqCst);
        assert!(!known.is_running.swap(true, Ordering::SeqCst), "two runs at the same time");
        assert!(!self.is_gone.load(Ordering::SeqCst), "a run after unregister");
        known.runs.fetch_add(1, Ordering::SeqCst);
        known.runs_told.fetch_add(u64::from(context.is_shutting_down()), Ordering::SeqCst);
        for _ in 0..self.random.below(200) {
            std::hint::spin_loop();
        }
        known.seen.fetch_max(asked, Ordering::SeqCst);
        assert!(known.is_running.swap(false, Ordering::SeqCst), "two runs at the same time");
        match self.random.below(10) {
            _ if known.is_one_shot => Next::Finished,
            0 => Next::Again,
            1 | 2 => Next::SleepFor(Duration::from_micros(self.random.below(30_000))),
            _ => Next::Sleep,
        }
    }
}

impl Drop for Restless {
    fn drop(&mut self) {
        assert!(!self.known.is_running.load(Ordering::SeqCst), "destroyed during a run");
        self.known.destroyed.fetch_add(1, Ordering::SeqCst);
    }
}

impl Life {
    fn begin(pool: &ExecutorPool) -> Arc<Self> {
        Arc::new(Self {
            owner: pool.register_owner("stress"),
            is_gone: Arc::default(),
            is_forced: AtomicBool::new(false),
            tasks: Mutex::default(),
        })
    }

    fn add(&self, pool: &ExecutorPool, random: &mut Random, is_one_shot: bool) {
        let known = Arc::new(Known { is_one_shot, ..Known::default() });
        let index = {
            let mut tasks = self.tasks.lock().unwrap();
            if tasks.len() >= TASKS_MAX {
                return;
            }
            tasks.push((known.clone(), None));
            tasks.len() - 1
        };
        let task = Restless {
            known: known.clone(),
            is_gone: self.is_gone.clone(),
            random: Random::from_seed(random.next_u64()),
        };
        let name = &NAMES[random.below(NAMES.len() as u64) as usize];
        let handle = if is_one_shot || random.below(2) == 0 {
            pool.schedule(&self.owner, name, task)
        } else {
            pool.schedule_asleep(&self.owner, name, task)
        };
        if let Ok(handle) = handle {
            known.is_accepted.store(true, Ordering::SeqCst);
            self.tasks.lock().unwrap()[index].1 = Some(handle);
        }
    }

    fn some_task(&self, random: &mut Random) -> Option<(Arc<Known>, TaskHandle)> {
        let tasks = self.tasks.lock().unwrap();
        let (known, handle) = tasks.get(random.below(tasks.len().max(1) as u64) as usize)?;
        Some((known.clone(), handle.clone()?))
    }

    fn unregister(&self, shutdown: Shutdown) {
        if shutdown == Shutdown::Force {
            self.is_forced.store(true, Ordering::SeqCst);
        }
        let tasks = self.tasks.lock().unwrap().clone();
        let accepted = tasks.iter().filter(|(known, _)| known.is_accepted.load(Ordering::SeqCst));
        let accepted: Vec<_> = accepted.collect();
        self.owner.unregister(shutdown);
        self.is_gone.store(true, Ordering::SeqCst);
        for (known, _) in accepted {
            assert_eq!(known.destroyed.load(Ordering::SeqCst), 1, "left behind by unregister");
        }
    }

    /// Nobody uses the owner any more.
    fn check_the_dead(&self) {
        assert_eq!(self.owner.task_count(), 0);
        let is_forced = self.is_forced.load(Ordering::SeqCst);
        for (known, _) in self.tasks.lock().unwrap().iter() {
            assert_eq!(known.destroyed.load(Ordering::SeqCst), 1, "destroyed exactly once");
            let runs = known.runs.load(Ordering::SeqCst);
            let must_run = known.is_accepted.load(Ordering::SeqCst)
                && !known.is_cancelled.load(Ordering::SeqCst)
                && !is_forced;
            if known.is_one_shot {
                assert!(runs <= 1, "a one-shot ran {runs} times");
                assert!(!must_run || runs == 1, "a one-shot did not run");
            } else if must_run {
                assert!(known.runs_told.load(Ordering::SeqCst) > 0, "a drain skipped a task");
            }
        }
    }

    /// Every wake that returned is followed by a run that began after it.
    fn settle(&self) {
        let clock = Clock::real();
        let end = clock.now().after(PATIENCE);
        for (known, handle) in self.tasks.lock().unwrap().iter() {
            let Some(handle) = handle else { continue };
            let is_settled = || {
                let is_seen =
                    known.seen.load(Ordering::SeqCst) == known.asked.load(Ordering::SeqCst);
                let has_run = !known.is_one_shot || known.runs.load(Ordering::SeqCst) == 1;
                handle.is_dead() || is_seen && has_run
            };
            while !is_settled() {
                assert!(clock.now() < end, "a wake, a deadline or a task was lost");
                pause(Duration::from_millis(1));
            }
        }
    }
}

/// What the threads share.
struct Stage {
    pool: ExecutorPool,
    lives: Vec<Mutex<Arc<Life>>>,
    /// Owners that were unregistered, to be looked at when nobody uses them.
    ended: Mutex<Vec<Arc<Life>>>,
    acts: AtomicU64,
}

impl Stage {
    fn act(&self, random: &mut Random) {
        let slot = &self.lives[random.below(self.lives.len() as u64) as usize];
        let life = slot.lock().unwrap().clone();
        match random.below(2_000) {
            0 | 1 => {
                let fresh = Life::begin(&self.pool);
                let old = std::mem::replace(&mut *slot.lock().unwrap(), fresh);
                let way = [Shutdown::Drain, Shutdown::Force][random.below(2) as usize];
                old.unregister(way);
                self.ended.lock().unwrap().push(old);
            }
            2..6 => self.resize(random),
            6..200 => life.add(&self.pool, random, true),
            200..300 => life.add(&self.pool, random, false),
            choice => {
                let Some((known, handle)) = life.some_task(random) else { return };
                self.disturb(choice, random, &known, &handle);
            }
        }
        self.acts.fetch_add(1, Ordering::Relaxed);
    }

    fn disturb(&self, choice: u64, random: &mut Random, known: &Known, handle: &TaskHandle) {
        match choice {
            300..340 => {
                known.is_cancelled.store(true, Ordering::SeqCst);
                handle.cancel();
            }
            340..1_100 => {
                known.asked.fetch_add(1, Ordering::SeqCst);
                handle.snooze(Duration::from_micros(random.below(30_000)));
            }
            _ => {
                known.asked.fetch_add(1, Ordering::SeqCst);
                handle.wake();
            }
        }
    }

    /// Any number of threads, none included, but in the end there are some.
    fn resize(&self, random: &mut Random) {
        let kind = [TaskKind::NonIo, TaskKind::Writer][random.below(2) as usize];
        let mut count = |least, most: u64| least + random.below(most) as usize;
        for least in [0, 1] {
            let counts = ThreadCounts { normal: count(least, 4), quick: count(0, 2) };
            self.pool.set_threads(kind, counts).unwrap();
        }
    }

    fn round(&self, seed: u64) {
        let clock = Clock::real();
        let end = clock.now().after(ROUND);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let clock = &clock;
                scope.spawn(move || {
                    let mut random = Random::from_seed(seed * THREADS + thread);
                    while clock.now() < end {
                        self.act(&mut random);
                    }
                });
            }
        });
        self.lives.iter().for_each(|life| life.lock().unwrap().settle());
        self.ended.lock().unwrap().drain(..).for_each(|life| life.check_the_dead());
    }
}

#[test]
fn sixteen_threads_at_random_lose_nothing_and_double_nothing() {
    let pool = pool(2);
    let lives = (0..OWNERS).map(|_| Mutex::new(Life::begin(&pool))).collect();
    let stage = Stage { pool, lives, ended: Mutex::default(), acts: AtomicU64::new(0) };
    let seed = *seeds(1).start();
    let clock = Clock::real();
    let end = clock.now().after(Duration::from_secs(seconds()));
    let _seed = crate::support::TellOnPanic(seed);
    let rounds = (0..).take_while(|round| {
        stage.round(seed.wrapping_mul(1_000_000) + round);
        clock.now() < end
    });
    let rounds = rounds.count();
    let lives: Vec<_> = stage.lives.iter().map(|life| life.lock().unwrap().clone()).collect();
    stage.pool.shutdown();
    for life in lives {
        life.is_forced.store(true, Ordering::SeqCst);
        life.check_the_dead();
    }
    println!("{} acts in {} rounds", stage.acts.load(Ordering::Relaxed), rounds + 1);
}

#[expect(clippy::disallowed_methods, reason = "a test has no configuration but its environment")]
fn seconds() -> u64 {
    let seconds = std::env::var("STRESS_SECONDS").ok().and_then(|text| text.parse().ok());
    seconds.unwrap_or(SECONDS_DEFAULT)
}
