//! An allocator that knows how much it holds, for tests that compare that with what is accounted.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::allocator::Allocator;
use crate::slabs;

static HELD_BYTES: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// What this thread has taken, without what it has given back.
    static TAKEN_HERE: Cell<usize> = const { Cell::new(0) };
}

/// [`Allocator`], with the bytes of all blocks that are allocated counted as it rounds them, and
/// beside them those of shared blocks. Too
/// slow for anything but tests: every thread adds to one counter.
pub struct CountingAllocator;

impl CountingAllocator {
    /// Bytes of all blocks that are allocated now, and of free shared blocks that other threads
    /// keep. Only those of shared blocks unless this is the global allocator.
    pub fn held_bytes() -> usize {
        HELD_BYTES.load(Ordering::Relaxed) + slabs::used_bytes()
    }

    /// Bytes that this thread has taken, less those that it has given back; for tests that run
    /// beside others. Wraps where it gives back what others have taken.
    pub fn taken_by_this_thread() -> usize {
        TAKEN_HERE.get()
    }
}

// SAFETY: every call goes to `Allocator`, which fulfils the contract, with the same arguments.
// Counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        let block = unsafe { Allocator.alloc(layout) };
        taken(usable_size(block));
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        let block = unsafe { Allocator.alloc_zeroed(layout) };
        taken(usable_size(block));
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        given_back(usable_size(block));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { Allocator.dealloc(block, layout) };
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let before = usable_size(block);
        // SAFETY: the caller keeps the contract of `realloc`.
        let moved = unsafe { Allocator.realloc(block, layout, new_size) };
        if !moved.is_null() {
            taken(usable_size(moved));
            given_back(before);
        }
        moved
    }
}

fn taken(bytes: usize) {
    HELD_BYTES.fetch_add(bytes, Ordering::Relaxed);
    // A thread that ends may allocate behind the end of this.
    let _ = TAKEN_HERE.try_with(|here| here.set(here.get().wrapping_add(bytes)));
}

fn given_back(bytes: usize) {
    HELD_BYTES.fetch_sub(bytes, Ordering::Relaxed);
    let _ = TAKEN_HERE.try_with(|here| here.set(here.get().wrapping_sub(bytes)));
}

/// What the allocator set aside for a block, 0 for none.
fn usable_size(block: *mut u8) -> usize {
    // SAFETY: `block` is null, which has the size 0, or a block of `Allocator` that is allocated.
    unsafe { libmimalloc_sys::mi_usable_size(block.cast()) }
}
