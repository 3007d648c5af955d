//! The power is cut, and calls fail, at every call of a compaction beside commits.

use std::path::Path;
use std::sync::Mutex;

use document::{Seqno, Vbid};
use platform::Files;
use platform::simulated::{Call, Fault, FaultError, SimulatedFiles};
use storage::{CompactionPhase, CompactionRequest, StorageError, Store};

use crate::batches::{DIRECTORY, VBID, batch, commit, item, scan, try_open};
use crate::compaction::{Between, compact, verify_sound};

/// Seqnos of a commit: a document that each commit overwrites, and two of its own.
const STEP: u64 = 3;

/// Commits number by number, and remembers how far history is durable.
struct Writer {
    next_seqno: u64,
    durable: u64,
}

impl Writer {
    fn commit(&mut self, store: &Store) -> Result<(), StorageError> {
        let first = self.next_seqno;
        let items = vec![
            item("always", first, b"small"),
            item(&format!("one-{first}"), first + 1, &[b'x'; 3000]),
            item(&format!("two-{first}"), first + 2, b""),
        ];
        commit(store, batch(VBID, items))?;
        self.next_seqno = first + STEP;
        self.durable = first + STEP - 1;
        Ok(())
    }
}

/// Compacts twice with commits before each phase. With `goes_on`, what has failed is tried once
/// more; otherwise everything ends there, as if the process had. Gives the highest seqno that was
/// reported durable.
fn scenario(files: &SimulatedFiles, goes_on: bool) -> u64 {
    let writer = Mutex::new(Writer { next_seqno: 1, durable: 0 });
    let Ok((store, _)) = try_open(files.clone(), DIRECTORY.as_ref(), 1) else { return 0 };
    let is_over = Mutex::new(false);
    let write = || {
        let mut writer = writer.lock().unwrap();
        if *is_over.lock().unwrap() {
            return;
        }
        if writer.commit(&store).is_err() && (!goes_on || writer.commit(&store).is_err()) {
            *is_over.lock().unwrap() = true;
        }
    };
    (0..4).for_each(|_| write());
    for _ in 0..2 {
        let request = CompactionRequest { sync_bytes: 4096, ..CompactionRequest::default() };
        let observer = Between(|phase| match phase {
            CompactionPhase::CatchingUp => (0..2).for_each(|_| write()),
            _ => write(),
        });
        for _ in 0..2 {
            let is_over = *is_over.lock().unwrap();
            if is_over {
                break;
            }
            match compact(&store, VBID, &request, &observer) {
                Ok(_) => break,
                Err(_) if goes_on => write(),
                Err(_) => return writer.lock().unwrap().durable,
            }
        }
        write();
    }
    let durable = writer.lock().unwrap().durable;
    if goes_on && !*is_over.lock().unwrap() {
        files.heal();
        check_content(&store, durable, durable, "while it runs");
    }
    durable
}

/// What the store has ends at a commit between the two.
fn check_content(store: &Store, durable: u64, last: u64, at: &str) {
    let Seqno(high_seqno) = store.high_seqno(VBID).unwrap();
    assert!((durable..=last).contains(&high_seqno), "{at}: {high_seqno} of {durable}");
    assert_eq!(high_seqno % STEP, 0, "{at}: commits are whole");
    let seqnos: Vec<_> = scan(store, VBID).iter().map(|item| item.seqno().0).collect();
    let overwritten = |seqno: &u64| seqno % STEP == 1 && seqno + 2 < high_seqno;
    let expected: Vec<_> = (1..=high_seqno).filter(|seqno| !overwritten(seqno)).collect();
    assert_eq!(seqnos, expected, "{at}");
}

/// After a start there is one file, whole, with everything that was reported durable.
fn check_after_start(files: &SimulatedFiles, durable: u64, at: &str) {
    let (store, report) = try_open(files.clone(), DIRECTORY.as_ref(), 1).unwrap();
    assert!(report.ignored.is_empty(), "{at}: {:?}", report.ignored);
    let names = files.list(Path::new(DIRECTORY)).unwrap();
    if durable > 0 {
        let [name] = &names[..] else { panic!("{at}: {names:?}") };
        verify_sound(files, &Path::new(DIRECTORY).join(name));
    }
    check_content(&store, durable, durable + STEP, at);
    // And history goes on, with compaction.
    let next = store.high_seqno(VBID).unwrap().0 + 1;
    let mut writer = Writer { next_seqno: next, durable };
    writer.commit(&store).unwrap();
    compact(&store, VBID, &CompactionRequest::default(), &()).unwrap();
    check_content(&store, writer.durable, writer.durable, at);
}

#[test]
fn after_a_power_cut_at_any_call_everything_acknowledged_is_there() {
    let counted = SimulatedFiles::new();
    let last = scenario(&counted, false);
    assert!(last > 30);
    for call in [Call::Write, Call::Sync, Call::Rename, Call::Remove, Call::SyncDirectory] {
        for number in 1..=counted.calls().of(call) {
            for error in [FaultError::Io, FaultError::ShortWrite] {
                for seed in std::iter::once(0).chain((1..=6).map(|seed| seed * 1000 + number)) {
                    let files = SimulatedFiles::new();
                    files.fail(Fault { call: Some(call), number, error, from_then_on: true });
                    let durable = scenario(&files, false);
                    files.heal();
                    files.power_cut(seed);
                    let at = format!("{call:?} {number}, {error:?}, seed {seed}");
                    check_after_start(&files, durable, &at);
                }
            }
        }
    }
}

