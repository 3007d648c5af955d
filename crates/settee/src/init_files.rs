//! Files that say what a node has from its first start on: buckets with scopes and collections,
//! groups, and users (`--init-dir`).
//!
//! Each is applied once. What is there already stays as it is, so that a start that was cut off in
//! the middle is simply repeated.

mod applied;
mod wanted;

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use auth::Users;
use management::{BucketOrderError, ManifestEditError, NodeView};
use platform::Files;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use self::applied::Applied;
use self::wanted::{Wanted, WantedBucket};

/// What the names of such files end with.
const EXTENSION: &str = "json";
/// Behind what is wrong with a file.
const ADVICE: &str = "correct the file and start again; what is there already stays as it is";

/// All files of the directory, in the order of their names.
#[derive(Default)]
pub(crate) struct InitFiles {
    files: Vec<InitFile>,
}

/// The node that is to have it.
pub(crate) struct InitTarget<'a> {
    pub(crate) node: &'a dyn NodeView,
    pub(crate) users: &'a Users,
    /// Since 1970: when passwords were set.
    pub(crate) now_seconds: u64,
}

struct InitFile {
    name: String,
    path: PathBuf,
    entries: Vec<Entry>,
}

/// One thing that the node is to have.
struct Entry {
    /// Where it begins, counted from 1.
    line: usize,
    wanted: Wanted,
}

/// What a file is made of. Entries are read one by one, to say in which line something is wrong.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document<'a> {
    #[serde(borrow, default)]
    buckets: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    groups: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    users: Vec<&'a RawValue>,
}

impl InitFiles {
    /// Reads and checks all files; none, if there is no directory of them.
    ///
    /// # Errors
    /// One cannot be read, or something in it can never be: which, in which line, and why.
    pub(crate) fn read(files: &dyn Files, directory: Option<&Path>) -> anyhow::Result<Self> {
        let Some(directory) = directory else { return Ok(Self::default()) };
        let advice = || {
            let directory = directory.display();
            format!("--init-dir {directory} cannot be read; name a directory of .json files")
        };
        let mut names = files.list(directory).with_context(advice)?;
        names.sort_unstable();
        let mut read = Vec::new();
        for name in names {
            let path = directory.join(&name);
            // Volumes of container systems have links there whose names begin with a point.
            if name.starts_with('.') {
                continue;
            }
            if path.extension().is_some_and(|extension| extension == EXTENSION) {
                let text = platform::files::read_text(&path).with_context(advice)?;
                let entries = entries_of(&text, &path)?;
                read.push(InitFile { name, path, entries });
            } else {
                let path = path.display();
                tracing::warn!(%path, "not applied: its name does not end in .json");
            }
        }
        Ok(Self { files: read })
    }

    /// Has the node have what is in those files that were not applied before, which is kept in its
    /// data directory.
    ///
    /// # Errors
    /// Something cannot be on this node: which file, which line, and why. What came before it is
    /// there.
    pub(crate) fn apply(
        &self,
        target: &InitTarget<'_>,
        files: &dyn Files,
        data_directory: &Path,
    ) -> anyhow::Result<()> {
        let mut applied = Applied::read(files, data_directory)?;
        for file in &self.files {
            if applied.has(&file.name) {
                continue;
            }
            let mut made = 0;
            for entry in &file.entries {
                let is_new = entry.wanted.make(target);
                made += usize::from(is_new.map_err(|why| wrong(&file.path, entry.line, &why))?);
            }
            applied.add(&file.name)?;
            tracing::info!(
                path = %file.path.display(),
                entries = file.entries.len(),
                made,
                "the init file is applied"
            );
        }
        Ok(())
    }
}

