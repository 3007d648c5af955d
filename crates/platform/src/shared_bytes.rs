//! A reference-counted block of bytes behind one thin pointer: eight bytes of overhead a block.
//!
//! `Arc<[u8]>` costs a 16-byte pointer and 16 bytes of counts. With a hundred million documents in
//! memory the difference is gigabytes, which is what this module's `unsafe` buys (decision 0006).
//!
//! ```text
//! block:      | 8 bits heat, 24 bits references | 7 bits account, 25 bits length | bytes ... |
//!             alignment 4; with room for a sequel 8, and behind the bytes | padding | 64 bits |
//! ```
//!
//! Heat is a number that the owners share and that decides nothing here: how much the block is
//! used. It stands in the word that every clone touches anyway.
//!
//! A *sequel* is the same block with a number, which is added once, when others may hold the block
//! already: what differs from it by a number needs neither a copy nor an allocation. Which of the
//! two a handle stands for is said by its lower bits, which the alignment leaves free. Its upper 16
//! bits, which no address needs, are a tag for whoever keeps the handle.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use crate::accounts::{self, AccountId};
use crate::allocator::{before_large, shared_block_size};
use crate::prefetch::prefetch_line;
use crate::{no_free, slabs};

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

/// Bits of a handle: the block has room for a sequel.
const HAS_ROOM: usize = 1;
/// The handle stands for the sequel. Only of a block that has one.
const IS_SEQUEL: usize = 2;
const HANDLE_BITS: usize = HAS_ROOM | IS_SEQUEL;
const _: () = assert!(HANDLE_BITS < align_of::<Prefix>());

/// The tag is above. Addresses of user space end at 2^47, and at 2^48 on ARM, where the system
/// gives larger ones only to those who ask for them.
const TAG_SHIFT: u32 = 48;
const _: () = assert!(usize::BITS == TAG_SHIFT + u16::BITS);
/// What of a handle is the block's address.
const ADDRESS_BITS: usize = (1 << TAG_SHIFT) - 1 - HANDLE_BITS;

/// Bytes of a block, its prefix included, that are worth fetching ahead: no more than two lines.
const PREFETCHED_SIZE: usize = 64;

const SEQUEL_SIZE: usize = size_of::<AtomicU64>();
/// The number of a sequel that is still to come.
const NO_SEQUEL: u64 = 0;

/// Bytes that any number of owners read. Cloning counts; nobody writes. The address of the block
/// with the bits of the handle and its tag.
pub struct SharedBytes(NonNull<Prefix>);

/// Bytes with one owner, who may still write. Becomes [`SharedBytes`] by [`UniqueBytes::share`].
pub struct UniqueBytes(SharedBytes);

// SAFETY: the bytes behind a `SharedBytes` are never written while it exists, and the count and
// the number of a sequel are atomic, so owners on several threads only ever read shared memory.
unsafe impl Send for SharedBytes {}
// SAFETY: as above; `&SharedBytes` gives no more than reading, counting and that number.
unsafe impl Sync for SharedBytes {}

impl UniqueBytes {
    /// A block of `length` zero bytes.
    pub fn zeroed(length: usize) -> Self {
        Self::zeroed_as(length, 0)
    }

    /// The same with room for a sequel.
    pub fn zeroed_with_room(length: usize) -> Self {
        Self::zeroed_as(length, HAS_ROOM)
    }

    fn zeroed_as(length: usize, handle_bits: usize) -> Self {
        let layout = layout_of(length, handle_bits);
        let memory = allocate_zeroed(layout);
        Self(initialise(memory, layout, length, handle_bits))
    }

    /// A block that holds `parts`, one after the other.
    pub fn concatenated(parts: &[&[u8]]) -> Self {
        Self::concatenated_as(parts, 0)
    }

    /// The same with room for a sequel.
    pub fn concatenated_with_room(parts: &[&[u8]]) -> Self {
        Self::concatenated_as(parts, HAS_ROOM)
    }

    #[inline]
    fn concatenated_as(parts: &[&[u8]], handle_bits: usize) -> Self {
        let length = parts.iter().map(|part| part.len()).sum();
        let layout = layout_of(length, handle_bits);
        let memory = allocate(layout);
        let block = initialise(memory, layout, length, handle_bits);
        let mut offset = PREFIX_SIZE;
        for part in parts {
            // SAFETY: the offsets of all parts together end at PREFIX_SIZE + length, which the
            // allocation has; the fresh allocation overlaps no slice that exists.
            unsafe { memory.add(offset).copy_from_nonoverlapping(part.as_ptr(), part.len()) };
            offset += part.len();
        }
        assert!(offset == PREFIX_SIZE + length, "every byte of the block is initialised");
        Self(block)
    }

