//! Backups that are under way: each lives as long as the answer that began it stays open, so that a
//! tool that is gone holds nothing.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::bucket_view::BackupSource;

/// Backups at a time.
const BACKUPS_MAX: usize = 2;
/// vBuckets that are being written to tools at a time, each by a thread.
const STREAMS_MAX: usize = 8;

/// All backups.
#[derive(Default)]
pub(crate) struct Backups {
    by_name: Mutex<BTreeMap<String, Begun>>,
    begun: AtomicUsize,
    streams: AtomicUsize,
}

/// One that has begun.
struct Begun {
    bucket: String,
    source: Arc<dyn BackupSource>,
    over: BackupOver,
}

/// A backup's place among them; it is over when this is dropped.
pub(crate) struct Backup {
    backups: Arc<Backups>,
    name: String,
    /// Nothing is ever sent.
    _lives: watch::Sender<()>,
}

/// Tells that a backup is over.
#[derive(Clone)]
pub(crate) struct BackupOver(watch::Receiver<()>);

/// Leave to begin a backup, or to write a vBucket.
pub(crate) struct Leave {
    backups: Arc<Backups>,
    counter: fn(&Backups) -> &AtomicUsize,
}

impl BackupOver {
    /// Returns when the backup is over.
    pub(crate) async fn wait(&mut self) {
        // Only the end is ever told, and that as an error.
        while self.0.changed().await.is_ok() {}
    }
}

impl Backups {
    /// Leave to begin a backup, unless there are too many.
    pub(crate) fn try_begin(self: &Arc<Self>) -> Option<Leave> {
        self.take_leave(|backups| &backups.begun, BACKUPS_MAX)
    }

    /// Leave to write a vBucket, unless too many are being written.
    pub(crate) fn try_stream(self: &Arc<Self>) -> Option<Leave> {
        self.take_leave(|backups| &backups.streams, STREAMS_MAX)
    }

    /// Puts a backup of a bucket in place, under a name that nobody can guess.
    pub(crate) fn add(self: &Arc<Self>, bucket: String, source: Arc<dyn BackupSource>) -> Backup {
        let mut secret = [0; 16];
        platform::Entropy::real().fill(&mut secret);
        let mut name = String::new();
        for byte in secret {
            write!(name, "{byte:02x}").expect("a string takes everything");
        }
        let (lives, over) = watch::channel(());
        self.lock().insert(name.clone(), Begun { bucket, source, over: BackupOver(over) });
        Backup { backups: Arc::clone(self), name, _lives: lives }
    }

    /// The backup of that name, if it is one of the bucket, and what tells its end: who has it
    /// longer than it lives lets go of it then.
    pub(crate) fn find(
        &self,
        bucket: &str,
        name: &str,
    ) -> Option<(Arc<dyn BackupSource>, BackupOver)> {
        let backups = self.lock();
        let begun = backups.get(name).filter(|begun| begun.bucket == bucket)?;
        Some((Arc::clone(&begun.source), begun.over.clone()))
    }

    fn take_leave(
        self: &Arc<Self>,
        counter: fn(&Self) -> &AtomicUsize,
        max: usize,
    ) -> Option<Leave> {
        // Made in either case: one too many is counted off again when it is dropped.
        let leave = Leave { backups: Arc::clone(self), counter };
        (counter(self).fetch_add(1, Ordering::AcqRel) < max).then_some(leave)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Begun>> {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backup {
    /// What it is asked for by.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Backup {
    fn drop(&mut self) {
        let source = self.backups.lock().remove(&self.name);
        // Files are closed behind the lock.
        drop(source);
    }
}

impl Drop for Leave {
    fn drop(&mut self) {
        (self.counter)(&self.backups).fetch_sub(1, Ordering::AcqRel);
    }
}
