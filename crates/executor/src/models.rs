//! Models of what this crate does without locks, or with more than one: explored by a model
//! checker, which decides at each atomic operation, lock, park and unpark who goes on.
//!
//! `cargo test -p executor --features model` runs them. Small ones go through all interleavings;
//! the others through a bounded number of random ones, half of them by the PCT scheduler, which is
//! good at finding what needs few, badly placed switches. A lost wake-up shows as a deadlock.
//!
//! The checker knows sequential consistency only: every operation takes effect at once for all
//! threads, whatever [`Ordering`](std::sync::atomic::Ordering) it names. So it proves the protocols
//! and not the orderings. These are weaker than `SeqCst`, and suffice for these reasons:
//!
//! - The task word (`AcqRel`): all that changes it are read-modify-writes, which see the latest
//!   value, and each one synchronizes with all before it. So what a waker wrote before `notify` is
//!   visible to the run that it causes, and what a run wrote to the next run, on any thread.
//! - `is_dead`, and `bury` before it, are `SeqCst`: a snooze and a destruction decide with them and
//!   the deadline, two words, who removes the timer.
//! - `is_running` and `is_queued` (`Relaxed`): statistics only.
//! - `timers::deadline::Deadline`: `due` and `armed` are `SeqCst`, as a pattern of two words must
//!   be. The `Relaxed` look in `clear` may miss only a deadline that nobody has yet handed on to
//!   this thread; it is treated as set after the clearing. `entry` is used under the shard's lock.
//! - `RunQueue`'s `ready` counters (`Relaxed`): hints for threads that search. Before such a thread
//!   sleeps it looks into the queue itself, under the lock, and the lock is the whole protocol.
//! - `Worker::is_called` (`Release`, `Acquire`): one word; the caller's unpark follows its store,
//!   and park and unpark order what is theirs. `is_retiring`: the same, and `dismiss` takes the
//!   queue's lock after the store: either it finds the worker asleep, or the worker, which asks
//!   under that lock before it sleeps, sees the store.
//! - `Timers`: `sleeping_until`, `watch_at`, `is_stopping` and the shards' `next` are `SeqCst`. The
//!   `Relaxed` look in `watch` may see a watch that has just ended only if that watch took the
//!   queue's lock after this thread did, and so has seen what this thread left behind.
//! - `Owner`: the orders are `SeqCst`; `is_known_to_owner` (`Relaxed`) is written by whoever holds
//!   the task and handed on with it, through the word, the queue's lock or the list's.

#![expect(clippy::unwrap_used, reason = "a model stops where it cannot go on")]

mod crew;
mod deadlines;
mod owners;
mod queues;
mod timer_threads;
mod words;

use std::sync::Arc;

use platform::seeds::seeds;
use shuttle::scheduler::{DfsScheduler, PctScheduler, RandomScheduler, Scheduler};
use shuttle::thread::JoinHandle;
use shuttle::{Config, MaxSteps, Runner};

/// Random seeds, unless the environment says otherwise.
const SEED_COUNT: u64 = 2;
/// Switches at which the PCT scheduler breaks its own order.
const PCT_DEPTH: usize = 3;

/// Explores all interleavings of `model`. Fails if there are more than `count_max`: it would take
/// too long.
fn explore_all(count_max: usize, model: impl Fn() + Send + Sync + 'static) {
    let explored = run(DfsScheduler::new(Some(count_max + 1), false), model);
    assert!(explored <= count_max, "the model has more than {count_max} interleavings");
}

/// Explores `count` random interleavings of `model` for each seed and scheduler.
fn explore_some(count: usize, model: impl Fn() + Send + Sync + 'static) {
    let model = Arc::new(model);
    for seed in seeds(SEED_COUNT) {
        let _teller = TellOnPanic(seed);
        let (first, second) = (model.clone(), model.clone());
        run(RandomScheduler::new_from_seed(seed, count), move || first());
        run(PctScheduler::new_from_seed(seed, PCT_DEPTH, count), move || second());
    }
}

fn run(scheduler: impl Scheduler + 'static, model: impl Fn() + Send + Sync + 'static) -> usize {
    let mut config = Config::new();
    config.stack_size = 1 << 17;
    // Weak orderings are the subject of the module's documentation.
    config.silence_warnings = true;
    config.max_steps = MaxSteps::FailAfter(100_000);
    Runner::new(scheduler, config).run(model)
}

/// Waits for all threads.
fn join(threads: Vec<JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

struct TellOnPanic(u64);

impl Drop for TellOnPanic {
    #[expect(clippy::print_stderr, reason = "who repeats the failure needs the seed")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the model failed with SEED={}", self.0);
        }
    }
}
