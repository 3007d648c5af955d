//! DCP: what a bucket's vBuckets send to other nodes and to clients, and what they receive.

pub mod consumer;
mod hub;
pub mod replicator;

pub use hub::{Hub, Subscription};
pub use replicator::{Credentials, Follow, LinkStatus, PeerAddress, Replicator};
