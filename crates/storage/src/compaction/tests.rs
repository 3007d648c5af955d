//! What is left out and what is counted, on documents that only the original writes.

mod originals;

use std::path::Path;
use std::sync::Arc;

use document::{CollectionId, Seqno, VbucketState};
use platform::simulated::SimulatedFiles;
use platform::{Files, OpenMode};

use super::local_documents::Prepares;
use super::progress::CompactionProgress;
use super::successor::Successor;
use super::*;
use crate::couchstore::{Commit, FileHeader, LocalEdit, NewDocument, RevMeta, Scratch};
use crate::records::collection_statistics::{self, CollectionChanges, CollectionStatistics};
use crate::records::dropped_collections::{self, DROPPED_COLLECTIONS, DroppedCollection};
use crate::records::vbucket_record::{VBSTATE, VbucketRecord};

const NOW: u32 = 1_700_000_000;
const OLD: u32 = NOW - 1000;

/// A document as the trees have it.
#[derive(Clone)]
struct Row {
    id: Vec<u8>,
    seqno: u64,
    deleted: bool,
    /// Rev meta: V1, or V3 for prepares and aborts.
    meta: Vec<u8>,
}

fn meta(expiry: u32) -> Vec<u8> {
    let mut meta = vec![0; 18];
    meta[8..12].copy_from_slice(&expiry.to_be_bytes());
    meta
}

fn alive(id: &[u8], seqno: u64, expiry: u32) -> Row {
    Row { id: id.to_vec(), seqno, deleted: false, meta: meta(expiry) }
}

fn tombstone(id: &[u8], seqno: u64, deleted_at: u32) -> Row {
    Row { deleted: true, ..alive(id, seqno, deleted_at) }
}

fn prepare(name: &str, seqno: u64) -> Row {
    let id = [b"\x02\x00", name.as_bytes()].concat();
    let meta = [meta(0), vec![0; 6], vec![2]].concat();
    Row { id, seqno, deleted: false, meta }
}

fn abort(name: &str, seqno: u64, aborted_at: u32) -> Row {
    let prepare = prepare(name, seqno);
    let meta = [meta(aborted_at), vec![2], vec![0; 6]].concat();
    Row { deleted: true, meta, ..prepare }
}

/// A file that is written as the original writes it, counters included.
struct Source {
    files: SimulatedFiles,
    file: Arc<CouchFile>,
    header: Option<FileHeader>,
    record: VbucketRecord,
}

impl Source {
    fn new() -> Self {
        let files = SimulatedFiles::new();
        files.create_directories(Path::new("bucket")).unwrap();
        let path = Path::new("bucket/7.couch.1");
        let file = CouchFile::open(&files, path, OpenMode::CreateNew).unwrap();
        let record = VbucketRecord::new(VbucketState::Active);
        Self { files, file: Arc::new(file), header: None, record }
    }

    fn commit(&mut self, rows: &[Row], extra: Vec<LocalEdit>) -> Snapshot {
        let (mut buffer, mut scratch) = (Vec::new(), Scratch::new());
        let nothing = FileHeader::empty();
        let before = self.header.clone().unwrap_or(nothing);
        let mut commit = match &self.header {
            None => Commit::begin_first(&self.file, &mut buffer, &mut scratch).unwrap(),
            Some(header) => Commit::begin(&self.file, header, &mut buffer, &mut scratch).unwrap(),
        };
        let mut collections = CollectionChanges::default();
        let mut prepares = Prepares {
            count: self.record.on_disk_prepares,
            bytes: self.record.on_disk_prepare_bytes,
        };
        let documents = rows.iter().map(|row| NewDocument {
            id: row.id.as_slice().into(),
            seqno: row.seqno,
            rev_seqno: 1,
            deleted: row.deleted,
            content_meta: 3,
            rev_meta: RevMeta::new(&row.meta),
            body: (!row.deleted).then_some(b"some value".as_slice()),
        });
        commit
            .save(documents, |old, new| {
                collections.note(old, new);
                prepares.note(old, new);
            })
            .unwrap();
        self.record.on_disk_prepares = prepares.count;
        self.record.on_disk_prepare_bytes = prepares.bytes;
        let mut edits = collections.into_edits(&mut self.file.reader(&before)).unwrap();
        edits.push(LocalEdit { id: VBSTATE.to_vec(), content: Some(self.record.encode()) });
        edits.extend(extra);
        commit.save_local(edits).unwrap();
        let (header, _) = commit.finish(5).unwrap();
        self.header = Some(header.clone());
        Snapshot { file: self.file.clone(), header }
    }

