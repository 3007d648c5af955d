//! A number that one thread at a time writes and anybody reads.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number whose writer is known: a thread that has it to itself, or whoever holds a certain lock.
/// A change is a load and a store, no atomic addition, and costs as much as one of a plain number.
/// Readers see it sooner or later, each number for itself.
#[derive(Debug, Default)]
pub struct OwnedCounter(AtomicU64);

impl OwnedCounter {
    /// The number now.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// For the writer: so many more.
    #[inline]
    pub fn add(&self, count: usize) {
        self.0.store(self.get().wrapping_add(wide(count)), Ordering::Relaxed);
    }

    /// For the writer: so many less.
    ///
    /// # Panics
    /// If there are not so many.
    #[inline]
    pub fn subtract(&self, count: usize) {
        let left = self.get().checked_sub(wide(count)).expect("what goes has come");
        self.0.store(left, Ordering::Relaxed);
    }

    /// For the writer: the number is this now. One that is what it was is not written: its cache
    /// line stays with whoever reads it.
    #[inline]
    pub fn set(&self, number: u64) {
        if self.get() != number {
            self.0.store(number, Ordering::Relaxed);
        }
    }
}

#[inline]
fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_and_subtracted_is_read_by_others() {
        let counter = OwnedCounter::default();
        counter.add(3);
        counter.subtract(1);
        let read = std::thread::scope(|scope| scope.spawn(|| counter.get()).join());
        assert_eq!(read.expect("a look does not panic"), 2);
        counter.set(9);
        assert_eq!(counter.get(), 9);
    }
}
