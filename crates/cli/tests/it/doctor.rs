//! `doctor` on data directories that are made of files of the original.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use cli::DoctorArguments;
use document::{Seqno, Vbid};
use platform::files::RealFiles;
use platform::{Clock, Entropy, Files, OpenMode};
use serde_json::Value;
use storage::couchstore::CouchFile;
use storage::journal::{Journal, JournalOptions, Record};
use storage::{Witness, Witnesses};

use crate::files::fixture;

const SMALL_JOURNAL: JournalOptions = JournalOptions {
    segment_bytes: 16 << 10,
    bytes_max: 256 << 10,
    group_bytes_max: 8 << 10,
    portion_bytes: 4096,
};

#[derive(clap::Parser)]
struct Doctor {
    #[command(flatten)]
    arguments: DoctorArguments,
}

/// What the tool says, and whether it has found damage.
fn doctor(flags: &[&str], directory: &Path) -> anyhow::Result<(ExitCode, String)> {
    let path = directory.to_str().expect("paths of tests are text");
    let words = [&["doctor"], flags, &[path]].concat();
    let doctor = Doctor::try_parse_from(words)?;
    let mut out = Vec::new();
    let notes = |_: &Path| Vec::new();
    let code = cli::doctor::write_to(&doctor.arguments, &RealFiles, &notes, &mut out)?;
    Ok((code, String::from_utf8(out)?))
}

/// A data directory with a bucket that has one whole file.
fn data_directory() -> tempfile::TempDir {
    let data = tempfile::tempdir().unwrap();
    let bucket = data.path().join("buckets/orders");
    RealFiles.create_directories(&bucket).unwrap();
    let content = RealFiles.read_all(&fixture("0")).unwrap();
    RealFiles.replace_all(&bucket.join("0.couch.1"), &content).unwrap();
    RealFiles.replace_all(&data.path().join("settee.json"), b"{}").unwrap();
    RealFiles.replace_all(&data.path().join("lock"), b"").unwrap();
    let description = br#"{"bucket_type": "couchbase", "vbucket_count": 64}"#;
    RealFiles.replace_all(&bucket.join("bucket.json"), description).unwrap();
    data
}

#[test]
fn of_a_sound_directory_nothing_is_said_but_what_is_there() {
    let data = data_directory();
    let (code, said) = doctor(&[], data.path()).unwrap();
    assert_eq!(code, ExitCode::SUCCESS, "{said}");
    assert!(said.contains("bucket orders: couchbase, 64 vBuckets, 1 files, 0 segments"), "{said}");
    assert!(said.contains(": no node uses it now\n"), "{said}");
    assert!(said.contains("1 files, ") && said.contains(": 0 problems, "), "{said}");
    let lock = RealFiles.try_lock(&data.path().join("lock")).unwrap();
    assert!(lock.is_some(), "the tool has let go of it");
    // A lock of the same process is another's as well: it belongs to the open file.
    let (_, said) = doctor(&["--quick"], data.path()).unwrap();
    assert!(said.contains(": a node uses it now\n"), "{said}");
    assert!(said.contains("0 files, 0 MB checked"), "{said}");
}

#[test]
fn a_file_that_is_gone_or_cut_short_since_the_node_stopped_is_a_problem() {
    let data = data_directory();
    let bucket = data.path().join("buckets/orders");
    let path = bucket.join("0.couch.1");
    let opened = CouchFile::open(&RealFiles, &path, OpenMode::Read).unwrap();
    let (header, _) = opened.newest_header().unwrap();
    let high_seqno = Seqno(header.high_seqno);
    let note = |vbid, revision, header_position| {
        let branch = None;
        let mut noted = Witnesses::default();
        let vbid = Vbid(vbid);
        noted.add(Witness { vbid, revision, header_position, high_seqno, branch }, true);
        RealFiles.replace_all(&bucket.join("clean-stop"), &noted.encode()).unwrap();
    };
    for (vbid, revision, position, why) in [
        (0, 1, header.position, None),
        (1, 1, header.position, Some("vBucket 1: its file is missing: ")),
        (0, 2, header.position, Some("vBucket 0: its file lacks what was in it: ")),
        (0, 1, header.position + 4096, Some("vBucket 0: its file lacks what was in it: ")),
    ] {
        note(vbid, revision, position);
        let (code, said) = doctor(&[], data.path()).unwrap();
        assert_eq!(code == ExitCode::SUCCESS, why.is_none(), "{said}");
        if let Some(why) = why {
            assert!(said.contains(why), "{why}: {said}");
            let way_out = format!("    settee reset-vbucket {vbid} --bucket orders\n");
            assert!(said.contains(&way_out), "{said}");
        }
    }
}

#[test]
fn behind_a_crash_files_are_compared_with_what_the_journal_says_of_them() {
    let data = data_directory();
    let bucket = data.path().join("buckets/orders");
    let opened = CouchFile::open(&RealFiles, &bucket.join("0.couch.1"), OpenMode::Read).unwrap();
    let (header, _) = opened.newest_header().unwrap();
    let high_seqno = Seqno(header.high_seqno);
    let witness = |vbid, header_position| {
        let vbid = Vbid(vbid);
        Witness { vbid, revision: 1, header_position, high_seqno, branch: None }
    };
    let append = |record: Record<'_>| {
        let (clock, entropy) = (Clock::real(), Entropy::real());
        let opened = Journal::open(
            Arc::new(RealFiles),
            &bucket,
            SMALL_JOURNAL,
            clock,
            entropy,
            &mut |_, _| Ok(()),
        );
        opened.unwrap().0.append(&[record], &mut |_, result| assert!(result.is_ok()));
    };
    let problem_of = |said: &str, what: &str| said.contains(&format!("{what}: by the journal it"));
    for (record, what) in [
        (Record::Witnesses(&[witness(0, header.position)]), None),
        (
            Record::Witnesses(&[witness(0, header.position + 4096)]),
            Some("vBucket 0: its file lacks what was in it"),
        ),
        (Record::Delete { vbid: Vbid(0) }, None),
        (Record::Witnesses(&[witness(5, 4096)]), Some("vBucket 5: its file is missing")),
    ] {
        append(record);
        let (code, said) = doctor(&[], data.path()).unwrap();
        assert_eq!(code == ExitCode::SUCCESS, what.is_none(), "{said}");
        assert!(what.is_none_or(|what| problem_of(&said, what)), "{said}");
    }
}

