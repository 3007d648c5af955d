//! What others tell the replicator, and of which bucket.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bucket::StreamObserver;
use document::{Seqno, Vbid, VbucketState};
use platform::network::Waker;
use vbucket::checkpoint::CursorId;

use super::following::{Follow, LinkStatus};

/// A bucket, as long as it is replicated: one that has its name later is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BucketId(pub(super) u64);

/// What has been said since the loop looked last.
#[derive(Default)]
pub(super) struct News {
    pub(super) of_buckets: BTreeMap<BucketId, BucketNews>,
    /// The loop is to end.
    pub(super) is_stopping: bool,
}

/// What is to be followed of a bucket.
pub(super) struct Wanted {
    pub(super) follows: Vec<Follow>,
    /// Dropped once the loop follows that, and nothing else. Among them are those of what was to be
    /// followed before, and was never looked at.
    pub(super) are_taken: Vec<Sender<()>>,
}

/// What has been said of one bucket.
#[derive(Default)]
pub(super) struct BucketNews {
    /// What is to be followed from now on.
    pub(super) wanted: Option<Wanted>,
    /// vBuckets hold their prepares up to these seqnos. One entry a vBucket: the newest counts.
    pub(super) held: BTreeMap<Vbid, Seqno>,
    /// vBuckets whose files were found damaged.
    pub(super) damaged: BTreeSet<Vbid>,
    /// vBuckets that went back, or did not.
    pub(super) rolled_back: BTreeMap<Vbid, bool>,
    /// A node's name was resolved: the link that waits for it is to be looked at.
    pub(super) is_resolved: bool,
    /// The bucket goes.
    pub(super) is_leaving: bool,
}

impl Wanted {
    fn then(self, newer: Self) -> Self {
        let are_taken = self.are_taken.into_iter().chain(newer.are_taken).collect();
        Self { follows: newer.follows, are_taken }
    }
}

impl News {
    /// These news, then newer ones: of what contradicts the newer counts.
    fn then(mut self, newer: Self) -> Self {
        for (id, newer) in newer.of_buckets {
            let before = self.of_buckets.remove(&id).unwrap_or_default();
            self.of_buckets.insert(id, before.then(newer));
        }
        self.is_stopping |= newer.is_stopping;
        self
    }
}

impl BucketNews {
    /// Whether nothing is said but what vBuckets hold.
    pub(super) fn is_about_held_alone(&self) -> bool {
        self.wanted.is_none()
            && self.damaged.is_empty()
            && self.rolled_back.is_empty()
            && !self.is_resolved
            && !self.is_leaving
    }

    fn then(mut self, newer: Self) -> Self {
        for (vbid, seqno) in newer.held {
            let newest = self.held.entry(vbid).or_insert(seqno);
            *newest = (*newest).max(seqno);
        }
        self.rolled_back.extend(newer.rolled_back);
        self.damaged.extend(newer.damaged);
        self.wanted = match (self.wanted, newer.wanted) {
            (Some(older), Some(newer)) => Some(older.then(newer)),
            (older, newer) => newer.or(older),
        };
        self.is_resolved |= newer.is_resolved;
        self.is_leaving |= newer.is_leaving;
        self
    }
}

/// The loop's mailbox. Its lock is held for one push or one swap.
pub(super) struct Inbox {
    news: Mutex<Option<News>>,
    waker: Waker,
}

/// The same for those who have something to say of one bucket.
pub(crate) struct BucketInbox {
    id: BucketId,
    inbox: Arc<Inbox>,
    status: Mutex<Vec<LinkStatus>>,
}

thread_local! {
    /// The inbox whose loop has its turn on this thread, by its address; 0 if none has. What comes
    /// of its own work a loop finds at the end of its turn, and need not be woken for.
    static SERVED: Cell<usize> = const { Cell::new(0) };
}

impl Inbox {
    pub(super) fn new(waker: Waker) -> Self {
        Self { news: Mutex::default(), waker }
    }

    /// The turn of the loop that takes the news, on this thread.
    pub(super) fn while_served<T>(&self, turn: impl FnOnce() -> T) -> T {
        assert_eq!(SERVED.get(), 0, "a thread serves one inbox at a time");
        SERVED.set(self.address());
        let result = turn();
        SERVED.set(0);
        result
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
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
        // A wake may be a call of the system: the lock is held for the push alone.
        drop(waiting);
        let is_own = SERVED.get() == self.address();
        if was_empty && !is_own {
            self.waker.wake();
        }
    }

