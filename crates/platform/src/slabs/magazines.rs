//! Free blocks that a thread keeps for itself, so that it takes a lock once for many of them.

use std::cell::Cell;
use std::ptr::NonNull;

use super::CENTRAL;
use super::block_chain::{BlockChain, FreeBlock};
use super::size_class::{CLASS_COUNT, SizeClass};

/// Bytes that go to a thread, or come from it, at once; a few blocks where they are large.
const BATCH_BYTES: usize = 4096;
const BATCH_MIN: usize = 4;
const BATCH_MAX: usize = 32;

thread_local! {
    static MAGAZINES: Magazines =
        const { Magazines([const { Cell::new(BlockChain::EMPTY) }; CLASS_COUNT]) };
}

/// Free blocks of each size, at most two batches.
struct Magazines([Cell<BlockChain>; CLASS_COUNT]);

/// A block of this size. `None` if the system has no memory.
#[inline]
pub(super) fn take(class: SizeClass) -> Option<NonNull<FreeBlock>> {
    // A thread that ends may want blocks when its magazines are gone.
    MAGAZINES
        .try_with(|magazines| magazines.take(class))
        .unwrap_or_else(|_| CENTRAL.take(class, 1).pop())
}

/// Takes back a block of this size.
///
/// # Safety
/// [`take`] gave the block, for the same size, and nobody uses it any more.
#[inline]
pub(super) unsafe fn give_back(class: SizeClass, block: NonNull<FreeBlock>) {
    let mut blocks = BlockChain::EMPTY;
    let is_kept = MAGAZINES.try_with(|magazines| {
        let magazine = &magazines.0[class.index()];
        blocks = magazine.replace(BlockChain::EMPTY);
        // SAFETY: the caller gives the block up.
        unsafe { blocks.push(block) };
        // At least a batch stays: whoever frees and takes in turn does not take the lock each time.
        if blocks.len() > 2 * batch_of(class) {
            CENTRAL.give_back(class, blocks.split_off(batch_of(class)));
        }
        magazine.set(std::mem::take(&mut blocks));
    });
    if is_kept.is_err() {
        // SAFETY: the caller gives the block up, and no magazine has it.
        unsafe { blocks.push(block) };
        CENTRAL.give_back(class, blocks);
    }
}

/// Gives back all blocks that the calling thread keeps.
pub(super) fn empty() {
    let _ = MAGAZINES.try_with(Magazines::empty);
}

/// Bytes of the blocks that the calling thread keeps.
pub(super) fn kept_bytes() -> usize {
    MAGAZINES.try_with(Magazines::kept_bytes).unwrap_or(0)
}

impl Magazines {
    #[inline]
    fn take(&self, class: SizeClass) -> Option<NonNull<FreeBlock>> {
        let magazine = &self.0[class.index()];
        let mut blocks = magazine.replace(BlockChain::EMPTY);
        if blocks.len() == 0 {
            blocks = CENTRAL.take(class, batch_of(class));
        }
        let block = blocks.pop();
        magazine.set(blocks);
        block
    }

    fn empty(&self) {
        for (magazine, class) in self.0.iter().zip(SizeClass::all()) {
            let blocks = magazine.replace(BlockChain::EMPTY);
            if blocks.len() > 0 {
                CENTRAL.give_back(class, blocks);
            }
        }
    }

    fn kept_bytes(&self) -> usize {
        let bytes_of = |(magazine, class): (&Cell<BlockChain>, SizeClass)| {
            let blocks = magazine.replace(BlockChain::EMPTY);
            let bytes = blocks.len() as usize * class.size();
            magazine.set(blocks);
            bytes
        };
        self.0.iter().zip(SizeClass::all()).map(bytes_of).sum()
    }
}

impl Drop for Magazines {
    fn drop(&mut self) {
        self.empty();
    }
}

/// Blocks of a batch.
fn batch_of(class: SizeClass) -> u32 {
    (BATCH_BYTES / class.size()).clamp(BATCH_MIN, BATCH_MAX) as u32
}
