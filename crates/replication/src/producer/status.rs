//! What statistics show of a producer and its streams.

use document::Seqno;

use super::counters::{StreamCounters, UNKNOWN, get};
use super::shared::ProducerShared;
use super::stream_key::{StreamKey, cursor_name};
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