    /// All news.
    pub(super) fn take(&self) -> Option<News> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<News>> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BucketInbox {
    pub(super) fn new(id: BucketId, inbox: Arc<Inbox>) -> Self {
        Self { id, inbox, status: Mutex::default() }
    }

    pub(super) fn put(&self, news: BucketNews) {
        let of_buckets = BTreeMap::from([(self.id, news)]);
        self.inbox.put(News { of_buckets, is_stopping: false });
    }

    pub(super) fn set_status(&self, status: Vec<LinkStatus>) {
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }

    /// How the bucket's connections are doing; a little old.
    pub(crate) fn status(&self) -> Vec<LinkStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl StreamObserver for BucketInbox {
    fn log_grew(&self, _vbid: Vbid) {}

    fn cursor_dropped(&self, _vbid: Vbid, _cursor: CursorId) {}

    // What is followed is said by whoever changes roles; until then the vBucket refuses messages.
    fn role_changed(&self, _vbid: Vbid, _state: Option<VbucketState>) {}

    fn prepares_held(&self, vbid: Vbid, seqno: Seqno) {
        self.put(BucketNews { held: BTreeMap::from([(vbid, seqno)]), ..BucketNews::default() });
    }

    fn file_damaged(&self, vbid: Vbid) {
        self.put(BucketNews { damaged: BTreeSet::from([vbid]), ..BucketNews::default() });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, TryRecvError};

    use platform::network::{Network, Token};

    use super::super::following::PeerAddress;
    use super::*;

    fn follow(name: &str) -> Vec<Follow> {
        let peer = PeerAddress {
            name: name.to_owned(),
            host: "h".to_owned(),
            port: 1,
            tls_port: None,
            bucket_uuid: None,
        };
        vec![Follow { vbid: Vbid(0), peer }]
    }

    fn went_back(has_succeeded: bool) -> BTreeMap<Vbid, bool> {
        BTreeMap::from([(Vbid(0), has_succeeded)])
    }

    #[test]
    fn what_was_said_meanwhile_is_newer_than_what_is_put_back() {
        let poll = Network::real().poll().unwrap();
        let inbox = Inbox::new(poll.waker(Token(0)).unwrap());
        let (first, second) = (BucketId(1), BucketId(2));
        let say = |id, name: &str, has_succeeded| {
            let wanted = Wanted { follows: follow(name), are_taken: vec![mpsc::channel().0] };
            let (wanted, rolled_back) = (Some(wanted), went_back(has_succeeded));
            let news = BucketNews { wanted, rolled_back, ..BucketNews::default() };
            News { of_buckets: BTreeMap::from([(id, news)]), is_stopping: false }
        };
        let take = || inbox.take().unwrap().of_buckets;
        inbox.put(say(first, "old", false));
        inbox.put(say(second, "other", false));
        let taken = inbox.take().unwrap();
        inbox.put(say(first, "new", true));
        inbox.put_back(taken);
        let mut news = take();
        let mut of = |id| {
            let news: BucketNews = news.remove(&id).unwrap();
            (news.wanted.unwrap().follows, news.rolled_back)
        };
        assert_eq!(of(first), (follow("new"), went_back(true)));
        assert_eq!(of(second), (follow("other"), went_back(false)), "of another bucket");
        inbox.put_back(say(first, "old", false));
        let wanted = take().remove(&first).unwrap().wanted.unwrap();
        assert_eq!(wanted.follows, follow("old"), "nothing was said since");
    }

    #[test]
    fn what_was_to_be_followed_and_never_looked_at_is_heard_with_what_is_newer() {
        let poll = Network::real().poll().unwrap();
        let inbox = Inbox::new(poll.waker(Token(0)).unwrap());
        let say = |name| {
            let (is_taken, taken) = mpsc::channel();
            let wanted = Some(Wanted { follows: follow(name), are_taken: vec![is_taken] });
            let news = BucketNews { wanted, ..BucketNews::default() };
            let of_buckets = BTreeMap::from([(BucketId(1), news)]);
            inbox.put(News { of_buckets, is_stopping: false });
            taken
        };
        let both = [say("old"), say("new")];
        let is_heard =
            || both.each_ref().map(|it| it.try_recv() == Err(TryRecvError::Disconnected));
        assert_eq!(is_heard(), [false; 2]);
        drop(inbox.take());
        assert_eq!(is_heard(), [true; 2]);
    }
}
