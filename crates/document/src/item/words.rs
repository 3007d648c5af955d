//! What an item is: the words of those who write it and of those who read it.

use crate::datatype::Datatype;
use crate::durability::DurabilityLevel;
use crate::ids::Seqno;

/// Seqnos and revisions have 48 bits on disk and here.
pub const U48_MAX: u64 = 0xffff_ffff_ffff;

/// How a document was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// By a request.
    Explicit,
    /// Because its time was over.
    Expired,
}

/// What an item is in the history of its vBucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operation {
    /// A document or its tombstone, visible at once.
    #[default]
    Mutation,
    /// The first half of a durable write of this level: visible to nobody yet.
    Prepare(DurabilityLevel),
    /// The document that a prepare has become.
    Commit {
        /// The seqno of the prepare.
        prepare: Seqno,
    },
    /// The end of a prepare that will never be visible.
    Abort {
        /// The seqno of the prepare.
        prepare: Seqno,
    },
}

impl Operation {
    /// Whether it belongs to a key's prepared namespace rather than to its committed one.
    pub fn is_prepared(self) -> bool {
        matches!(self, Self::Prepare(_) | Self::Abort { .. })
    }

    /// The seqno of the prepare that it ends.
    pub fn ended_prepare(self) -> Option<Seqno> {
        match self {
            Self::Mutation | Self::Prepare(_) => None,
            Self::Commit { prepare } | Self::Abort { prepare } => Some(prepare),
        }
    }
}

/// What the writer of a document decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ItemMeta {
    /// Opaque to the server: four bytes in the order in which the client sent them.
    pub flags: [u8; 4],
    /// Seconds since the epoch, 0 for never. Of a deleted item: when it was deleted.
    pub expiry: u32,
    /// What the value is.
    pub datatype: Datatype,
    /// Set for a tombstone.
    pub deletion: Option<Deletion>,
}
