//! What the data port has done: counted by each worker for itself, summed when somebody asks. What
//! it has done for a bucket is in `command_statistics`.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::statistic::{MetricName, Statistic, StatisticKind};

/// Counters of something that may go.
pub(crate) trait Clear {
    /// All begin anew. Nobody counts meanwhile.
    fn clear(&self);
}

/// Counters that each worker has for itself, their sums, and the table of those. A row has what it
/// is, its name in the general group of STAT, its kind, its unit, the other group that shows it,
/// and what Prometheus reads it as. Behind them are statistics that are made of several counters.
macro_rules! counters {
    (
        $(#[doc = $counters_doc:tt])+ $counters:ident;
        $(#[doc = $sums_doc:tt])+ $sums:ident;
        $(#[doc = $table_doc:tt])+ $table:ident;
        $(
            $(#[doc = $doc:tt])+
            $name:ident: $kind:ident $(of $unit:ident)? $(in $group:literal)? $(as $metric:expr)?,
        )+
        $(also $sum:expr,)*
    ) => {
        $(#[doc = $counters_doc])+
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub(crate) struct $counters {
            $($(#[doc = $doc])+ pub(crate) $name: AtomicU64,)+
        }

        $(#[doc = $sums_doc])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $sums {
            $($(#[doc = $doc])+ pub $name: u64,)+
        }

        $(#[doc = $table_doc])+
        pub static $table: &[Statistic<$sums>] = &[
            $(
                Statistic::<$sums>::new(
                    StatisticKind::$kind,
                    concat!($($doc),+),
                    |it| it.$name,
                )
                $(.$unit())?
                .stat(&[(stringify!($name), &["" $(, $group)?])])
                $(.read_as($metric))?,
            )+
            $($sum,)*
        ];

        impl $sums {
            pub(crate) fn add(&mut self, worker: &$counters) {
                $(self.$name += worker.$name.load(Ordering::Relaxed);)+
            }
        }

        impl Clear for $counters {
            fn clear(&self) {
                $(self.$name.store(0, Ordering::Relaxed);)+
            }
        }
    };
}

pub(crate) use counters;

counters! {
    /// One worker's counters of connections, whatever bucket they have selected. No other worker's
    /// lie in their cache lines.
    WorkerCounters;
    /// The counters of all workers.
    ServerStatistics;
    /// What the data port has done and has, of all buckets.
    SERVER_STATISTICS;
    /// Connections now.
    curr_connections: Gauge in "connections" as MetricName::of("kv_curr_connections"),
    /// Connections ever.
    total_connections: Counter in "connections" as MetricName::of("kv_total_connections"),
    /// Connections to the port behind TLS ever.
    tls_connections: Counter in "connections",
    /// Connections closed at once: there were too many, or too much was held for clients.
    rejected_connections: Counter in "connections" as MetricName::of("kv_rejected_connections"),
    /// Connections without a login closed because others needed the room.
    displaced_connections: Counter in "connections",
    /// Connections without a login closed because their address had too many.
    crowded_connections: Counter in "connections",
    /// Connections closed because nobody had said in time who it is.
    login_timeouts: Counter in "connections",
    /// Connections closed because their client took no answers for too long.
    stalled_writes: Counter in "connections",
    /// Connections closed because the rest of a request did not come while memory was short.
    stalled_requests: Counter in "connections",
    /// Large requests refused because the node held too much for its clients.
    refused_large_requests: Counter in "connections",
    /// Requests and logins refused because of a limit of their user.
    limited_requests: Counter in "connections",
    /// Connections closed because of bytes that are not the protocol.
    malformed_frames: Counter as MetricName::of("settee_foreign_clients_total"),
    /// Connections closed because of a magic that a client must not send.
    unexpected_magics: Counter,
    /// Requests before authentication that need it.
    unauthenticated_requests: Counter,
    /// Logins at the data port that failed.
    auth_errors: Counter as MetricName::of("kv_auth_errors"),
    /// Logins at the data port that succeeded.
    auth_successes: Counter as MetricName::of("settee_auth_successes_total"),
    /// TLS sessions that ended before they had begun.
    tls_failures: Counter as MetricName::of("settee_tls_failures_total"),
    /// Turns that ended because a connection's reader is slow.
    slow_reader_pauses: Counter,
    // Every port is one for users.
    also Statistic::gauge("Connections of users", |it: &ServerStatistics| it.curr_connections)
        .metric("kv_user_connections"),
    also Statistic::gauge("Always 0: no port is for the system alone", |_| 0)
        .metric("kv_system_connections"),
    also Statistic::counter("Logins at the data port", |it: &ServerStatistics| {
        it.auth_errors + it.auth_successes
    })
    .metric("kv_auth_cmds"),
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
    let counted = counter.load(Ordering::Relaxed);
    assert!(counted > 0, "what goes has come");
    counter.store(counted - 1, Ordering::Relaxed);
}
