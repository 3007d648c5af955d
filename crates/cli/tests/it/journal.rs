//! `dump` and `verify-file` on segments of a journal.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use document::Vbid;
use platform::files::RealFiles;
use platform::{Clock, Entropy, Files};
use serde_json::json;
use storage::journal::{Journal, JournalOptions, Record};

use crate::files::{objects, of_type, run, text};

const NAME: &str = "j.0000000000000001";

fn fixture() -> PathBuf {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../storage/tests/fixtures/journal");
    Path::new(directory).join(NAME)
}

#[test]
fn a_segment_is_shown_with_its_groups_batches_and_documents() {
    let path = fixture();
    let shown = text("dump", &path);
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!(lines[0], format!("file {} (24576 bytes)", path.display()));
    assert!(lines[1].starts_with("segment 1 of journal "), "{}", lines[1]);
    assert!(lines[1].ends_with(": first lsn 1, begun 2023-11-14T22:13:20Z"), "{}", lines[1]);
    let group = "group 4096: lsn 1, 4096 bytes, 3 records, written 2023-11-14T22:13:20Z, \
                 durable before: lsn 0";
    assert_eq!(lines[2], group);
    assert_eq!(lines[3], "batch 4160: vBucket 7, 192 bytes, 1 documents after seqno 0");
    assert_eq!(lines[4], "0x0 key-1: seqno 1, revision 1, CAS 0x3e9, flags 0x0, expiry none, raw");
    let body = "\\x01".repeat(20);
    assert_eq!(lines[5], format!("  body of 20 bytes at 4229: {body}"));
    assert!(lines[6].starts_with("vbstate {"), "{}", lines[6]);
    assert!(shown.contains("\ndelete 8256: vBucket 8\n"), "{shown}");
    assert!(shown.contains("1 documents after seqno 6, supersedes what was before\n"), "{shown}");
    assert!(shown.ends_with("end 24576: before lsn 5\n"), "{shown}");
    let keys = text("dump --keys-only --start-seqno 3", &path);
    assert_eq!(keys, "0x0 key-3\n0x0 key-7\n0x0 key-4\n");
    assert_eq!(text("dump --all-headers", &path).lines().count(), 2 + 4 + 1);
    let without = text("dump --no-body", &path);
    assert!(without.contains("\n  body of 300 bytes at "), "{without}");
    assert!(!without.contains(&body), "{without}");
    let image = RealFiles.read_all(&path).unwrap();
    assert_eq!(image[4229..4249], [1; 20], "bodies stand where they are said to stand");
}

#[test]
fn json_tells_of_a_segment_what_is_known() {
    let found = objects("dump --json", &fixture());
    assert_eq!(of_type(&found, "group").len(), 4);
    assert_eq!(of_type(&found, "batch").len(), 6);
    let batch = json!({
        "type": "batch", "position": 4160, "bytes": 192, "vbucket": 7, "previous_seqno": 0,
        "supersedes": false, "documents": 1,
    });
    assert_eq!(of_type(&found, "batch")[0], &batch);
    assert_eq!(of_type(&found, "document").len(), 6);
    assert_eq!(of_type(&found, "vbstate")[0]["content"]["snap_end"], "1");
    assert_eq!(of_type(&found, "delete")[0]["vbucket"], 8);
    let end = json!({
        "type": "end", "position": 24576, "next_lsn": 5, "state": "clean", "what": null,
    });
    assert_eq!(of_type(&found, "end")[0], &end);
    let verified = &objects("verify-file --json", &fixture())[0];
    assert_eq!(verified["sound"], true);
    let numbers =
        ["groups", "records", "documents", "deletions", "first_lsn", "next_lsn", "checked_bytes"];
    let numbers = numbers.map(|name| verified[name].as_u64().unwrap());
    assert_eq!(numbers, [4, 8, 6, 2, 1, 5, 24576]);
}

#[test]
fn a_damaged_group_is_told_and_a_torn_one_is_no_problem() {
    let bucket = tempfile::tempdir().unwrap();
    let journal = bucket.path().join("journal");
    RealFiles.create_directories(&journal).unwrap();
    let path = journal.join(NAME);
    let image = RealFiles.read_all(&fixture()).unwrap();
    let put = |at: usize| {
        let mut image = image.clone();
        image[at] ^= 1;
        RealFiles.replace_all(&path, &image).unwrap();
    };
    put(20_480 + 100);
    let (code, said) = run("verify-file", bucket.path()).unwrap();
    assert_eq!(code, ExitCode::SUCCESS);
    assert!(said.contains(": sound, 3 groups from lsn 1, 5 records"), "{said}");
    assert!(said.contains("warning at byte 20480: a group that is being written"), "{said}");
    assert!(text("dump", &journal).contains("end 20480: lsn 4 is not whole yet: "));
    put(8192 + 100);
    let (code, said) = run("verify-file", bucket.path()).unwrap();
    assert_eq!(code, ExitCode::FAILURE);
    assert!(said.contains("j.0000000000000001: DAMAGED, 1 groups"), "{said}");
    assert!(said.contains("problem at byte 8192: the checksum of a group"), "{said}");
    assert!(said.contains("what to do: keep a copy of the journal"), "{said}");
    assert!(run("dump", &path).is_err());
    let (code, said) = run("verify-file --json", &path).unwrap();
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, &said["findings"][0]["scope"]), (ExitCode::FAILURE, &json!("journal")));
    assert!(run("dump --header 0", &path).is_err());
    assert!(run("dump --by-id", &path).is_err());
}

#[test]
fn a_directory_stands_for_its_segments_and_a_missing_one_is_told() {
    let bucket = tempfile::tempdir().unwrap();
    let options = JournalOptions {
        segment_bytes: 64 << 10,
        bytes_max: 1 << 30,
        group_bytes_max: 8 << 10,
        portion_bytes: 4096,
    };
    let clock = Clock::real();
    let files = Arc::new(RealFiles);
    let opened =
        Journal::open(files, bucket.path(), options, clock, Entropy::real(), &mut |_, _| Ok(()));
    let journal = opened.unwrap().0;
    let mut groups = 0;
    for _ in 0..40 {
        let records = [Record::Delete { vbid: Vbid(3) }; 100];
        journal.append(&records, &mut |_, result| groups = result.unwrap().0);
    }
    journal.fill_spare().unwrap();
    drop(journal);
    let directory = bucket.path().join("journal");
    let sound = objects("verify-file --json", bucket.path());
    assert_eq!(sound, objects("verify-file --json", &directory));
    assert_eq!(sound.len(), RealFiles.list(&directory).unwrap().len() - 1, "all but the spare");
    let counted = sound.iter().map(|segment| segment["groups"].as_u64().unwrap());
    assert_eq!(counted.sum::<u64>(), groups);
    assert!(sound.iter().all(|segment| segment["sound"] == true));
    assert_eq!(sound.len(), 3, "40 groups of a block");
    let shown = text("dump --json", bucket.path());
    assert_eq!(shown.lines().filter(|line| line.contains("\"delete\"")).count(), 4000);
    RealFiles.remove(&directory.join("j.0000000000000002")).unwrap();
    let (code, said) = run("verify-file", bucket.path()).unwrap();
    assert_eq!(code, ExitCode::FAILURE);
    assert!(said.contains("problem at byte 0: it begins with group 31 where 16 should follow"));
    assert!(said.ends_with("; 2 files are damaged\n"), "{said}");
}
