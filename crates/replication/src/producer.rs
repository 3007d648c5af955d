//! One connection that reads vBuckets. Source: docs/specification/protocol.md, section 20.

mod answer;
mod connection;
mod content;
mod controls;
mod counters;
mod filter;
mod flow_control;
mod liveness;
mod outgoing;
mod requests;
mod shared;
mod sink;
mod snapshots;
mod status;
mod stream;
mod stream_key;
mod stream_request;
mod takeover;

pub use answer::Answer;
pub use connection::{Opening, Producer};
pub(crate) use shared::ProducerShared;
pub use sink::MessageSink;
pub use status::{ProducerStatus, StreamStatus};