#[test]
fn damage_is_explained_with_commands_that_help() {
    let data = data_directory();
    let bucket = data.path().join("buckets/orders");
    let mut image = RealFiles.read_all(&fixture("golden-v14")).unwrap();
    image[0x3a] ^= 1;
    RealFiles.replace_all(&bucket.join("3.couch.1"), &image).unwrap();
    RealFiles.replace_all(&bucket.join("7.couch.2.damaged"), &image).unwrap();
    RealFiles.replace_all(&data.path().join("users.json"), b"{").unwrap();
    let (code, said) = doctor(&[], data.path()).unwrap();
    assert_eq!(code, ExitCode::FAILURE);
    for part in [
        "3.couch.1: byte 48: the checksum of a chunk",
        "    settee reset-vbucket 3 --bucket orders --confirm\n",
        "    settee restore --target BACKUPS --data-dir NEW --bucket orders\n",
        "7.couch.2.damaged: was set aside when vBucket 7 began anew",
        "users.json: is no JSON",
        "2 problems, ",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let (code, said) = doctor(&["-o", "json"], data.path()).unwrap();
    assert_eq!(code, ExitCode::FAILURE);
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["sound"], false);
    let symptoms = said["symptoms"].as_array().unwrap();
    let of_file = symptoms.iter().find(|it| it["place"].as_str().unwrap().ends_with("3.couch.1"));
    assert_eq!(of_file.unwrap()["severity"], "problem");
}

#[test]
fn a_mark_that_is_gone_is_a_problem_of_a_directory_with_buckets() {
    let data = data_directory();
    RealFiles.remove(&data.path().join("settee.json")).unwrap();
    let (code, said) = doctor(&[], data.path()).unwrap();
    assert_eq!(code, ExitCode::FAILURE);
    assert!(said.contains("settee.json: is missing") && said.contains("1 problems"), "{said}");
}

#[test]
fn a_bucket_that_was_taken_over_beside_the_others_is_read_as_they_are() {
    for place in ["orders", "data/orders"] {
        let data = data_directory();
        let (found, bucket) = (data.path().join("buckets/orders"), data.path().join(place));
        RealFiles.create_directories(bucket.parent().unwrap()).unwrap();
        RealFiles.rename(&found, &bucket).unwrap();
        // Of another server's bucket that no node has opened nothing is said.
        let left = data.path().join("left");
        RealFiles.create_directories(&left).unwrap();
        RealFiles.replace_all(&left.join("0.couch.1"), b"").unwrap();
        let (code, said) = doctor(&[], data.path()).unwrap();
        assert_eq!(code, ExitCode::SUCCESS, "{said}");
        assert!(said.contains("bucket orders: couchbase, 64 vBuckets, 1 files"), "{said}");
        assert!(!said.contains("left"), "{said}");
        RealFiles.replace_all(&bucket.join("0.couch.1"), &[7; 5000]).unwrap();
        RealFiles.remove(&data.path().join("settee.json")).unwrap();
        let (code, said) = doctor(&[], data.path()).unwrap();
        assert_eq!(code, ExitCode::FAILURE, "{said}");
        assert!(said.contains("settee.json: is missing"), "{said}");
        let command = format!("settee serve --data-dir {}\n", data.path().display());
        assert!(said.contains("0.couch.1") && said.contains(&command), "{said}");
    }
}

#[test]
fn a_directory_of_something_else_is_refused_with_what_looks_at_it() {
    let other = tempfile::tempdir().unwrap();
    let error = doctor(&[], other.path()).unwrap_err().to_string();
    assert!(error.contains("settee adopt --check"), "{error}");
    let missing = doctor(&[], &other.path().join("none")).unwrap_err();
    assert!(format!("{missing:#}").contains("cannot be read"), "{missing:#}");
}

#[test]
fn what_a_start_would_say_is_said_of_files_of_which_nothing_is_yet() {
    let data = data_directory();
    RealFiles.replace_all(&data.path().join("users.json"), b"{").unwrap();
    let words = ["doctor", data.path().to_str().unwrap()];
    let doctor = Doctor::try_parse_from(words).unwrap();
    let said = || {
        let notes = |directory: &Path| {
            let fault = |name, what: &str| (directory.join(name), what.to_owned());
            vec![fault("users.json", "said twice"), fault("buckets/orders/manifest.json", "is cut")]
        };
        let mut out = Vec::new();
        let arguments = &doctor.arguments;
        let code = cli::doctor::write_to(arguments, &RealFiles, &notes, &mut out).unwrap();
        assert_eq!(code, ExitCode::FAILURE);
        String::from_utf8(out).unwrap()
    };
    let text = said();
    assert!(
        text.contains("orders/manifest.json: is cut\n") && text.contains("2 problems"),
        "{text}"
    );
    assert!(text.contains("users.json: is no JSON") && !text.contains("said twice"), "{text}");
    let lock = RealFiles.try_lock(&data.path().join("lock")).unwrap();
    assert!(!said().contains("is cut"), "a node that runs changes them");
    drop(lock);
}
