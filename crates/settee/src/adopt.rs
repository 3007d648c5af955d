//! `settee adopt --check`: what of another server's directory a node will take over, and what not.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use bucket::{OriginalBucket, look_at_original};
use clap::Args;
use document::Vbid;
use platform::{Files, OpenMode};
use serde_json::{Value, json};
use storage::DocumentCounts;
use storage::couchstore::CouchFile;

/// The mark of a node's own data directory.
const MARK_NAME: &str = "settee.json";
/// What an archive of cbbackupmgr has in it.
const ARCHIVE_MARK_NAME: &str = ".backup";
/// Where a Couchbase Server may keep its buckets, below its data directory.
const BUCKET_PLACES: [&str; 2] = ["", "data"];

/// What a node does not take over of any directory, because it is nothing that it has.
const LEFT: [&str; 5] = [
    "users, groups and their passwords: make them with settee user set, or by files of --init-dir",
    "settings of buckets, such as quota and eviction: say them as flags of settee serve",
    "the cluster and its map: other nodes have directories of their own, each is adopted by itself",
    "indexes, queries, views, full-text, analytics and eventing: there are none here",
    "certificates, replications to other clusters and encryption keys: set them up anew",
];

/// The arguments of `settee adopt`.
#[derive(Args, Debug)]
#[command(after_help = "\
A node takes a Couchbase Server's couchstore bucket over by itself, when it starts with that
directory: settee serve --data-dir DIRECTORY --bucket NAME. This tells beforehand what will be there
and what will not, and changes nothing. Stop the server first.
Exit code: 0 when there is a bucket to be taken over and nothing of it is damaged, 1 otherwise.

Examples:
  settee adopt --check /opt/couchbase/var/lib/couchbase/data
  settee adopt --check -o json /srv/copy | jq '.buckets[].damaged'")]
pub struct AdoptArguments {
    /// Look, and change nothing
    #[arg(long, required = true)]
    check: bool,
    /// The directory in which a Couchbase Server has its buckets, or a copy of it
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
    /// How it is told: for people, or as JSON
    #[arg(short, long, value_name = "FORMAT", default_value = "table",
          value_parser = ["table", "json"])]
    output: String,
}

/// A bucket that was found, or why it is not taken over.
struct Found {
    name: String,
    outcome: Result<Summary, String>,
}

/// What a node would have of a bucket.
#[derive(Default)]
struct Summary {
    vbucket_count: u16,
    /// Other numbers of vBuckets that it may have as well.
    others: Vec<u16>,
    file_count: usize,
    documents: u64,
    tombstones: u64,
    bytes: u64,
    /// vBuckets that would be out of service, and why.
    damaged: Vec<(Vbid, String)>,
}

/// Looks at a directory.
///
/// # Errors
/// It is none that a node would take over.
pub fn adopt(arguments: &AdoptArguments, files: &dyn Files) -> anyhow::Result<ExitCode> {
    let directory = &arguments.directory;
    assert!(arguments.check, "the command line asks for it");
    let found = find(files, directory)?;
    let text = if arguments.output == "json" {
        format!("{}\n", to_json(&found))
    } else {
        in_words(directory, &found)
    };
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error.into()),
        _ => {}
    }
    let is_whole =
        |found: &Found| found.outcome.as_ref().is_ok_and(|summary| summary.damaged.is_empty());
    Ok(if found.iter().all(is_whole) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The buckets in a directory.
fn find(files: &dyn Files, directory: &Path) -> anyhow::Result<Vec<Found>> {
    let shown = directory.display();
    let names = files.list(directory).with_context(|| format!("{shown} cannot be read"))?;
    if names.iter().any(|name| name == MARK_NAME) {
        bail!("{shown} is a node's own data directory; settee doctor {shown} looks at it");
    }
    if names.iter().any(|name| name == ARCHIVE_MARK_NAME) {
        bail!(
            "{shown} is an archive of cbbackupmgr, which is not read: have cbbackupmgr restore it \
             into a Couchbase Server, and adopt the directory of that"
        );
    }
    if bucket::is_bucket_directory(files, directory) {
        bail!("{shown} is a bucket itself; give the directory that it is in");
    }
    let mut found = Vec::new();
    for place in BUCKET_PLACES.map(|place| directory.join(place)) {
        let mut names = files.list(&place).unwrap_or_default();
        names.retain(|name| !name.starts_with('.'));
        names.sort();
        for name in names {
            let path = place.join(&name);
            if bucket::is_bucket_directory(files, &path) {
                found.push(Found { outcome: look(files, &path), name });
            }
        }
    }
    if found.is_empty() {
        bail!(
            "{shown} holds no bucket with couchstore files; give the directory in which the \
             server's buckets are, such as /opt/couchbase/var/lib/couchbase/data"
        );
    }
    Ok(found)
}

fn look(files: &dyn Files, directory: &Path) -> Result<Summary, String> {
    let original = look_at_original(files, directory).map_err(|error| error.to_string())?;
    let Some(OriginalBucket { vbucket_count, others, files: newest }) = original else {
        return Err("it has no files of vBuckets".to_owned());
    };
    let mut summary =
        Summary { vbucket_count, others, file_count: newest.len(), ..Summary::default() };
    for (vbid, path) in newest {
        if let Err(error) = summary.add(files, &path) {
            summary.damaged.push((vbid, error.to_string()));
        }
    }
    Ok(summary)
}

impl Summary {
    fn add(&mut self, files: &dyn Files, path: &Path) -> Result<(), bucket::StorageError> {
        let file = CouchFile::open(files, path, OpenMode::Read)?;
        let (header, _) = file.newest_header()?;
        let DocumentCounts { documents, tombstones } = DocumentCounts::of(&file, &header)?;
        self.documents += documents;
        self.tombstones += tombstones;
        self.bytes += file.size()?;
        Ok(())
    }
}

fn in_words(directory: &Path, found: &[Found]) -> String {
    let mut text = String::new();
    let mut line = |arguments: std::fmt::Arguments<'_>| {
        writeln!(text, "{arguments}").expect("text takes what is written to it");
    };
    for Found { name, outcome } in found {
        let summary = match outcome {
            Ok(summary) => summary,
            Err(why) => {
                line(format_args!("bucket {name}: NOT taken over: {why}"));
                continue;
            }
        };
        let Summary { vbucket_count, others, file_count, documents, tombstones, bytes, damaged } =
            summary;
        line(format_args!(
            "bucket {name}: taken over: {documents} documents and {tombstones} tombstones, {:.1} \
             MB, {file_count} of {vbucket_count} vBuckets, with expiry, attributes, collections, \
             and history",
            *bytes as f64 / 1e6
        ));
        if *file_count < usize::from(*vbucket_count) {
            line(format_args!(
                "  vBuckets without a file begin empty: other nodes of the cluster had them"
            ));
        }
        if !others.is_empty() {
            let others: Vec<String> = others.iter().map(u16::to_string).collect();
            let others = others.join(", ");
            line(format_args!(
                "  or it has as many vBuckets as one of these: {others}; then say that with \
                 --vbuckets"
            ));
        }
        for (vbid, why) in damaged {
            line(format_args!("  vBucket {vbid} would be out of service: {why}"));
        }
        let directory = directory.display();
        line(format_args!("  settee serve --data-dir {directory} --bucket {name}"));
    }
    line(format_args!("left behind:"));
    for left in LEFT {
        line(format_args!("  {left}"));
    }
    text
}

