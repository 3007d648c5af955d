//! One connection that reads vBuckets. Source: protocol specification, section 20.

mod connection;
mod content;
mod controls;
mod flow_control;
mod liveness;
mod outgoing;
mod requests;
mod shared;
mod snapshots;
mod status;
mod stream;
mod stream_request;
mod takeover;
mod ticker;

pub use connection::{MessageSink, Opening, Producer};
pub use requests::Answer;
pub(crate) use shared::ProducerShared;
pub use status::{ProducerStatus, StreamStatus};
