//! Many threads, few handles.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use document::{Seqno, Vbid};
use platform::simulated::SimulatedFiles;

use crate::batches::{VBID, batch, commit, item, open, scan, try_open};

#[test]
fn few_handles_serve_many_vbuckets() {
    let files = SimulatedFiles::new();
    let (store, _) = try_open(files.clone(), "bucket".as_ref(), 3).unwrap();
    for round in 0..4 {
        for vbid in 0..20 {
            commit(&store, batch(Vbid(vbid), vec![item("k", round + 1, b"v")])).unwrap();
            assert!(files.open_count() <= 3);
            let other = Vbid((vbid * 7) % 20);
            assert!(store.high_seqno(other).unwrap() <= Seqno(round + 1));
            assert!(files.open_count() <= 3);
        }
    }
    assert_eq!(files.open_count(), 3, "handles stay open between flushes");
}

#[test]
fn readers_see_whole_commits_while_writers_write() {
    let files = SimulatedFiles::new();
    let (store, _) = try_open(files, "bucket".as_ref(), 2).unwrap();
    let done = AtomicBool::new(false);
    let write = |vbid| {
        for number in 0..60 {
            let items = (1..=10).map(|index| item(&index.to_string(), number * 10 + index, b"v"));
            commit(&store, batch(vbid, items.collect())).unwrap();
        }
    };
    let read = || {
        while !done.load(Ordering::Relaxed) {
            for vbid in 0..4 {
                let seqnos: Vec<_> =
                    scan(&store, Vbid(vbid)).iter().map(|item| item.seqno().0).collect();
                if let Some(last) = seqnos.last() {
                    let expected: Vec<_> = (last - 9..=*last).collect();
                    assert_eq!(seqnos, expected);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let readers = [scope.spawn(read), scope.spawn(read)];
        let writers: Vec<_> = (0..4).map(|vbid| scope.spawn(move || write(Vbid(vbid)))).collect();
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

#[test]
fn a_scan_sees_the_state_it_began_with_even_if_the_vbucket_is_deleted() {
    let (store, _) = open(SimulatedFiles::new());
    let items = (1..=300).map(|seqno| item(&seqno.to_string(), seqno, b"value"));
    commit(&store, batch(VBID, items.collect())).unwrap();
    let mut seen = 0;
    let report = store.scan(VBID, Seqno(1), false, |item| {
        assert!(item.is_ejected());
        seen += 1;
        if seen == 10 {
            commit(&store, batch(VBID, vec![crate::batches::item("1", 301, b"")])).unwrap();
            store.delete(VBID).unwrap();
        }
        ControlFlow::Continue(())
    });
    assert_eq!((seen, report.unwrap().high_seqno), (300, Seqno(300)));
    assert!(scan(&store, VBID).is_empty());
}
