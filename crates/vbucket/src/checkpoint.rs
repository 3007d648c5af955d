//! The ordered log of a vBucket's mutations on their way to disk and to replicas.
//!
//! The log is a chain of segments, each owned by the one before it. Mutations enter the tail; a
//! reader freezes the tail, so that it takes whole segments and walks them without the vBucket's
//! lock. A checkpoint is a run of segments inside of which a newer version of a document takes the
//! older one's place in history. Because the hash table knows the seqno of every key's newest
//! version, the log needs no index of keys.
//!
//! ```text
//!   checkpoint 7, closed          checkpoint 8, open
//!   [ 1..=90 ] -> [ 91..=130 ] -> [ 131, -, 133 ] -> [ tail: 134, 135 ]
//!   ^ head        ^ cursor of a stream               ^ persistence cursor
//! ```
//!
//! A cursor stands before the segment that it reads next. What lies before every cursor leaves in
//! one step: the head moves, and the chain from the old head on is dropped by whoever is told to,
//! outside of the lock, up to the first segment that somebody else still holds.

mod cursor;
mod detached;
mod extent;
mod info;
mod log_range;
mod manager;
mod reader_places;
mod run;
mod segment;
mod tenure;

pub use cursor::{CursorId, CursorStatus, Registration};
pub use detached::Detached;
pub use extent::Extent;
pub use info::{CheckpointInfo, CheckpointKind, Snapshot};
pub use log_range::{LogRange, LogSection, ReadLimit};
pub use manager::{CheckpointLimits, CheckpointManager, LogPersistence, QueueOutcome, Queued};
pub(crate) use reader_places::ReaderPlaces;
pub use run::MetaItem;
pub use tenure::Tenure;

#[cfg(test)]
mod tests;
