//! What the other modules share: a store on a disk, and batches to write.

use std::path::Path;
use std::sync::Arc;

use document::key::KeyBuf;
use document::{
    Cas, Datatype, Deletion, Item, ItemBuilder, ItemMeta, Key, RevSeqno, Seqno, Vbid, VbucketState,
};
use platform::{Clock, Entropy, Files, Random, WallTime};
use storage::{
    CommitReport, FlushBatch, StartReport, StorageError, Store, StoreOptions, VbucketRecord,
    WhyIgnored,
};

/// The vBucket that most tests write.
pub(crate) const VBID: Vbid = Vbid(7);

/// The bucket's directory on simulated disks.
pub(crate) const DIRECTORY: &str = "bucket";

pub(crate) fn try_open(
    files: impl Files + 'static,
    directory: &Path,
    open_files_max: usize,
) -> Result<(Store, StartReport), StorageError> {
    let clock = Clock::simulated(WallTime(1_700_000_000_000_000_000));
    Store::open(
        Arc::new(files),
        directory,
        StoreOptions { entropy: Entropy::real(), clock, open_files_max, journal: None },
    )
}

/// Why the system did not let a vBucket's file be read.
pub(crate) fn unreadable(report: &StartReport) -> Option<StorageError> {
    report.ignored.iter().find_map(|ignored| match &ignored.why {
        WhyIgnored::Unreadable(error) => Some(error.clone()),
        _ => None,
    })
}

pub(crate) fn open(files: impl Files + 'static) -> (Store, StartReport) {
    try_open(files, Path::new(DIRECTORY), 8).unwrap()
}

pub(crate) fn key(name: &str) -> KeyBuf {
    KeyBuf::in_default_collection(name.as_bytes()).unwrap()
}

pub(crate) fn item(name: &str, seqno: u64, value: &[u8]) -> Item {
    ItemBuilder::new(key(name).as_key(), ItemMeta::default(), value).finish(
        Cas(seqno + 1000),
        Seqno(seqno),
        RevSeqno(1),
    )
}

/// An item of any kind: of two collections, deleted or not, with and without a value.
pub(crate) fn random_item(random: &mut Random, name: u64, seqno: u64) -> Item {
    let mut encoded = if name.is_multiple_of(5) { vec![0x88, 0x01] } else { vec![0] };
    encoded.extend_from_slice(format!("key-{name:05}").as_bytes());
    let deletion = match random.below(8) {
        0 => Some(Deletion::Explicit),
        1 => Some(Deletion::Expired),
        _ => None,
    };
    let size = match random.below(20) {
        _ if deletion.is_some() && random.below(2) == 0 => 0,
        0 => 0,
        1 => random.below(40_000),
        _ => random.below(400),
    };
    let mut value = vec![b'v'; usize::try_from(size).unwrap()];
    let random_part = value.len() / 2;
    random.fill(&mut value[..random_part]);
    let datatype = if value.is_empty() { Datatype::RAW } else { Datatype::JSON };
    let meta = ItemMeta {
        flags: [1, 2, 3, 4],
        expiry: u32::try_from(random.below(1 << 32)).unwrap(),
        datatype,
        deletion,
    };
    let (cas, revision) = (Cas(random.next_u64()), RevSeqno(random.below(1 << 48)));
    ItemBuilder::new(Key::from_trusted(&encoded), meta, &value).finish(cas, Seqno(seqno), revision)
}

pub(crate) fn record(high_seqno: u64) -> VbucketRecord {
    let mut record = VbucketRecord::new(VbucketState::Active);
    record.snapshot_start = Seqno(high_seqno);
    record.snapshot_end = Seqno(high_seqno);
    record
}

pub(crate) fn batch(vbid: Vbid, items: Vec<Item>) -> FlushBatch {
    let high_seqno = items.iter().map(|item| item.seqno().0).max().unwrap_or(0);
    let lowest_seqno = items.iter().map(|item| item.seqno().0).min();
    let previous_seqno = Seqno(lowest_seqno.map_or(high_seqno, |lowest| lowest.saturating_sub(1)));
    FlushBatch { vbid, previous_seqno, items, state: record(high_seqno) }
}

/// Commits one batch.
pub(crate) fn commit(store: &Store, batch: FlushBatch) -> Result<CommitReport, StorageError> {
    let mut results = Vec::new();
    store.commit(vec![batch], |_, result| results.push(result));
    assert_eq!(results.len(), 1);
    results.remove(0)
}

/// Everything that can be told of an item.
pub(crate) fn all_of(item: &Item) -> impl PartialEq + std::fmt::Debug + use<> {
    let place = (item.seqno(), item.cas(), item.revision(), item.is_ejected());
    (item.key().encoded().to_vec(), place, item.meta(), item.value().to_vec())
}

/// All items of a vBucket's file, by seqno.
pub(crate) fn scan(store: &Store, vbid: Vbid) -> Vec<Item> {
    let mut items = Vec::new();
    let visit = |item| {
        items.push(item);
        std::ops::ControlFlow::Continue(())
    };
    store.scan(vbid, Seqno(0), true, visit).unwrap();
    items
}
