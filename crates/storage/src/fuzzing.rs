//! Entries for fuzzers: bytes in, nothing out, never a panic, never an endless loop.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use document::Seqno;
use platform::OpenMode;
use platform::simulated::SimulatedFiles;

use crate::couchstore::{CouchFile, Header};
use crate::disk_document;
use crate::vbucket_file::Snapshot;
use crate::{Order, Selection, documents, verify_file};

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

fn read_state(file: &Arc<CouchFile>, header: &Header) {
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
