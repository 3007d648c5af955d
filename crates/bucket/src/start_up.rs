//! What a bucket does with what it finds in its directory.

use std::path::PathBuf;

use document::{Vbid, VbucketState};
use platform::FileError;
use storage::couchstore::layout::{self, FileName};
use storage::{IgnoredFile, StartReport, StorageError, WhyIgnored};

use crate::bucket::Bucket;
use crate::bucket_file;
use crate::vbucket_slot::VbucketSlot;

/// Why a bucket cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A file operation failed. Callers report it and stop.
    #[error(transparent)]
    File(#[from] FileError),
    /// The bucket's files cannot be used. Callers report it and stop.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The bucket's own description is damaged, or of another version.
    #[error("{}: {what}", path.display())]
    BadDescription {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        what: String,
    },
    /// The executor does not take tasks any more.
    #[error("the executor has been shut down")]
    ExecutorIsGone,
}

impl Bucket {
    /// vBuckets without a file begin empty. One whose file is there and cannot be believed does
    /// not: it stays out of service until a person has looked.
    pub(crate) fn create_missing_vbuckets(&self, report: &StartReport) {
        let mut is_taken = vec![false; self.0.slots.len()];
        let found = report.vbuckets.iter().map(|found| found.vbid);
        let unreadable = report.ignored.iter().filter_map(unreadable_vbucket);
        for vbid in found.chain(unreadable) {
            if let Some(is_taken) = is_taken.get_mut(usize::from(vbid.0)) {
                *is_taken = true;
            }
        }
        for ((vbid, slot), is_taken) in self.0.slots().zip(is_taken) {
            if !is_taken && !slot.is_absent() {
                drop(slot.replace(self.0.new_vbucket(vbid, VbucketState::Active)));
            }
        }
    }

    /// Ends deletions of vBuckets that a crash has cut short: what there is of them is not used.
    pub(crate) fn forget_absent(&self, report: &mut StartReport) {
        self.0.forget_absent(|vbid| {
            report.vbuckets.iter().any(|found| found.vbid == vbid)
                || report.ignored.iter().any(|ignored| is_file_of(ignored, vbid))
        });
        let is_absent = |vbid| self.0.slot(vbid).is_some_and(VbucketSlot::is_absent);
        report.vbuckets.retain(|found| !is_absent(found.vbid));
        report.ignored.retain(|ignored| !unreadable_vbucket(ignored).is_some_and(is_absent));
    }

    pub(crate) fn report_ignored(&self, report: &StartReport) {
        for found in &report.vbuckets {
            if let Some((position, what)) = found.passed_over.skipped.first() {
                let (vbucket, blocks) = (found.vbid.0, found.passed_over.skipped_count);
                tracing::warn!(
                    vbucket,
                    position,
                    what,
                    blocks,
                    "what stands behind the newest header of the vBucket's file is no part of it"
                );
            }
        }
        let behind = report.vbuckets.iter().filter(|found| found.file_is_behind).count();
        if behind > 0 {
            tracing::error!(
                vbuckets = behind,
                "the disk is too full for files to get what the journal has for them; documents \
                 are served from the journal until there is room: make some"
            );
        }
        for IgnoredFile { name, why } in &report.ignored {
            match why {
                WhyIgnored::Foreign if bucket_file::is_own_name(name) => {}
                WhyIgnored::Corrupt(error) => tracing::error!(
                    %error,
                    file = name,
                    "the vBucket's file cannot be read and the vBucket does not serve; restore \
                     the file from a backup, or remove it to begin empty"
                ),
                why => tracing::warn!(file = name, ?why, "a file is not used"),
            }
        }
    }
}

/// Whether it is a file of that vBucket, whatever is in it.
pub(crate) fn is_file_of(ignored: &IgnoredFile, vbid: Vbid) -> bool {
    matches!(layout::parse(&ignored.name), FileName::Data(found, _) if found == vbid)
}

/// The vBucket whose data are in a file that cannot be believed.
fn unreadable_vbucket(ignored: &IgnoredFile) -> Option<Vbid> {
    match ignored.why {
        WhyIgnored::Corrupt(_) => ignored.name.split('.').next()?.parse().ok().map(Vbid),
        _ => None,
    }
}