    fn new_file(&self) -> CouchFile {
        let path = Path::new("bucket/7.couch.1.compact");
        CouchFile::open(&self.files, path, OpenMode::CreateNew).unwrap()
    }
}

/// What a file holds: seqnos, what is known of collections 0 and 9, the state, what is dropped.
struct Content {
    seqnos: Vec<u64>,
    default: CollectionStatistics,
    other: CollectionStatistics,
    record: VbucketRecord,
    dropped: Option<Vec<DroppedCollection>>,
    purge_seqno: u64,
}

fn content(file: &CouchFile) -> Content {
    let (header, report) = file.newest_header().unwrap();
    assert!(report.skipped.is_empty());
    let verification = crate::verify_file(file).unwrap();
    assert!(verification.is_sound(), "{:?}", verification.findings);
    let mut seqnos = Vec::new();
    let mut reader = file.reader(&header);
    let flow = reader.scan_by_seqno(0, |info, _| {
        seqnos.push(info.seqno);
        Ok(std::ops::ControlFlow::Continue(()))
    });
    assert!(flow.unwrap().is_continue());
    let mut of = |id| collection_statistics::read(&mut reader, CollectionId(id)).unwrap();
    let (default, other) = (of(0), of(9));
    let record = reader.local(VBSTATE).unwrap().unwrap();
    let record = VbucketRecord::decode(&record, Seqno(header.high_seqno)).unwrap();
    let dropped = reader.local(DROPPED_COLLECTIONS).unwrap();
    let dropped = dropped.map(|content| dropped_collections::decode(&content).unwrap());
    Content { seqnos, default, other, record, dropped, purge_seqno: header.purge_seqno }
}

/// Compacts `before`, lets the copy follow each of `later`, and reads the result.
fn compacted(
    source: &mut Source,
    before: &Snapshot,
    later: &[Vec<Row>],
    request: &CompactionRequest,
) -> (Content, Purged) {
    let file = source.new_file();
    let progress = CompactionProgress::new();
    let mut successor = Successor::copy(before, &file, request, &progress, &()).unwrap().unwrap();
    for rows in later {
        let newest = source.commit(rows, vec![]);
        successor.follow(&newest, &progress).unwrap();
    }
    let purged = successor.tally.purged;
    let newest = source.header.clone().unwrap();
    let header = successor.finish().unwrap();
    assert_eq!((header.version, header.previous), (14, Some(0)));
    assert_eq!((header.timestamp, header.high_seqno), (newest.timestamp, newest.high_seqno));
    let found = content(&file);
    // What a file says about itself is what a count of it finds.
    let mut counted = (0, 0);
    let flow = file.reader(&header).scan_by_id(&[], |info, _| {
        if crate::records::disk_document::is_prepare(info) && !info.deleted {
            counted = (counted.0 + 1, counted.1 + info.disk_size());
        }
        Ok(std::ops::ControlFlow::Continue(()))
    });
    assert!(flow.unwrap().is_continue());
    let record = &found.record;
    assert_eq!((record.on_disk_prepares, record.on_disk_prepare_bytes), counted);
    source.files.remove(file.path()).unwrap();
    (found, purged)
}

