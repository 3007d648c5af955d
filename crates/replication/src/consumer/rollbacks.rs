//! Rollbacks of replicas, to nothing if their files are damaged: asked for here, carried out by
//! tasks, while other streams go on.

use std::sync::Arc;

use bucket::{Bucket, LifeError};
use document::{Seqno, Vbid};
use executor::{ExecutorPool, TaskKind};
use vbucket::StreamPosition;

use super::reservations::Reservations;

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
    /// Carries it out, if `is_wanted` says so once nobody else can give the vBucket another role.
    /// Waits for files.
    ///
    /// # Errors
    /// See [`LifeError`]. The stream is asked for again, and so is this then.
    pub fn carry_out(
        &self,
        bucket: &Bucket,
        is_wanted: impl FnOnce() -> bool,
    ) -> Result<(), LifeError> {
        match self.from {
            Some(from) => bucket.rollback_from(self.vbid, from, self.seqno, is_wanted).map(drop),
            // By a map in which nobody is followed what is here may be the last of it.
            None => bucket.rebuild_replica(self.vbid, is_wanted),
        }
    }

    /// Has a task carry it out: it waits for files, and others come first. If the vBucket does not
    /// follow `told_by` any more by then it stays as it is: what it holds may have been asked for
    /// since, to promote it. `None` is a manager that relays. `ended` hears whether it has
    /// succeeded; it does not where the bucket closes.
    pub(crate) fn begin(
        self,
        bucket: &Bucket,
        pool: &ExecutorPool,
        reservations: &Arc<Reservations>,
        told_by: Option<String>,
        ended: impl Fn(bool) + Send + 'static,
    ) {
        let Self { vbid, seqno, .. } = self;
        // Before there is a task: one that ends at once would take back what has not begun.
        reservations.begin_rollback(vbid);
        let (rolled, reserved) = (bucket.clone(), Arc::clone(reservations));
        let work = move || {
            let is_wanted = || reserved.has_leader(vbid, told_by.as_deref());
            let result = self.carry_out(&rolled, is_wanted);
            if let Err(error) = &result {
                tracing::warn!(%error, vbucket = vbid.0, seqno = seqno.0, "no rollback");
            }
            // In this order: who hears of it may ask for the stream.
            reserved.end_rollback(vbid);
            // One that was told by a node which is to be followed no more need not hurry.
            ended(result.is_ok() && reserved.has_leader(vbid, told_by.as_deref()));
        };
        if pool.add(bucket.task_owner(), TaskKind::AuxIo, work).is_err() {
            // The bucket closes: there are no more streams soon.
            reservations.end_rollback(vbid);
        }
    }
}
