//! What commits consist of, and what is in a file after them.

use std::collections::BTreeMap;

use document::{Seqno, Vbid};
use storage::FlushBatch;

use crate::batches::{item, record};

/// Items of a commit: one that all commits overwrite, and others of its own.
pub(super) const STEP: u64 = 3;

/// Numbers of the commits that a vBucket consists of.
pub(super) type History = Vec<u64>;

/// The seqno at which a history ends.
pub(super) fn high_seqno(history: &[u64]) -> u64 {
    history.len() as u64 * STEP
}

/// A commit on top of a history.
pub(super) fn batch_of(vbid: u16, history: &[u64], number: u64) -> FlushBatch {
    let first = high_seqno(history) + 1;
    let value = format!("{number}").repeat(700);
    let items = vec![
        item("always", first, number.to_string().as_bytes()),
        item(&format!("one-{number}"), first + 1, value.as_bytes()),
        item(&format!("two-{}", number % 3), first + 2, b""),
    ];
    let state = record(first + 2);
    FlushBatch { vbid: Vbid(vbid), previous_seqno: Seqno(first - 1), items, state }
}

/// Seqno and value by key.
pub(super) type Content = BTreeMap<Vec<u8>, (u64, Vec<u8>)>;

/// What a file holds that has this history.
pub(super) fn content_of(history: &[u64]) -> Content {
    let mut content = Content::new();
    for (index, number) in history.iter().enumerate() {
        for item in batch_of(0, &history[..index], *number).items {
            let value = (item.seqno().0, item.value().to_vec());
            content.insert(item.key().encoded().to_vec(), value);
        }
    }
    content
}
