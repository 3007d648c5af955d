//! All slabs, for all threads: each size has a lock.

use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::block_chain::BlockChain;
use super::size_class::{CLASS_COUNT, SizeClass};
use super::slab::Slab;
use super::spans::Spans;

/// The slabs of all sizes.
#[derive(Debug)]
pub(super) struct Central {
    classes: [Mutex<ClassSlabs>; CLASS_COUNT],
    spans: Spans,
}

/// The slabs of one size. Full ones are known by their blocks alone.
#[derive(Debug)]
struct ClassSlabs {
    /// The first slab with free blocks.
    first: Option<NonNull<Slab>>,
    /// Blocks that are taken, of all slabs.
    taken_count: usize,
}

// SAFETY: the headers behind the pointers are touched by whoever holds the lock alone.
unsafe impl Send for ClassSlabs {}

impl Central {
    pub(super) const fn new() -> Self {
        const EMPTY: ClassSlabs = ClassSlabs { first: None, taken_count: 0 };
        Self { classes: [const { Mutex::new(EMPTY) }; CLASS_COUNT], spans: Spans::new() }
    }

    /// So many blocks, or as many as the system has memory for.
    pub(super) fn take(&self, class: SizeClass, count: u32) -> BlockChain {
        let mut slabs = self.lock(class);
        let mut taken = BlockChain::EMPTY;
        while taken.len() < count {
            if slabs.first.is_none() && !self.add_slab(&mut slabs, class) {
                break;
            }
            slabs.take_into(&mut taken, count);
        }
        slabs.taken_count += taken.len() as usize;
        taken
    }

    fn add_slab(&self, slabs: &mut ClassSlabs, class: SizeClass) -> bool {
        let Some((start, span)) = self.spans.take() else { return false };
        // SAFETY: `take` gave the span to this caller, and spans begin at multiples of their size.
        slabs.link(unsafe { Slab::place(start, span, class) });
        true
    }

    /// Takes back blocks of one size.
    pub(super) fn give_back(&self, class: SizeClass, mut blocks: BlockChain) {
        let mut slabs = self.lock(class);
        slabs.taken_count -= blocks.len() as usize;
        let mut emptied = None;
        while let Some(block) = blocks.pop() {
            let slab = Slab::of(block);
            let header = slabs.header(slab);
            let was_full = header.is_full();
            // SAFETY: the chain had the block, which was taken from the slab that it lies in.
            unsafe { header.give_back(block) };
            let is_empty = header.is_empty();
            if was_full {
                slabs.link(slab);
            }
            if is_empty {
                slabs.unlink(slab);
                slabs.header(slab).next = emptied.replace(slab);
            }
        }
        let mut spans = Vec::new();
        while let Some(slab) = emptied {
            spans.push(slabs.header(slab).span());
            emptied = slabs.header(slab).next;
        }
        // Not under the size's lock: spans that are overdue go back to the system on the way.
        drop(slabs);
        spans.into_iter().for_each(|span| self.spans.give_back(span));
    }

    /// Bytes of all blocks that are taken.
    pub(super) fn taken_bytes(&self) -> usize {
        SizeClass::all().map(|class| self.lock(class).taken_count * class.size()).sum()
    }

    pub(super) fn spans(&self) -> &Spans {
        &self.spans
    }

    fn lock(&self, class: SizeClass) -> MutexGuard<'_, ClassSlabs> {
        self.classes[class.index()].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClassSlabs {
    /// The header of a slab of this size.
    fn header(&mut self, slab: NonNull<Slab>) -> &mut Slab {
        // SAFETY: `Slab::place` wrote the header, its span is in use, and whoever has `self` holds
        // the lock that it belongs to; the borrow of `self` keeps this reference the only one.
        unsafe { &mut *slab.as_ptr() }
    }

    /// Takes blocks of the first slab until there are `count`, or it is full.
    fn take_into(&mut self, taken: &mut BlockChain, count: u32) {
        let Some(slab) = self.first else { return };
        let header = self.header(slab);
        while taken.len() < count
            && let Some(block) = header.take(slab)
        {
            // SAFETY: the slab has just given the block away.
            unsafe { taken.push(block) };
        }
        if header.is_full() {
            self.unlink(slab);
        }
    }

    fn link(&mut self, slab: NonNull<Slab>) {
        let next = self.first.replace(slab);
        if let Some(next) = next {
            self.header(next).previous = Some(slab);
        }
        let header = self.header(slab);
        (header.previous, header.next) = (None, next);
    }

    fn unlink(&mut self, slab: NonNull<Slab>) {
        let header = self.header(slab);
        let (previous, next) = (header.previous.take(), header.next.take());
        match previous {
            Some(previous) => self.header(previous).next = next,
            None => self.first = next,
        }
        if let Some(next) = next {
            self.header(next).previous = previous;
        }
    }
}