#[test]
fn each_document_stays_or_goes_by_the_rules() {
    let by_age = CompactionRequest {
        purge_before_seconds: NOW - 500,
        now_seconds: NOW,
        ..CompactionRequest::default()
    };
    let up_to = |seqno| CompactionRequest { purge_before_seqno: Seqno(seqno), ..by_age.clone() };
    let all = CompactionRequest { drop_deletes: true, ..CompactionRequest::default() };
    let retained = CompactionRequest { retain_erroneous_tombstones: true, ..by_age.clone() };
    let none = CompactionRequest::default();
    let cases = [
        ("alive", alive(b"\x00a", 10, 0), &by_age, true),
        ("alive and expired", alive(b"\x00a", 10, OLD), &by_age, true),
        ("an old tombstone", tombstone(b"\x00a", 10, OLD), &by_age, false),
        ("as old as the limit", tombstone(b"\x00a", 10, NOW - 500), &by_age, true),
        ("just older", tombstone(b"\x00a", 10, NOW - 501), &by_age, false),
        ("a young tombstone", tombstone(b"\x00a", 10, NOW - 1), &by_age, true),
        ("nothing is asked", tombstone(b"\x00a", 10, OLD), &none, true),
        ("all tombstones", tombstone(b"\x00a", 10, NOW), &all, false),
        ("an old one up to the seqno", tombstone(b"\x00a", 10, OLD), &up_to(10), false),
        ("an old one above the seqno", tombstone(b"\x00a", 10, OLD), &up_to(9), true),
        ("without a time", tombstone(b"\x00a", 10, 0), &by_age, false),
        ("without a time, to be kept", tombstone(b"\x00a", 10, 0), &retained, true),
        ("the highest of its collection", tombstone(b"\x09a", 10, OLD), &by_age, true),
        ("the same, with all tombstones", tombstone(b"\x09a", 10, OLD), &all, true),
        ("the highest of the file", tombstone(b"\x00a", 99, OLD), &by_age, true),
        ("the same, with all tombstones", tombstone(b"\x00a", 99, OLD), &all, true),
        ("an old drop of a collection", tombstone(b"\x01\x00\x09c", 10, OLD), &by_age, false),
        ("a completed prepare", prepare("a", 20), &none, false),
        ("a prepare that is not", prepare("a", 21), &none, true),
        ("an old abort", abort("a", 10, OLD), &by_age, false),
        ("an old abort that is not completed", abort("a", 25, OLD), &by_age, false),
        ("a young abort", abort("a", 10, NOW), &by_age, true),
    ];
    for (name, row, request, stays) in cases {
        let mut source = Source::new();
        source.record.completed_seqno = Seqno(20);
        let seqno = row.seqno;
        let mut rows = vec![alive(b"\x00first", 1, 0), row.clone(), alive(b"\x00last", 50, 0)];
        rows.sort_by_key(|row| row.seqno);
        let before = source.commit(&rows, vec![]);
        let (found, purged) = compacted(&mut source, &before, &[], request);
        assert_eq!(found.seqnos.contains(&seqno), stays, "{name}");
        assert!(found.seqnos.contains(&1) && found.seqnos.contains(&50), "{name}");
        let is_tombstone = !stays && row.deleted;
        assert_eq!(purged.tombstones, u64::from(is_tombstone), "{name}");
        assert_eq!(purged.prepares, u64::from(!stays && !row.deleted), "{name}");
        let purge_seqno = if is_tombstone { seqno } else { 0 };
        assert_eq!(found.purge_seqno, purge_seqno, "{name}");
    }
}

#[test]
fn a_tombstone_stays_beside_a_prepare_whose_end_nothing_else_tells() {
    let all = CompactionRequest { drop_deletes: true, ..CompactionRequest::default() };
    for (completed_seqno, left) in [(0, &[1, 2, 4, 5, 9][..]), (1, &[2, 5, 9]), (2, &[9])] {
        let mut source = Source::new();
        source.record.completed_seqno = Seqno(completed_seqno);
        let rows = [
            prepare("a", 1),
            prepare("b", 2),
            tombstone(b"\x00c", 3, NOW),
            tombstone(b"\x00a", 4, NOW),
            tombstone(b"\x00b", 5, NOW),
            abort("c", 6, NOW),
            alive(b"\x00last", 9, 0),
        ];
        let before = source.commit(&rows, vec![]);
        let (found, _) = compacted(&mut source, &before, &[], &all);
        assert_eq!(found.seqnos, left, "completed {completed_seqno}");
    }
}

#[test]
fn counters_are_right_when_what_was_purged_is_written_again_meanwhile() {
    let mut source = Source::new();
    source.record.completed_seqno = Seqno(6);
    let before = source.commit(
        &[
            tombstone(b"\x00a", 1, OLD),
            tombstone(b"\x09b", 2, OLD),
            alive(b"\x00c", 3, 0),
            prepare("d", 4),
            prepare("e", 5),
            prepare("f", 7),
            abort("g", 8, OLD),
            alive(b"\x09h", 9, 0),
        ],
        vec![],
    );
    let later = [
        vec![alive(b"\x00a", 10, 0), tombstone(b"\x00c", 11, NOW), prepare("d", 12)],
        vec![abort("f", 13, NOW), alive(b"\x09b", 14, 0), prepare("g", 15)],
        vec![tombstone(b"\x00a", 16, NOW), alive(b"\x08new", 17, 0), prepare("e", 18)],
        vec![],
    ];
    let request =
        CompactionRequest { purge_before_seconds: NOW - 1, ..CompactionRequest::default() };
    let (found, purged) = compacted(&mut source, &before, &later, &request);
    let expected = Purged { tombstones: 3, prepares: 2, of_dropped_collections: 0 };
    assert_eq!((purged, found.purge_seqno), (expected, 8));
    assert_eq!(found.seqnos, [9, 11, 12, 13, 14, 15, 16, 17, 18]);
    // The source has the same documents by now: nothing that was purged was left alone.
    let theirs = content(&source.file);
    assert_eq!(found.seqnos, theirs.seqnos);
    assert_eq!((found.default, found.other), (theirs.default, theirs.other));
    assert_eq!(found.record, theirs.record);
    assert_eq!((found.default.item_count, found.other.item_count), (0, 2));
}

