//! What a node has noted of a bucket's files: when it stopped in order, and before that in its
//! journal. A file may be sound by itself, and lack what was in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use document::Vbid;
use platform::{Files, OpenMode};
use storage::couchstore::CouchFile;
use storage::couchstore::layout::{self, FileName};
use storage::{Witness, Witnesses};

/// The note. A start takes it away, as from then on the files change.
pub(super) const CLEAN_MARK_NAME: &str = "clean-stop";

/// What was noted when the node stopped in order; `None` if it did not, or runs. A node starts
/// without a note that cannot be read, and says so.
pub(super) fn noted_at_stop(files: &dyn Files, directory: &Path) -> Option<Vec<Witness>> {
    let text = files.read_all(&directory.join(CLEAN_MARK_NAME)).ok()?;
    let noted = Witnesses::decode(&text).unwrap_or_default();
    Some(noted.iter().copied().collect())
}

/// The vBuckets whose files in `data` have not all that was `noted`, in words why not; `when` says
/// of when the note is.
pub(super) fn lacking(
    files: &dyn Files,
    noted: &[Witness],
    when: &str,
    data: &BTreeMap<Vbid, PathBuf>,
) -> Vec<(Vbid, String)> {
    let mut lacking = Vec::new();
    for witness in noted {
        let why = match data.get(&witness.vbid) {
            None => Some("its file is missing"),
            Some(path) if is_behind(files, path, witness) => Some("its file lacks what was in it"),
            Some(_) => None,
        };
        if let Some(why) = why {
            let Witness { vbid, revision, header_position, high_seqno, .. } = witness;
            let was = format!(
                "{why}: {when} it was revision {revision}, with a header at byte \
                 {header_position} and seqno {}",
                high_seqno.0
            );
            lacking.push((*vbid, was));
        }
    }
    lacking
}

/// Whether the file ends before what was noted of it. Of one that cannot be read others say so.
fn is_behind(files: &dyn Files, path: &Path, witness: &Witness) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let FileName::Data(_, revision) = layout::parse(&name) else { return false };
    if revision != witness.revision {
        return revision < witness.revision;
    }
    let opened = CouchFile::open(files, path, OpenMode::Read);
    let newest = opened.and_then(|file| file.newest_header());
    newest.is_ok_and(|(header, _)| header.position < witness.header_position)
}
