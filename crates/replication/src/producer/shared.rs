//! What other threads tell a producer.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bucket::StreamObserver;
use document::{Seqno, Set, Vbid, VbucketState};
use vbucket::checkpoint::CursorId;

use super::counters::{ProducerCounters, StreamCounters};
use super::stream_key::StreamKey;

/// The part of a producer that any thread may call.
pub(crate) struct ProducerShared {
    name: String,
    may_be_nodes: bool,
    news: Mutex<News>,
    /// Somebody has woken the owner, who has not looked yet: at most one wake is under way.
    is_awake: AtomicBool,
    /// Another connection has its name now.
    is_superseded: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
    counters: ProducerCounters,
    streams: Mutex<BTreeMap<StreamKey, Arc<StreamCounters>>>,
}

/// What has happened since the owner looked.
#[derive(Default)]
pub(super) struct News {
    /// vBuckets of which streams may go on, each once.
    pub(super) ready: VecDeque<Vbid>,
    is_ready: Set<Vbid>,
    /// vBuckets that have another role; `None` for those that were replaced or are gone.
    pub(super) roles: Vec<(Vbid, Option<VbucketState>)>,
}

impl ProducerShared {
    pub(super) fn new(name: String, may_be_nodes: bool, wake: Box<dyn Fn() + Send + Sync>) -> Self {
        Self {
            name,
            may_be_nodes,
            news: Mutex::default(),
            is_awake: AtomicBool::new(false),
            is_superseded: AtomicBool::new(false),
            wake,
            counters: ProducerCounters::default(),
            streams: Mutex::default(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it may be a node's.
    pub(crate) fn may_be_nodes(&self) -> bool {
        self.may_be_nodes
    }

    /// What it has done.
    pub(super) fn counters(&self) -> &ProducerCounters {
        &self.counters
    }

    /// Bytes that backfills have read and that are not sent.
    pub(crate) fn backfill_bytes(&self) -> &AtomicU64 {
        &self.counters.backfill_bytes
    }

    /// Streams of the vBucket may go on.
    pub(crate) fn mark_ready(&self, vbid: Vbid) {
        let mut news = self.lock_news();
        if news.is_ready.insert(vbid) {
            news.ready.push_back(vbid);
        }
        drop(news);
        self.wake();
    }

    /// Another connection has taken its name: it is to close.
    pub(crate) fn supersede(&self) {
        self.is_superseded.store(true, Ordering::Release);
        self.wake();
    }

    pub(super) fn is_superseded(&self) -> bool {
        self.is_superseded.load(Ordering::Acquire)
    }

    /// Has the owner look.
    pub(crate) fn wake(&self) {
        if !self.is_awake.swap(true, Ordering::AcqRel) {
            (self.wake)();
        }
    }

    /// The owner looks: what comes from now on wakes it again.
    pub(super) fn take_news(&self) -> News {
        // Before the news are taken: what is told in between wakes once too often, and not never.
        self.is_awake.swap(false, Ordering::AcqRel);
        let news = std::mem::take(&mut *self.lock_news());
        assert_eq!(news.ready.len(), news.is_ready.len(), "news of a vBucket are told once");
        news
    }

    pub(super) fn add_stream(&self, key: StreamKey, counters: Arc<StreamCounters>) {
        let before = self.lock_streams().insert(key, counters);
        assert!(before.is_none(), "a stream is shown once: {key:?}");
    }

    pub(super) fn remove_stream(&self, key: StreamKey) {
        self.lock_streams().remove(&key);
    }

    pub(super) fn streams(&self) -> Vec<(StreamKey, Arc<StreamCounters>)> {
        let streams = self.lock_streams();
        streams.iter().map(|(key, counters)| (*key, Arc::clone(counters))).collect()
    }

    fn lock_streams(&self) -> MutexGuard<'_, BTreeMap<StreamKey, Arc<StreamCounters>>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_news(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamObserver for ProducerShared {
    fn log_grew(&self, vbid: Vbid) {
        self.mark_ready(vbid);
    }

    /// A stream finds out when it reads.
    fn cursor_dropped(&self, vbid: Vbid, _cursor: CursorId) {
        self.mark_ready(vbid);
    }

    fn role_changed(&self, vbid: Vbid, state: Option<VbucketState>) {
        self.lock_news().roles.push((vbid, state));
        self.wake();
    }

    fn prepares_held(&self, _vbid: Vbid, _seqno: Seqno) {}
}
