//! What follows from damaged files: damage takes one vBucket, and the others go on.

use document::Vbid;
use platform::redaction::UserData;
use storage::{DamagedBodies, IgnoredFile, StartReport, StorageError, WhyIgnored};

use crate::core::{Bucket, BucketCore, DamageKind, VbucketDamage, VbucketSlot};

impl Bucket {
    /// The vBuckets whose files are damaged, in order.
    pub fn damaged_vbuckets(&self) -> Vec<VbucketDamage> {
        let damage = |(vbid, slot): (Vbid, &VbucketSlot)| {
            let (kind, reason) = slot.damage.get()?;
            Some(VbucketDamage { vbid, kind, reason })
        };
        self.0.slots().filter_map(damage).collect()
    }

    /// What is wrong with a vBucket's file.
    pub fn damage_of(&self, vbid: Vbid) -> Option<DamageKind> {
        self.0.slot(vbid)?.damage.kind()
    }

    /// The same, once nobody is about to take the vBucket back or to build it anew. Not for
    /// front-end workers.
    pub fn settled_damage_of(&self, vbid: Vbid) -> Option<DamageKind> {
        let slot = self.0.slot(vbid)?;
        let _settled = slot.lock_history();
        slot.damage.kind()
    }

    /// Takes the vBuckets out of service whose files a start did not believe.
    pub(crate) fn note_unreadable_vbuckets(&self, report: &StartReport) {
        for vbid in report.unreadable_vbuckets() {
            let mut files = report.ignored.iter();
            let reason = match files.find(|ignored| ignored.vbid() == Some(vbid)) {
                // Errors name the file, in full.
                Some(IgnoredFile { why, .. }) if why.is_error() => {
                    format!("{why}; {}", advice(why))
                }
                Some(IgnoredFile { name, why }) => format!("{name}: {why}; {}", advice(why)),
                None => "its file is missing; put it back".to_owned(),
            };
            if let Some(slot) = self.0.slot(vbid) {
                slot.damage.note(DamageKind::OutOfService, &reason);
            }
        }
    }
}

impl BucketCore {
    /// What an operator types to see what a vBucket would lose that begins anew.
    pub(crate) fn reset_command(&self, vbid: Vbid) -> String {
        format!("settee reset-vbucket {vbid} --bucket {}", self.config.name)
    }

    /// The file of a vBucket that was to be loaded cannot be read. Others go on.
    pub(crate) fn give_up_loading(&self, vbid: Vbid, error: &StorageError) {
        let Some(slot) = self.slot(vbid) else { return };
        // Who tries to bring the file up to date has said how that went.
        let _history = slot.lock_history();
        let _file = slot.lock_file();
        // The bucket may have been emptied meanwhile, and the vBucket deleted after that.
        if !slot.awaits_loading() {
            return;
        }
        self.store.distrust(vbid);
        slot.damage.note(DamageKind::OutOfService, &error.to_string());
        // Nobody tries that again from now on.
        self.forget_failed_writes(vbid);
        tracing::error!(
            %error,
            vbucket = vbid.0,
            "the vBucket's file cannot be read and the vBucket does not serve; promote a replica \
             of it, or see what `{}` says",
            self.reset_command(vbid)
        );
    }

    /// The file of one vBucket cannot be written any more. Another try would not help; the others
    /// go on.
    pub(crate) fn give_up_file(&self, vbid: Vbid, error: &StorageError) {
        let Some(slot) = self.slot(vbid) else { return };
        let is_news = slot.damage.note(DamageKind::RefusesWrites, &error.to_string());
        if is_news {
            self.store.distrust(vbid);
        }
        // Behind the mark: who fails from now on finds that, and forgets it himself.
        self.forget_failed_writes(vbid);
        if !is_news {
            return;
        }
        tracing::error!(
            %error,
            vbucket = vbid.0,
            "the vBucket cannot be flushed and refuses writes; a replica is built anew by itself; \
             of an active one promote a replica, or see what `{}` says",
            self.reset_command(vbid)
        );
        self.tell_streams(|streams| streams.file_damaged(vbid));
    }

    /// A compaction has copied all of a vBucket's file, and what could not be read as it was. Each
    /// document of that is told once.
    pub(crate) fn note_damaged_bodies(&self, vbid: Vbid, bodies: &DamagedBodies) {
        let Some(slot) = self.slot(vbid) else { return };
        for body in slot.damage.note_bodies(bodies) {
            tracing::error!(
                error = %body.error,
                vbucket = vbid.0,
                document = %UserData(&body.document),
                seqno = body.seqno.0,
                position_now = body.copy_position,
                damaged_count = bodies.count,
                "a document is damaged and cannot be read; the file goes on being used: write the \
                 document again, delete it, or promote a replica of the vBucket"
            );
        }
    }

    /// vBuckets whose files are damaged.
    pub(crate) fn damaged_count(&self) -> usize {
        self.slots().filter(|(_, slot)| slot.damage.kind().is_some()).count()
    }
}

/// What to do with a file that is not believed, apart from doing without it.
fn advice(why: &WhyIgnored) -> &'static str {
    match why {
        WhyIgnored::Unreadable(_) => "see that the disk is sound and that the node may read it",
        WhyIgnored::OutsideSnapshot => "have it built anew from the active copy",
        WhyIgnored::Contradicted { found: None, .. } => "put it back",
        WhyIgnored::Contradicted { .. } | WhyIgnored::OtherHistory(_) => {
            "put the newest one back, whole"
        }
        WhyIgnored::Foreign | WhyIgnored::Empty | WhyIgnored::NoState | WhyIgnored::Corrupt(_) => {
            "put it back as it was"
        }
    }
}
