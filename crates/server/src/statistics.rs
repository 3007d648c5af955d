//! What the data port has done: counted by each worker for itself, summed when somebody asks.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// One worker's counters.
        #[derive(Debug, Default)]
        pub(crate) struct WorkerCounters {
            $($(#[$doc])* pub(crate) $name: AtomicU64,)+
        }

        /// The counters of all workers.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct ServerStatistics {
            $($(#[$doc])* pub $name: u64,)+
        }

        impl ServerStatistics {
            /// Names and numbers, as statistics print them.
            pub fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)+]
            }

            pub(crate) fn add(&mut self, worker: &WorkerCounters) {
                $(self.$name += worker.$name.load(Ordering::Relaxed);)+
            }
        }
    };
}

counters! {
    /// Connections now.
    curr_connections,
    /// Connections ever.
    total_connections,
    /// Connections closed at once because there were too many.
    rejected_connections,
    /// Connections closed because nobody had said in time who it is.
    login_timeouts,
    /// Connections closed because their client took no answers for too long.
    stalled_writes,
    /// Large requests refused because the node held too much for its clients.
    refused_large_requests,
    /// Connections closed because of bytes that are no frame.
    malformed_frames,
    /// Connections closed because of a magic that a client must not send.
    unexpected_magics,
    /// Requests with an opcode that was never assigned.
    unknown_commands,
    /// Requests with an opcode that this server does not carry out.
    unsupported_commands,
    /// Requests that do not have the form of their command.
    invalid_requests,
    /// Requests before authentication that need it.
    unauthenticated_requests,
    /// Failed authentications.
    auth_errors,
    /// Successful authentications.
    auth_successes,
    /// Bytes received.
    bytes_read,
    /// Bytes sent.
    bytes_written,
    /// Requests executed.
    cmd_total,
    /// Reads.
    cmd_get,
    /// Reads that found a document.
    get_hits,
    /// Reads that found none.
    get_misses,
    /// Orders to empty the bucket.
    cmd_flush,
    /// Stores.
    cmd_set,
    /// Deletions.
    cmd_delete,
    /// Touches.
    cmd_touch,
    /// Locks.
    cmd_lock,
    /// Changes of counters.
    cmd_arithmetic,
    /// Deletions that found a document.
    delete_hits,
    /// Deletions that found none.
    delete_misses,
    /// Increments that found a counter, or made one.
    incr_hits,
    /// Increments that found none.
    incr_misses,
    /// Decrements that found a counter, or made one.
    decr_hits,
    /// Decrements that found none.
    decr_misses,
    /// Touches, and reads that touch, that found a document.
    touch_hits,
    /// Those that found none.
    touch_misses,
    /// Writes that wanted a version and found it.
    cas_hits,
    /// Writes that wanted a version and found no document.
    cas_misses,
    /// Writes that found another version.
    cas_badval,
    /// Requests answered with a temporary failure.
    temporary_failures,
    /// Requests that waited for something.
    parked_requests,
    /// Turns that ended because a connection's reader is slow.
    slow_reader_pauses,
}

/// Counts one. Only the worker that owns the counter does so.
pub(crate) fn count(counter: &AtomicU64) {
    count_many(counter, 1);
}

/// Counts several. A counter has one writer, so this needs no atomic addition.
pub(crate) fn count_many(counter: &AtomicU64, step: usize) {
    let step = u64::try_from(step).unwrap_or(u64::MAX);
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(step), Ordering::Relaxed);
}

/// Counts one less; for what goes up and down.
pub(crate) fn count_down(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_sub(1), Ordering::Relaxed);
}
