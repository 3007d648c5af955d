//! What statistics show of a producer and its streams.

use std::sync::atomic::{AtomicU64, Ordering};

use document::Seqno;

use super::shared::ProducerShared;
use super::stream::StreamKey;
use crate::hub::Hub;

/// One producer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProducerStatus {
    /// Its name, as the client gave it.
    pub name: String,
    /// Messages with an item that were sent.
    pub items_sent: u64,
    /// Bytes that were sent, by the rule of flow control.
    pub bytes_sent: u64,
    /// What the consumer can hold; 0 without flow control.
    pub buffer_bytes: u64,
    /// What of it is under way.
    pub unacked_bytes: u64,
    /// What it has acknowledged.
    pub acked_bytes: u64,
    /// Bytes that backfills have read and that are not sent.
    pub backfill_bytes: u64,
    /// Its streams.
    pub streams: Vec<StreamStatus>,
}

/// One stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamStatus {
    /// Of which vBucket.
    pub vbid: document::Vbid,
    /// Which of several.
    pub stream_id: Option<u16>,
    /// What it does: see [`StreamStatus::state_name`].
    pub state: u64,
    /// Its opaque.
    pub opaque: u64,
    /// The flags that it was asked for with.
    pub flags: u64,
    /// The last seqno that the consumer had.
    pub start: u64,
    /// Where it is to end.
    pub end: u64,
    /// The last seqno that was sent.
    pub last_sent: Seqno,
    /// Everything up to here was read.
    pub last_read: Seqno,
    /// Items sent from the file.
    pub backfill_items: u64,
    /// Items sent from memory.
    pub memory_items: u64,
    /// What its place in the log is called.
    pub cursor_name: String,
    /// Items of a file that are not read yet; none while that is not known.
    pub backfill_remaining: Option<u64>,
    /// Messages that are read and not sent.
    pub waiting_messages: u64,
}

/// What a stream does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum StreamState {
    /// It reads a file.
    Backfilling = 1,
    /// It follows the log.
    InMemory = 2,
    /// It hands its vBucket over.
    TakeoverSend = 3,
    /// It waits for the other side of that.
    TakeoverWait = 4,
    /// It has ended.
    Dead = 5,
}

impl StreamStatus {
    /// What it does, in a word.
    pub fn state_name(&self) -> &'static str {
        match self.state {
            1 => "backfilling",
            2 => "in-memory",
            3 => "takeover-send",
            4 => "takeover-wait",
            _ => "dead",
        }
    }
}

/// Written by the producer's owner, read by anybody.
#[derive(Debug, Default)]
pub(super) struct ProducerCounters {
    pub(super) items_sent: AtomicU64,
    pub(super) bytes_sent: AtomicU64,
    pub(super) buffer_bytes: AtomicU64,
    pub(super) unacked_bytes: AtomicU64,
    pub(super) acked_bytes: AtomicU64,
    /// Rises and falls with what backfills read ahead, on two threads.
    pub(super) backfill_bytes: AtomicU64,
}

/// The same of a stream.
#[derive(Debug, Default)]
pub(super) struct StreamCounters {
    pub(super) state: AtomicU64,
    pub(super) opaque: AtomicU64,
    pub(super) flags: AtomicU64,
    pub(super) start: AtomicU64,
    pub(super) end: AtomicU64,
    pub(super) last_sent: AtomicU64,
    pub(super) last_read: AtomicU64,
    pub(super) backfill_items: AtomicU64,
    pub(super) memory_items: AtomicU64,
    /// [`UNKNOWN`] before a backfill has found out.
    pub(super) backfill_remaining: AtomicU64,
    pub(super) waiting_messages: AtomicU64,
}

/// A number of items that nobody knows yet.
pub(super) const UNKNOWN: u64 = u64::MAX;

/// What the place in the log of a producer's stream is called.
pub(super) fn cursor_name(producer: &str, key: StreamKey) -> String {
    match key.stream_id {
        None => format!("eq_dcpq:{producer}"),
        Some(id) => format!("eq_dcpq:{producer}:{id}"),
    }
}

pub(super) fn set(counter: &AtomicU64, value: u64) {
    counter.store(value, Ordering::Relaxed);
}

pub(super) fn add(counter: &AtomicU64, value: u64) {
    counter.fetch_add(value, Ordering::Relaxed);
}

fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

impl Hub {
    /// What all producers of the bucket do, in the order of their names.
    pub fn producer_status(&self) -> Vec<ProducerStatus> {
        self.producers().iter().map(|producer| producer.status()).collect()
    }
}

impl ProducerShared {
    fn status(&self) -> ProducerStatus {
        let counters = self.counters();
        let streams = self.streams();
        ProducerStatus {
            name: self.name().to_owned(),
            items_sent: get(&counters.items_sent),
            bytes_sent: get(&counters.bytes_sent),
            buffer_bytes: get(&counters.buffer_bytes),
            unacked_bytes: get(&counters.unacked_bytes),
            acked_bytes: get(&counters.acked_bytes),
            backfill_bytes: get(&counters.backfill_bytes),
            streams: streams
                .iter()
                .map(|(key, counters)| status_of(self.name(), *key, counters))
                .collect(),
        }
    }
}

fn status_of(producer: &str, key: StreamKey, counters: &StreamCounters) -> StreamStatus {
    StreamStatus {
        vbid: key.vbid,
        stream_id: key.stream_id,
        state: get(&counters.state),
        opaque: get(&counters.opaque),
        flags: get(&counters.flags),
        start: get(&counters.start),
        end: get(&counters.end),
        last_sent: Seqno(get(&counters.last_sent)),
        last_read: Seqno(get(&counters.last_read)),
        backfill_items: get(&counters.backfill_items),
        memory_items: get(&counters.memory_items),
        cursor_name: cursor_name(producer, key),
        backfill_remaining: Some(get(&counters.backfill_remaining)).filter(|&it| it != UNKNOWN),
        waiting_messages: get(&counters.waiting_messages),
    }
}
