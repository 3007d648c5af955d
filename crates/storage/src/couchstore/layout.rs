//! The names of the files in a bucket's directory, decided here alone.
//!
//! ```text
//! <vbid>.couch.<revision>                          a vBucket's file
//! <vbid>.couch.boot                                one that is being created
//! <vbid>.couch.<revision>.compact                  one that is being compacted
//! <vbid>.couch.<revision>.compact.btree-tmp_<n>    what that spools
//! <vbid>.couch.<revision>.damaged[-<n>]            a damaged one that was set aside, for people
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use document::Vbid;

/// What a name in a bucket's directory means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileName {
    /// A vBucket's file in one of its revisions.
    Data(Vbid, u64),
    /// Left behind by a creation or a compaction that did not end.
    Leftover(Vbid),
    /// Belongs to the original's server and is of no use to us: `master.couch.*`.
    Ignored,
    /// Not ours.
    Foreign,
}

/// The name of a vBucket's file.
pub fn data_file(vbid: Vbid, revision: u64) -> String {
    format!("{vbid}.couch.{revision}")
}

/// The name under which a vBucket's file is created.
pub fn boot_file(vbid: Vbid) -> String {
    format!("{vbid}.couch.boot")
}

/// What a compaction appends to the name of the file that it copies.
pub(crate) const COMPACT_SUFFIX: &str = ".compact";

/// What is appended to the name of a damaged file when another takes its place.
const DAMAGED_SUFFIX: &str = ".damaged";

/// The names under which a damaged file may be set aside, of which the first that is free counts.
pub(crate) fn damaged_files(name: &str) -> impl Iterator<Item = String> {
    let first = format!("{name}{DAMAGED_SUFFIX}");
    let further = (2_u32..).map(move |number| format!("{name}{DAMAGED_SUFFIX}-{number}"));
    std::iter::once(first).chain(further)
}

/// Of which vBucket a damaged file was set aside, and in which revision; `None` for other names. No
/// start uses such a file or removes it.
pub fn set_aside(name: &str) -> Option<(Vbid, u64)> {
    let (name, number) = name.rsplit_once(DAMAGED_SUFFIX)?;
    let is_number = |number: &str| decimal(number).is_some_and(|number| number > 1);
    if !number.is_empty() && !number.strip_prefix('-').is_some_and(is_number) {
        return None;
    }
    match parse(name) {
        FileName::Data(vbid, revision) => Some((vbid, revision)),
        _ => None,
    }
}

/// Sorts a name.
pub fn parse(name: &str) -> FileName {
    let Some((vbid, rest)) = name.split_once(".couch.") else { return FileName::Foreign };
    if vbid == "master" {
        return FileName::Ignored;
    }
    let Some(vbid) = decimal(vbid).and_then(|vbid| u16::try_from(vbid).ok()).map(Vbid) else {
        return FileName::Foreign;
    };
    if rest == "boot" {
        return FileName::Leftover(vbid);
    }
    let (revision, suffix) = rest.split_once('.').unwrap_or((rest, ""));
    match (decimal(revision), suffix) {
        (Some(revision), "") if rest == revision.to_string() => FileName::Data(vbid, revision),
        (Some(_), "compact") => FileName::Leftover(vbid),
        (Some(_), suffix) if suffix.starts_with("compact.btree-tmp_") => FileName::Leftover(vbid),
        _ => FileName::Foreign,
    }
}

/// A number as it is written here: digits, no sign, no leading zero.
fn decimal(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// The highest revision of each vBucket's file, which is the one that counts, of these names.
pub fn newest_files(directory: &Path, names: &[String]) -> BTreeMap<Vbid, PathBuf> {
    let mut revisions: BTreeMap<Vbid, u64> = BTreeMap::new();
    for name in names {
        if let FileName::Data(vbid, revision) = parse(name) {
            let newest = revisions.entry(vbid).or_insert(revision);
            *newest = revision.max(*newest);
        }
    }
    let path = |(vbid, revision)| (vbid, directory.join(data_file(vbid, revision)));
    revisions.into_iter().map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_by_what_start_up_does_with_them() {
        let cases = [
            ("0.couch.1", FileName::Data(Vbid(0), 1)),
            ("1023.couch.17", FileName::Data(Vbid(1023), 17)),
            ("7.couch.boot", FileName::Leftover(Vbid(7))),
            ("7.couch.3.compact", FileName::Leftover(Vbid(7))),
            ("7.couch.3.compact.btree-tmp_01", FileName::Leftover(Vbid(7))),
            ("master.couch.1", FileName::Ignored),
            ("7.couch.", FileName::Foreign),
            ("7.couch.1.", FileName::Foreign),
            ("7.couch.01", FileName::Foreign),
            ("+7.couch.1", FileName::Foreign),
            ("7.couch.x", FileName::Foreign),
            ("70000.couch.1", FileName::Foreign),
            ("7.couch.3.old", FileName::Foreign),
            ("access.log", FileName::Foreign),
            ("", FileName::Foreign),
        ];
        for (name, meaning) in cases {
            assert_eq!(parse(name), meaning, "{name}");
        }
        for name in damaged_files("7.couch.3").take(3) {
            assert_eq!(set_aside(&name), Some((Vbid(7), 3)), "{name}");
            assert_eq!(parse(&name), FileName::Foreign, "{name}");
        }
        for name in ["7.couch.3", "7.couch.3.damaged-1", "x.damaged", "7.couch.3.damaged.old"] {
            assert_eq!(set_aside(name), None, "{name}");
        }
        assert_eq!(parse(&data_file(Vbid(12), 34)), FileName::Data(Vbid(12), 34));
        assert_eq!(parse(&boot_file(Vbid(12))), FileName::Leftover(Vbid(12)));
        let compacted = data_file(Vbid(12), 34) + COMPACT_SUFFIX;
        assert_eq!(parse(&compacted), FileName::Leftover(Vbid(12)));
    }
}
