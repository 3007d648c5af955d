//! What other threads tell the replicator's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::ThreadId;

use bucket::StreamObserver;
use document::{Seqno, Vbid, VbucketState};
use platform::network::Waker;
use vbucket::checkpoint::CursorId;

use super::{Follow, LinkStatus};

/// What has been said since the thread looked last.
#[derive(Default)]
pub(super) struct News {
    /// What is to be followed from now on.
    pub(super) wanted: Option<Vec<Follow>>,
    /// vBuckets hold their prepares up to these seqnos. One entry a vBucket: the newest counts.
    pub(super) held: BTreeMap<Vbid, Seqno>,
    /// vBuckets whose files were found damaged.
    pub(super) damaged: BTreeSet<Vbid>,
    /// vBuckets that went back, or did not.
    pub(super) rolled_back: BTreeMap<Vbid, bool>,
    /// The thread is to end.
    pub(super) is_stopping: bool,
}

impl News {
    /// These news, then newer ones: of what contradicts the newer counts.
    fn then(mut self, newer: Self) -> Self {
        for (vbid, seqno) in newer.held {
            let newest = self.held.entry(vbid).or_insert(seqno);
            *newest = (*newest).max(seqno);
        }
        self.rolled_back.extend(newer.rolled_back);
        self.damaged.extend(newer.damaged);
        self.wanted = newer.wanted.or(self.wanted);
        self.is_stopping |= newer.is_stopping;
        self
    }
}

/// The thread's mailbox. Its lock is held for one push or one swap.
pub(crate) struct Inbox {
    news: Mutex<Option<News>>,
    status: Mutex<Vec<LinkStatus>>,
    waker: Waker,
    /// The thread itself: what comes of its own work it finds at the end of its turn.
    owner: OnceLock<ThreadId>,
}

impl Inbox {
    pub(super) fn new(waker: Waker) -> Self {
        Self { news: Mutex::default(), status: Mutex::default(), waker, owner: OnceLock::new() }
    }

    /// The calling thread is the one that takes the news, each time before it waits.
    pub(super) fn own(&self) {
        self.owner.get_or_init(|| std::thread::current().id());
    }

    /// Adds news. Wakes the thread if there were none: it always takes all there is.
    pub(super) fn put(&self, news: News) {
        self.join(|before| before.then(news));
    }

    /// Puts back what was taken: what has been said since is newer.
    pub(super) fn put_back(&self, news: News) {
        self.join(|since| news.then(since));
    }

    fn join(&self, join: impl FnOnce(News) -> News) {
        let mut waiting = self.lock();
        let was_empty = waiting.is_none();
        *waiting = Some(join(waiting.take().unwrap_or_default()));
        drop(waiting);
        let is_own = self.owner.get() == Some(&std::thread::current().id());
        if was_empty && !is_own {
            // The one failure of an eventfd write is a full counter: the thread is awake then.
            self.waker.wake().ok();
        }
    }

    /// All news.
    pub(super) fn take(&self) -> Option<News> {
        self.lock().take()
    }

    pub(super) fn set_status(&self, status: Vec<LinkStatus>) {
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }

    pub(crate) fn status(&self) -> Vec<LinkStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<News>> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamObserver for Inbox {
    fn log_grew(&self, _vbid: Vbid) {}

    fn cursor_dropped(&self, _vbid: Vbid, _cursor: CursorId) {}

    // What is followed is said by whoever changes roles; until then the vBucket refuses messages.
    fn role_changed(&self, _vbid: Vbid, _state: Option<VbucketState>) {}

    fn prepares_held(&self, vbid: Vbid, seqno: Seqno) {
        self.put(News { held: BTreeMap::from([(vbid, seqno)]), ..News::default() });
    }

    fn file_damaged(&self, vbid: Vbid) {
        self.put(News { damaged: BTreeSet::from([vbid]), ..News::default() });
    }
}

#[cfg(test)]
mod tests {
    use platform::network::{Poll, Token};

    use super::super::PeerAddress;
    use super::*;

    fn follow(name: &str) -> Vec<Follow> {
        let peer = PeerAddress { name: name.to_owned(), host: "h".to_owned(), port: 1 };
        vec![Follow { vbid: Vbid(0), peer }]
    }

    fn went_back(has_succeeded: bool) -> BTreeMap<Vbid, bool> {
        BTreeMap::from([(Vbid(0), has_succeeded)])
    }

    #[test]
    fn what_was_said_meanwhile_is_newer_than_what_is_put_back() {
        let poll = Poll::new().unwrap();
        let inbox = Inbox::new(Waker::new(poll.registry(), Token(0)).unwrap());
        let say = |name: &str, has_succeeded| News {
            wanted: Some(follow(name)),
            rolled_back: went_back(has_succeeded),
            ..News::default()
        };
        inbox.put(say("old", false));
        let taken = inbox.take().unwrap();
        inbox.put(say("new", true));
        inbox.put_back(taken);
        let news = inbox.take().unwrap();
        assert_eq!((news.wanted, news.rolled_back), (Some(follow("new")), went_back(true)));
        inbox.put_back(say("old", false));
        assert_eq!(inbox.take().unwrap().wanted, Some(follow("old")), "nothing was said since");
    }
}
