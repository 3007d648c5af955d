//! The allocator of the process.

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

/// Bytes that the allocator really takes for a request of `size` bytes: the next of its size
/// classes.
pub fn rounded_size(size: usize) -> usize {
    // SAFETY: `mi_good_size` is a pure function of its argument.
    unsafe { libmimalloc_sys::mi_good_size(size) }
}