#[test]
fn a_history_that_was_rolled_back_is_not_followed() {
    let mut source = Source::new();
    let first = source.commit(&[alive(b"\x00a", 1, 0)], vec![]);
    let second = source.commit(&[alive(b"\x00b", 2, 0)], vec![]);
    let file = source.new_file();
    let (request, progress) = (CompactionRequest::default(), CompactionProgress::new());
    let successor = Successor::copy(&second, &file, &request, &progress, &()).unwrap().unwrap();
    assert!(successor.can_follow(&second).unwrap() && !successor.can_follow(&first).unwrap());
    source.commit(&[alive(b"\x00c", 3, 0)], vec![]);
    let fourth = source.commit(&[alive(b"\x00d", 4, 0)], vec![]);
    assert!(successor.can_follow(&fourth).unwrap());
    source.header = Some(first.header);
    let other = source.commit(&[alive(b"\x00e", 5, 0)], vec![]);
    assert!(!successor.can_follow(&other).unwrap());
    let later = source.commit(&[alive(b"\x00f", 6, 0)], vec![]);
    assert!(!successor.can_follow(&later).unwrap());
}

#[test]
fn what_is_in_dropped_collections_goes_with_all_that_is_known_of_it() {
    let dropped = |collection, end_seqno| DroppedCollection {
        collection: CollectionId(collection),
        start_seqno: Seqno(1),
        end_seqno: Seqno(end_seqno),
    };
    let local = |entries: &[DroppedCollection]| LocalEdit {
        id: DROPPED_COLLECTIONS.to_vec(),
        content: Some(dropped_collections::encode(entries)),
    };
    let prepared = Row { id: b"\x02\x09p".to_vec(), ..prepare("", 4) };
    let rows = [
        alive(b"\x09a", 2, 0),
        tombstone(b"\x09b", 3, NOW),
        prepared,
        alive(b"\x00c", 5, 0),
        alive(b"\x0ad", 6, 0),
    ];
    for (name, entries, by_request, left, dropped_after) in [
        ("by the file", vec![dropped(9, 5)], vec![], vec![5, 6], None),
        ("by the request", vec![], vec![dropped(9, 5)], vec![5, 6], None),
        ("in part", vec![dropped(9, 2)], vec![], vec![3, 4, 5, 6], None),
        ("another, too", vec![dropped(9, 5), dropped(10, 6)], vec![], vec![5], None),
        // The file's history has not come to the end of the collection.
        (
            "early",
            vec![dropped(9, 5), dropped(8, 100)],
            vec![],
            vec![5, 6],
            Some(vec![dropped(8, 100)]),
        ),
        (
            "none of the file's",
            vec![dropped(8, 100)],
            vec![],
            vec![2, 3, 4, 5, 6],
            Some(vec![dropped(8, 100)]),
        ),
    ] {
        let mut source = Source::new();
        let extra = if entries.is_empty() { vec![] } else { vec![local(&entries)] };
        let before = source.commit(&rows, extra);
        let request = CompactionRequest { dropped: by_request, ..CompactionRequest::default() };
        let (found, purged) = compacted(&mut source, &before, &[], &request);
        assert_eq!(found.seqnos, left, "{name}");
        assert_eq!(purged.of_dropped_collections as usize, rows.len() - left.len(), "{name}");
        assert_eq!(found.dropped, dropped_after, "{name}");
        let is_in = |seqno: u64| left.contains(&seqno);
        assert_eq!(found.other.item_count, u64::from(is_in(2)), "{name}");
        assert_eq!(found.record.on_disk_prepares, u64::from(is_in(4)), "{name}");
        let gone = rows.iter().map(|row| row.seqno).filter(|&seqno| !is_in(seqno)).max();
        assert_eq!(found.purge_seqno, gone.unwrap_or(0), "{name}");
        // The id is given again: its new documents are counted from nothing.
        let mut source = Source::new();
        let extra = if entries.is_empty() { vec![] } else { vec![local(&entries)] };
        let before = source.commit(&rows, extra);
        let again = [vec![alive(b"\x09a", 200, 0), alive(b"\x09new", 201, 0)]];
        let (found, _) = compacted(&mut source, &before, &again, &request);
        assert_eq!(found.other.item_count, 2, "{name}");
        assert_eq!(found.other.high_seqno, 201, "{name}");
        assert_eq!(found.dropped, dropped_after, "{name}");
    }
}
