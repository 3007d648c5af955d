//! Every file call fails once, at every position, in every way.

use document::Seqno;
use platform::FileErrorKind;
use platform::simulated::{Fault, FaultError, SimulatedFiles};
use storage::{FlushBatch, StorageError, Store};

use crate::batches::{DIRECTORY, VBID, batch, commit, item, scan, try_open, unreadable};

fn batches() -> Vec<FlushBatch> {
    let batch = |number: u64| {
        let items = (1..=20).map(|index| {
            item(&format!("{}", (number * 7 + index) % 31), number * 20 + index, b"some value")
        });
        batch(VBID, items.collect())
    };
    (0..4).map(batch).collect()
}

fn has_kind(error: &StorageError, fault: FaultError) -> bool {
    match fault {
        FaultError::NoSpace => matches!(error, StorageError::NoSpace(_)),
        FaultError::TooManyOpen => matches!(error, StorageError::TooManyOpenFiles(_)),
        FaultError::Io | FaultError::ShortWrite | FaultError::LateRename => {
            let (StorageError::Failed(error) | StorageError::JournalNoteUnreadable(error)) = error
            else {
                return false;
            };
            error.kind == FileErrorKind::Failed
        }
    }
}

/// Runs `action` until it succeeds: at most one failure is armed.
fn retried<T>(
    fault: FaultError,
    failures: &mut u64,
    mut action: impl FnMut() -> Result<T, StorageError>,
) -> T {
    let error = match action() {
        Ok(value) => return value,
        Err(error) => error,
    };
    assert!(has_kind(&error, fault), "{error:?} for {fault:?}");
    *failures += 1;
    action().unwrap()
}

/// Opens, commits, reads and deletes; gives how many calls failed.
fn scenario(files: &SimulatedFiles, fault: FaultError, power_cut: bool) -> u64 {
    let mut failures = 0;
    let open = |open_files_max| {
        let (store, report) = try_open(files.clone(), DIRECTORY.as_ref(), open_files_max)?;
        unreadable(&report).map_or(Ok((store, report)), Err)
    };
    let mut store: Store = retried(fault, &mut failures, || open(1)).0;
    for batch in batches() {
        retried(fault, &mut failures, || commit(&store, batch.clone()));
        // Another file takes the only handle.
        retried(fault, &mut failures, || {
            let other = FlushBatch { vbid: document::Vbid(9), ..batch.clone() };
            commit(&store, other)
        });
    }
    if power_cut {
        files.power_cut(0);
        store = retried(fault, &mut failures, || open(1)).0;
    }
    let keys: Vec<_> = (0..31).map(|name| crate::batches::key(&name.to_string())).collect();
    let keys: Vec<_> = keys.iter().map(|key| key.as_key()).collect();
    let found = retried(fault, &mut failures, || store.get(VBID, &keys));
    assert!(found.iter().all(Option::is_some));
    assert_eq!(retried(fault, &mut failures, || store.high_seqno(VBID)), Seqno(80));
    let state = retried(fault, &mut failures, || store.state(VBID)).unwrap();
    assert_eq!(state.snapshot_end, Seqno(80));
    retried(fault, &mut failures, || store.delete(document::Vbid(9)));
    assert_eq!(retried(fault, &mut failures, || store.item_count(VBID)), 31);
    files.heal();
    assert_eq!(scan(&store, VBID).len(), 31);
    assert!(scan(&store, document::Vbid(9)).is_empty());
    files.power_cut(0);
    let (store, report) = try_open(files.clone(), DIRECTORY.as_ref(), 1).unwrap();
    assert_eq!(report.vbuckets.len(), 1, "what is deleted stays deleted");
    assert_eq!(scan(&store, VBID).len(), 31);
    failures
}

#[test]
fn every_call_fails_once_and_nothing_is_lost() {
    for power_cut in [false, true] {
        let counted = SimulatedFiles::new();
        assert_eq!(scenario(&counted, FaultError::Io, power_cut), 0);
        let calls = counted.calls().total();
        let mut failures = 0;
        for error in [FaultError::Io, FaultError::NoSpace, FaultError::TooManyOpen] {
            for number in 1..=calls {
                let files = SimulatedFiles::new();
                files.fail(Fault { call: None, number, error, from_then_on: false });
                failures += scenario(&files, error, power_cut);
            }
        }
        assert!(failures > calls, "failures are reported: {failures} of {calls} calls");
    }
}

#[test]
fn a_full_disk_keeps_what_it_has_and_goes_on_with_room() {
    let files = SimulatedFiles::new();
    let (store, _) = try_open(files.clone(), DIRECTORY.as_ref(), 4).unwrap();
    files.set_capacity(40_000);
    let mut seqno = 0;
    let batch_at = |seqno: u64| batch(VBID, vec![item(&seqno.to_string(), seqno, &[7; 500])]);
    let error = loop {
        match commit(&store, batch_at(seqno + 1)) {
            Ok(_) => seqno += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StorageError::NoSpace(_)), "{error:?}");
    assert!(seqno > 0);
    assert_eq!(scan(&store, VBID).len() as u64, seqno);
    files.set_capacity(400_000);
    commit(&store, batch_at(seqno + 1)).unwrap();
    assert_eq!(scan(&store, VBID).len() as u64, seqno + 1);
}

/// Otherwise attempts would use up what little room is made.
#[test]
fn a_commit_without_room_for_all_of_it_leaves_nothing() {
    let files = SimulatedFiles::new();
    let (store, _) = try_open(files.clone(), DIRECTORY.as_ref(), 4).unwrap();
    commit(&store, batch(VBID, vec![item("small", 1, b"value")])).unwrap();
    let content = |name: &str| files.content(&std::path::Path::new(DIRECTORY).join(name));
    let before = content("7.couch.1").unwrap();
    let random: Vec<u8> = (0..400_000_u32).map(|n| (n.wrapping_mul(n) >> 8) as u8).collect();
    let large = |vbid, seqno| batch(vbid, vec![item("large", seqno, &random)]);
    for capacity in [0, 50_000, 100_000, 200_000, 400_000] {
        files.set_capacity(before.len() as u64 + capacity);
        for (vbid, seqno) in [(VBID, 2), (document::Vbid(8), 1)] {
            let error = commit(&store, large(vbid, seqno)).unwrap_err();
            assert!(matches!(error, StorageError::NoSpace(_)), "{capacity}: {error:?}");
        }
        assert!(content("7.couch.1").as_ref() == Some(&before), "{capacity}");
        assert!(content("8.couch.1").is_none() && content("8.couch.boot").is_none(), "{capacity}");
    }
    files.set_capacity(before.len() as u64 + 450_000);
    commit(&store, large(VBID, 2)).unwrap();
    files.power_cut(0);
    let (store, _) = try_open(files, DIRECTORY.as_ref(), 4).unwrap();
    assert_eq!(scan(&store, VBID).len(), 2);
}
