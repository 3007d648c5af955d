//! `dump` and `verify-file`.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Parser;
use cli::{DumpArguments, VerifyFileArguments};
use platform::Files;
use platform::files::RealFiles;
use serde_json::Value;

const FIXTURES: [&str; 6] =
    ["0", "1", "golden-v14", "mixed-rollbacks-v14", "compacted-v14", "legacy-v11"];

#[derive(clap::Parser)]
enum Tool {
    Dump(DumpArguments),
    VerifyFile(VerifyFileArguments),
}

pub(crate) fn fixture(name: &str) -> PathBuf {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../storage/tests/fixtures/couchstore");
    Path::new(directory).join(format!("{name}.couch.1"))
}

/// Runs a tool as from the command line, on `path`.
pub(crate) fn run(line: &str, path: &Path) -> anyhow::Result<(ExitCode, String)> {
    let words = ["settee"].into_iter().chain(line.split_whitespace()).map(str::to_owned);
    let path = path.to_str().expect("paths of tests are text").to_owned();
    let mut out = Vec::new();
    let code = match Tool::try_parse_from(words.chain([path]))? {
        Tool::Dump(arguments) => cli::dump::write_to(&arguments, &RealFiles, &mut out)?,
        Tool::VerifyFile(arguments) => {
            cli::verify_file::write_to(&arguments, &RealFiles, &mut out)?
        }
    };
    Ok((code, String::from_utf8(out)?))
}

pub(crate) fn text(line: &str, path: &Path) -> String {
    let (code, text) = run(line, path).unwrap();
    assert_eq!(code, ExitCode::SUCCESS, "{line} {}: {text}", path.display());
    text
}

pub(crate) fn objects(line: &str, path: &Path) -> Vec<Value> {
    text(line, path).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The objects of one type.
pub(crate) fn of_type<'a>(objects: &'a [Value], name: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["type"] == name).collect()
}

#[test]
fn the_golden_file_is_shown_as_it_is_known() {
    let path = fixture("golden-v14");
    let shown = text("dump", &path);
    let (file, shown) = shown.split_once('\n').unwrap();
    assert_eq!(file, format!("file {} (4201 bytes)", path.display()));
    let expected = "\
header 4096: version 14, high seqno 3, purge seqno 0, 2 alive, 1 deleted, 334 live bytes, \
committed 2023-11-14T22:13:20Z, header before: 0
vbstate {\"state\":\"active\"}
0x0 k1: seqno 1, revision 7, CAS 0x1122334455667788, flags 0x2000006, expiry none, json
  body of 20 bytes at 48: hello, hello, hello, hello
prepare of 0x0 k2: seqno 2, revision 8, CAS 0x1122334455667789, flags 0x0, expiry none, raw, \
prepare of a write, level persist_to_majority
  body of 17 bytes at 68: pending
0x8 k3: seqno 3, revision 9, deleted, CAS 0x112233445566778a, flags 0x0, \
expiry 2023-11-14T22:13:20Z, raw
  no body
";
    assert_eq!(shown, expected);
    assert_eq!(text("dump --keys-only", &path), "0x0 k1\nprepare of 0x0 k2\n0x8 k3\n");
    assert_eq!(text("dump --keys-only --start-seqno 3", &path), "0x8 k3\n");
    assert_eq!(text("dump --keys-only --header 0", &path), "");
    let by_id = text("dump --keys-only --by-id --start-seqno 2", &path);
    assert_eq!(by_id, "prepare of 0x0 k2\n0x8 k3\n");
}

#[test]
fn json_tells_of_the_golden_file_what_is_known() {
    let objects = objects("dump --json", &fixture("golden-v14"));
    let document = of_type(&objects, "document")[0];
    let expected = serde_json::json!({
        "type": "document", "collection": "0x0", "key": "k1", "seqno": 1, "revision": 7,
        "deleted": false, "cas": "0x1122334455667788", "flags": 0x0200_0006, "expiry": 0,
        "expired": false, "datatype": ["json"], "body_position": 48, "body_size": 20,
        "compressed_by_file": true, "body": "hello, hello, hello, hello",
    });
    assert_eq!(document, &expected);
    let prepare = of_type(&objects, "document")[1];
    assert_eq!(prepare["prepare_key"], true);
    assert_eq!(prepare["level"], "persist_to_majority");
    assert_eq!(of_type(&objects, "vbstate")[0]["content"]["state"], "active");
    assert_eq!(of_type(&objects, "header")[0]["position"], 4096);
}

#[test]
fn every_form_shows_every_document_of_every_fixture() {
    for name in FIXTURES {
        let path = fixture(name);
        let json = objects("dump --json --local", &path);
        let header = of_type(&json, "header")[0];
        let count = header["alive"].as_u64().unwrap() + header["deleted"].as_u64().unwrap();
        let documents = of_type(&json, "document");
        assert_eq!(documents.len() as u64, count, "{name}");
        let seqnos: Vec<_> = documents.iter().map(|found| found["seqno"].as_u64()).collect();
        assert!(seqnos.is_sorted_by(|left, right| left < right), "{name}");
        for document in &documents {
            let has_body = document["body_size"] != 0;
            let shown = ["body", "body_base64"].map(|body| document.get(body).is_some());
            assert_eq!(shown.iter().filter(|shown| **shown).count(), usize::from(has_body));
            assert!(document.get("body_error").is_none(), "{name}: {document}");
        }
        let without = objects("dump --json --no-body --by-id", &path);
        let by_id = of_type(&without, "document");
        assert_eq!(by_id.len(), documents.len(), "{name}");
        assert!(by_id.iter().all(|document| document.get("body").is_none()), "{name}");
        let keys = text("dump --keys-only", &path);
        assert_eq!(keys.lines().count(), documents.len(), "{name}");
        let lines = text("dump --no-body", &path);
        assert!(lines.lines().count() >= documents.len() * 2, "{name}");
    }
}

/// What another reader of the format says of a file, unless there is no Python here.
fn independently_read(path: &Path) -> Option<Value> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/couchverify.py");
    let arguments = [script, "--kv", "--all-headers", "--docs", "100000"];
    match Command::new("python3").args(arguments).arg(path).output() {
        Ok(output) => Some(serde_json::from_slice(&output.stdout).unwrap()),
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "CI needs python3: {error}");
            None
        }
    }
}