fn to_json(found: &[Found]) -> Value {
    let one = |Found { name, outcome }: &Found| match outcome {
        Ok(summary) => {
            let damaged = summary.damaged.iter();
            let damaged: Vec<_> =
                damaged.map(|(vbid, why)| json!({"vbucket": vbid.0, "why": why})).collect();
            json!({
                "bucket": name,
                "taken_over": true,
                "vbuckets": summary.vbucket_count,
                "or_vbuckets": summary.others,
                "files": summary.file_count,
                "documents": summary.documents,
                "tombstones": summary.tombstones,
                "bytes": summary.bytes,
                "damaged": damaged,
            })
        }
        Err(why) => json!({"bucket": name, "taken_over": false, "why": why}),
    };
    json!({"buckets": found.iter().map(one).collect::<Vec<_>>(), "left_behind": LEFT})
}

#[cfg(test)]
mod tests {
    use platform::files::RealFiles;

    use super::*;

    const GOLDEN: &[u8] =
        include_bytes!("../../storage/tests/fixtures/couchstore/golden-v14.couch.1");

    fn directory(buckets: &[(&str, &str, &[u8])]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (bucket, name, content) in buckets {
            let directory = root.path().join(bucket);
            RealFiles.create_directories(&directory).unwrap();
            RealFiles.replace_all(&directory.join(name), content).unwrap();
        }
        root
    }

    #[test]
    fn what_is_taken_over_is_told_with_what_is_damaged() {
        let root = directory(&[
            ("data/orders", "7.couch.1", GOLDEN),
            ("travel", "0.couch.2", b"no couchstore file"),
            ("large", "magma.0", b""),
            ("@2i", "index", b""),
        ]);
        let found = find(&RealFiles, root.path()).unwrap();
        let names: Vec<&str> = found.iter().map(|found| found.name.as_str()).collect();
        assert_eq!(names, ["large", "travel", "orders"]);
        let said = in_words(root.path(), &found);
        for part in [
            "bucket large: NOT taken over: ",
            "Magma",
            "bucket travel: taken over: 0 documents",
            "  vBucket 0 would be out of service: ",
            "bucket orders: taken over: ",
            " MB, 1 of ",
            "--bucket orders\n",
            "users, groups and their passwords",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let told = to_json(&found);
        assert!(told["buckets"][2]["documents"].as_u64().unwrap() > 0, "{told}");
        assert_eq!(told["buckets"][1]["damaged"][0]["vbucket"], 0);
        assert_eq!(told["buckets"][0]["taken_over"], false);
    }

    #[test]
    fn prepares_are_no_documents() {
        const MIXED: &[u8] =
            include_bytes!("../../storage/tests/fixtures/couchstore/mixed-rollbacks-v14.couch.1");
        let root = directory(&[("mixed", "0.couch.1", MIXED)]);
        let path = root.path().join("mixed/0.couch.1");
        let file = CouchFile::open(&RealFiles, &path, OpenMode::Read).unwrap();
        let verified = storage::verify_file(&file).unwrap();
        assert!(verified.prepare_count > 0, "otherwise this shows nothing");
        let told = to_json(&find(&RealFiles, root.path()).unwrap());
        assert_eq!(told["buckets"][0]["documents"], verified.document_count);
        assert_eq!(told["buckets"][0]["tombstones"], verified.tombstone_count);
    }

    #[test]
    fn a_directory_that_is_none_of_a_server_is_refused_with_what_to_do() {
        for (buckets, expected) in [
            (&[("a", "b", &b""[..])][..], "holds no bucket with couchstore files"),
            (&[("", "0.couch.1", GOLDEN)], "is a bucket itself"),
            (&[("", "settee.json", b"{}")], "settee doctor"),
            (&[("", ".backup", b"")], "archive of cbbackupmgr"),
        ] {
            let root = directory(buckets);
            let error = find(&RealFiles, root.path()).err().unwrap().to_string();
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }
}
