//! Buckets that are deleted: marked first, all of them or none, and closed behind that.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use platform::FileError;
use server::{BucketRefusal, Departure};

use super::{BucketChanges, Done};
use crate::buckets::NodeBucket;
use crate::closing::Closing;
use crate::membership::PlanOrder;

/// A bucket that is to be deleted.
pub(super) struct Leaver {
    known: NodeBucket,
    directory: PathBuf,
}

impl BucketChanges {
    /// The bucket of that name, with its directory.
    pub(super) fn leaver(&self, name: &str) -> Result<Leaver, BucketRefusal> {
        let known = self.buckets.get(name).ok_or(BucketRefusal::NotFound)?;
        let directory = self.opener.places.bucket(&*self.opener.world.files, name);
        Ok(Leaver { known, directory: directory.map_err(failed)? })
    }

    /// Says of buckets that they are deleted, durably; of all of them, or of none. The caller holds
    /// the buckets, and closes those that are marked.
    pub(super) fn mark(&self, leavers: &[Leaver]) -> Result<(), BucketRefusal> {
        let files = &*self.opener.world.files;
        let mark = |leaver: &Leaver| bucket::mark_deleted(files, &leaver.directory);
        let unmark = |leaver: &Leaver| bucket::unmark_deleted(files, &leaver.directory);
        let Err(error) = leavers.iter().try_for_each(mark) else { return Ok(()) };
        // A mark may be there without being durable, and a start would delete the bucket.
        if leavers.iter().try_for_each(unmark).is_ok() {
            return Err(failed(error));
        }
        tracing::warn!(%error, "nobody knows whether buckets are deleted, so they are");
        // Where one of them may be gone all are to go.
        leavers.iter().for_each(|leaver| drop(mark(leaver)));
        Ok(())
    }

    /// Ends a bucket that is marked, which `take_out` has the clients lose. The caller holds the
    /// buckets.
    pub(super) fn close(
        &self,
        Leaver { known, directory }: Leaver,
        done: Done,
        take_out: impl FnOnce() -> Option<Departure>,
    ) {
        let name = known.name().to_owned();
        self.buckets.remove(&name);
        self.share_rest(None);
        let departure = take_out();
        tracing::info!(bucket = name, "the bucket was deleted");
        let files = Arc::clone(&self.opener.world.files);
        let bucket = known.bucket().clone();
        let closing = Closing { name: name.clone(), files, directory, bucket, departure, done };
        // Closing waits until it has the last handle.
        drop(known);
        let (now, pool) = (self.opener.world.clock.now(), &self.opener.world.pool);
        if closing.begin(now, pool, &self.owner, &self.leaving).is_err() {
            tracing::info!(bucket = name, "the node stops: the next start removes what is left");
        }
    }

    /// Has all nodes delete a bucket. Returns the names of those that do not know of it yet.
    pub(super) fn delete_everywhere(
        &self,
        name: &str,
        done: Done,
    ) -> Result<Vec<String>, BucketRefusal> {
        let _one_at_a_time = self.deleting.lock().unwrap_or_else(PoisonError::into_inner);
        // Before the order: it is this node's own part of it that deletes the bucket, and takes
        // this out.
        *self.lock_ending() = Some((name.to_owned(), done));
        let ordered = self.membership.order_change(&PlanOrder::Delete { name: name.to_owned() });
        let left = self.lock_ending().take();
        let unreached = ordered?;
        if let Some((_, done)) = left {
            // It was not here.
            done();
        }
        Ok(unreached)
    }
}

fn failed(error: FileError) -> BucketRefusal {
    BucketRefusal::Failed(error.to_string())
}
