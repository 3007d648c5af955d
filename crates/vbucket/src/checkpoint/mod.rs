//! The ordered log of a vBucket's mutations on their way to disk (and, later, to replicas).
//!
//! A mutation enters the one open checkpoint. A newer version of a document that is still in the
//! open checkpoint takes the older one's place in history: the older slot becomes empty. Because
//! every mutation takes exactly one slot, the slot of a seqno is found by subtraction, and the hash
//! table, which knows the seqno of every key's newest version, is the only index there is.
//!
//! ```text
//!   closed: [ 1..=90 ] [ 91..=130 ]          open: [ 131, -, 133, 134 ]
//!           ^ persistence cursor: everything before it has been flushed
//! ```

mod closed_checkpoint;
mod manager;
mod open_checkpoint;

pub use closed_checkpoint::ClosedCheckpoint;
pub use manager::CheckpointManager;

#[cfg(test)]
mod tests;
