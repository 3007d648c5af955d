//! A check of debug builds: nothing bulky is freed while a lock is held under which that is
//! forbidden (architecture invariant 10).
//!
//! Whoever takes such a lock opens a [`Zone`] with it; whoever frees in bulk calls [`check`] first.
//! Release builds compile both to nothing.

use std::cell::Cell;
use std::marker::PhantomData;

/// Larger blocks are bulky: freeing them may go to the operating system.
pub const FREED_BYTES_MAX: usize = 16 * 1024;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// While it lives, this thread must not free in bulk.
#[derive(Debug)]
pub struct Zone(PhantomData<*const ()>);

impl Zone {
    /// Begins a zone on this thread. Zones nest.
    pub fn enter() -> Self {
        if cfg!(debug_assertions) {
            DEPTH.with(|depth| depth.set(depth.get() + 1));
        }
        Self(PhantomData)
    }
}

impl Drop for Zone {
    fn drop(&mut self) {
        if cfg!(debug_assertions) {
            DEPTH.with(|depth| depth.set(depth.get() - 1));
        }
    }
}

/// Says that `bytes` are about to be freed. Panics in debug builds if that is bulky and this thread
/// is in a [`Zone`].
pub fn check(bytes: usize) {
    if cfg!(debug_assertions) && bytes > FREED_BYTES_MAX {
        check_bulk();
    }
}

/// Says that something is about to be freed that is bulky whatever its size, because of how much
/// hangs on it.
pub fn check_bulk() {
    if cfg!(debug_assertions) {
        // A thread that ends frees its thread locals, too: then there is no zone.
        let depth = DEPTH.try_with(Cell::get).unwrap_or(0);
        assert!(depth == 0 || std::thread::panicking(), "bulk memory is freed outside of locks");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared_bytes::SharedBytes;

    #[test]
    fn a_large_block_freed_in_a_zone_is_caught() {
        let small = SharedBytes::copy_of(&[0; 100]);
        let large = SharedBytes::copy_of(&[0; 100_000]);
        let shared = large.clone();
        let zone = Zone::enter();
        drop(small);
        drop(shared);
        let caught = std::panic::catch_unwind(|| check(large.len()));
        assert_eq!(caught.is_err(), cfg!(debug_assertions));
        drop(zone);
        drop(large);
    }
}
