//! What a worker lends a connection for one turn.

use bucket::Session;
use platform::Instant;

use super::output::Output;
use super::parked::Parked;
use crate::shared::Shared;
use crate::statistics::WorkerCounters;
use crate::timings::CommandTimings;

/// A turn of one connection.
pub(crate) struct Turn<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) session: &'a mut Session,
    pub(crate) output: &'a mut Output,
    pub(crate) parked: &'a mut Parked,
    pub(crate) counters: &'a WorkerCounters,
    pub(crate) timings: &'a CommandTimings,
    /// The connection's name in its worker.
    pub(crate) token: usize,
    /// When the request that is executed now began: the end of the one before.
    pub(crate) request_started: Instant,
    /// Bytes that the connection may still answer in this turn before it has to wait for its
    /// reader.
    pub(crate) output_bytes_max: usize,
}

impl Turn<'_> {
    /// Whether the connection has answered as much as it may before its reader has taken it.
    pub(crate) fn is_output_full(&self) -> bool {
        self.output.bytes() > self.output_bytes_max
    }
}
