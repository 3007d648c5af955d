//! The other side of the connection, for our own tools and tests: writing requests, reading
//! responses.

mod request;
mod response;
mod scanned;

pub use request::{Request, counter_extras, encode_key, store_extras};
pub use response::{MetaView, MutationToken, ObserveSeqno, Response};
pub use scanned::{scanned_documents, scanned_names};
