//! Free blocks of one size, each of which begins with the address of the next.

use std::ptr::NonNull;

/// The beginning of a free block.
#[repr(C)]
pub(super) struct FreeBlock {
    next: Option<NonNull<FreeBlock>>,
}

/// Free blocks that the chain alone may touch.
#[derive(Debug, Default)]
pub(super) struct BlockChain {
    head: Option<NonNull<FreeBlock>>,
    count: u32,
}

// SAFETY: nobody but the chain touches its blocks, whichever thread has it.
unsafe impl Send for BlockChain {}

impl BlockChain {
    pub(super) const EMPTY: Self = Self { head: None, count: 0 };

    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.count
    }

    /// Takes over a block.
    ///
    /// # Safety
    /// The block belongs to a slab, and nobody else uses it from now on.
    #[inline]
    pub(super) unsafe fn push(&mut self, block: NonNull<FreeBlock>) {
        // SAFETY: the caller gives the block up, and blocks of slabs are aligned for a `FreeBlock`
        // and not smaller.
        unsafe { block.write(FreeBlock { next: self.head }) };
        self.head = Some(block);
        self.count += 1;
    }

    /// Gives a block away.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<NonNull<FreeBlock>> {
        let block = self.head?;
        // SAFETY: `push` wrote a `FreeBlock` there, and nobody has touched it since.
        self.head = unsafe { block.read() }.next;
        self.count -= 1;
        Some(block)
    }

    /// Takes the last `count` blocks that came, or all.
    pub(super) fn split_off(&mut self, count: u32) -> Self {
        let mut other = Self::EMPTY;
        for _ in 0..count {
            let Some(block) = self.pop() else { break };
            // SAFETY: the block came from a chain, which has just given it away.
            unsafe { other.push(block) };
        }
        other
    }
}
