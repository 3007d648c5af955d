//! DCP: what a bucket's vBuckets send to other nodes and to clients, and what they receive.
//!
//! A [`Producer`] is one connection that reads vBuckets. It has neither socket nor thread: its owner
//! gives it messages and room to write. What other threads have to tell it goes through the
//! [`Hub`], of which each bucket has one.

mod backfill;
mod hub;
pub mod producer;

pub use hub::{Hub, Subscription};
pub use producer::{Answer, MessageSink, Opening, Producer};
