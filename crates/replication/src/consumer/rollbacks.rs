//! Rollbacks of replicas, to nothing if their files are damaged: asked for here, carried out by
//! tasks, while other streams go on.
//!
//! Nobody asks for a stream of a vBucket that goes back: what it would acknowledge may be gone a
//! moment later. That holds across connections, because the one that has asked for the rollback may
//! break, or another node be followed, before the task has come to its end.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bucket::{Bucket, LifeError};
use document::{Seqno, Vbid};
use vbucket::StreamPosition;

/// A vBucket that has something which its producer does not, or whose file is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rollback {
    /// The vBucket.
    pub vbid: Vbid,
    /// Where it was when the producer was asked. If it is elsewhere by now it stays there. `None`
    /// when its file is damaged: then it begins anew, wherever it is.
    pub from: Option<StreamPosition>,
    /// Where it has to go back to, or below.
    pub seqno: Seqno,
}

impl Rollback {
    /// Carries it out. Waits for files.
    ///
    /// # Errors
    /// See [`LifeError`]. The stream is asked for again, and so is this then.
    pub fn carry_out(&self, bucket: &Bucket) -> Result<(), LifeError> {
        match self.from {
            Some(from) => bucket.rollback_from(self.vbid, from, self.seqno).map(drop),
            None => bucket.rebuild_replica(self.vbid),
        }
    }
}

/// vBuckets of a bucket that go back at the moment. Its lock is held for one look or change.
#[derive(Debug, Default)]
pub struct Rollbacks(Mutex<BTreeSet<Vbid>>);

impl Rollbacks {
    /// The vBucket goes back from now on.
    pub fn begin(&self, vbid: Vbid) {
        self.lock().insert(vbid);
    }

    /// It does not any more.
    pub fn end(&self, vbid: Vbid) {
        self.lock().remove(&vbid);
    }

    pub(super) fn is_under_way(&self, vbid: Vbid) -> bool {
        self.lock().contains(&vbid)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Vbid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
