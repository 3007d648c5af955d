//! A span full of blocks of one size, with a header at its beginning.

use std::ptr::NonNull;

use super::block_chain::{BlockChain, FreeBlock};
use super::size_class::{BLOCKS_SIZE, HEADER_SIZE, SizeClass};
use super::spans::{SPAN_SIZE, Span};

const _: () = assert!(size_of::<Slab>() <= HEADER_SIZE);

/// The header. Whoever holds the lock of the slab's class has it.
#[derive(Debug)]
pub(super) struct Slab {
    /// Its neighbours among the slabs of the class that have free blocks.
    pub(super) previous: Option<NonNull<Slab>>,
    pub(super) next: Option<NonNull<Slab>>,
    /// Blocks that came back.
    free: BlockChain,
    /// Blocks at the beginning that have been taken at least once: what is behind them has not
    /// been touched, and may have no memory.
    touched_count: u32,
    /// Blocks that are taken.
    taken_count: u32,
    span: Span,
    class: SizeClass,
}

impl Slab {
    /// Makes the span at `start` a slab without taken blocks.
    ///
    /// # Safety
    /// The span is the caller's alone, and begins at a multiple of its size.
    pub(super) unsafe fn place(start: NonNull<u8>, span: Span, class: SizeClass) -> NonNull<Self> {
        let slab = start.cast::<Self>();
        let header = Self {
            previous: None,
            next: None,
            free: BlockChain::EMPTY,
            touched_count: 0,
            taken_count: 0,
            span,
            class,
        };
        // SAFETY: the caller has the span, which is larger than the header and aligned for it.
        unsafe { slab.write(header) };
        slab
    }

    /// The slab that a block belongs to.
    pub(super) fn of(block: NonNull<FreeBlock>) -> NonNull<Self> {
        let start = |address: usize| address & !(SPAN_SIZE - 1);
        let start = block.as_ptr().map_addr(start).cast::<Self>();
        NonNull::new(start).expect("no span begins at 0")
    }

    pub(super) fn span(&self) -> Span {
        self.span
    }

    pub(super) fn is_empty(&self) -> bool {
        self.taken_count == 0
    }

    pub(super) fn is_full(&self) -> bool {
        self.taken_count == self.block_count()
    }

    fn block_count(&self) -> u32 {
        (BLOCKS_SIZE / self.class.size()) as u32
    }

    /// Takes a block; `slab` is where this header is.
    pub(super) fn take(&mut self, slab: NonNull<Self>) -> Option<NonNull<FreeBlock>> {
        // Those that came back first: what is behind the touched ones may cost a page fault.
        let block = self.free.pop().or_else(|| self.touch(slab))?;
        self.taken_count += 1;
        Some(block)
    }

    fn touch(&mut self, slab: NonNull<Self>) -> Option<NonNull<FreeBlock>> {
        if self.touched_count == self.block_count() {
            return None;
        }
        let at = HEADER_SIZE + self.touched_count as usize * self.class.size();
        self.touched_count += 1;
        Some(slab.map_addr(|address| address.saturating_add(at)).cast())
    }

    /// Takes back a block.
    ///
    /// # Safety
    /// It was taken from this slab, and nobody uses it any more.
    pub(super) unsafe fn give_back(&mut self, block: NonNull<FreeBlock>) {
        assert!(self.taken_count > 0, "a block is given back once");
        self.taken_count -= 1;
        // SAFETY: the caller gives the block up.
        unsafe { self.free.push(block) };
    }
}
