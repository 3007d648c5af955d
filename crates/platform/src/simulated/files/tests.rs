//! What the simulated files keep, lose and refuse.

use super::*;
use crate::files::FileErrorKind;

const PATH: &str = "data/file";

fn disk() -> SimulatedFiles {
    let files = SimulatedFiles::new();
    files.create_directories(Path::new("data")).unwrap();
    files
}

fn created(files: &SimulatedFiles) -> Box<dyn File> {
    files.open(Path::new(PATH), OpenMode::CreateNew).unwrap()
}

#[test]
fn only_what_was_synced_survives() {
    let files = disk();
    let file = created(&files);
    file.write_at(b"synced", 0).unwrap();
    file.sync().unwrap();
    file.write_at(b"LOST", 0).unwrap();
    assert_eq!(files.content(Path::new(PATH)).unwrap(), b"LOSTed");
    files.sync_directory(Path::new("data")).unwrap();
    files.power_cut(0);
    assert_eq!(files.read_all(Path::new(PATH)).unwrap(), b"synced");
    assert!(file.write_at(b"x", 0).is_err(), "a file opened before the cut is stale");
}

#[test]
fn names_survive_only_with_their_directory() {
    let files = disk();
    created(&files).sync().unwrap();
    files.power_cut(0);
    assert!(!files.exists(Path::new(PATH)).unwrap());

    files.insert(Path::new(PATH), b"old");
    files.insert(Path::new("data/fresh"), b"new");
    files.rename(Path::new("data/fresh"), Path::new(PATH)).unwrap();
    assert_eq!(files.read_all(Path::new(PATH)).unwrap(), b"new");
    files.power_cut(0);
    assert_eq!(files.read_all(Path::new(PATH)).unwrap(), b"old");
    files.remove(Path::new(PATH)).unwrap();
    files.sync_directory(Path::new("data")).unwrap();
    files.power_cut(0);
    assert_eq!(files.list(Path::new("data")).unwrap(), ["fresh"]);
}

#[test]
fn a_directory_and_all_in_it_survive_only_with_its_name() {
    let files = SimulatedFiles::new();
    let [outer, inner] = ["data", "data/inner"].map(Path::new);
    files.create_directory(outer).unwrap();
    files.create_directory(inner).unwrap();
    files.open(&inner.join("file"), OpenMode::CreateNew).unwrap().sync().unwrap();
    files.sync_directory(inner).unwrap();
    files.sync_directory(outer).unwrap();
    files.power_cut(0);
    assert!(!files.exists(outer).unwrap() && !files.exists(inner).unwrap());
    assert!(files.content(&inner.join("file")).is_none());
    assert!(files.open(&inner.join("file"), OpenMode::CreateNew).is_err());
}

#[test]
fn directories_are_durable_before_anything_is_in_them_whoever_has_made_them() {
    let path = Path::new("data/buckets/default");
    let cut_short = |syncs: u64| {
        let files = SimulatedFiles::new();
        let (call, error) = (Some(Call::SyncDirectory), FaultError::Io);
        files.fail(Fault { call, number: syncs + 1, error, from_then_on: true });
        let made = files.create_directories(path);
        files.heal();
        (files, made.is_ok())
    };
    for syncs in 0..4 {
        let (files, is_made) = cut_short(syncs);
        assert_eq!(is_made, syncs == 3);
        // The process was ended there; another one goes on.
        files.create_directories(path).unwrap();
        files.power_cut(0);
        assert!(files.exists(path).unwrap(), "after {syncs}");
    }
}

#[test]
fn a_cut_tears_writes_at_sectors_and_repeats_with_its_seed() {
    let mut torn = 0;
    for seed in crate::seeds::seeds(50) {
        let after_cut = || {
            let files = disk();
            files.insert(Path::new(PATH), &[0; 4096]);
            let file = files.open(Path::new(PATH), OpenMode::ReadWrite).unwrap();
            file.write_at(&[1; 2000], 1000).unwrap();
            files.power_cut(seed);
            files.content(Path::new(PATH)).unwrap()
        };
        let content = after_cut();
        assert_eq!(content, after_cut(), "seed {seed}");
        assert!(content[..1000].iter().chain(&content[3000..]).all(|byte| *byte == 0));
        for sector in content.chunks(512) {
            let changes = sector.windows(2).filter(|pair| pair[0] != pair[1]).count();
            assert!(changes <= 1, "seed {seed}: a sector is whole");
        }
        let kept = content.iter().filter(|byte| **byte == 1).count();
        torn += usize::from(kept > 0 && kept < 2000);
    }
    assert!(torn > 0, "some seed tears");
}

