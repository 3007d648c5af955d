//! What the data port has done for a bucket: counted by each worker for itself, under the bucket
//! that the connection has selected.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use document::histogram::HistogramSnapshot;
use protocol::Opcode;

use crate::buckets::{BUCKET_COUNT_MAX, BucketPart};
use crate::statistic::{MetricName, Statistic, StatisticKind};
use crate::statistics::{Clear, counters};
use crate::timings::CommandTimings;

const OPERATIONS_HELP: &str = "Operations, by what was asked and what came of it";
const SUBDOC_OPERATIONS_HELP: &str = "Operations on parts of documents, by their kind";

counters! {
    /// One worker's counters of the commands of one bucket. No other worker's lie in their cache
    /// lines.
    CommandCounters;
    /// The counters of all workers, of one bucket or of all.
    CommandStatistics;
    /// What the data port has done for a bucket.
    COMMAND_STATISTICS;
    /// Requests with an opcode that was never assigned.
    unknown_commands: Counter,
    /// Requests with an opcode that this server does not carry out.
    unsupported_commands: Counter,
    /// Requests that do not have the form of their command.
    invalid_requests: Counter,
    /// Bytes received at the data port.
    bytes_read: Counter of bytes as MetricName::of("kv_read_bytes"),
    /// Bytes sent from the data port.
    bytes_written: Counter of bytes as MetricName::of("kv_written_bytes"),
    /// Requests executed.
    cmd_total: Counter as MetricName::of("kv_cmd_total_ops"),
    /// Reads.
    cmd_get: Counter,
    /// Reads that found a document.
    get_hits: Counter as operations(&[("op", "get"), ("result", "hit")]),
    /// Reads that found none.
    get_misses: Counter as operations(&[("op", "get"), ("result", "miss")]),
    /// Reads of what is known of a document but its value.
    ep_num_ops_get_meta: Counter as operations(&[("op", "get_meta"), ("result", "hit")]),
    /// Orders to empty the bucket.
    cmd_flush: Counter as operations(&[("op", "flush"), ("result", "hit")]),
    /// Stores.
    cmd_set: Counter as operations(&[("op", "set"), ("result", "hit")]),
    /// Deletions.
    cmd_delete: Counter,
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
    delete_hits: Counter as operations(&[("op", "delete"), ("result", "hit")]),
    /// Deletions that found none.
    delete_misses: Counter as operations(&[("op", "delete"), ("result", "miss")]),
    /// Increments that found a counter, or made one.
    incr_hits: Counter as operations(&[("op", "incr"), ("result", "hit")]),
    /// Increments that found none.
    incr_misses: Counter as operations(&[("op", "incr"), ("result", "miss")]),
    /// Decrements that found a counter, or made one.
    decr_hits: Counter as operations(&[("op", "decr"), ("result", "hit")]),
    /// Decrements that found none.
    decr_misses: Counter as operations(&[("op", "decr"), ("result", "miss")]),
    /// Touches, and reads that touch, that found a document.
    touch_hits: Counter as operations(&[("op", "touch"), ("result", "hit")]),
    /// Touches, and reads that touch, that found none.
    touch_misses: Counter as operations(&[("op", "touch"), ("result", "miss")]),
    /// Writes that wanted a version and found it.
    cas_hits: Counter as operations(&[("op", "cas"), ("result", "hit")]),
    /// Writes that wanted a version and found no document.
    cas_misses: Counter as operations(&[("op", "cas"), ("result", "miss")]),
    /// Writes that found another version.
    cas_badval: Counter as operations(&[("op", "cas"), ("result", "badval")]),
    /// Requests refused because a document would be too large.
    store_too_large: Counter,
    /// Requests refused because there is no memory for a document.
    store_no_memory: Counter,
    /// Requests answered with a temporary failure.
    temporary_failures: Counter,
    /// Requests that met a locked document.
    lock_errors: Counter as MetricName::of("kv_lock_errors"),
    /// Requests for vBuckets that this node does not serve.
    ep_num_not_my_vbuckets: Counter as MetricName::of("kv_ep_num_not_my_vbuckets"),
    /// Requests that waited for something.
    parked_requests: Counter,
    also Statistic::counter("Reads of documents and of parts of them", |it: &CommandStatistics| {
        it.cmd_get + it.cmd_subdoc_lookup
    })
    .stat(&[("cmd_lookup", &[""])])
    .metric("kv_cmd_lookup"),
    also Statistic::counter("Writes of documents and of parts of them", |it: &CommandStatistics| {
        it.mutations()
    })
    .stat(&[("cmd_mutation", &[""])])
    .metric("kv_cmd_mutation"),
}

