//! What other threads tell a relayed connection, and what it shows them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bucket::StreamObserver;
use document::{Seqno, Vbid, VbucketState};
use vbucket::checkpoint::CursorId;

use crate::consumer::{Consumer, StreamStatus};

/// How a relayed connection is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelayStatus {
    /// What the manager calls it.
    pub connection: String,
    /// Whether streams can be asked for.
    pub is_open: bool,
    /// Bytes received and not acknowledged yet.
    pub unacknowledged_bytes: u32,
    /// Its streams.
    pub streams: Vec<StreamStatus>,
}

/// The part of a relayed connection that any thread may call.
pub(crate) struct RelayShared {
    name: String,
    news: Mutex<News>,
    status: Mutex<RelayStatus>,
    /// Somebody has woken the owner, who has not looked yet: at most one wake is under way.
    is_awake: AtomicBool,
    /// Another connection has its name now.
    is_superseded: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
}

/// What has happened since the owner looked.
#[derive(Default)]
pub(super) struct News {
    /// vBuckets that may have another role.
    pub(super) roles: BTreeSet<Vbid>,
    /// Up to where vBuckets hold their prepares.
    pub(super) held: BTreeMap<Vbid, Seqno>,
    /// vBuckets whose files were found damaged.
    pub(super) damaged: BTreeSet<Vbid>,
    /// vBuckets that go back no more, and whether they have.
    pub(super) rolled_back: Vec<(Vbid, bool)>,
    /// Requests to take up roles that are carried out, by opaque, and whether with success.
    pub(super) handed_over: Vec<(u32, bool)>,
}

impl RelayShared {
    pub(super) fn new(name: String, wake: Box<dyn Fn() + Send + Sync>) -> Self {
        let status = RelayStatus { connection: name.clone(), ..RelayStatus::default() };
        Self {
            name,
            news: Mutex::default(),
            status: Mutex::new(status),
            is_awake: AtomicBool::new(false),
            is_superseded: AtomicBool::new(false),
            wake,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// How the connection is doing, as the owner has shown it last.
    pub(crate) fn status(&self) -> RelayStatus {
        self.lock_status().clone()
    }

    /// Another connection has taken its name: it is to close.
    pub(crate) fn supersede(&self) {
        self.is_superseded.store(true, Ordering::Release);
        self.wake();
    }

    pub(super) fn is_superseded(&self) -> bool {
        self.is_superseded.load(Ordering::Acquire)
    }

    /// Shows others how the connection is doing.
    pub(super) fn show(&self, consumer: &Consumer) {
        let mut status = self.lock_status();
        status.is_open = consumer.is_open();
        status.unacknowledged_bytes = consumer.unacknowledged_bytes();
        status.streams = consumer.status();
    }

    /// Has the owner hear of something.
    pub(super) fn tell(&self, note: impl FnOnce(&mut News)) {
        note(&mut self.lock_news());
        self.wake();
    }

    /// Has the owner look.
    pub(super) fn wake(&self) {
        if !self.is_awake.swap(true, Ordering::AcqRel) {
            (self.wake)();
        }
    }

    /// The owner looks: what comes from now on wakes it again.
    pub(super) fn take_news(&self) -> News {
        // Before the news are taken: what is told in between wakes once too often, and not never.
        self.is_awake.swap(false, Ordering::AcqRel);
        std::mem::take(&mut *self.lock_news())
    }

    fn lock_news(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_status(&self) -> MutexGuard<'_, RelayStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamObserver for RelayShared {
    fn log_grew(&self, _vbid: Vbid) {}

    fn cursor_dropped(&self, _vbid: Vbid, _cursor: CursorId) {}

    fn role_changed(&self, vbid: Vbid, _state: Option<VbucketState>) {
        self.tell(|news| {
            news.roles.insert(vbid);
        });
    }

    fn prepares_held(&self, vbid: Vbid, seqno: Seqno) {
        self.tell(|news| {
            let held = news.held.entry(vbid).or_default();
            *held = seqno.max(*held);
        });
    }

    fn file_damaged(&self, vbid: Vbid) {
        self.tell(|news| {
            news.damaged.insert(vbid);
        });
    }
}
