//! The format against files that the original wrote, and against a model.

use std::ops::ControlFlow;
use std::path::Path;

use platform::simulated::SimulatedFiles;
use platform::{Files, OpenMode};

use super::*;

const FIXTURES: [(&str, &[u8]); 6] = [
    ("0", include_bytes!("../../tests/fixtures/couchstore/0.couch.1")),
    ("1", include_bytes!("../../tests/fixtures/couchstore/1.couch.1")),
    ("golden", include_bytes!("../../tests/fixtures/couchstore/golden-v14.couch.1")),
    ("mixed", include_bytes!("../../tests/fixtures/couchstore/mixed-rollbacks-v14.couch.1")),
    ("compacted", include_bytes!("../../tests/fixtures/couchstore/compacted-v14.couch.1")),
    ("legacy", include_bytes!("../../tests/fixtures/couchstore/legacy-v11.couch.1")),
];

/// An entry of a tree without its borrows: id, seqno, rev seqno, deleted, content meta, body
/// position and size, rev meta.
type Entry = (Vec<u8>, u64, u64, bool, u8, u64, u32, Vec<u8>);

fn entry(info: &DocumentInfo<'_>) -> Entry {
    let (id, meta) = (info.id.to_vec(), info.rev_meta.to_vec());
    let (position, size) = (info.body_position, info.body_size);
    (id, info.seqno, info.rev_seqno, info.deleted, info.content_meta, position, size, meta)
}

fn opened(image: &[u8]) -> CouchFile {
    let files = SimulatedFiles::new();
    let path = Path::new("data/0.couch.1");
    files.insert(path, image);
    CouchFile::open(&files, path, OpenMode::ReadWrite).unwrap()
}

fn fixture(name: &str) -> CouchFile {
    opened(FIXTURES.iter().find(|(found, _)| *found == name).unwrap().1)
}

fn by_seqno(file: &CouchFile, header: &FileHeader, start: u64) -> Vec<Entry> {
    let mut entries = Vec::new();
    let visit = |info: &DocumentInfo<'_>, bodies: &mut BodyReader<'_>| {
        bodies.stored(info)?;
        entries.push(entry(info));
        Ok(ControlFlow::Continue(()))
    };
    assert!(file.reader(header).scan_by_seqno(start, visit).unwrap().is_continue());
    entries
}

fn by_id(file: &CouchFile, header: &FileHeader) -> Vec<Entry> {
    let mut entries = Vec::new();
    let visit = |info: &DocumentInfo<'_>, _: &mut BodyReader<'_>| {
        entries.push(entry(info));
        Ok(ControlFlow::Continue(()))
    };
    assert!(file.reader(header).scan_by_id(&[], visit).unwrap().is_continue());
    entries
}

/// The three documents of the golden file.
fn golden_documents() -> Vec<NewDocument<'static>> {
    let meta = |hex: &str| {
        let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        RevMeta::new(&(0..hex.len()).step_by(2).map(digits).collect::<Vec<_>>())
    };
    vec![
        NewDocument {
            id: b"\x00k1".into(),
            seqno: 1,
            rev_seqno: 7,
            deleted: false,
            content_meta: 0x80,
            rev_meta: meta("112233445566778800000000020000060001"),
            body: Some(b"hello, hello, hello, hello"),
        },
        NewDocument {
            id: b"\x02\x00k2".into(),
            seqno: 2,
            rev_seqno: 8,
            deleted: false,
            content_meta: 0x83,
            rev_meta: meta("11223344556677890000000000000000000000000000000006"),
            body: Some(b"pending"),
        },
        NewDocument {
            id: b"\x08k3".into(),
            seqno: 3,
            rev_seqno: 9,
            deleted: true,
            content_meta: 0x03,
            rev_meta: meta("112233445566778a6553f100000000000000"),
            body: None,
        },
    ]
}