#[test]
fn an_independent_reader_says_the_same_of_every_document() {
    for name in FIXTURES {
        let path = fixture(name);
        let Some(theirs) = independently_read(&path) else { return };
        let ours = objects("dump --json", &path);
        let ours = of_type(&ours, "document");
        let theirs_documents = theirs["header"]["docs"].as_array().unwrap();
        assert_eq!(ours.len(), theirs_documents.len(), "{name}");
        for (ours, theirs) in ours.iter().zip(theirs_documents) {
            let pairs = [
                ("seqno", &theirs["seq"]),
                ("revision", &theirs["rev"]),
                ("body_position", &theirs["bp"]),
                ("body_size", &theirs["size"]),
                ("flags", &theirs["kv"]["flags"]),
                ("expiry", &theirs["kv"]["exptime"]),
            ];
            for (field, expected) in pairs {
                assert_eq!(&ours[field], expected, "{name}: {ours}");
            }
            let cas = format!("{:#018x}", theirs["kv"]["cas"].as_u64().unwrap());
            assert_eq!(ours["cas"], cas, "{name}");
            assert_eq!(ours["deleted"].as_bool(), Some(theirs["deleted"] == 1), "{name}");
            let operation = theirs["kv"].get("op").unwrap_or(&Value::Null);
            assert_eq!(ours.get("operation").unwrap_or(&Value::Null), operation, "{name}");
        }
        let verified = &objects("verify-file --json", &path)[0];
        assert_eq!(verified["sound"], theirs["ok"], "{name}");
        assert_eq!(verified["states"], theirs["headers"], "{name}");
        assert_eq!(verified["high_seqno"], theirs["header"]["update_seq"], "{name}");
        let all_headers = objects("dump --json --all-headers", &path);
        let states = of_type(&all_headers, "header");
        assert_eq!(Some(states.len() as u64), theirs["headers"].as_u64(), "{name}");
        let oldest = &states.last().unwrap()["position"];
        assert_eq!(oldest, &theirs["oldest"]["position"], "{name}");
    }
}

