//! The allocator of the process.

mod idle_upkeep;
pub(crate) mod kept_memory;

pub use idle_upkeep::IdleUpkeep;
pub use kept_memory::{bound_kept, set_up};

use std::cell::Cell;

use crate::slabs;

/// The allocator that the binary installs as the global one.
pub use mimalloc::MiMalloc as Allocator;

/// The allocator's pages of small blocks have 2^16 bytes, and begin at multiples of that.
pub const PAGE_BITS: u32 = 16;
// The defragmenter counts both alike.
const _: () = assert!(slabs::SPAN_SIZE == 1 << PAGE_BITS);

/// Larger blocks are in larger pages.
pub const SMALL_BLOCK_MAX: usize = 8 * 1024;

/// Gives memory back to the system that the calling thread, or a thread that has ended, has freed;
/// of shared blocks, which any thread takes up again, what has been free for as long as freed
/// memory is kept. For background threads that have just finished something large: it takes up to
/// milliseconds. Does nothing where another allocator is installed.
pub fn release_unused() {
    release_own();
    slabs::release_overdue();
}

/// The same with all shared blocks that are free. For who has just made them free, and for that
/// purpose.
pub fn release_all_unused() {
    release_own();
    slabs::release_unused();
}

fn release_own() {
    // What the first time finds free it gives back only the second time.
    collect();
    collect();
}

/// Gives back what the calling thread has found free before, and finds what is free now.
fn collect() {
    // SAFETY: `mi_collect` may be called at any time from any thread (mimalloc's documentation of
    // it); it takes no pointers and invalidates none.
    unsafe { libmimalloc_sys::mi_collect(true) };
}

/// So many bytes of work leave a thread with a few megabytes that it has freed.
const WORK_PER_RELEASE_BYTES: u64 = 4 << 20;

/// Large blocks of so many bytes are allocated until a thread looks for what others have freed.
const LARGE_BYTES_PER_LOOK: usize = 4 << 20;

thread_local! {
    static UNLOOKED_BYTES: Cell<usize> = const { Cell::new(0) };
    static UNRELEASED_WORK_BYTES: Cell<u64> = const { Cell::new(0) };
    static AWAITS_FREES: Cell<bool> = const { Cell::new(false) };
}

/// Hears that the calling thread has worked on so many bytes, and gives memory back now and then:
/// a thread that has nothing more to do keeps what it has freed, for as long as it frees nothing.
pub fn release_after_work(bytes: u64) {
    let sum = UNRELEASED_WORK_BYTES.get() + bytes;
    let is_enough = sum >= WORK_PER_RELEASE_BYTES;
    UNRELEASED_WORK_BYTES.set(if is_enough { 0 } else { sum });
    if is_enough {
        bound_kept();
        // Once: what is found free now, and what the slabs have, is soon taken again.
        collect();
        slabs::release_overdue();
        await_frees();
    }
}

/// Says that the calling thread has allocated much that others are going to free: it is found when
/// the thread looks for it, at [`release_unused`].
pub fn await_frees() {
    AWAITS_FREES.set(true);
}

/// Whether the calling thread has said so since the last time that it was asked. For who decides
/// when it looks.
pub fn take_awaited_frees() -> bool {
    AWAITS_FREES.take()
}

/// Allocations that do not go the short way of small blocks, after which a thread looks for what
/// others have freed of its memory (mimalloc 2, `_mi_malloc_generic`).
const ALLOCATIONS_PER_LOOK: usize = 100;
/// More than the short way serves.
const TAKE_IN_BLOCK_BYTES: usize = 2048;

/// Takes in what other threads have freed of the memory that the calling thread has allocated. They
/// leave it in a list, and the thread walks all of that list in one of its next allocations: after
/// others had freed for 15 s what a load had overwritten, threads were seen to need 14 to 20 ms for
/// that. Costs a few microseconds when there is nothing.
pub fn take_in_freed() {
    look_for_freed();
    slabs::share_kept();
}

fn look_for_freed() {
    for _ in 0..ALLOCATIONS_PER_LOOK {
        // SAFETY: `mi_malloc` may be called at any time; `mi_free` takes what it gave, once, null
        // included.
        unsafe { libmimalloc_sys::mi_free(libmimalloc_sys::mi_malloc(TAKE_IN_BLOCK_BYTES)) };
    }
}

