//! Memory for small shared blocks in steps of 8 bytes.
//!
//! The allocator of the process has four sizes for each doubling above 64 bytes: a block is larger
//! than what was asked for by a tenth on average and a quarter at worst, which for documents was
//! more than all their metadata. Slabs of 64 KiB hold blocks of one of 104 sizes. A thread keeps a
//! few free blocks of each size, and gives or takes a batch of them under the size's lock: so
//! whoever frees a block, it can be taken by all others, and an empty slab is seen at once.
//!
//! Locks are taken in the order size, spans; nothing is called under them but the system.

mod block_chain;
mod central;
mod magazines;
mod size_class;
mod slab;
mod spans;

use std::ptr::NonNull;

use self::central::Central;
use self::size_class::SizeClass;

pub(crate) use self::spans::SPAN_SIZE;

static CENTRAL: Central = Central::new();

/// Bytes that a block of `size` bytes takes; `None` if it is too large for slabs.
#[inline]
pub(crate) fn block_size(size: usize) -> Option<usize> {
    SizeClass::of(size).map(SizeClass::size)
}

/// Whether blocks of `size` bytes are in slabs.
#[inline]
pub(crate) fn hold(size: usize) -> bool {
    SizeClass::of(size).is_some()
}

/// A block of at least `size` bytes at a multiple of 8. Null if the system has no memory.
#[inline]
pub(crate) fn take(size: usize) -> *mut u8 {
    let class = SizeClass::of(size).expect("slabs hold blocks of this size");
    magazines::take(class).map_or(std::ptr::null_mut(), |block| block.cast().as_ptr())
}

/// Takes back a block.
///
/// # Safety
/// [`take`] gave it for the same size, and nobody uses it any more.
#[inline]
pub(crate) unsafe fn give_back(block: NonNull<u8>, size: usize) {
    let class = SizeClass::of(size).expect("slabs hold blocks of this size");
    // SAFETY: the caller gives the block up, which was taken for this size.
    unsafe { magazines::give_back(class, block.cast()) };
}

/// Gives what the calling thread keeps to all, and what nobody uses to the system.
pub(crate) fn release_unused() {
    magazines::empty();
    CENTRAL.spans().release_all();
}

/// The same, but leaves to the system only what nobody has used for a while.
pub(crate) fn release_overdue() {
    magazines::empty();
    CENTRAL.spans().release_overdue(usize::MAX);
}

/// Gives what the calling thread keeps to all.
pub(crate) fn share_kept() {
    magazines::empty();
}

/// Bytes of the blocks that are in use, and of those that other threads keep.
pub(crate) fn used_bytes() -> usize {
    CENTRAL.taken_bytes() - magazines::kept_bytes()
}

#[cfg(test)]
mod tests;