#[test]
fn the_nth_call_fails_once_or_from_then_on() {
    for (from_then_on, expected) in [(false, "ok fail ok ok"), (true, "ok fail fail fail")] {
        let files = disk();
        let file = created(&files);
        let call = Some(Call::Write);
        files.fail(Fault { call, number: 2, error: FaultError::NoSpace, from_then_on });
        let results: Vec<_> = (0..4)
            .map(|_| match file.write_at(b"x", 0) {
                Ok(()) => "ok",
                Err(error) => {
                    assert_eq!(error.kind, FileErrorKind::NoSpace);
                    "fail"
                }
            })
            .collect();
        assert_eq!(results.join(" "), expected);
        assert_eq!(files.calls().of(Call::Write), 4);
        files.heal();
        file.write_at(b"x", 0).unwrap();
    }
}

#[test]
fn errors_have_their_kinds_on_every_call() {
    let errors = [
        (FaultError::Io, FileErrorKind::Failed),
        (FaultError::NoSpace, FileErrorKind::NoSpace),
        (FaultError::TooManyOpen, FileErrorKind::TooManyOpen),
    ];
    for (error, kind) in errors {
        let files = disk();
        let file = created(&files);
        let before = files.calls().total();
        files.fail(Fault { call: None, number: 1, error, from_then_on: true });
        let path = Path::new(PATH);
        let results = [
            files.open(path, OpenMode::Read).err(),
            file.read_at(&mut [0], 0).err(),
            file.write_at(b"x", 0).err(),
            file.sync().err(),
            files.rename(path, Path::new("data/other")).err(),
            files.remove(path).err(),
            files.sync_directory(Path::new("data")).err(),
        ];
        assert!(results.iter().all(|result| result.as_ref().unwrap().kind == kind));
        assert_eq!(files.calls().total() - before, results.len() as u64);
    }
}

#[test]
fn a_short_write_leaves_half() {
    let files = disk();
    let file = created(&files);
    let error = FaultError::ShortWrite;
    files.fail(Fault { call: Some(Call::Write), number: 1, error, from_then_on: false });
    assert!(file.write_at(b"abcd", 0).is_err());
    assert_eq!(files.content(Path::new(PATH)).unwrap(), b"ab");
    file.write_at(b"abcd", 0).unwrap();
}

#[test]
fn what_a_failed_sync_lost_stays_lost() {
    let files = disk();
    let file = created(&files);
    files.sync_directory(Path::new("data")).unwrap();
    file.write_at(b"abcd", 0).unwrap();
    let error = FaultError::Io;
    files.fail(Fault { call: Some(Call::Sync), number: 1, error, from_then_on: false });
    assert!(file.sync().is_err());
    file.sync().unwrap();
    assert_eq!(files.content(Path::new(PATH)).unwrap(), b"abcd", "reads see it still");
    files.power_cut(0);
    assert_eq!(files.content(Path::new(PATH)).unwrap(), b"");
}

#[test]
fn a_full_disk_refuses_growth_only() {
    let files = disk();
    files.set_capacity(10);
    let file = created(&files);
    file.write_at(&[1; 10], 0).unwrap();
    assert_eq!(file.write_at(b"x", 10).err().unwrap().kind, FileErrorKind::NoSpace);
    assert_eq!(file.set_size(11).err().unwrap().kind, FileErrorKind::NoSpace);
    file.write_at(b"x", 9).unwrap();
    assert_eq!(file.size().unwrap(), 10);
    let space = || files.disk_space(Path::new("/")).unwrap();
    assert_eq!(space(), DiskSpace { free_bytes: 0, total_bytes: 10 });
    file.set_size(3).unwrap();
    assert_eq!(space().free_bytes, 7);
}

