//! What the data port has done: counted by each worker for itself, summed when somebody asks.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::statistic::{MetricName, Statistic, StatisticKind};

const OPERATIONS_HELP: &str = "Operations, by what was asked and what came of it";
const SUBDOC_OPERATIONS_HELP: &str = "Operations on parts of documents, by their kind";

/// A row has what it is, its name in the general group of STAT, its kind, its unit, the other
/// group that shows it, and what Prometheus reads it as.
macro_rules! counters {
    ($(
        $(#[doc = $doc:tt])+
        $name:ident: $kind:ident $(of $unit:ident)? $(in $group:literal)? $(as $metric:expr)?,
    )+) => {
        /// One worker's counters.
        #[derive(Debug, Default)]
        pub(crate) struct WorkerCounters {
            $($(#[doc = $doc])+ pub(crate) $name: AtomicU64,)+
        }

        /// The counters of all workers.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct ServerStatistics {
            $($(#[doc = $doc])+ pub $name: u64,)+
        }

        /// What the data port has done and has.
        pub static SERVER_STATISTICS: &[Statistic<ServerStatistics>] = &[
            $(
                Statistic::<ServerStatistics>::new(
                    StatisticKind::$kind,
                    concat!($($doc),+),
                    |it| it.$name,
                )
                $(.$unit())?
                .stat(&[(stringify!($name), &["" $(, $group)?])])
                $(.read_as($metric))?,
            )+
        ];

        impl ServerStatistics {
            pub(crate) fn add(&mut self, worker: &WorkerCounters) {
                $(self.$name += worker.$name.load(Ordering::Relaxed);)+
            }
        }
    };
}

counters! {
    /// Connections now.
    curr_connections: Gauge in "connections" as MetricName::of("kv_curr_connections"),
    /// Connections ever.
    total_connections: Counter in "connections",
    /// Connections closed at once because there were too many.
    rejected_connections: Counter in "connections",
    /// Connections without a login closed because others needed the room.
    displaced_connections: Counter in "connections",
    /// Connections closed because nobody had said in time who it is.
    login_timeouts: Counter in "connections",
    /// Connections closed because their client took no answers for too long.
    stalled_writes: Counter in "connections",
    /// Large requests refused because the node held too much for its clients.
    refused_large_requests: Counter in "connections",
    /// Connections closed because of bytes that are not the protocol.
    malformed_frames: Counter as MetricName::of_node("kv_foreign_clients_total"),
    /// Connections closed because of a magic that a client must not send.
    unexpected_magics: Counter,
    /// Requests with an opcode that was never assigned.
    unknown_commands: Counter,
    /// Requests with an opcode that this server does not carry out.
    unsupported_commands: Counter,
    /// Requests that do not have the form of their command.
    invalid_requests: Counter,
    /// Requests before authentication that need it.
    unauthenticated_requests: Counter,
    /// Logins at the data port that failed.
    auth_errors: Counter as MetricName::of_node("kv_auth_errors_total"),
    /// Logins at the data port that succeeded.
    auth_successes: Counter as MetricName::of_node("kv_auth_successes_total"),
    /// Bytes received at the data port.
    bytes_read: Counter of bytes as MetricName::of("kv_read_bytes_total"),
    /// Bytes sent from the data port.
    bytes_written: Counter of bytes as MetricName::of("kv_written_bytes_total"),
    /// Requests executed.
    cmd_total: Counter,
    /// Reads.
    cmd_get: Counter,
    /// Reads that found a document.
    get_hits: Counter as operations(&[("op", "get"), ("result", "hit")]),
    /// Reads that found none.
    get_misses: Counter as operations(&[("op", "get"), ("result", "miss")]),
    /// Orders to empty the bucket.
    cmd_flush: Counter,
    /// Stores.
    cmd_set: Counter as operations(&[("op", "set"), ("result", "hit")]),
    /// Deletions.
    cmd_delete: Counter as operations(&[("op", "delete"), ("result", "hit")]),
    /// Touches.
    cmd_touch: Counter,
    /// Locks.
    cmd_lock: Counter as operations(&[("op", "lock"), ("result", "hit")]),
    /// Changes of counters.
    cmd_arithmetic: Counter,
    /// Reads of parts of documents.
    cmd_subdoc_lookup: Counter as subdoc_operations(&[("op", "lookup")]),
    /// Changes of parts of documents.
    cmd_subdoc_mutation: Counter as subdoc_operations(&[("op", "mutation")]),
    /// Deletions that found a document.
    delete_hits: Counter,
    /// Deletions that found none.
    delete_misses: Counter,
    /// Increments that found a counter, or made one.
    incr_hits: Counter,
    /// Increments that found none.
    incr_misses: Counter,
    /// Decrements that found a counter, or made one.
    decr_hits: Counter,
    /// Decrements that found none.
    decr_misses: Counter,
    /// Touches, and reads that touch, that found a document.
    touch_hits: Counter,
    /// Touches, and reads that touch, that found none.
    touch_misses: Counter,
    /// Writes that wanted a version and found it.
    cas_hits: Counter,
    /// Writes that wanted a version and found no document.
    cas_misses: Counter,
    /// Writes that found another version.
    cas_badval: Counter as operations(&[("op", "cas"), ("result", "badval")]),
    /// Requests answered with a temporary failure.
    temporary_failures: Counter,
    /// Requests that waited for something.
    parked_requests: Counter,
    /// Turns that ended because a connection's reader is slow.
    slow_reader_pauses: Counter,
}

const fn operations(labels: &'static [(&'static str, &'static str)]) -> MetricName {
    MetricName::one_of("kv_ops_total", OPERATIONS_HELP, labels)
}

const fn subdoc_operations(labels: &'static [(&'static str, &'static str)]) -> MetricName {
    MetricName::one_of("kv_subdoc_ops_total", SUBDOC_OPERATIONS_HELP, labels)
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