/// The operations of one kind.
pub(crate) const fn operations(labels: &'static [(&'static str, &'static str)]) -> MetricName {
    MetricName::one_of("kv_ops", OPERATIONS_HELP, labels)
}

const fn subdoc_operations(labels: &'static [(&'static str, &'static str)]) -> MetricName {
    MetricName::one_of("kv_subdoc_ops", SUBDOC_OPERATIONS_HELP, labels)
}

/// What one worker counts of one bucket.
#[derive(Debug, Default)]
pub(crate) struct BucketCounters {
    pub(crate) commands: CommandCounters,
    pub(crate) timings: CommandTimings,
}

/// What one worker counts of every bucket.
#[derive(Debug)]
pub(crate) struct CountersByBucket {
    /// Of connections that have selected none.
    unselected: BucketCounters,
    /// By the buckets' places. Those that no bucket has had yet are not there.
    by_place: Box<[OnceLock<Box<BucketCounters>>]>,
}

impl Default for CountersByBucket {
    fn default() -> Self {
        let by_place = std::iter::repeat_with(OnceLock::new).take(BUCKET_COUNT_MAX).collect();
        Self { unselected: BucketCounters::default(), by_place }
    }
}

impl CountersByBucket {
    /// Those of the bucket that a connection has selected.
    pub(crate) fn of(&self, bucket: Option<&BucketPart>) -> &BucketCounters {
        bucket.map_or(&self.unselected, |bucket| self.at(bucket.place))
    }

    /// Those of the bucket at a place.
    pub(crate) fn at(&self, place: usize) -> &BucketCounters {
        self.by_place[place].get_or_init(Box::default)
    }

    /// Those at a place begin anew: the bucket that had it is gone.
    pub(crate) fn clear(&self, place: usize) {
        if let Some(counters) = self.by_place[place].get() {
            counters.commands.clear();
            counters.timings.clear();
        }
    }

    /// Those of all buckets and of none.
    pub(crate) fn all(&self) -> impl Iterator<Item = &BucketCounters> {
        self.by_place
            .iter()
            .filter_map(OnceLock::get)
            .map(|counters| &**counters)
            .chain([&self.unselected])
    }
}

impl CommandStatistics {
    /// Requests that change a document.
    fn mutations(&self) -> u64 {
        let whole = self.cmd_set + self.cmd_delete + self.cmd_touch + self.cmd_arithmetic;
        whole + self.cmd_subdoc_mutation
    }

    /// The sums of several workers or buckets.
    pub(crate) fn of<'a>(counters: impl Iterator<Item = &'a BucketCounters>) -> Self {
        let mut sum = Self::default();
        counters.for_each(|counters| sum.add(&counters.commands));
        sum
    }
}

/// The command histograms of several workers together, by name, in nanoseconds.
pub(crate) fn timings<'a>(
    counters: impl Iterator<Item = &'a BucketCounters>,
) -> Vec<(&'static str, HistogramSnapshot)> {
    let mut sums: Vec<(&'static str, HistogramSnapshot)> = Vec::new();
    for BucketCounters { timings, .. } in counters {
        for (index, (name, snapshot)) in timings.by_family().into_iter().enumerate() {
            match sums.get_mut(index) {
                Some((_, sum)) => sum.merge(&snapshot),
                None => sums.push((name, snapshot)),
            }
        }
    }
    sums
}

/// The histogram of one command of several workers or buckets together, in nanoseconds. The quiet
/// form of a command is another one.
pub(crate) fn timings_of<'a>(
    opcode: Opcode,
    counters: impl Iterator<Item = &'a BucketCounters>,
) -> HistogramSnapshot {
    let mut sum = HistogramSnapshot::default();
    counters.for_each(|counters| sum.merge(&counters.timings.of(opcode)));
    sum
}
