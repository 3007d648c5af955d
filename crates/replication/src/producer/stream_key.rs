//! What a producer calls its streams by.

use document::Vbid;

/// Names a stream of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StreamKey {
    pub(crate) vbid: Vbid,
    pub(crate) stream_id: Option<u16>,
}

/// What the place in the log of a producer's stream is called.
pub(super) fn cursor_name(producer: &str, key: StreamKey) -> String {
    match key.stream_id {
        None => format!("eq_dcpq:{producer}"),
        Some(id) => format!("eq_dcpq:{producer}:{id}"),
    }
}