#[test]
fn every_call_fails_once_and_the_vbucket_goes_on() {
    let counted = SimulatedFiles::new();
    let expected = scenario(&counted, true);
    let errors = [
        FaultError::Io,
        FaultError::NoSpace,
        FaultError::TooManyOpen,
        FaultError::ShortWrite,
        FaultError::LateRename,
    ];
    for error in errors {
        for number in 1..=counted.calls().total() {
            for seed in [0, number] {
                let files = SimulatedFiles::new();
                files.fail(Fault { call: None, number, error, from_then_on: false });
                let durable = scenario(&files, true);
                let at = format!("call {number}, {error:?}, seed {seed}");
                // The first call of all is that of the start, which is not tried again.
                assert!(durable + STEP >= expected || durable == 0, "{at}: {durable}");
                files.heal();
                assert!(files.open_count() <= 1, "{at}: handles are closed");
                files.power_cut(seed);
                check_after_start(&files, durable, &at);
            }
        }
    }
}

#[test]
fn a_full_disk_ends_a_compaction_and_gives_its_room_back() {
    let files = SimulatedFiles::new();
    let (store, _) = try_open(files.clone(), DIRECTORY.as_ref(), 4).unwrap();
    let mut writer = Writer { next_seqno: 1, durable: 0 };
    for _ in 0..100 {
        writer.commit(&store).unwrap();
    }
    let used = store.file_sizes(VBID).unwrap().file_bytes;
    for room in [1, 5000, 10_000, 20_000] {
        files.set_capacity(used + room);
        let error = compact(&store, VBID, &CompactionRequest::default(), &()).unwrap_err();
        assert!(matches!(error, StorageError::NoSpace(_)), "{error:?} with {room}");
        assert_eq!(files.list(Path::new(DIRECTORY)).unwrap(), ["7.couch.1"]);
        check_content(&store, writer.durable, writer.durable, "a full disk");
    }
    files.set_capacity(used + 2 * used);
    let report = compact(&store, VBID, &CompactionRequest::default(), &()).unwrap();
    assert!(report.file_bytes_after < report.file_bytes_before);
    writer.commit(&store).unwrap();
    assert_eq!(store.high_seqno(Vbid(7)).unwrap(), Seqno(writer.durable));
}

#[test]
fn nothing_is_committed_until_the_new_name_is_durable() {
    for heals in [false, true] {
        for seed in 0..8 {
            let files = SimulatedFiles::new();
            let (store, _) = try_open(files.clone(), DIRECTORY.as_ref(), 4).unwrap();
            let mut writer = Writer { next_seqno: 1, durable: 0 };
            writer.commit(&store).unwrap();
            let (call, error) = (Some(Call::SyncDirectory), FaultError::Io);
            files.fail(Fault { call, number: 1, error, from_then_on: true });
            compact(&store, VBID, &CompactionRequest::default(), &()).unwrap_err();
            check_content(&store, writer.durable, writer.durable, "unsure");
            writer.commit(&store).unwrap_err();
            if heals {
                files.heal();
                writer.commit(&store).unwrap();
                assert_eq!(files.list(Path::new(DIRECTORY)).unwrap(), ["7.couch.2"]);
            }
            files.heal();
            files.power_cut(seed);
            check_after_start(&files, writer.durable, &format!("seed {seed}, heals: {heals}"));
        }
    }
}

#[test]
fn a_copy_whose_rename_failed_behind_its_effect_does_not_hide_what_is_committed_since() {
    for is_removed_at_once in [true, false] {
        for seed in 0..16 {
            let files = SimulatedFiles::new();
            let (store, _) = try_open(files.clone(), DIRECTORY.as_ref(), 4).unwrap();
            let mut writer = Writer { next_seqno: 1, durable: 0 };
            writer.commit(&store).unwrap();
            let (call, error) = (Some(Call::Rename), FaultError::LateRename);
            files.fail(Fault { call, number: 1, error, from_then_on: false });
            if !is_removed_at_once {
                // Behind the removal of what an earlier copy may have left.
                let (call, error) = (Some(Call::Remove), FaultError::Io);
                files.fail(Fault { call, number: 2, error, from_then_on: true });
            }
            compact(&store, VBID, &CompactionRequest::default(), &()).unwrap_err();
            check_content(&store, writer.durable, writer.durable, "after the failure");
            let at = format!("seed {seed}, removed at once: {is_removed_at_once}");
            if !is_removed_at_once {
                writer.commit(&store).expect_err(&at);
                files.heal();
            }
            (0..3).for_each(|_| writer.commit(&store).unwrap());
            files.power_cut(seed);
            check_after_start(&files, writer.durable, &at);
        }
    }
}
