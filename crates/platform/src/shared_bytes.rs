//! A reference-counted block of bytes behind one thin pointer: eight bytes of overhead a block.
//!
//! `Arc<[u8]>` costs a 16-byte pointer and 16 bytes of counts. With a hundred million documents in
//! memory the difference is gigabytes, which is what this module's `unsafe` buys (decision 0006).
//!
//! ```text
//! allocation: | 8 bits heat, 24 bits references | 7 bits account, 25 bits length | bytes ... |
//!             alignment 4
//! ```
//!
//! Heat is a number that the owners share and that decides nothing here: how much the block is
//! used. It stands in the word that every clone touches anyway.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use crate::accounts::{self, AccountId};
use crate::allocator::rounded_size;
use crate::no_free;

#[repr(C)]
struct Prefix {
    /// Heat above [`HEAT_SHIFT`], the number of owners below.
    references: AtomicU32,
    /// The account above [`ACCOUNT_SHIFT`], the length below. Written by a sole owner only.
    length: u32,
}

const PREFIX_SIZE: usize = size_of::<Prefix>();
const _: () = assert!(PREFIX_SIZE == 8);
const _: () = assert!(align_of::<Prefix>() == 4);

const HEAT_SHIFT: u32 = 24;
const REFERENCES_MASK: u32 = (1 << HEAT_SHIFT) - 1;
const ACCOUNT_SHIFT: u32 = 25;
const LENGTH_MASK: u32 = (1 << ACCOUNT_SHIFT) - 1;

/// Above this many references something leaks; the process stops before the count wraps.
const REFERENCES_MAX: u32 = REFERENCES_MASK / 2;

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

    /// Counts the block for `account` from now until its last owner lets it go.
    pub fn charge(&mut self, account: AccountId) {
        if account != AccountId::NOBODY {
            self.0.charge_alone(account);
        }
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
        self.prefix().references.load(Ordering::Relaxed) & REFERENCES_MASK
    }

    /// How much the block is used, in the owners' measure; 0 at first.
    pub fn heat(&self) -> u8 {
        self.prefix().references.load(Ordering::Relaxed).to_be_bytes()[0]
    }

    /// Sets the heat. Of several threads that do so at once, one wins.
    pub fn set_heat(&self, heat: u8) {
        let references = &self.prefix().references;
        let mut before = references.load(Ordering::Relaxed);
        loop {
            let after = (u32::from(heat) << HEAT_SHIFT) | (before & REFERENCES_MASK);
            // Relaxed: heat orders nothing, and the count is kept as it is.
            let swap = Ordering::Relaxed;
            match references.compare_exchange_weak(before, after, swap, swap) {
                Ok(_) => return,
                Err(now) => before = now,
            }
        }
    }

    /// For whom the block counts.
    pub fn account(&self) -> AccountId {
        let bits = (self.prefix().length >> ACCOUNT_SHIFT).to_be_bytes()[3];
        AccountId::from_bits(bits)
    }

    /// Counts the block for `account` if it counts for nobody yet and has no other owner. Returns
    /// whether it counts for `account` now.
    pub fn charge_if_alone(&mut self, account: AccountId) -> bool {
        let references = self.prefix().references.load(Ordering::Acquire) & REFERENCES_MASK;
        if references == 1 && self.account() == AccountId::NOBODY {
            self.charge_alone(account);
        }
        self.account() == account
    }

    /// The caller is the only owner.
    fn charge_alone(&mut self, account: AccountId) {
        assert!(self.account() == AccountId::NOBODY, "a block is charged once");
        let length = self.prefix().length | (u32::from(account.bits()) << ACCOUNT_SHIFT);
        // SAFETY: there is one owner, and it is borrowed mutably: nobody reads or writes the
        // prefix meanwhile. The pointer is valid as long as the owner lives.
        unsafe { (*self.0.as_ptr()).length = length };
        accounts::count(account, self.counted_bytes());
    }

    fn length(&self) -> usize {
        (self.prefix().length & LENGTH_MASK) as usize
    }

    fn counted_bytes(&self) -> i64 {
        let bytes = rounded_size(Self::allocation_size(self.length()));
        i64::try_from(bytes).expect("a block has less than 32 MiB")
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
        let length = self.length();
        // SAFETY: `length` bytes behind the prefix were initialised by the constructor, and while
        // a `SharedBytes` exists nobody writes them.
        unsafe { std::slice::from_raw_parts(self.bytes_pointer(), length) }
    }
}

impl Clone for SharedBytes {
    fn clone(&self) -> Self {
        // Relaxed is enough to add an owner: the caller already is one (as in std's Arc).
        let before = self.prefix().references.fetch_add(1, Ordering::Relaxed);
        assert!(before & REFERENCES_MASK < REFERENCES_MAX, "a block has eight million owners");
        Self(self.0)
    }
}

impl Drop for SharedBytes {
    fn drop(&mut self) {
        // Release: what this owner read happens before the free below.
        let before = self.prefix().references.fetch_sub(1, Ordering::Release);
        if before & REFERENCES_MASK != 1 {
            return;
        }
        fence(Ordering::Acquire);
        let account = self.account();
        if account != AccountId::NOBODY {
            accounts::count(account, -self.counted_bytes());
        }
        let layout = layout_of(self.length());
        no_free::check(layout.size());
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
    assert!(length <= LENGTH_MASK as usize, "a block holds less than 32 MiB");
    Layout::from_size_align(PREFIX_SIZE + length, align_of::<Prefix>())
        .expect("a 25-bit length with its prefix is a valid layout")
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
    fn heat_and_owners_do_not_disturb_each_other() {
        let bytes = SharedBytes::copy_of(b"abc");
        for heat in [0, 1, 127, 255] {
            bytes.set_heat(heat);
            let other = bytes.clone();
            assert_eq!((other.heat(), other.owner_count(), &*other), (heat, 2, &b"abc"[..]));
        }
        assert_eq!(bytes.owner_count(), 1);
    }

    #[test]
    fn only_a_sole_owner_charges() {
        let account = crate::accounts::Account::open();
        let mut bytes = SharedBytes::copy_of(&[1; 50]);
        let other = bytes.clone();
        assert!(!bytes.charge_if_alone(account.id()));
        drop(other);
        assert!(bytes.charge_if_alone(account.id()));
        assert!(bytes.charge_if_alone(account.id()), "it counts for it already");
        assert_eq!(account.bytes(), rounded_size(58) as u64);
        assert_eq!((bytes.len(), bytes[49]), (50, 1));
    }

    #[test]
    fn the_pointer_is_thin() {
        assert_eq!(size_of::<Option<SharedBytes>>(), 8);
    }
}
