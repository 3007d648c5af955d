//! Asking the processor for memory before it is needed.
//!
//! Several lines come at the same time if nobody waits for the first of them. Where the processor
//! cannot be asked, nothing happens.

/// Bytes that come at once, on every processor that can be asked here.
const LINE_SIZE: usize = 64;

/// Has `value` fetched while the caller does something else.
#[inline]
pub fn prefetch<T>(value: &T) {
    let start = std::ptr::from_ref(value).cast::<u8>();
    for offset in (0..size_of::<T>()).step_by(LINE_SIZE) {
        prefetch_line(start.wrapping_add(offset));
    }
}

/// Has the line fetched that `address` is in, which need not be anybody's.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn prefetch_line(address: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: every processor of this architecture has the instruction, and it neither reads nor
    // faults, wherever the address leads.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
}

/// Has the line fetched that `address` is in, which need not be anybody's.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(crate) fn prefetch_line(_address: *const u8) {}