#[test]
fn the_golden_file_is_written_as_far_as_the_format_determines_it() {
    let files = SimulatedFiles::new();
    files.create_directories(Path::new("data")).unwrap();
    let path = Path::new("data/0.couch.1");
    let file = CouchFile::open(&files, path, OpenMode::CreateNew).unwrap();
    let (mut buffer, mut scratch) = (Vec::new(), Scratch::new());
    let mut commit = Commit::begin_first(&file, &mut buffer, &mut scratch).unwrap();
    let mut changes = Vec::new();
    commit
        .save(golden_documents().into_iter(), |old, new| {
            assert_eq!(old, None);
            changes.push(new.id.to_vec());
        })
        .unwrap();
    let vbstate = LocalEdit {
        id: b"_local/vbstate".to_vec(),
        content: Some(br#"{"state":"active"}"#.to_vec()),
    };
    commit.save_local(vec![vbstate]).unwrap();
    let (header, bytes_written) = commit.finish(1_700_000_000_000_000_000).unwrap();
    assert_eq!(header.position, 4096);
    assert_eq!(bytes_written, 4202, "the file, and one byte of it twice");
    assert_eq!(file.newest_header().unwrap().0, header);
    assert_eq!(changes, [b"\x00k1".to_vec(), b"\x02\x00k2".to_vec(), b"\x08k3".to_vec()]);
    // The first header and the bodies, byte for byte.
    let (ours, golden) = (files.content(path).unwrap(), FIXTURES[2].1);
    assert_eq!(ours.len(), golden.len());
    assert_eq!(&ours[..0x55], &golden[..0x55]);
    // Compressors may differ, what they compress may not.
    let theirs = fixture("golden");
    let (their_header, _) = theirs.newest_header().unwrap();
    let nodes = nodes(&file, &header);
    assert_eq!(nodes.iter().map(Vec::len).collect::<Vec<_>>(), [156, 159, 38]);
    assert_eq!(nodes, self::nodes(&theirs, &their_header));
    assert_eq!(&ours[0x14f..0x17d], &golden[0x150..0x17e], "the local leaf's chunk");
    assert_eq!(&ours[0x1009..0x1032], &golden[0x1009..0x1032], "the header in front of its roots");
}

#[test]
fn the_golden_file_is_read_as_it_is_known() {
    let file = fixture("golden");
    let (header, report) = file.newest_header().unwrap();
    assert_eq!(report.skipped, []);
    assert_eq!((header.position, header.version, header.high_seqno), (4096, 14, 3));
    assert_eq!((header.alive_count(), header.deleted_count()), (2, 1));
    assert_eq!(header.timestamp, 1_700_000_000_000_000_000);
    assert_eq!(header.live_bytes(), 37 + 128 + 123 + 46);
    let known: Vec<_> = golden_documents().iter().map(|known| known.id.to_vec()).collect();
    let ids: Vec<_> = by_id(&file, &header).into_iter().map(|entry| entry.0).collect();
    assert_eq!(ids, known);
    let mut bodies = Vec::new();
    let mut reader = file.reader(&header);
    let ids: Vec<&[u8]> = vec![b"\x00k0", b"\x00k1", b"\x00k2", b"\x02\x00k2", b"\x08k3", b"z"];
    reader
        .get(&ids, |_, info, reader| {
            bodies.push(match info {
                None => "absent".to_owned(),
                Some(info) => {
                    let body = reader.read_into(info, |size| vec![0; size], |body| body)?;
                    String::from_utf8(body).unwrap()
                }
            });
            Ok(())
        })
        .unwrap();
    let hello = "hello, hello, hello, hello";
    assert_eq!(bodies, ["absent", hello, "absent", "pending", "", "absent"]);
    assert_eq!(reader.local(b"_local/vbstate").unwrap().unwrap(), br#"{"state":"active"}"#);
    assert_eq!(reader.local(b"_local/other").unwrap(), None);
    let first = file.header_before(&header).unwrap().unwrap();
    assert_eq!((first.position, first.high_seqno), (0, 0));
    assert_eq!(file.header_before(&first).unwrap(), None);
}

#[test]
fn every_state_of_every_fixture_agrees_with_itself() {
    // As the independent verifier counts them: headers, and documents of the newest.
    let known = [
        ("0", 5, 250),
        ("1", 5, 250),
        ("golden", 2, 3),
        ("mixed", 9, 107),
        ("compacted", 1, 107),
        ("legacy", 6, 560),
    ];
    for (name, header_count, document_count) in known {
        let file = fixture(name);
        let (newest, _) = file.newest_header().unwrap();
        assert_eq!(by_seqno(&file, &newest, 0).len(), document_count, "{name}");
        let mut headers = 0;
        let mut header = Some(newest);
        while let Some(state) = header {
            headers += 1;
            let by_seqno = by_seqno(&file, &state, 0);
            let mut by_id = by_id(&file, &state);
            let alive = by_id.iter().filter(|entry| !entry.3).count() as u64;
            assert_eq!(state.alive_count(), alive, "{name} at {}", state.position);
            assert_eq!(state.deleted_count(), by_id.len() as u64 - alive);
            by_id.sort_by_key(|entry| entry.1);
            assert_eq!(by_seqno, by_id, "{name} at {}", state.position);
            header = file.header_before(&state).unwrap();
        }
        assert_eq!(headers, header_count, "{name}");
    }
}

#[test]
fn a_scan_begins_where_it_is_told_and_stops_when_it_is_told() {
    let file = fixture("legacy");
    let (header, _) = file.newest_header().unwrap();
    let all = by_seqno(&file, &header, 0);
    for start in [0, 1, 2, 3, 100, 577, 578, 579, 1 << 48, u64::MAX] {
        let expected: Vec<_> = all.iter().filter(|entry| entry.1 >= start).cloned().collect();
        assert_eq!(by_seqno(&file, &header, start), expected, "from {start}");
        let count = file.reader(&header).count_from_seqno(start).unwrap();
        assert_eq!(count, expected.len() as u64, "from {start}");
    }
    let mut visited = 0;
    let flow = file.reader(&header).scan_by_seqno(5, |_, _| {
        visited += 1;
        Ok(if visited == 20 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    });
    assert_eq!((flow.unwrap(), visited), (ControlFlow::Break(()), 20));
}

fn is_corrupt_at<T>(result: Result<T, crate::error::StorageError>, at: u64, why: &str) -> bool {
    matches!(result, Err(crate::error::StorageError::Corrupt { position, what, .. })
        if position == at && what == why)
}

#[test]
fn a_damaged_newest_header_is_believed_by_nobody_and_stepped_over_by_who_looks() {
    let image = FIXTURES[0].1;
    let (newest, _) = opened(image).newest_header().unwrap();
    let position = usize::try_from(newest.position).unwrap();
    let damages = [
        (position + 20, 1, "the checksum of a header"),
        (position, 2, "a header behind a damaged type byte"),
    ];
    for (at, bit, what) in damages {
        let mut image = image.to_vec();
        image[at] ^= bit;
        assert!(is_corrupt_at(opened(&image).newest_header(), newest.position, what));
        let (before, report) = opened(&image).newest_whole_header().unwrap();
        assert_eq!(Some(before.position), newest.previous);
        assert_eq!(report.skipped, [(newest.position, what)]);
        assert_eq!(report.damaged, Some((newest.position, what)));
    }
    for length in [0, 1, 2, 40] {
        let short = opened(&image[..length]).newest_header();
        assert!(matches!(short, Err(crate::error::StorageError::Corrupt { .. })), "{length} bytes");
    }
}

#[test]
fn garbage_behind_the_newest_header_is_passed_over_and_listed_in_part() {
    let mut image = FIXTURES[0].1.to_vec();
    let (newest, _) = opened(&image).newest_header().unwrap();
    image.resize(image.len().next_multiple_of(4096) + 1000 * 4096, 0xaa);
    let (found, report) = opened(&image).newest_header().unwrap();
    assert_eq!(found, newest);
    assert_eq!((report.skipped_count, report.damaged), (1000, None));
    assert!(report.skipped.len() < 100);
}

#[test]
fn a_header_that_does_not_continue_the_file_is_not_its_newest() {
    // A block of another file behind this one's end, as some file systems show after a power cut.
    let stale = FIXTURES[0].1;
    let (header, _) = opened(stale).newest_header().unwrap();
    let from = usize::try_from(header.position).unwrap();
    let mut image = FIXTURES[2].1.to_vec();
    image.resize(from.next_multiple_of(4096).max(image.len().next_multiple_of(4096)), 0);
    let at = image.len() as u64;
    image.extend_from_slice(&stale[from..]);
    let result = opened(&image).newest_header();
    assert!(
        matches!(result, Err(crate::error::StorageError::Corrupt { .. })),
        "believed at byte {at}"
    );
}

#[test]
fn files_of_the_old_version_are_continued_in_it() {
    let file = fixture("legacy");
    let (before, _) = file.newest_header().unwrap();
    let expected = by_seqno(&file, &before, 0).len() + 3;
    let (mut buffer, mut scratch) = (Vec::new(), Scratch::new());
    let mut commit = Commit::begin(&file, &before, &mut buffer, &mut scratch).unwrap();
    let mut documents = golden_documents();
    for document in &mut documents {
        document.seqno += before.high_seqno;
    }
    commit.save(documents.into_iter(), |old, _| assert_eq!(old, None)).unwrap();
    let (header, _) = commit.finish(5).unwrap();
    let (found, report) = file.newest_header().unwrap();
    assert_eq!((&found, report.skipped), (&header, vec![]));
    assert_eq!((found.version, found.timestamp), (11, 0));
    assert_eq!(by_seqno(&file, &found, 0).len(), expected);
    assert_eq!(by_id(&file, &found).len(), expected);
    assert_eq!(file.header_before(&found).unwrap(), Some(before));
}

#[test]
fn our_nodes_divide_where_the_originals_do() {
    // The fixture's history, commit by commit, written again: its trees must have the same sizes.
    let file = fixture("0");
    let mut headers = vec![file.newest_header().unwrap().0];
    while let Some(before) = file.header_before(headers.last().unwrap()).unwrap() {
        headers.push(before);
    }
    headers.reverse();
    let files = SimulatedFiles::new();
    files.create_directories(Path::new("data")).unwrap();
    let ours = CouchFile::open(&files, Path::new("data/ours"), OpenMode::CreateNew).unwrap();
    let (mut buffer, mut scratch) = (Vec::new(), Scratch::new());
    let mut state = None;
    for theirs in &headers[1..] {
        let start = state.as_ref().map_or(0, |state: &FileHeader| state.high_seqno) + 1;
        let entries = by_seqno(&file, theirs, start);
        let mut commit = match &state {
            None => Commit::begin_first(&ours, &mut buffer, &mut scratch).unwrap(),
            Some(state) => Commit::begin(&ours, state, &mut buffer, &mut scratch).unwrap(),
        };
        let bodies: Vec<_> = entries.iter().map(|entry| vec![b'x'; entry.6 as usize - 8]).collect();
        let documents = entries.iter().zip(&bodies).map(|(entry, body)| NewDocument {
            id: entry.0.as_slice().into(),
            seqno: entry.1,
            rev_seqno: entry.2,
            deleted: entry.3,
            content_meta: entry.4 & !BODY_IS_SNAPPY,
            rev_meta: RevMeta::new(&entry.7),
            body: Some(body),
        });
        commit.save(documents, |_, _| ()).unwrap();
        let (header, _) = commit.finish(0).unwrap();
        let sizes = |file, header| nodes(file, header).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(
            sizes(&ours, &header),
            sizes(&file, &FileHeader { local: None, ..theirs.clone() })
        );
        state = Some(header);
    }
}

/// Damage behind valid checksums: each round one node of a sound file is changed, written again,
/// and made a root.
#[test]
fn damaged_nodes_never_panic_readers_or_writers() {
    for seed in platform::seeds::seeds(400) {
        let mut random = platform::Random::from_seed(seed);
        let name = if seed % 2 == 0 { "golden" } else { "0" };
        let image = FIXTURES.iter().find(|(found, _)| *found == name).unwrap().1;
        let files = SimulatedFiles::new();
        let path = Path::new("data/0.couch.1");
        files.insert(path, image);
        let file = CouchFile::open(&files, path, OpenMode::ReadWrite).unwrap();
        let (mut header, _) = file.newest_header().unwrap();
        let mut all = nodes(&file, &header);
        let chosen = usize::try_from(random.below(all.len() as u64)).unwrap();
        let mut node = all.swap_remove(chosen);
        for _ in 0..=random.below(6) {
            let at = usize::try_from(random.below(node.len() as u64)).unwrap();
            match random.below(3) {
                0 => node[at] ^= 1 << random.below(8),
                1 => node[at] = 0xff,
                _ => node.truncate(at.max(1)),
            }
        }
        let mut buffer = Vec::new();
        let checksum = header.checksum();
        let mut output =
            chunk::ChunkWriter::new(file.file(), checksum, image.len() as u64, &mut buffer);
        let (position, _) = output.append(Scratch::new().compress(&node)).unwrap();
        let root = match random.below(3) {
            0 => &mut header.by_id,
            1 => &mut header.by_seqno,
            _ => &mut header.local,
        };
        root.as_mut().unwrap().position = position;
        header.position = output.append_header(chunk::HEADER_BLOCK, &header.encode()).unwrap();
        output.flush().unwrap();
        assert_eq!(file.newest_header().unwrap().0, header, "seed {seed}");
        crate::fuzzing::read_couchstore_file(&files.content(path).unwrap());

        let (mut buffer, mut scratch) = (Vec::new(), Scratch::new());
        let mut commit = Commit::begin(&file, &header, &mut buffer, &mut scratch).unwrap();
        let mut documents = golden_documents();
        for document in &mut documents {
            document.seqno += header.high_seqno;
        }
        let vbstate = LocalEdit { id: b"_local/vbstate".to_vec(), content: Some(vec![]) };
        let saved = commit.save(documents.into_iter(), |_, _| ());
        drop(saved.and_then(|()| commit.save_local(vec![vbstate])));
    }
}

/// The nodes of all trees, uncompressed, each from the root down.
fn nodes(file: &CouchFile, header: &FileHeader) -> Vec<Vec<u8>> {
    let mut scratch = Scratch::new();
    let source = file.source(header);
    let mut nodes = Vec::new();
    let kinds = [node::TreeKind::ById, node::TreeKind::BySeqno, node::TreeKind::Local];
    for (root, kind) in [header.by_id, header.by_seqno, header.local].into_iter().zip(kinds) {
        let mut waiting: Vec<_> = root.into_iter().collect();
        while let Some(pointer) = waiting.pop() {
            let node = scratch.read_node(&source, &pointer).unwrap();
            if node[0] == node::INNER {
                let items = node::NodeItems::new(&node[1..]);
                waiting.extend(
                    items.map(|item| node::Pointer::decode(item.unwrap().value, kind).unwrap()),
                );
            }
            nodes.push(node);
        }
    }
    nodes
}