#[test]
fn damage_is_told_with_its_place_and_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let mut image = RealFiles.read_all(&fixture("golden-v14")).unwrap();
    image[0x3a] ^= 1;
    let damaged = directory.path().join("3.couch.1");
    RealFiles.replace_all(&damaged, &image).unwrap();
    let (code, said) = run("verify-file", &damaged).unwrap();
    assert_eq!(code, ExitCode::FAILURE);
    assert!(said.contains("3.couch.1: DAMAGED"), "{said}");
    assert!(said.contains("problem at byte 48: the checksum of a chunk"), "{said}");
    assert!(said.contains("what to do: keep a copy of the file"), "{said}");
    let (code, said) = run("verify-file --json", &damaged).unwrap();
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(code, ExitCode::FAILURE);
    assert_eq!(said["findings"][0]["position"], 48);
    // The other documents are shown, and in the place of the body what is wrong with it.
    let shown = text("dump", &damaged);
    assert!(shown.contains("damaged body of 20 bytes at 48: the checksum of a chunk"), "{shown}");
    assert!(shown.contains("0x8 k3"), "{shown}");
    // One damaged file does not keep the others from being looked at.
    let sound = RealFiles.read_all(&fixture("golden-v14")).unwrap();
    RealFiles.replace_all(&directory.path().join("20.couch.1"), &sound).unwrap();
    let (code, said) = run("verify-file", directory.path()).unwrap();
    assert_eq!(code, ExitCode::FAILURE);
    assert!(said.contains("20.couch.1: sound"), "{said}");
    assert!(said.ends_with("1 files are damaged\n"), "{said}");
    image.truncate(1000);
    image[0] = 0;
    RealFiles.replace_all(&damaged, &image).unwrap();
    let (code, said) = run("dump --keys-only", directory.path()).unwrap();
    assert_eq!((code, said.lines().count()), (ExitCode::FAILURE, 3), "{said}");
}

#[test]
fn a_data_directory_stands_for_the_files_of_its_buckets() {
    let data = tempfile::tempdir().unwrap();
    for (bucket, name, vbid) in [("a", "0", 10), ("a", "1", 9), ("b", "golden-v14", 0)] {
        let bucket = data.path().join("buckets").join(bucket);
        RealFiles.create_directories(&bucket).unwrap();
        let content = RealFiles.read_all(&fixture(name)).unwrap();
        RealFiles.replace_all(&bucket.join(format!("{vbid}.couch.1")), &content).unwrap();
    }
    RealFiles.replace_all(&data.path().join("settee.json"), b"{}").unwrap();
    let found = objects("verify-file --json", data.path());
    let names: Vec<_> = found.iter().map(|found| found["file"].as_str().unwrap()).collect();
    let expected = ["a/9.couch.1", "a/10.couch.1", "b/0.couch.1"];
    assert!(names.iter().zip(expected).all(|(name, end)| name.ends_with(end)), "{names:?}");
    assert_eq!(names.len(), 3);
    assert_eq!(text("dump --keys-only", data.path()).lines().count(), 503);
}

#[test]
fn mistakes_are_told_with_what_to_do_about_them() {
    let empty = tempfile::tempdir().unwrap();
    let golden = fixture("golden-v14");
    let cases = [
        ("dump", empty.path().join("none"), "does not exist"),
        ("verify-file", empty.path().to_path_buf(), "holds no couchstore files"),
        ("dump --header 5", golden.clone(), "--all-headers lists the headers"),
        ("dump --header 4095", golden.clone(), "--all-headers lists the headers"),
        ("dump --header 18446744073709551615", golden.clone(), "--all-headers"),
        ("dump --by-id --by-seqno", golden.clone(), "cannot be used with"),
    ];
    let two = format!("dump --header 0 {}", golden.display());
    let cases = cases.into_iter().chain([(two.as_str(), golden, "needs one file, not 2")]);
    for (line, path, expected) in cases {
        let error = format!("{:#}", run(line, &path).unwrap_err());
        assert!(error.contains(expected), "{line}: {error}");
    }
}

#[test]
fn of_a_data_directory_one_bucket_is_read_by_its_name() {
    let data = tempfile::tempdir().unwrap();
    for (bucket, name) in [("orders", "0"), ("travel", "1")] {
        let directory = data.path().join("buckets").join(bucket);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::copy(fixture(name), directory.join("0.couch.1")).unwrap();
    }
    for tool in ["dump --json", "verify-file --json"] {
        let of_all = text(tool, data.path());
        let [of_orders, of_travel] = ["orders", "travel"]
            .map(|bucket| text(&format!("{tool} --bucket {bucket}"), data.path()));
        assert_eq!(format!("{of_orders}{of_travel}"), of_all, "{tool}");
        let error = run(&format!("{tool} --bucket other"), data.path()).unwrap_err().to_string();
        assert!(error.contains("no bucket `other`, but `orders`, `travel`"), "{error}");
        let bucket = data.path().join("buckets/orders");
        let error = run(&format!("{tool} --bucket orders"), &bucket).unwrap_err().to_string();
        assert!(error.contains("no node's data directory"), "{error}");
    }
}
