//! The allocator of the process.

/// The allocator that the binary installs as the global one.
pub use mimalloc::MiMalloc as Allocator;

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
