//! Memory that has left a log and is still counted.

use crate::checkpoint::Detached;
use crate::memory_account::{MemoryAccount, MemoryUse};

/// A part of a log on its way to be freed, which dropping it does: outside of every lock, and
/// elsewhere than on the way of a request if it [is much](Destruction::is_large).
#[derive(Debug)]
pub struct Destruction {
    /// Taken when it is dropped.
    detached: Option<Detached>,
    size: MemoryUse,
    account: MemoryAccount,
}

/// Items that are freed where they fall; more are freed by a background task.
const SMALL_ITEMS_MAX: usize = 64;

impl Destruction {
    pub(crate) fn new(detached: Detached, account: &MemoryAccount) -> Self {
        let extent = detached.extent();
        let size = MemoryUse {
            tables_bytes: 0,
            log_bytes: extent.structure_bytes,
            checkpoints_bytes: extent.bytes(),
        };
        account.begin_destruction(size);
        Self { detached: Some(detached), size, account: account.clone() }
    }

    /// Items in it.
    pub fn item_count(&self) -> usize {
        self.detached.as_ref().map_or(0, |detached| detached.extent().items)
    }

    /// Bytes of it, as the checkpoints' quota counts them.
    pub fn bytes(&self) -> usize {
        self.size.checkpoints_bytes
    }

    /// Whether freeing it takes longer than a request should.
    pub fn is_large(&self) -> bool {
        self.item_count() > SMALL_ITEMS_MAX
    }
}

impl Drop for Destruction {
    fn drop(&mut self) {
        drop(self.detached.take());
        self.account.end_destruction(self.size);
    }
}
