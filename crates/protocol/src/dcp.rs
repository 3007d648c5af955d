//! The messages of replication (DCP). Sources: docs/specification/protocol.md, sections 20 and 21.
//!
//! Both ends send requests on a DCP connection, so one type serves for reading and writing: a
//! [`Message`] is the content of a frame, an [`Envelope`] is what the header adds.

mod decode;
mod document;
mod encode;
mod failover_log;
mod flow_control;
mod marker;
mod message;
mod open;
mod stream_request;

pub use self::document::{DcpDeletion, DeletionForm, Document, Prepare, Resolution};
pub use self::encode::Envelope;
pub use self::failover_log::{encode_failover_log, parse_failover_log, parse_rollback_seqno};
pub use self::marker::{Marker, MarkerFlags, MarkerVersion};
pub use self::message::{EndReason, Message, SystemEvent};
pub use self::open::{Open, OpenFlags};
pub use self::stream_request::{StreamFlags, StreamRequest, StreamSelection};

#[cfg(test)]
mod tests;
