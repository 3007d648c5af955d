//! Doors.

/// Through which door a connection came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entrance {
    /// The data port: everybody says who they are.
    Data,
    /// The same behind TLS, where a certificate may say it.
    Tls,
    /// The memcached port, for clients that cannot: they are let in, to the bucket.
    Memcached,
}
