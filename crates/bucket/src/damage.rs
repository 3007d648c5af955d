//! What is wrong with the files of vBuckets. Damage takes one vBucket, and stays visible until
//! another file is in the damaged one's place.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use document::{Seqno, Vbid};
use storage::{DamagedBodies, DamagedBody, IgnoredFile, StartReport, StorageError, WhyIgnored};

use crate::bucket::{Bucket, BucketCore};
use crate::write_gate::WritePath;

/// How much of a vBucket its damaged file takes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DamageKind {
    /// Something cannot be read from the file, which goes on being used.
    InPart,
    /// Nothing can be written to the file. What is in memory is served, and writes are refused.
    RefusesWrites,
    /// Nothing in the file is believed, or there should be one and is none. The vBucket does not
    /// serve.
    OutOfService,
}

/// One vBucket whose file is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VbucketDamage {
    /// Which.
    pub vbid: Vbid,
    /// What it cannot do.
    pub kind: DamageKind,
    /// What is wrong, for people.
    pub reason: Arc<str>,
}

/// What is wrong with one vBucket's file, if anything is.
#[derive(Debug, Default)]
pub(crate) struct DamageMark {
    /// The kind, for those in a hurry; changed under `reason`.
    kind: AtomicU8,
    reason: Mutex<Option<Reason>>,
}

/// What is wrong.
#[derive(Debug)]
struct Reason {
    text: Arc<str>,
    /// The documents of which the log tells.
    told: Vec<Seqno>,
}

impl DamageKind {
    /// The name in statistics.
    pub fn name(self) -> &'static str {
        match self {
            Self::InPart => "in part",
            Self::RefusesWrites => "refuses writes",
            Self::OutOfService => "out of service",
        }
    }

    fn code(self) -> u8 {
        match self {
            Self::InPart => 1,
            Self::RefusesWrites => 2,
            Self::OutOfService => 3,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        [Self::InPart, Self::RefusesWrites, Self::OutOfService]
            .into_iter()
            .find(|kind| kind.code() == code)
    }
}

impl DamageMark {
    /// The kind of damage.
    pub(crate) fn kind(&self) -> Option<DamageKind> {
        DamageKind::from_code(self.kind.load(Ordering::Acquire))
    }

    /// Kind and reason.
    pub(crate) fn get(&self) -> Option<(DamageKind, Arc<str>)> {
        let reason = self.lock();
        Some((self.kind()?, Arc::clone(&reason.as_ref()?.text)))
    }

    /// Notes damage, unless as much is noted. Whether it is news.
    pub(crate) fn note(&self, kind: DamageKind, why: &str) -> bool {
        let mut reason = self.lock();
        if self.kind() >= Some(kind) {
            return false;
        }
        *reason = Some(Reason { text: why.into(), told: Vec::new() });
        self.kind.store(kind.code(), Ordering::Release);
        true
    }

    /// All of the file was read, and this is what is wrong with it: `None` when nothing is. Gives
    /// the documents of which nothing was told yet.
    pub(crate) fn note_bodies<'b>(&self, bodies: &'b DamagedBodies) -> Vec<&'b DamagedBody> {
        let mut reason = self.lock();
        if self.kind() > Some(DamageKind::InPart) {
            return Vec::new();
        }
        let told = reason.take().map_or_else(Vec::new, |before| before.told);
        let Some(first) = bodies.listed.first() else {
            self.kind.store(0, Ordering::Release);
            return Vec::new();
        };
        let text = describe(bodies.count, first);
        let listed = bodies.listed.iter().map(|body| body.seqno).collect();
        *reason = Some(Reason { text: text.into(), told: listed });
        self.kind.store(DamageKind::InPart.code(), Ordering::Release);
        bodies.listed.iter().filter(|body| !told.contains(&body.seqno)).collect()
    }

    /// Another file has taken the place of the damaged one.
    pub(crate) fn clear(&self) {
        let mut reason = self.lock();
        self.kind.store(0, Ordering::Release);
        *reason = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Reason>> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bucket {
    /// The vBuckets whose files are damaged, in order.
    pub fn damaged_vbuckets(&self) -> Vec<VbucketDamage> {
        let damage = |(vbid, slot): (Vbid, &crate::vbucket_slot::VbucketSlot)| {
            let (kind, reason) = slot.damage.get()?;
            Some(VbucketDamage { vbid, kind, reason })
        };
        self.0.slots().filter_map(damage).collect()
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
    /// The file of a vBucket that was to be loaded cannot be read. Others go on.
    pub(crate) fn give_up_loading(&self, vbid: Vbid, error: &StorageError) {
        let Some(slot) = self.slot(vbid) else { return };
        let _file = slot.lock_file();
        // The bucket may have been emptied meanwhile.
        if slot.lock().is_some() || slot.is_absent() {
            return;
        }
        self.store.distrust(vbid);
        slot.damage.note(DamageKind::OutOfService, &error.to_string());
        tracing::error!(
            %error,
            vbucket = vbid.0,
            "the vBucket's file cannot be read and the vBucket does not serve; promote a replica \
             of it, or see what `settee reset-vbucket` says"
        );
    }

    /// The file of one vBucket cannot be written any more. Another try would not help; the others
    /// go on.
    pub(crate) fn give_up_file(&self, vbid: Vbid, error: &StorageError) {
        let Some(slot) = self.slot(vbid) else { return };
        self.note_disk(vbid, WritePath::Flush, None);
        self.note_disk(vbid, WritePath::Apply, None);
        if !slot.damage.note(DamageKind::RefusesWrites, &error.to_string()) {
            return;
        }
        self.store.distrust(vbid);
        tracing::error!(
            %error,
            vbucket = vbid.0,
            "the vBucket cannot be flushed and refuses writes; a replica is built anew by itself; \
             of an active one promote a replica, or see what `settee reset-vbucket` says"
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
                document = body.document,
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

fn describe(count: u64, first: &DamagedBody) -> String {
    let DamagedBody { document, seqno, copy_position, .. } = first;
    format!(
        "{count} documents cannot be read; the first is `{document}` with seqno {}, at byte \
         {copy_position} of the file",
        seqno.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worse_damage_is_news_and_lesser_is_not() {
        let mark = DamageMark::default();
        assert_eq!((mark.kind(), mark.get()), (None, None));
        assert!(mark.note(DamageKind::InPart, "a body") && !mark.note(DamageKind::InPart, "two"));
        assert!(mark.note(DamageKind::RefusesWrites, "a node"));
        assert!(!mark.note(DamageKind::InPart, "a body"));
        assert_eq!(mark.get(), Some((DamageKind::RefusesWrites, "a node".into())));
        assert!(mark.note(DamageKind::OutOfService, "the header"));
        mark.clear();
        assert_eq!((mark.kind(), mark.get()), (None, None));
        assert!(mark.note(DamageKind::InPart, "another body"));
    }
}
