//! DCP: what a bucket's vBuckets send to other nodes and to clients, and what they receive.
//!
//! A [`Producer`] is one connection that reads vBuckets. It has neither socket nor thread: its
//! owner gives it messages and room to write. A [`consumer::Consumer`] is one connection that
//! writes replicas, likewise; the [`Replicator`] is the loop that owns those of all buckets that
//! this node has made, and a [`Relay`] owns one that a manager has opened. What other threads have
//! to tell them goes through the [`Hub`], of which each bucket has one.

mod backfill;
pub mod consumer;
mod hub;
pub mod producer;
mod relay;
pub mod replicator;
mod system_event;
mod ticker;

pub use hub::{Hub, Subscription};
pub use producer::{Answer, MessageSink, Opening, Producer};
pub use relay::{Relay, RelayOpening, RelayStatus};
pub use replicator::{
    BucketReplicator, Follow, FollowerLogin, LinkStatus, PeerAddress, Replicator, Told,
};