#[test]
fn what_replaces_a_file_and_has_no_room_is_not_left_behind() {
    let files = disk();
    files.replace_all(Path::new(PATH), b"before").unwrap();
    files.set_capacity(20);
    let refused = files.replace_all(Path::new(PATH), &[1; 15]).unwrap_err();
    assert_eq!(refused.kind, FileErrorKind::NoSpace);
    let name = Path::new(PATH).file_name().unwrap().to_str().unwrap();
    assert_eq!(files.list(Path::new("data")).unwrap(), [name]);
    assert_eq!(files.content(Path::new(PATH)).unwrap(), b"before");
}

#[test]
fn open_files_are_counted() {
    let files = disk();
    let file = created(&files);
    assert_eq!(files.open_count(), 1);
    drop(file);
    assert_eq!(files.open_count(), 0);
}

#[test]
fn calls_that_change_something_are_recorded_once_somebody_wants_to_know() {
    let files = SimulatedFiles::new();
    files.create_directory(Path::new("d")).unwrap();
    assert!(files.take_recorded().is_empty(), "nobody wants to know");
    files.record();
    let path = Path::new("d/f");
    let file = files.open(path, OpenMode::CreateNew).unwrap();
    file.write_at(b"123", 4).unwrap();
    file.set_size(2).unwrap();
    file.sync().unwrap();
    file.read_at(&mut [0; 8], 0).unwrap();
    files.open(path, OpenMode::Read).unwrap();
    files.rename(path, Path::new("d/g")).unwrap();
    assert!(files.remove(path).is_err());
    files.create_directory(Path::new("d")).unwrap();
    files.sync_directory(Path::new("d")).unwrap();
    let shown: Vec<_> = files.take_recorded().iter().map(ToString::to_string).collect();
    let expected = [
        "create d/f",
        "write d/f at 4 3 bytes",
        "resize d/f to 2 bytes",
        "sync d/f",
        "rename d/f to d/g",
        "sync directory d",
    ];
    assert_eq!(shown, expected);
    assert!(files.take_recorded().is_empty(), "each is told once");
}

#[test]
fn what_replaces_a_file_and_fails_is_not_found_unless_that_is_said() {
    for before in [None, Some(b"before".as_slice())] {
        let (late, io) = (FaultError::LateRename, FaultError::Io);
        for (call, error) in [(Call::Rename, late), (Call::SyncDirectory, io), (Call::Sync, io)] {
            for from_then_on in [false, true] {
                let files = disk();
                files.create_directories(Path::new("data")).unwrap();
                if let Some(before) = before {
                    files.replace_all(Path::new(PATH), before).unwrap();
                }
                files.fail(Fault { call: Some(call), number: 1, error, from_then_on });
                let replaced = files.replace_or_restore(Path::new(PATH), b"refused");
                let is_unsure = replaced.unwrap_err().is_unsure;
                assert!(from_then_on || !is_unsure, "{call:?}");
                files.heal();
                files.power_cut(0);
                let found = files.read_all(Path::new(PATH)).ok();
                assert!(is_unsure || found.as_deref() == before, "{call:?}, {from_then_on}");
            }
        }
    }
}

#[test]
fn a_late_rename_fails_and_has_its_effect() {
    let files = disk();
    created(&files).sync().unwrap();
    let (call, error) = (Some(Call::Rename), FaultError::LateRename);
    files.fail(Fault { call, number: 1, error, from_then_on: false });
    let renamed = files.rename(Path::new(PATH), Path::new("data/other"));
    assert_eq!(renamed.unwrap_err().kind, FileErrorKind::Failed);
    assert_eq!(files.list(Path::new("data")).unwrap(), ["other"]);
    files.rename(Path::new("data/other"), Path::new(PATH)).unwrap();
    assert_eq!(files.list(Path::new("data")).unwrap(), ["file"]);
    assert_eq!(files.calls().of(Call::Rename), 2);
}
