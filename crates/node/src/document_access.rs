//! Documents for callers that have a thread of their own, such as REST: where a request of a
//! connection is parked, they wait.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bucket::{Attempted, Bucket, Completion, Completions, Incoming, Refused, Session, Write};
use document::{Cas, ItemMeta, Key, Vbid};
use server::Mailboxes;
use vbucket::{Found, StoreMode, SyncWriteEnd, Waiter, WriteCondition, Written};

/// What the names of waiters here have, and those of connections never: that many workers there
/// are not.
const LOCAL: u64 = 1 << 63;
/// How long a caller waits for a file, or for other nodes, at a time.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whom completions of a bucket are for: a connection, or a thread that waits here.
pub(crate) struct Waiters {
    connections: Mailboxes,
    next: AtomicU64,
    /// Those who wait here, by their names.
    local: Mutex<BTreeMap<u64, Sender<Completion>>>,
}

/// Somebody who waits here, until it is dropped.
struct Local<'a> {
    waiters: &'a Waiters,
    waiter: Waiter,
    completions: Receiver<Completion>,
}

/// Reads and writes documents of one bucket. Operations block until a file has been read, or other
/// nodes have a durable write: not for front-end workers.
#[derive(Clone)]
pub struct DocumentAccess {
    bucket: Bucket,
    waiters: Arc<Waiters>,
}

/// A document that is to be stored.
#[derive(Clone, Copy, Debug)]
pub struct DocumentToStore<'a> {
    /// Where it belongs.
    pub vbid: Vbid,
    /// What it is called.
    pub key: Key<'a>,
    /// The version that it replaces; [`Cas::ANY`] for any, or none. Its expiry stays.
    pub cas: Cas,
    /// Whether there must be none yet.
    pub is_new: bool,
    /// Four bytes of the clients.
    pub flags: [u8; 4],
    /// The value.
    pub value: &'a [u8],
}

/// Why a document was not read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessError {
    /// The bucket has refused.
    Refused(Refused),
    /// The document's file could not be read.
    Unreadable,
    /// It took too long. A write may still happen.
    TooLate,
    /// Nobody here knows whether a durable write happens.
    Ambiguous,
}

impl From<Refused> for AccessError {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl Waiters {
    pub(crate) fn new(connections: Mailboxes) -> Self {
        Self { connections, next: AtomicU64::new(0), local: Mutex::default() }
    }

    fn begin(&self) -> Local<'_> {
        // Relaxed: all that is asked of a name is that it is nobody else's.
        let name = LOCAL | self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, completions) = mpsc::channel();
        // Before the operation begins: another thread may complete it at once.
        let before = self.lock().insert(name, sender);
        assert!(before.is_none(), "no two threads wait under one name");
        Local { waiters: self, waiter: Waiter(name), completions }
    }

    /// Held for a look-up.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Sender<Completion>>> {
        self.local.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Completions for Waiters {
    fn complete(&self, waiter: Waiter, completion: Completion) {
        if waiter.0 & LOCAL == 0 {
            return self.connections.complete(waiter, completion);
        }
        // Whoever waited may have lost patience.
        if let Some(sender) = self.lock().get(&waiter.0) {
            sender.send(completion).unwrap_or_default();
        }
    }

    fn release_memory(&self) {
        self.connections.release_memory();
    }
}

impl Drop for Local<'_> {
    fn drop(&mut self) {
        self.waiters.lock().remove(&self.waiter.0);
    }
}

impl Local<'_> {
    /// Has an operation attempted until it answers.
    fn run<T>(
        &self,
        mut attempt: impl FnMut(&mut Session) -> Result<Attempted<T>, Refused>,
    ) -> Result<T, AccessError> {
        let mut session = Session::default();
        session.waiter = self.waiter;
        loop {
            if let Attempted::Answered(answer) = attempt(&mut session)? {
                return Ok(answer);
            }
            match self.next()? {
                Completion::Retry(fetched) => session.fetched = fetched,
                Completion::ReadFailed => return Err(AccessError::Unreadable),
                Completion::Persisted | Completion::NotPersisted | Completion::SyncWrite(_) => {}
            }
        }
    }

    /// The end of a write that was let in.
    fn end_of(&self, written: Written) -> Result<Cas, AccessError> {
        if let Some(mutation) = written.done() {
            return Ok(mutation.cas);
        }
        loop {
            match self.next()? {
                Completion::SyncWrite(SyncWriteEnd::Committed { mutation, .. }) => {
                    return Ok(mutation.cas);
                }
                Completion::SyncWrite(SyncWriteEnd::Ambiguous(_)) => {
                    return Err(AccessError::Ambiguous);
                }
                Completion::SyncWrite(SyncWriteEnd::Dropped) => {
                    return Err(Refused::UnknownCollection.into());
                }
                // A read that the write did not wait for after all.
                _ => {}
            }
        }
    }

    fn next(&self) -> Result<Completion, AccessError> {
        self.completions.recv_timeout(PATIENCE).map_err(|_| AccessError::TooLate)
    }
}

impl DocumentAccess {
    pub(crate) fn new(bucket: Bucket, waiters: Arc<Waiters>) -> Self {
        Self { bucket, waiters }
    }

    /// The live document `key`.
    ///
    /// # Errors
    /// See [`AccessError`].
    pub fn get(&self, vbid: Vbid, key: Key<'_>) -> Result<Found, AccessError> {
        self.waiters.begin().run(|session| self.bucket.get(session, vbid, key))
    }

    /// Stores a document, as durably as the bucket demands. Returns its CAS.
    ///
    /// # Errors
    /// See [`AccessError`].
    pub fn store(&self, document: &DocumentToStore<'_>) -> Result<Cas, AccessError> {
        let DocumentToStore { vbid, key, cas, is_new, flags, value } = *document;
        let write = Write {
            mode: if is_new { StoreMode::Add } else { StoreMode::Set },
            meta: ItemMeta { flags, ..ItemMeta::default() },
            condition: WriteCondition { cas, preserve_expiry: true, ..WriteCondition::default() },
            ..Write::set(vbid, key, Incoming::plain(value))
        };
        let local = self.waiters.begin();
        let written = local.run(|session| self.bucket.store(session, write))?;
        local.end_of(written)
    }

    /// Deletes a document, as durably as the bucket demands, if it is of that version;
    /// [`Cas::ANY`] stands for any.
    ///
    /// # Errors
    /// See [`AccessError`].
    pub fn delete(&self, vbid: Vbid, key: Key<'_>, cas: Cas) -> Result<(), AccessError> {
        let condition = WriteCondition { cas, ..WriteCondition::default() };
        let local = self.waiters.begin();
        let written = local.run(|session| self.bucket.delete(session, vbid, key, condition))?;
        local.end_of(written).map(|_| ())
    }
}
