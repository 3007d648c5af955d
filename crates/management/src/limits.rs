//! What a client of the REST port may take: connections, bytes and patience.

use std::time::Duration;

/// Limits of the REST port. Every client is met with them before it has named itself.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time. Further ones take the place of the oldest without a login, or are
    /// closed at once; both are counted.
    pub connections_max: usize,
    /// Those of them without a login from one address, or one IPv6 network of 64 bits: the oldest
    /// gives way to the next. Those who come by TLS are counted by themselves.
    pub strangers_of_address_max: usize,
    /// Bytes of one request's line and headers together.
    pub header_bytes_max: usize,
    /// Headers of one request.
    pub headers_max: usize,
    /// Bytes of one request's body. Forms are small; the largest is a cluster's plan.
    pub body_bytes_max: usize,
    /// Bytes of all of these that are held together; further ones wait for
    /// [`Limits::body_time_max`]. What nodes give each other has room of its own.
    pub bodies_bytes_max: usize,
    /// Time for a request's line and headers to arrive, and for a kept connection to be silent.
    pub header_time_max: Duration,
    /// Time for a request's body to arrive.
    pub body_time_max: Duration,
    /// Time for which a client may take nothing of an answer.
    pub write_stall_max: Duration,
    /// Time for which a client may wait for a manifest to come to this node.
    pub manifest_wait_max: Duration,
    /// Time for which shutdown waits for answers that are under way.
    pub shutdown_time_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 512,
            strangers_of_address_max: 256,
            header_bytes_max: 32 * 1024,
            headers_max: 64,
            body_bytes_max: 512 * 1024,
            bodies_bytes_max: 64 << 20,
            header_time_max: Duration::from_secs(30),
            body_time_max: Duration::from_secs(10),
            write_stall_max: Duration::from_secs(30),
            manifest_wait_max: Duration::from_secs(10),
            shutdown_time_max: Duration::from_secs(2),
        }
    }
}
