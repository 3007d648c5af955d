//! The allocator of the process.

mod idle_upkeep;

pub use idle_upkeep::IdleUpkeep;

/// The allocator that the binary installs as the global one.
pub use mimalloc::MiMalloc as Allocator;

/// The allocator's pages of small blocks have 2^16 bytes, and begin at multiples of that.
pub const PAGE_BITS: u32 = 16;

/// Larger blocks are in larger pages.
pub const SMALL_BLOCK_MAX: usize = 8 * 1024;

/// Gives memory back to the system that the calling thread, or a thread that has ended, has freed.
/// For background threads that have just finished something large: it takes up to milliseconds.
/// Does nothing where another allocator is installed.
pub fn release_unused() {
    // SAFETY: `mi_collect` may be called at any time from any thread (mimalloc's documentation of
    // it); it takes no pointers and invalidates none.
    unsafe { libmimalloc_sys::mi_collect(true) };
}

/// Allocations beyond [`TAKE_IN_BLOCK_BYTES`] after which a thread looks for what others have freed
/// of its memory (mimalloc 2, `_mi_malloc_generic`).
const ALLOCATIONS_PER_LOOK: usize = 100;
/// More than the allocator serves without going through its general way.
const TAKE_IN_BLOCK_BYTES: usize = 2048;

/// Takes in what other threads have freed of the memory that the calling thread has allocated. They
/// leave it in a list, and whoever allocates walks all of that list at once: a thread that slept
/// while others freed 200 MB was seen to need 36 ms for its next document. Costs a few microseconds
/// when there is nothing.
pub fn take_in_freed() {
    for _ in 0..ALLOCATIONS_PER_LOOK {
        drop(std::hint::black_box(Vec::<u8>::with_capacity(TAKE_IN_BLOCK_BYTES)));
    }
}

/// Bytes that the allocator really takes for a request of `size` bytes: the next of its size
/// classes.
pub fn rounded_size(size: usize) -> usize {
    // SAFETY: `mi_good_size` is a pure function of its argument.
    unsafe { libmimalloc_sys::mi_good_size(size) }
}