/// What a file asks for, in the order in which it is made.
fn entries_of(text: &str, path: &Path) -> anyhow::Result<Vec<Entry>> {
    // A list would be read as the values of an object's fields.
    let content = text.trim_start();
    if content.starts_with('[') {
        let why = "give an object with the lists \"buckets\", \"groups\" and \"users\"";
        return Err(wrong(path, line_of(text, content), why));
    }
    let document: Document<'_> = serde_json::from_str(text)
        .map_err(|error| wrong(path, error.line(), &without_place(&error)))?;
    let mut entries = Vec::new();
    read_all(text, path, &document.buckets, Wanted::Bucket, &mut entries)?;
    read_all(text, path, &document.groups, Wanted::Group, &mut entries)?;
    read_all(text, path, &document.users, Wanted::User, &mut entries)?;
    for entry in &entries {
        entry.wanted.check().map_err(|why| wrong(path, entry.line, &why))?;
    }
    Ok(entries)
}

fn read_all<T: DeserializeOwned>(
    text: &str,
    path: &Path,
    parts: &[&RawValue],
    wanted: impl Fn(T) -> Wanted,
    entries: &mut Vec<Entry>,
) -> anyhow::Result<()> {
    for part in parts {
        let line = line_of(text, part.get());
        let read = serde_json::from_str(part.get());
        let read = read.map_err(|error| {
            // Errors count lines from the part's own first.
            wrong(path, line + error.line().saturating_sub(1), &without_place(&error))
        })?;
        entries.push(Entry { line, wanted: wanted(read) });
    }
    Ok(())
}

/// The line, counted from 1, in which a part of a text begins.
fn line_of(text: &str, part: &str) -> usize {
    let offset = (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize);
    let before = offset.and_then(|offset| text.as_bytes().get(..offset));
    let before = before.expect("a part of a text lies within it");
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

/// What an error says, but for the line and column, which are those of a part.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(why, _)| why.to_owned())
}

fn wrong(path: &Path, line: usize, why: &str) -> anyhow::Error {
    anyhow!("{}:{line}: {why}; {ADVICE}", path.display())
}

impl Wanted {
    /// Has the node have it. False if it is there already.
    ///
    /// # Errors
    /// Why it cannot be.
    fn make(&self, target: &InitTarget<'_>) -> Result<bool, String> {
        match self {
            Self::Bucket(bucket) => make_bucket(bucket, target.node),
            Self::Group(group) => group.make(target),
            Self::User(user) => user.make(target),
        }
    }
}

/// A bucket that is there keeps its settings, and gets the collections that it lacks.
fn make_bucket(wanted: &WantedBucket, node: &dyn NodeView) -> Result<bool, String> {
    let name = &wanted.name;
    let is_new = match node.create_bucket(name, &wanted.order()?, false) {
        Ok(()) => true,
        Err(BucketOrderError::Exists) => false,
        Err(BucketOrderError::NotFound) => return Err(format!("the bucket {name} went away")),
        Err(BucketOrderError::Invalid(word, why)) => return Err(format!("{word}: {why}")),
        Err(BucketOrderError::Failed(why)) => return Err(why),
    };
    let bucket = node.bucket(name).ok_or_else(|| format!("the bucket {name} went away"))?;
    let manifest = bucket.manifest();
    let mut has_new_collections = false;
    for edit in wanted.missing(&manifest) {
        bucket.edit_manifest(edit).map_err(|error| match error {
            ManifestEditError::Refused(why) => why.to_string(),
            ManifestEditError::Failed(why) => why,
        })?;
        has_new_collections = true;
    }
    Ok(is_new || has_new_collections)
}

#[cfg(test)]
mod tests {
    use platform::files::RealFiles;

    use super::*;

    fn read(text: &str) -> anyhow::Result<Vec<Entry>> {
        entries_of(text, Path::new("/init/10.json"))
    }

