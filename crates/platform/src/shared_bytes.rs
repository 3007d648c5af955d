//! A reference-counted block of bytes behind one thin pointer: eight bytes of overhead a block.
//!
//! `Arc<[u8]>` costs a 16-byte pointer and 16 bytes of counts. With a hundred million documents in
//! memory the difference is gigabytes, which is what this module's `unsafe` buys (decision 0006).
//!
//! ```text
//! allocation: | references u32 | length u32 | bytes ... |        alignment 4
//! ```

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};

#[repr(C)]
struct Prefix {
    references: AtomicU32,
    length: u32,
}

const PREFIX_SIZE: usize = size_of::<Prefix>();
const _: () = assert!(PREFIX_SIZE == 8);
const _: () = assert!(align_of::<Prefix>() == 4);

/// Above this many references something leaks; the process stops before the count wraps.
const REFERENCES_MAX: u32 = u32::MAX / 2;

/// Bytes that any number of owners read. Cloning counts; nobody writes.
pub struct SharedBytes(NonNull<Prefix>);

/// Bytes with one owner, who may still write. Becomes [`SharedBytes`] by [`UniqueBytes::share`].
pub struct UniqueBytes(SharedBytes);

// SAFETY: the bytes behind a `SharedBytes` are never written while it exists, and the count is
// atomic, so owners on several threads only ever read shared memory.
unsafe impl Send for SharedBytes {}
// SAFETY: as above; `&SharedBytes` gives no more than reading and counting.
unsafe impl Sync for SharedBytes {}

impl UniqueBytes {
    /// A block of `length` zero bytes.
    pub fn zeroed(length: usize) -> Self {
        let layout = layout_of(length);
        // SAFETY: the layout has a size of at least PREFIX_SIZE, so it is not zero.
        let memory = unsafe { alloc_zeroed(layout) };
        Self(SharedBytes(initialise(memory, layout, length)))
    }

    /// A block that holds `parts`, one after the other.
    pub fn concatenated(parts: &[&[u8]]) -> Self {
        let length = parts.iter().map(|part| part.len()).sum();
        let layout = layout_of(length);
        // SAFETY: the layout has a size of at least PREFIX_SIZE, so it is not zero.
        let memory = unsafe { alloc(layout) };
        let prefix = initialise(memory, layout, length);
        let mut offset = PREFIX_SIZE;
        for part in parts {
            // SAFETY: the offsets of all parts together end at PREFIX_SIZE + length, the size of
            // the allocation; the fresh allocation overlaps no slice that exists.
            unsafe { memory.add(offset).copy_from_nonoverlapping(part.as_ptr(), part.len()) };
            offset += part.len();
        }
        assert!(offset == PREFIX_SIZE + length, "every byte of the block is initialised");
        Self(SharedBytes(prefix))
    }

    /// Gives up the right to write.
    pub fn share(self) -> SharedBytes {
        self.0
    }
}

impl Deref for UniqueBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for UniqueBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        let length = self.len();
        // SAFETY: a `UniqueBytes` is the only owner (it cannot be cloned and hands its block out
        // only by value), so nobody reads while this borrow lives; all `length` bytes are
        // initialised by both constructors.
        unsafe { std::slice::from_raw_parts_mut(self.0.bytes_pointer(), length) }
    }
}

impl SharedBytes {
    /// A block that holds a copy of `bytes`.
    pub fn copy_of(bytes: &[u8]) -> Self {
        UniqueBytes::concatenated(&[bytes]).share()
    }

    /// Bytes that a block of `length` bytes takes from the allocator, its rounding left out.
    pub const fn allocation_size(length: usize) -> usize {
        PREFIX_SIZE + length
    }

    /// How many owners there are. Only a hint where other threads clone and drop.
    pub fn owner_count(&self) -> u32 {
        self.prefix().references.load(Ordering::Relaxed)
    }

    fn prefix(&self) -> &Prefix {
        // SAFETY: the pointer comes from `initialise`, which wrote a `Prefix` there, and the
        // allocation lives as long as any owner does.
        unsafe { self.0.as_ref() }
    }

    fn bytes_pointer(&self) -> *mut u8 {
        // SAFETY: the allocation is PREFIX_SIZE + length bytes, so the sum stays inside of it or
        // at its end.
        unsafe { self.0.as_ptr().cast::<u8>().add(PREFIX_SIZE) }
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let length = self.prefix().length as usize;
        // SAFETY: `length` bytes behind the prefix were initialised by the constructor, and while
        // a `SharedBytes` exists nobody writes them.
        unsafe { std::slice::from_raw_parts(self.bytes_pointer(), length) }
    }
}

impl Clone for SharedBytes {
    fn clone(&self) -> Self {
        // Relaxed is enough to add an owner: the caller already is one (as in std's Arc).
        let before = self.prefix().references.fetch_add(1, Ordering::Relaxed);
        assert!(before < REFERENCES_MAX, "a block of bytes has two thousand million owners");
        Self(self.0)
    }
}

impl Drop for SharedBytes {
    fn drop(&mut self) {
        // Release: what this owner read happens before the free below.
        if self.prefix().references.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        fence(Ordering::Acquire);
        let layout = layout_of(self.prefix().length as usize);
        // SAFETY: the count fell to zero, so this was the last owner; the memory was allocated
        // with the layout of the same length.
        unsafe { dealloc(self.0.as_ptr().cast::<u8>(), layout) };
    }
}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SharedBytes({} bytes)", self.len())
    }
}

impl fmt::Debug for UniqueBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "UniqueBytes({} bytes)", self.len())
    }
}

fn layout_of(length: usize) -> Layout {
    assert!(u32::try_from(length).is_ok(), "a block holds less than 4 GiB");
    Layout::from_size_align(PREFIX_SIZE + length, align_of::<Prefix>())
        .expect("a 32-bit length with its prefix is a valid layout")
}

fn initialise(memory: *mut u8, layout: Layout, length: usize) -> NonNull<Prefix> {
    let Some(prefix) = NonNull::new(memory.cast::<Prefix>()) else {
        handle_alloc_error(layout);
    };
    let length = u32::try_from(length).expect("layout_of has checked the length");
    // SAFETY: the memory is fresh, at least PREFIX_SIZE bytes and aligned for a `Prefix`.
    unsafe { prefix.write(Prefix { references: AtomicU32::new(1), length }) };
    prefix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_one_after_the_other() {
        let bytes = UniqueBytes::concatenated(&[b"ab", b"", b"cde"]).share();
        assert_eq!(&*bytes, b"abcde");
        assert_eq!(&*UniqueBytes::concatenated(&[]), b"");
    }

    #[test]
    fn a_unique_block_is_written_and_then_shared() {
        let mut bytes = UniqueBytes::zeroed(3);
        bytes[1] = 7;
        let first = bytes.share();
        let second = first.clone();
        assert_eq!(second.owner_count(), 2);
        drop(first);
        assert_eq!(&*second, [0, 7, 0]);
        assert_eq!(second.owner_count(), 1);
    }

    #[test]
    fn the_last_of_many_threads_frees() {
        let bytes = SharedBytes::copy_of(&[9; 100]);
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let bytes = bytes.clone();
                std::thread::spawn(move || {
                    for _ in 0..100 {
                        assert_eq!(bytes.clone()[99], 9);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(bytes.owner_count(), 1);
    }

    #[test]
    fn the_pointer_is_thin() {
        assert_eq!(size_of::<Option<SharedBytes>>(), 8);
    }
}