/// Hears that the calling thread is about to allocate a block of `size` bytes that is too large for
/// slabs and that others may free, and looks now and then for what they have freed. Where each is
/// large few allocations come together, and a thread that looks once in a hundred of them had taken
/// a gigabyte for documents of 15 MiB in a bucket with a quota of 100.
pub(crate) fn before_large(size: usize) {
    let sum = UNLOOKED_BYTES.get().saturating_add(size);
    let is_enough = sum >= LARGE_BYTES_PER_LOOK;
    UNLOOKED_BYTES.set(if is_enough { 0 } else { sum });
    if is_enough {
        look_for_freed();
    }
}

/// Gives the free shared blocks that the calling thread keeps to all threads: what it takes next
/// may be elsewhere.
pub fn share_kept_blocks() {
    slabs::share_kept();
}

/// Bytes that a shared block of `size` bytes really takes: the next size of the slabs, or of the
/// allocator where it is too large for those.
pub fn shared_block_size(size: usize) -> usize {
    slabs::block_size(size).unwrap_or_else(|| rounded_size(size))
}

/// Bytes that the allocator really takes for a request of `size` bytes: the next of its size
/// classes.
pub fn rounded_size(size: usize) -> usize {
    // SAFETY: `mi_good_size` is a pure function of its argument.
    unsafe { libmimalloc_sys::mi_good_size(size) }
}

#[cfg(test)]
mod tests {
    use std::ffi::c_void;

    use libmimalloc_sys::{mi_free, mi_heap_area_t, mi_heap_get_default, mi_heap_t};
    use libmimalloc_sys::{mi_heap_visit_blocks, mi_malloc};

    use super::*;

    unsafe extern "C" fn add_reserved(
        _heap: *const mi_heap_t,
        area: *const mi_heap_area_t,
        _block: *mut c_void,
        _block_bytes: usize,
        sum: *mut c_void,
    ) -> bool {
        // SAFETY: the caller passes an area, and `sum` as `page_bytes` gave it.
        unsafe { *sum.cast::<usize>() += (*area).reserved };
        true
    }

    /// Bytes of the pages that the calling thread holds on to.
    fn page_bytes() -> usize {
        let mut sum = 0_usize;
        let target = (&raw mut sum).cast();
        // SAFETY: it is this thread's heap, which nobody changes meanwhile, and `sum` outlives it.
        assert!(unsafe {
            mi_heap_visit_blocks(mi_heap_get_default(), false, Some(add_reserved), target)
        });
        sum
    }

    #[test]
    fn what_others_have_freed_is_taken_in() {
        const BLOCKS: usize = 20_000;
        // SAFETY: any size may be asked for.
        let blocks: Vec<_> = (0..BLOCKS).map(|_| unsafe { mi_malloc(600) } as usize).collect();
        let before = page_bytes();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for &block in &blocks {
                    // SAFETY: each was allocated above, and is freed once.
                    unsafe { mi_free(block as *mut c_void) };
                }
            });
        });
        assert_eq!(page_bytes(), before, "the thread has not looked yet");
        take_in_freed();
        let after = page_bytes();
        assert!(after < before / 10, "{after} of {before} bytes");
    }

    #[test]
    fn large_blocks_that_others_free_are_taken_in_while_more_are_allocated() {
        const SIZE: usize = 1 << 20;
        let mut most = 0;
        for _ in 0..90 {
            before_large(SIZE);
            // SAFETY: any size may be asked for.
            let block = unsafe { mi_malloc(SIZE) } as usize;
            most = most.max(page_bytes());
            // SAFETY: it was allocated above, and is freed once.
            let free = move || unsafe { mi_free(block as *mut c_void) };
            std::thread::spawn(free).join().expect("the other thread frees it");
        }
        assert!(most < 16 * SIZE, "{most} bytes");
    }

    #[test]
    fn a_thread_that_awaits_frees_says_so_once() {
        assert!(!take_awaited_frees());
        await_frees();
        assert!(take_awaited_frees() && !take_awaited_frees());
        release_after_work(WORK_PER_RELEASE_BYTES - 1);
        assert!(!take_awaited_frees());
        release_after_work(1);
        assert!(take_awaited_frees() && !take_awaited_frees());
    }
}
