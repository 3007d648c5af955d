//! What is wrong with one vBucket's file. It stays noted until another file is in the damaged one's
//! place.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use document::{Seqno, Vbid};
use storage::{DamagedBodies, DamagedBody};

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
        // Worse is known already, which stays until another file takes the place.
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
