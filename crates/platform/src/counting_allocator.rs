//! An allocator that knows how much it holds, for tests that compare that with what is accounted.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::allocator::Allocator;

static HELD_BYTES: AtomicUsize = AtomicUsize::new(0);

/// [`Allocator`], with the bytes of all blocks that are allocated counted as it rounds them. Too
/// slow for anything but tests: every thread adds to one counter.
pub struct CountingAllocator;

impl CountingAllocator {
    /// Bytes of all blocks that are allocated now. 0 unless this is the global allocator.
    pub fn held_bytes() -> usize {
        HELD_BYTES.load(Ordering::Relaxed)
    }
}

// SAFETY: every call goes to `Allocator`, which fulfils the contract, with the same arguments.
// Counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        let block = unsafe { Allocator.alloc(layout) };
        HELD_BYTES.fetch_add(usable_size(block), Ordering::Relaxed);
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        let block = unsafe { Allocator.alloc_zeroed(layout) };
        HELD_BYTES.fetch_add(usable_size(block), Ordering::Relaxed);
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        HELD_BYTES.fetch_sub(usable_size(block), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { Allocator.dealloc(block, layout) };
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let before = usable_size(block);
        // SAFETY: the caller keeps the contract of `realloc`.
        let moved = unsafe { Allocator.realloc(block, layout, new_size) };
        if !moved.is_null() {
            HELD_BYTES.fetch_add(usable_size(moved), Ordering::Relaxed);
            HELD_BYTES.fetch_sub(before, Ordering::Relaxed);
        }
        moved
    }
}

/// What the allocator set aside for a block, 0 for none.
fn usable_size(block: *mut u8) -> usize {
    // SAFETY: `block` is null, which has the size 0, or a block of `Allocator` that is allocated.
    unsafe { libmimalloc_sys::mi_usable_size(block.cast()) }
}
