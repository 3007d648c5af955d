//! What one connection may take, and all of them together.

use std::time::Duration;

/// The data port's limits. Every one has a statistic that shows how full it is.
#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// Connections of all workers.
    pub connections_max: usize,
    /// Connections without a login from one address, or one IPv6 network of 64 bits.
    pub strangers_of_address_max: usize,
    /// Bytes of a frame, header included; larger ones close the connection.
    pub packet_bytes_max: usize,
    /// The same before authentication.
    pub unauthenticated_packet_bytes_max: usize,
    /// Bytes that wait for a slow reader before the server stops reading from it.
    pub unsent_bytes_max: usize,
    /// The same before authentication.
    pub unauthenticated_unsent_bytes_max: usize,
    /// Bytes that all connections together may hold: received, waiting and unsent.
    pub client_bytes_max: usize,
    /// How long a client may take to say who it is.
    pub login_time_max: Duration,
    /// How long a client may take no byte of what waits for it and, while memory for those like it
    /// is short, send none of the rest of a request. Replicas have limits of their own.
    pub stalled_time_max: Duration,
    /// Requests of one connection that wait at a time (unordered execution).
    pub parked_requests_max: usize,
    /// Bytes read from one connection before the others of its worker get their turn.
    pub turn_bytes_max: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections_max: 65_000,
            strangers_of_address_max: 1_000,
            packet_bytes_max: 30 << 20,
            unauthenticated_packet_bytes_max: 16 << 10,
            unsent_bytes_max: 1 << 20,
            unauthenticated_unsent_bytes_max: 64 << 10,
            client_bytes_max: 256 << 20,
            login_time_max: Duration::from_secs(30),
            stalled_time_max: Duration::from_secs(60),
            parked_requests_max: 32,
            turn_bytes_max: 256 << 10,
        }
    }
}
