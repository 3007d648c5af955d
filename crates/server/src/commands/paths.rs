//! SUBDOC_GET and its kin: parts of documents. Source: docs/specification/protocol.md, section 12.

mod lookup;
mod mutation;
mod request;

pub(super) use lookup::look_up;
pub(super) use mutation::{answer_changed, change};
