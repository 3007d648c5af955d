//! How a caller waits for its task: the task posts a baton, the caller waits for it.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::{Thread, park, yield_now};
use std::time::{Duration, Instant};

const INITIAL: u32 = 0;
const WAITING: u32 = 1;
const POSTED: u32 = 2;

/// How long [`Waiting::Spin`] burns CPU before it parks; the default of `folly::Baton`.
pub const SPIN: Duration = Duration::from_micros(2);
/// How long [`Waiting::Yield`] gives the CPU away before it parks.
pub const YIELD: Duration = Duration::from_micros(100);
/// Yields between two looks at the clock.
const YIELDS_PER_CLOCK_READ: usize = 4;

/// What a waiting thread does before it parks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Gives the CPU to others for at most [`YIELD`].
    Yield,
    /// Spins for at most [`SPIN`].
    Spin,
    /// Spins for at most [`SPIN`], then gives the CPU to others for at most [`YIELD`].
    SpinYield,
}

impl Waiting {
    /// All, the default first.
    pub const ALL: [Self; 3] = [Self::Yield, Self::Spin, Self::SpinYield];

    /// As reports name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Yield => "yield",
            Self::Spin => "spin",
            Self::SpinYield => "spin+yield",
        }
    }
}

/// One thread waits, any other one posts. On cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
pub struct Baton {
    state: AtomicU32,
    /// How often the task behind it has run; a check that every wait was for a run of its own.
    runs: AtomicU64,
    waiter: Thread,
}

impl Baton {
    /// A baton for which the calling thread waits. It lives as long as the process, so that tasks
    /// can refer to it as freely as those of the original refer to the caller's stack.
    pub fn for_this_thread() -> &'static Self {
        Box::leak(Box::new(Self {
            state: AtomicU32::new(INITIAL),
            runs: AtomicU64::new(0),
            waiter: std::thread::current(),
        }))
    }

    /// Counts a run, then posts: the body of the tasks that benchmarks schedule.
    pub fn count_and_post(&self) {
        self.runs.fetch_add(1, Ordering::Relaxed);
        self.post();
    }

    /// Runs counted so far.
    pub fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
    }

    /// Lets the waiter go on, now or when it comes.
    pub fn post(&self) {
        if self.state.swap(POSTED, Ordering::AcqRel) == WAITING {
            self.waiter.unpark();
        }
    }

    /// Waits until the baton is posted, and takes it.
    pub fn wait(&self, waiting: Waiting) {
        let is_posted = match waiting {
            Waiting::Yield => self.wait_yielding(),
            Waiting::Spin => self.wait_spinning(),
            Waiting::SpinYield => self.wait_spinning() || self.wait_yielding(),
        };
        if !is_posted {
            self.wait_parked();
        }
        self.state.store(INITIAL, Ordering::Relaxed);
    }

    fn is_posted(&self) -> bool {
        self.state.load(Ordering::Acquire) == POSTED
    }

    fn wait_yielding(&self) -> bool {
        if self.is_posted() {
            return true;
        }
        let started = Instant::now();
        loop {
            for _ in 0..YIELDS_PER_CLOCK_READ {
                yield_now();
                if self.is_posted() {
                    return true;
                }
            }
            if started.elapsed() >= YIELD {
                return false;
            }
        }
    }

    fn wait_spinning(&self) -> bool {
        if self.is_posted() {
            return true;
        }
        let started = Instant::now();
        while started.elapsed() < SPIN {
            spin_loop();
            if self.is_posted() {
                return true;
            }
        }
        false
    }

    fn wait_parked(&self) {
        let parks =
            self.state.compare_exchange(INITIAL, WAITING, Ordering::AcqRel, Ordering::Acquire);
        if parks.is_ok() {
            while !self.is_posted() {
                park();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_post_ends_one_wait() {
        for waiting in Waiting::ALL {
            let (sender, receiver) = std::sync::mpsc::channel::<&'static Baton>();
            let poster = std::thread::spawn(move || {
                for (number, baton) in receiver.into_iter().enumerate() {
                    if number % 8 == 0 {
                        // Long enough for the waiter to park.
                        std::thread::sleep(3 * YIELD);
                    }
                    baton.count_and_post();
                }
            });
            let baton = Baton::for_this_thread();
            for number in 1..=200 {
                sender.send(baton).expect("the poster lives");
                baton.wait(waiting);
                assert_eq!(baton.runs(), number, "{waiting:?}");
            }
            drop(sender);
            poster.join().expect("the poster posts");
        }
    }

    #[test]
    fn a_baton_that_was_posted_before_does_not_wait() {
        let baton = Baton::for_this_thread();
        for waiting in Waiting::ALL {
            baton.post();
            baton.wait(waiting);
        }
    }
}
