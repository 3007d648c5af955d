//! What a bucket does with what it finds in its directory.

use document::VbucketState;
use storage::couchstore::layout;
use storage::journal::TornTail;
use storage::{IgnoredFile, StartReport, WhyIgnored};

use super::bucket_file;
use crate::core::{Bucket, VbucketSlot};

impl Bucket {
    /// vBuckets without a file begin empty. One whose file is not believed does not, nor one whose
    /// file is gone: it stays out of service until somebody decides what is to become of it.
    pub(crate) fn create_missing_vbuckets(&self, report: &StartReport) {
        let mut is_taken = vec![false; self.0.vbuckets.slots.len()];
        let found = report.vbuckets.iter().map(|found| found.vbid);
        for vbid in found.chain(report.unreadable_vbuckets()) {
            if let Some(is_taken) = is_taken.get_mut(usize::from(vbid.0)) {
                *is_taken = true;
            }
        }
        for ((vbid, slot), is_taken) in self.0.slots().zip(is_taken) {
            if !is_taken && !slot.is_absent() {
                drop(slot.replace(self.0.vbuckets.factory.new_vbucket(vbid, VbucketState::Active)));
            }
        }
    }

    /// Ends deletions of vBuckets that a crash has cut short: what there is of them is not used.
    pub(crate) fn forget_absent(&self, report: &mut StartReport) {
        self.0.forget_absent(|vbid| {
            report.vbuckets.iter().any(|found| found.vbid == vbid)
                || report.ignored.iter().any(|ignored| ignored.vbid() == Some(vbid))
        });
        let is_absent = |vbid| self.0.slot(vbid).is_some_and(VbucketSlot::is_absent);
        report.vbuckets.retain(|found| !is_absent(found.vbid));
        report.ignored.retain(|ignored| !ignored.vbid().is_some_and(is_absent));
    }

    pub(crate) fn report_ignored(&self, report: &StartReport) {
        self.report_journal(report);
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
        for ignored in &report.ignored {
            let command = ignored.vbid().map(|vbid| self.0.reset_command(vbid));
            report_file(ignored, &advice(command.as_deref().unwrap_or("settee reset-vbucket")));
        }
    }

    fn report_journal(&self, report: &StartReport) {
        if report.gives_up_journal {
            tracing::error!(
                "the journal that was in use when the node ended is gone, and \
                 --accept-lost-journal goes on without it: what only the journal held is lost, and \
                 vBuckets begin new branches of history; compare with a replica or a backup"
            );
        }
        if report.journal_note_is_damaged {
            tracing::error!(
                "the file `journal-in-use` is damaged: nobody can tell whether the end of the \
                 journal is missing; compare with a replica or a backup"
            );
        }
        let Some(journal) = &report.journal else { return };
        if let Some(TornTail { file, position, what, written_ns }) = &journal.torn_tail {
            tracing::warn!(
                file = %file.display(),
                position,
                what,
                written_at_seconds = written_ns / 1_000_000_000,
                "the journal ends with a group that is not whole: it was being written when the \
                 node ended, unless the disk has damaged it"
            );
        }
        if let Some(lost) = &journal.lost_end {
            let vbuckets: Vec<String> = report
                .shortened
                .iter()
                .map(|(vbid, seqno)| format!("{vbid} after {seqno}"))
                .collect();
            tracing::error!(
                file = %lost.file.display(),
                position = lost.position,
                last_lsn = %lost.last_lsn,
                known_lsn = lost.known_lsn.map(|lsn| lsn.0),
                vbuckets = vbuckets.join(", "),
                "the end of the journal is missing: these vBuckets may lack what was acknowledged \
                 after these seqnos, and begin new branches of history; compare with a replica, \
                 or stop the node and put back the segments"
            );
        }
    }
}

/// What to do about a file that is not believed.
fn advice(command: &str) -> String {
    format!(
        "the vBucket does not serve, and its file stays as it is; put back the file as it was, \
         promote a replica, or see what `{command}` says (docs/storage.md, Out of service)"
    )
}

/// Says why a file is not used, and what to do.
fn report_file(ignored: &IgnoredFile, advice: &str) {
    let IgnoredFile { name, why } = ignored;
    match why {
        WhyIgnored::Foreign if bucket_file::is_own_name(name) => {}
        WhyIgnored::Foreign if layout::set_aside(name).is_some() => tracing::info!(
            file = name,
            "a damaged file is set aside; remove it when it is of no use any more"
        ),
        WhyIgnored::Foreign => tracing::warn!(file = name, "a file is not used"),
        WhyIgnored::Empty => {
            tracing::warn!(file = name, "a file holds nothing; the vBucket begins empty");
        }
        WhyIgnored::NoState => {
            tracing::error!(
                file = name,
                "the file holds documents and no vBucket state; {}",
                advice
            );
        }
        WhyIgnored::OutsideSnapshot => tracing::error!(
            file = name,
            "the replica's file ends outside of its snapshot, so that something of it is missing; \
             {}",
            advice
        ),
        WhyIgnored::Corrupt(error) => {
            tracing::error!(%error, file = name, "the file is damaged; {}", advice);
        }
        WhyIgnored::Unreadable(error) => {
            tracing::error!(%error, file = name, "the file cannot be read; {}", advice);
        }
        WhyIgnored::OtherHistory(error) => tracing::error!(
            %error,
            file = name,
            "the file and the journal are of different times, and the journal is kept; {}", advice
        ),
        WhyIgnored::Contradicted { known, found: None } => tracing::error!(
            file = name,
            position = known.header_position,
            high_seqno = known.high_seqno.0,
            "the file was there and is missing; {}",
            advice
        ),
        WhyIgnored::Contradicted { known, found: Some(found) } => tracing::error!(
            file = name,
            found_revision = found.revision,
            found_position = found.header_position,
            found_seqno = found.high_seqno.0,
            revision = known.revision,
            position = known.header_position,
            high_seqno = known.high_seqno.0,
            "the file is not what it was: its end is missing, or it is an older copy; {}",
            advice
        ),
    }
}