    #[test]
    fn entries_are_made_in_the_order_in_which_they_need_each_other() {
        let text = r#"{
          "users": [{"name": "bob", "password": "hunter22", "roles": "data_reader[travel]"}],
          "buckets": [
            {"name": "travel", "ramQuotaMB": 256, "flushEnabled": true, "scopes": [
              {"name": "shop", "collections": [{"name": "orders", "maxTTL": 60}]}]},
            {"name": "session", "ramQuotaMB": 100, "bucketType": "ephemeral"}],
          "groups": [{"name": "readers", "roles": "data_reader[*]"}]
        }"#;
        let entries = read(text).unwrap();
        let lines: Vec<usize> = entries.iter().map(|entry| entry.line).collect();
        assert_eq!(lines, [4, 6, 7, 2]);
        let kinds: Vec<&str> = entries
            .iter()
            .map(|entry| match entry.wanted {
                Wanted::Bucket(_) => "bucket",
                Wanted::Group(_) => "group",
                Wanted::User(_) => "user",
            })
            .collect();
        assert_eq!(kinds, ["bucket", "bucket", "group", "user"]);
        assert!(read("{}").unwrap().is_empty());
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, place, why) in [
            ("", "10.json:1: ", "EOF while parsing"),
            ("\n[]", "10.json:2: ", "give an object"),
            ("{\n\"bucket\": []}", "10.json:2: ", "unknown field `bucket`"),
            ("{\"buckets\": [\n{\"ramQuotaMB\": 100}]}", ":2: ", "missing field `name`"),
            ("{\"buckets\": [{\n\"name\": \"a\",\n\"ramQuotaMB\": [1]}]}", ":1: ", "ramQuotaMB"),
            ("{\"buckets\": [\n\n{\"name\": \"a\"}]}", ":3: ", "The RAM Quota must be specified"),
            (
                "{\"buckets\": [{\"name\": \"a/b\", \"ramQuotaMB\": 100}]}",
                ":1: ",
                "a bucket's name",
            ),
            (
                "{\"buckets\": [{\"name\": \"a\", \"ramQuotaMB\": 100, \"what\": 1}]}",
                ":1: ",
                "what: Unsupported key",
            ),
            (
                "{\"buckets\": [{\"name\": \"a\", \"ramQuotaMB\": 100, \"scopes\": \
                 [{\"name\": \"_s\"}]}]}",
                ":1: ",
                "First character must not be",
            ),
            (
                "{\"buckets\": [{\"name\": \"a\", \"ramQuotaMB\": 100,\n\"scopes\": [{}]}]}",
                ":2: ",
                "missing field `name`",
            ),
            (
                "{\"users\": [\n{\"name\": \"b\", \"password\": \"hunter22\", \
                 \"roles\": \"root\"}]}",
                ":2: ",
                "root",
            ),
            ("{\"users\": [\n{\"name\": \"b\", \"password\": \"x\"}]}", ":2: ", "at least 6"),
            ("{\"users\": [\n{\"name\": \"b\"}]}", ":2: ", "missing field `password`"),
            ("{\"groups\": [\n\n{\"name\": \"b\", \"role\": \"\"}]}", ":3: ", "unknown field"),
        ] {
            let error = read(text).err().expect(text).to_string();
            assert!(error.contains(place) && error.contains(why), "{text}: {error}");
            assert!(error.ends_with(ADVICE), "{error}");
        }
    }

    #[test]
    fn files_are_read_in_the_order_of_their_names_and_others_are_left() {
        let root = tempfile::tempdir().unwrap();
        for name in ["20.json", "10.json", "README.md", ".hidden.json"] {
            RealFiles.replace_all(&root.path().join(name), b"{}").unwrap();
        }
        let read = InitFiles::read(&RealFiles, Some(root.path())).unwrap();
        let names: Vec<&str> = read.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["10.json", "20.json"]);
        let missing = InitFiles::read(&RealFiles, Some(Path::new("/no/such")));
        assert!(missing.err().unwrap().to_string().contains("--init-dir /no/such"));
        assert!(InitFiles::read(&RealFiles, None).unwrap().files.is_empty());
    }
}