    /// Bytes that the block takes from the allocator, its rounding left out.
    pub fn allocation_size(&self) -> usize {
        self.0.allocation_size()
    }

    /// Counts the block for `account` from now until its last owner lets it go.
    pub fn charge(&mut self, account: AccountId) {
        if account != AccountId::NOBODY {
            self.0.charge_alone(account);
        }
    }

    /// Sets the heat.
    pub fn set_heat(&mut self, heat: u8) {
        // Relaxed and without a look: of one owner there is no other word to keep.
        let alone = (u32::from(heat) << HEAT_SHIFT) | 1;
        self.0.prefix().references.store(alone, Ordering::Relaxed);
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

    /// Bytes that the block takes from the allocator, its rounding left out.
    pub fn allocation_size(&self) -> usize {
        size_of_block(self.length(), self.handle_bits())
    }

    /// The number of the sequel that this handle stands for; `None` if it stands for the block
    /// itself.
    #[inline]
    pub fn sequel(&self) -> Option<u64> {
        if self.handle_bits() & IS_SEQUEL == 0 {
            return None;
        }
        // Relaxed: it was set before there was a handle that stands for it.
        self.room().map(|number| number.load(Ordering::Relaxed))
    }

    /// The block as its sequel `number`. `None` if it has no room for one, or another already.
    ///
    /// # Panics
    /// If `number` is 0.
    pub fn with_sequel(&self, number: u64) -> Option<Self> {
        assert!(number != NO_SEQUEL, "a sequel has a number");
        // Relaxed: the number is all that is said, and whoever gets the handle sees what was
        // before it.
        let (room, order) = (self.room()?, Ordering::Relaxed);
        let known = room.compare_exchange(NO_SEQUEL, number, order, order);
        if known.is_err_and(|known| known != number) {
            return None;
        }
        let mut sequel = self.clone();
        sequel.0 = sequel.0.map_addr(|address| address | IS_SEQUEL);
        Some(sequel)
    }

    /// Where the number of the sequel is.
    fn room(&self) -> Option<&AtomicU64> {
        if self.handle_bits() & HAS_ROOM == 0 {
            return None;
        }
        let at = sequel_offset(self.length());
        // SAFETY: with room for a sequel the allocation goes on for SEQUEL_SIZE bytes behind `at`.
        let place = unsafe { self.block_pointer().cast::<u8>().add(at) };
        // SAFETY: `initialise` wrote an `AtomicU64` there, which is aligned as the block is and
        // outside of the bytes, and which is written by atomic operations alone from then on.
        Some(unsafe { &*place.cast::<AtomicU64>() })
    }

    /// What was set last for this handle, or the one that it was cloned from; 0 at first. Read
    /// without touching the block.
    #[inline]
    pub fn tag(&self) -> u16 {
        (self.0.addr().get() >> TAG_SHIFT) as u16
    }

    /// Sets the tag of this handle, for what its keeper would keep beside it.
    #[inline]
    pub fn set_tag(&mut self, tag: u16) {
        let tag = usize::from(tag) << TAG_SHIFT;
        let untagged = |address: usize| address & (ADDRESS_BITS | HANDLE_BITS);
        let pointer = self.0.as_ptr().map_addr(|address| untagged(address) | tag);
        self.0 = NonNull::new(pointer).expect("no block is at address 0");
    }

    /// Has the first bytes fetched while the caller does something else.
    #[inline]
    pub fn prefetch(&self) {
        let start = self.block_pointer().cast_const().cast::<u8>();
        prefetch_line(start);
        prefetch_line(start.wrapping_add(PREFETCHED_SIZE - 1));
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
        // Acquire: what the owners before have read of the prefix was before its length is written
        // below.
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
        unsafe { (*self.block_pointer()).length = length };
        accounts::count(account, self.counted_bytes());
    }

    fn length(&self) -> usize {
        (self.prefix().length & LENGTH_MASK) as usize
    }

    fn counted_bytes(&self) -> i64 {
        let bytes = shared_block_size(self.allocation_size());
        i64::try_from(bytes).expect("a block has less than 32 MiB")
    }

    fn prefix(&self) -> &Prefix {
        // SAFETY: the pointer comes from `initialise`, which wrote a `Prefix` there, and the
        // allocation lives as long as any owner does.
        unsafe { &*self.block_pointer() }
    }

    fn bytes_pointer(&self) -> *mut u8 {
        // SAFETY: the allocation has at least PREFIX_SIZE + length bytes, so the sum stays inside
        // of it or at its end.
        unsafe { self.block_pointer().cast::<u8>().add(PREFIX_SIZE) }
    }

    /// Where the block is: aligned so that the bits of the handle are zero there, and so low that
    /// those of the tag are, which `initialise` has checked.
    #[inline]
    fn block_pointer(&self) -> *mut Prefix {
        self.0.as_ptr().map_addr(|address| address & ADDRESS_BITS)
    }

    fn handle_bits(&self) -> usize {
        self.0.addr().get() & HANDLE_BITS
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
        // Behind the Release of all other owners: what they read happens before the free.
        fence(Ordering::Acquire);
        let account = self.account();
        if account != AccountId::NOBODY {
            accounts::count(account, -self.counted_bytes());
        }
        let layout = layout_of(self.length(), self.handle_bits());
        no_free::check(layout.size());
        // SAFETY: the count fell to zero, so this was the last owner; the memory was allocated
        // with the layout of the same length and room.
        unsafe { free(self.block_pointer().cast::<u8>(), layout) };
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

/// Where the number of a sequel is in a block of `length` bytes.
const fn sequel_offset(length: usize) -> usize {
    (PREFIX_SIZE + length).next_multiple_of(align_of::<AtomicU64>())
}

const fn size_of_block(length: usize, handle_bits: usize) -> usize {
    if handle_bits & HAS_ROOM == 0 {
        return PREFIX_SIZE + length;
    }
    sequel_offset(length) + SEQUEL_SIZE
}

fn layout_of(length: usize, handle_bits: usize) -> Layout {
    assert!(length <= LENGTH_MASK as usize, "a block holds less than 32 MiB");
    let has_room = handle_bits & HAS_ROOM != 0;
    let alignment = if has_room { align_of::<AtomicU64>() } else { align_of::<Prefix>() };
    Layout::from_size_align(size_of_block(length, handle_bits), alignment)
        .expect("a 25-bit length with its prefix is a valid layout")
}

/// Memory for a block: of a slab, or of the allocator if it is large. Null if there is none.
#[inline]
fn allocate(layout: Layout) -> *mut u8 {
    if slabs::hold(layout.size()) {
        return slabs::take(layout.size());
    }
    before_large(layout.size());
    // SAFETY: the layout has a size of at least PREFIX_SIZE, so it is not zero.
    unsafe { alloc(layout) }
}

fn allocate_zeroed(layout: Layout) -> *mut u8 {
    if !slabs::hold(layout.size()) {
        before_large(layout.size());
        // SAFETY: the layout has a size of at least PREFIX_SIZE, so it is not zero.
        return unsafe { alloc_zeroed(layout) };
    }
    let memory = slabs::take(layout.size());
    if !memory.is_null() {
        // SAFETY: the slab gave a block of that size, which is nobody else's.
        unsafe { memory.write_bytes(0, layout.size()) };
    }
    memory
}

/// Gives the memory of a block back.
///
/// # Safety
/// [`allocate`] or [`allocate_zeroed`] gave it for this layout, and nobody uses it any more.
unsafe fn free(memory: *mut u8, layout: Layout) {
    if !slabs::hold(layout.size()) {
        // SAFETY: the caller gives it up, and it came from the allocator with this layout.
        unsafe { dealloc(memory, layout) };
    } else if let Some(memory) = NonNull::new(memory) {
        // SAFETY: the caller gives it up, and it came from a slab for this size.
        unsafe { slabs::give_back(memory, layout.size()) };
    }
}

/// The first handle of a block whose bytes are still to be written.
fn initialise(memory: *mut u8, layout: Layout, length: usize, handle_bits: usize) -> SharedBytes {
    let Some(prefix) = NonNull::new(memory.cast::<Prefix>()) else {
        handle_alloc_error(layout);
    };
    assert!(prefix.addr().get() & !ADDRESS_BITS == 0, "a block is aligned, and below 2^48");
    let length_field = u32::try_from(length).expect("layout_of has checked the length");
    // SAFETY: the memory is fresh, at least PREFIX_SIZE bytes and aligned for a `Prefix`.
    unsafe { prefix.write(Prefix { references: AtomicU32::new(1), length: length_field }) };
    if handle_bits & HAS_ROOM != 0 {
        // SAFETY: with room for a sequel the layout goes on for SEQUEL_SIZE bytes behind this.
        let place = unsafe { memory.add(sequel_offset(length)) };
        // SAFETY: the place is aligned for an `AtomicU64`: the layout is, and the offset.
        unsafe { place.cast::<AtomicU64>().write(AtomicU64::new(NO_SEQUEL)) };
    }
    SharedBytes(prefix.map_addr(|address| address | handle_bits))
}

#[cfg(test)]
mod tests;
