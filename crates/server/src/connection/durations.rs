//! How long requests take: the histograms, and what is noted beside them of slow ones and of hot
//! documents.

use std::time::Duration;

use platform::redaction::UserData;
use protocol::Opcode;
use protocol::request::DocumentKey;

use super::state::Connection;
use super::turn::Turn;
use crate::slow_operations::{SlowOperation, Spans};

impl Connection {
    /// Records what a request took that is answered now; `key` is as it was sent, and empty where
    /// it is not known any more. The next one begins.
    #[inline]
    pub(super) fn record_duration(&self, opcode: u8, key: &[u8], turn: &mut Turn<'_>) {
        let now = turn.answered_at.take().unwrap_or_else(|| turn.read_clock());
        let took = now.since(turn.request_started);
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        turn.bucket.timings.record(opcode, took_ns);
        if turn.shared.slow_operations.is_slow(opcode, took_ns) {
            self.note_slow(opcode, key, took, turn);
        }
        if turn.shared.hot_keys.is_sampling() {
            self.note_key(opcode, key, turn);
        }
        turn.request_started = now;
    }

    #[cold]
    fn note_slow(&self, opcode: u8, key: &[u8], took: Duration, turn: &Turn<'_>) {
        let spans = turn.spans_now();
        let bucket = self.selected().map(|bucket| bucket.name().to_owned());
        let key = self.document_name(opcode, key).unwrap_or_default();
        let operation = SlowOperation {
            ended_at: turn.now.wall,
            opcode,
            bucket,
            key,
            client: self.peer_name(),
            took,
            spans,
        };
        let slow_operations = &turn.shared.slow_operations;
        let noted = slow_operations.note(turn.worker, operation.clone(), turn.now.monotonic);
        if let Some(unlogged) = noted {
            log(&operation, unlogged);
        }
    }

    #[cold]
    fn note_key(&self, opcode: u8, key: &[u8], turn: &Turn<'_>) {
        if let (Some(bucket), Some(name)) = (self.selected(), self.document_name(opcode, key)) {
            turn.shared.hot_keys.note(turn.worker, bucket.name(), &name, turn.now.monotonic);
        }
    }

    /// The name of the document that a request is about, if it is about one.
    fn document_name(&self, opcode: u8, key: &[u8]) -> Option<Vec<u8>> {
        let opcode = Opcode::from_byte(opcode)?;
        if !opcode.info().shape.is_document_key {
            return None;
        }
        let key = DocumentKey::parse(key, self.features).ok()?;
        Some(key.as_key().name().to_vec())
    }
}

fn log(operation: &SlowOperation, unlogged: u64) {
    let SlowOperation { opcode, bucket, key, client, took, spans, .. } = operation;
    let Spans { queue, lock, fetch, journal, replication, task } = spans;
    tracing::info!(
        command = Opcode::from_byte(*opcode).map(Opcode::name),
        bucket,
        key = %UserData(String::from_utf8_lossy(key)),
        client,
        took_us = micros(*took),
        queue_us = micros(*queue),
        lock_us = micros(*lock),
        fetch_us = micros(*fetch),
        journal_us = micros(*journal),
        replication_us = micros(*replication),
        task_us = micros(*task),
        unlogged,
        "an operation was slow"
    );
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
