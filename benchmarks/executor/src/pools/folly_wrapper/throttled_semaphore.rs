//! A counting semaphore that wakes one thread at a time, as the one of Folly's pools since 2024.
//!
//! A thread that finds nothing spins for a moment and then sleeps; the last one to fall asleep is
//! the first to be woken. A post wakes nobody while another thread is on its way: that one wakes
//! the next if it leaves something behind.
//!
//! The word has three parts: the value, whether a thread is being woken, and how many wait. "Being
//! woken" is a token. It belongs to the thread that was taken from the list of sleepers, or, if the
//! list was empty, lies in `has_token` until the next thread that wants to sleep takes it.
//! Invariant: while `has_token` is set, the list is empty.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::Instant;

use crate::baton::SPIN;

const VALUE_ONE: u64 = 1 << 32;
const WAKING: u64 = 1 << 31;
const WAITERS: u64 = WAKING - 1;

#[derive(Debug, Default)]
pub(super) struct ThrottledSemaphore {
    word: AtomicU64,
    sleepers: Mutex<Sleepers>,
}

#[derive(Debug, Default)]
struct Sleepers {
    /// The last one fell asleep last.
    asleep: Vec<Arc<Sleeper>>,
    /// A post found nobody asleep; who comes next stays awake.
    has_token: bool,
}

#[derive(Debug)]
struct Sleeper {
    thread: Thread,
    is_woken: AtomicBool,
}

impl ThrottledSemaphore {
    /// Adds one to the value, and wakes a thread if some wait and none is being woken.
    pub(super) fn post(&self) {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let wakes = word & WAITERS > 0 && word & WAKING == 0;
            let next = (word + VALUE_ONE) | if wakes { WAKING } else { 0 };
            match self.exchange(word, next) {
                Ok(()) if wakes => return self.wake_one(),
                Ok(()) => return,
                Err(seen) => word = seen,
            }
        }
    }

    /// Takes one from the value; waits until there is one.
    pub(super) fn wait(&self) {
        if !self.take_or_register() && !self.spin() {
            self.sleep();
        }
    }

    /// Takes one; where there is none, counts the caller among the waiters.
    fn take_or_register(&self) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let has_value = word >= VALUE_ONE;
            let next = if has_value { word - VALUE_ONE } else { word + 1 };
            match self.exchange(word, next) {
                Ok(()) => return has_value,
                Err(seen) => word = seen,
            }
        }
    }

    /// For a registered waiter: tries for a moment to take one.
    fn spin(&self) -> bool {
        let started = Instant::now();
        while started.elapsed() < SPIN {
            let mut word = self.word.load(Ordering::Relaxed);
            while word >= VALUE_ONE {
                match self.exchange(word, word - VALUE_ONE - 1) {
                    Ok(()) => return true,
                    Err(seen) => word = seen,
                }
            }
            spin_loop();
        }
        false
    }

    /// For a registered waiter: sleeps until it is woken and finds one.
    fn sleep(&self) {
        loop {
            self.sleep_until_woken();
            if self.take_with_token() {
                return;
            }
        }
    }

    /// Returns with the token.
    fn sleep_until_woken(&self) {
        let sleeper = Sleeper { thread: std::thread::current(), is_woken: AtomicBool::new(false) };
        let sleeper = Arc::new(sleeper);
        let mut sleepers = self.lock();
        if std::mem::take(&mut sleepers.has_token) {
            return;
        }
        sleepers.asleep.push(sleeper.clone());
        drop(sleepers);
        while !sleeper.is_woken.load(Ordering::Acquire) {
            std::thread::park();
        }
    }

    /// Takes one, if there is one. Either way gives the token back, or on, if there is more to take
    /// and somebody who could.
    fn take_with_token(&self) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let has_value = word >= VALUE_ONE;
            let left = if has_value { word - VALUE_ONE - 1 } else { word };
            let passes_on = left >= VALUE_ONE && left & WAITERS > 0;
            let next = if passes_on { left } else { left & !WAKING };
            match self.exchange(word, next) {
                Ok(()) => {
                    if passes_on {
                        self.wake_one();
                    }
                    return has_value;
                }
                Err(seen) => word = seen,
            }
        }
    }

    /// Gives the caller's token to the thread that fell asleep last.
    fn wake_one(&self) {
        let mut sleepers = self.lock();
        let Some(sleeper) = sleepers.asleep.pop() else {
            sleepers.has_token = true;
            return;
        };
        drop(sleepers);
        sleeper.is_woken.store(true, Ordering::Release);
        sleeper.thread.unpark();
    }

    fn exchange(&self, word: u64, next: u64) -> Result<(), u64> {
        self.word.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Relaxed).map(drop)
    }

    fn lock(&self) -> MutexGuard<'_, Sleepers> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use platform::{Random, seeds::seeds};

    use super::*;

    #[test]
    fn every_post_lets_exactly_one_wait_pass() {
        const WAITERS: usize = 4;
        const POSTERS: usize = 3;
        const POSTS: usize = 4_000;
        for seed in seeds(3) {
            let semaphore = ThrottledSemaphore::default();
            let passed = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                for _ in 0..WAITERS {
                    scope.spawn(|| {
                        for _ in 0..POSTERS * POSTS / WAITERS {
                            semaphore.wait();
                            passed.fetch_add(1, Ordering::Relaxed);
                        }
                    });
                }
                for poster in 0..POSTERS {
                    let semaphore = &semaphore;
                    scope.spawn(move || {
                        let mut random = Random::from_seed(seed * 100 + poster as u64);
                        for _ in 0..POSTS {
                            semaphore.post();
                            if random.below(200) == 0 {
                                // Long enough for waiters to fall asleep.
                                std::thread::sleep(Duration::from_micros(200));
                            }
                        }
                    });
                }
            });
            assert_eq!(passed.into_inner(), POSTERS * POSTS, "seed {seed}");
            let left = semaphore.word.load(Ordering::Relaxed);
            assert_eq!(left & !WAKING, 0, "seed {seed}: no value and no waiter is left");
        }
    }

    #[test]
    fn a_value_posted_before_is_there() {
        let semaphore = ThrottledSemaphore::default();
        semaphore.post();
        semaphore.post();
        semaphore.wait();
        semaphore.wait();
        assert_eq!(semaphore.word.load(Ordering::Relaxed), 0);
    }
}
