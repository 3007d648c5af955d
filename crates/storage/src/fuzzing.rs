//! Entries for fuzzers: bytes in, nothing out, never a panic, never an endless loop.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use document::{Seqno, Vbid};
use platform::simulated::SimulatedFiles;
use platform::{Clock, Entropy, OpenMode};

use crate::couchstore::{CouchFile, FileHeader};
use crate::journal::{
    Journal, JournalOptions, Place, Record, image_around, read_segment, verify_segments,
};
use crate::records::disk_document;
use crate::records::document_view::{Order, Selection, documents};
use crate::store::vbucket_file::Snapshot;
use crate::verify::verify_file;

/// Reads a whole file image as a vBucket's file: all headers, all trees, all bodies. What is
/// damaged is passed over.
pub fn read_couchstore_file(bytes: &[u8]) {
    let files = SimulatedFiles::new();
    let path = Path::new("fuzz/0.couch.1");
    files.insert(path, bytes);
    let Ok(file) = CouchFile::open(&files, path, OpenMode::Read) else { return };
    let file = Arc::new(file);
    drop(verify_file(&file));
    let mut header = file.newest_header().ok().map(|(header, _)| header);
    // Each step leads backwards, so this ends.
    while let Some(state) = header {
        read_state(&file, &state);
        header = file.header_before(&state).ok().flatten();
    }
}

fn read_state(file: &Arc<CouchFile>, header: &FileHeader) {
    let snapshot = Snapshot { file: file.clone(), header: header.clone() };
    let mut reader = file.reader(header);
    let mut ids = Vec::new();
    // Damage ends a walk early; that is all there is to do about it here.
    drop(reader.scan_by_id(&[], |info, bodies| {
        drop(disk_document::to_item(info, bodies, true));
        drop(bodies.stored(info));
        ids.push(info.id.to_vec());
        Ok(ControlFlow::Continue(()))
    }));
    drop(reader.local_documents(|_, _| {}));
    for order in [Order::BySeqno, Order::ById] {
        let selection = Selection { order, start_seqno: 0, with_bodies: true };
        drop(documents(file, header, selection, |_| ControlFlow::Continue(())));
    }
    drop(snapshot.record());
    drop(snapshot.scan(Seqno(0), true, |_| ControlFlow::Continue(())));
    let keys: Vec<_> = ids.iter().map(|id| document::Key::from_trusted(id)).collect();
    drop(snapshot.get(&keys));
}

/// Reads bytes as a segment of a journal: as tools do, and as a start does, which goes on behind
/// it if it can. Then takes them for the records of a group whose checksums are right.
pub fn read_journal_segment(bytes: &[u8]) {
    read_segment_image(bytes);
    read_segment_image(&image_around(bytes));
}

fn read_segment_image(image: &[u8]) {
    let files = SimulatedFiles::new();
    let directory = Path::new("fuzz");
    let path = directory.join(crate::journal::JOURNAL_DIRECTORY).join("j.0000000000000001");
    files.insert(&path, image);
    let visited = read_segment(&files, &path, Place::default(), &mut |group| {
        // What is damaged in a group ends it early.
        let _damage = group.records(&mut |record| {
            if let Some(batch) = &record.batch {
                batch.documents(&mut |_| ControlFlow::Continue(()));
                drop(batch.state_json());
            }
            ControlFlow::Continue(())
        });
        ControlFlow::Continue(())
    });
    drop(visited);
    drop(verify_segments(&files, std::slice::from_ref(&path), &mut |_, outcome| drop(outcome)));
    let options = JournalOptions {
        segment_bytes: 64 << 10,
        bytes_max: 1 << 20,
        group_bytes_max: 16 << 10,
        portion_bytes: 4096,
    };
    let clock = Clock::simulated(platform::WallTime(0));
    let opened =
        Journal::open(Arc::new(files), directory, options, clock, Entropy::real(), &mut |_, _| {
            Ok(())
        });
    if let Ok((journal, _)) = opened {
        journal.append(&[Record::Delete { vbid: Vbid(0) }], &mut |_, outcome| drop(outcome));
    }
}
