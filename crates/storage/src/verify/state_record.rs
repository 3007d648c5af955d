//! Whether the vBucket's state fits the documents beside it.

use document::{Seqno, VbucketState};

use super::findings::{Findings, Scope};
use super::tally::Tally;
use crate::couchstore::{CouchFile, FileHeader};
use crate::error::StorageError;
use crate::records::vbucket_record::{VBSTATE, VbucketRecord};

/// All of this is a warning: the file is what was written, but a node would not load it or would
/// believe something that is not so.
pub(super) fn check(
    file: &CouchFile,
    header: &FileHeader,
    tally: &Tally,
    findings: &mut Findings,
) -> Result<(), StorageError> {
    let mut warning = |what: String| findings.warning(Scope::VbucketState, header.position, what);
    let text = match file.reader(header).local(VBSTATE) {
        Ok(text) => text,
        // The walk through the tree of local documents has said so.
        Err(StorageError::Corrupt { .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    let Some(text) = text else {
        // A file that was created and never committed to.
        if header.high_seqno > 0 {
            warning("no vBucket state: a node would not load this file".to_owned());
        }
        return Ok(());
    };
    let high_seqno = Seqno(header.high_seqno);
    let Some(record) = VbucketRecord::decode(&text, high_seqno) else {
        warning("the vBucket state is not understood: a node would not load this file".to_owned());
        return Ok(());
    };
    check_snapshot(&record, high_seqno, &mut warning);
    for entry in &*record.failover_table {
        if entry.seqno > high_seqno {
            let (uuid, seqno) = (entry.uuid.0, entry.seqno.0);
            warning(format!("branch {uuid} of the history begins at {seqno}, behind its end"));
        }
    }
    if !record.failover_table.is_sorted_by(|newer, older| newer.seqno >= older.seqno) {
        warning("the branches of the history are not in order".to_owned());
    }
    if record.max_cas.0 < tally.max_cas {
        let (said, found) = (record.max_cas.0, tally.max_cas);
        warning(format!("max_cas is {said}, but a document has {found}"));
    }
    Ok(())
}

fn check_snapshot(record: &VbucketRecord, high_seqno: Seqno, warning: &mut impl FnMut(String)) {
    let (start, end) = (record.snapshot_start, record.snapshot_end);
    let range = format!("the snapshot {}..{}", start.0, end.0);
    if start > end {
        warning(format!("{range} ends before it starts"));
    } else if matches!(record.state, VbucketState::Replica | VbucketState::Pending)
        && !(start..=end).contains(&high_seqno)
    {
        warning(format!("{range} of a replica does not hold its high seqno {}", high_seqno.0));
    }
}
