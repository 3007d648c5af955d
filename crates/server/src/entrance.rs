//! Doors.

/// Through which door a connection came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entrance {
    /// The data port: everybody says who they are.
    Data,
    /// The memcached port, for clients that cannot: they are let in, to the bucket.
    Memcached,
}
