//! What the replicator's loop does for one bucket: its connections, one a node, and which of them
//! follows which vBucket.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bucket::{Bucket, StreamObserver};
use document::{Seqno, Vbid};
use executor::ExecutorPool;
use platform::Instant;
use platform::network::{self, Network, Registry, Token};
use vbucket::Now;

use super::following::{Follow, FollowerLogin, PeerAddress};
use super::inbox::{BucketInbox, BucketNews, Wanted};
use super::link::{Link, Setting};
use super::peer_addresses::Resolver;
use crate::consumer::{ConsumerNames, Rollback};
use crate::hub::{Hub, Subscription};

/// The part of the memory quota that all nodes together may send ahead: a twentieth.
const BUFFER_DIVISOR: u64 = 20;
const BUFFER_BYTES_MIN: u64 = 1 << 20;
const BUFFER_BYTES_MAX: u64 = 64 << 20;

/// A bucket whose replicas follow other nodes.
pub(super) struct FollowedBucket {
    bucket: Bucket,
    hub: Arc<Hub>,
    credentials: FollowerLogin,
    pool: ExecutorPool,
    resolver: Resolver,
    /// Where its vBuckets, and its tasks, tell their news.
    inbox: Arc<BucketInbox>,
    /// By token. Tokens are the loop's: no two buckets have the same.
    links: BTreeMap<usize, Link>,
    /// Which link follows a vBucket, and how its news come here.
    followed: BTreeMap<Vbid, (usize, Subscription)>,
}

impl FollowedBucket {
    /// A bucket of which nothing is followed yet. Tasks of `pool` wait for files on its behalf.
    pub(super) fn new(
        bucket: Bucket,
        hub: Arc<Hub>,
        credentials: FollowerLogin,
        pool: ExecutorPool,
        inbox: Arc<BucketInbox>,
    ) -> Self {
        let told = Arc::clone(&inbox);
        let tell = move || told.put(BucketNews { is_resolved: true, ..BucketNews::default() });
        Self {
            bucket,
            hub,
            credentials,
            pool,
            resolver: Resolver::new(network::resolve, tell),
            inbox,
            links: BTreeMap::new(),
            followed: BTreeMap::new(),
        }
    }

    /// The socket of this token has something to say, if it is one of the bucket's.
    pub(super) fn wake(&mut self, token: usize, is_readable: bool) {
        if let Some(link) = self.links.get_mut(&token) {
            link.wake(is_readable);
        }
    }

    /// Reads what has come. Whether there is more.
    pub(super) fn receive(
        &mut self,
        (network, registry): (&Network, &Registry),
        scratch: &mut [u8],
        now: Now,
    ) -> bool {
        let mut has_more = false;
        let mut wanted = Vec::new();
        let buffer_bytes = self.buffer_bytes();
        let setting = Setting {
            bucket: &self.bucket,
            network,
            resolver: &self.resolver,
            connector: self.credentials.connector.as_deref(),
            reservations: self.hub.reservations(),
            buffer_bytes,
        };
        for (&token, link) in &mut self.links {
            has_more |= link.receive(&setting, (registry, Token(token)), scratch, now);
            let rollbacks = link.take_rollbacks();
            wanted.extend(rollbacks.into_iter().map(|it| (it, link.peer.name.clone())));
        }
        wanted.into_iter().for_each(|(rollback, told_by)| self.roll_back(rollback, told_by));
        has_more
    }

    /// Sends what waits.
    pub(super) fn send(&mut self, now: Now) {
        self.links.values_mut().for_each(|link| link.send(now));
    }

    /// Tells others how the connections are doing.
    pub(super) fn show_status(&self) {
        let is_tls = self.credentials.connector.is_some();
        self.inbox.set_status(self.links.values().map(|link| link.status(is_tls)).collect());
    }

    /// When some connection is to be looked at, at the latest.
    pub(super) fn deadline(&self, now: Now) -> Option<Instant> {
        self.links.values().map(|link| link.deadline(now)).min()
    }

    /// Does what follows from news. New connections take their tokens from `next_token`.
    pub(super) fn take_news(&mut self, news: BucketNews, next_token: &mut usize, now: Now) {
        // First: the rest of the news goes to the links that follow the vBuckets from now on.
        if let Some(Wanted { follows, are_taken }) = news.wanted {
            self.follow(follows, next_token, now);
            // Whoever waits for it hears that they are gone.
            drop(are_taken);
        }
        self.acknowledge(news.held);
        for vbid in news.damaged {
            if let Some(link) = self.link_of(vbid) {
                link.file_damaged(vbid, now);
            }
        }
        for (vbid, has_succeeded) in news.rolled_back {
            if let Some(link) = self.link_of(vbid) {
                link.rolled_back(vbid, has_succeeded, now);
            }
        }
    }

    /// vBuckets hold their prepares up to these seqnos.
    pub(super) fn acknowledge(&mut self, held: BTreeMap<Vbid, Seqno>) {
        for (vbid, seqno) in held {
            if let Some(link) = self.link_of(vbid) {
                link.acknowledge(vbid, seqno);
            }
        }
    }

    fn link_of(&mut self, vbid: Vbid) -> Option<&mut Link> {
        self.followed.get(&vbid).and_then(|(token, _)| self.links.get_mut(token))
    }

    fn roll_back(&self, rollback: Rollback, told_by: String) {
        let (vbid, inbox) = (rollback.vbid, Arc::clone(&self.inbox));
        let tell = move |has_succeeded| {
            let rolled_back = BTreeMap::from([(vbid, has_succeeded)]);
            inbox.put(BucketNews { rolled_back, ..BucketNews::default() });
        };
        let reservations = self.hub.reservations();
        rollback.begin(&self.bucket, &self.pool, reservations, Some(told_by), tell);
    }

    /// Follows these vBuckets, and no others.
    pub(super) fn follow(&mut self, wanted: Vec<Follow>, next_token: &mut usize, now: Now) {
        // Before the first of them is asked for.
        self.hub.reservations().follow(wanted.iter().map(|follow| follow.vbid).collect());
        let mut by_peer: BTreeMap<PeerAddress, BTreeSet<Vbid>> = BTreeMap::new();
        for Follow { vbid, peer } in wanted {
            by_peer.entry(peer).or_default().insert(vbid);
        }
        self.links.retain(|_, link| by_peer.contains_key(&link.peer));
        let mut holders: BTreeMap<Vbid, usize> = BTreeMap::new();
        for (peer, vbids) in by_peer {
            let known = self.links.iter().find(|(_, link)| link.peer == peer);
            let token = match known {
                Some((&token, _)) => token,
                None => {
                    let token = *next_token;
                    *next_token += 1;
                    let names = self.names(&peer);
                    self.links.insert(token, Link::new(peer, names, now.monotonic));
                    token
                }
            };
            let before = holders.len();
            holders.extend(vbids.iter().map(|&vbid| (vbid, token)));
            assert_eq!(holders.len(), before + vbids.len(), "a vBucket follows one node");
            if let Some(link) = self.links.get_mut(&token) {
                link.follow(vbids, now);
            }
        }
        self.subscribe(&holders);
        assert_eq!(self.followed.len(), holders.len(), "what is followed is heard of");
    }

    fn subscribe(&mut self, holders: &BTreeMap<Vbid, usize>) {
        let hub = Arc::clone(&self.hub);
        self.followed.retain(|&vbid, &mut (_, subscription)| {
            let stays = holders.contains_key(&vbid);
            if !stays {
                hub.unsubscribe(vbid, subscription);
            }
            stays
        });
        for (&vbid, &token) in holders {
            let observer: Arc<dyn StreamObserver> = self.inbox.clone();
            let entry = self.followed.entry(vbid);
            entry.or_insert_with(|| (token, hub.subscribe(vbid, observer))).0 = token;
        }
    }

    fn names(&self, peer: &PeerAddress) -> ConsumerNames {
        let bucket = self.bucket.config().name.clone();
        let FollowerLogin { node, user, password, entropy, .. } = self.credentials.clone();
        let connection = format!("replication:{}->{node}:{bucket}", peer.name);
        let bucket_uuid = peer.bucket_uuid.clone();
        ConsumerNames { node, connection, bucket, bucket_uuid, user, password, entropy }
    }

    fn buffer_bytes(&self) -> u32 {
        let share = self.bucket.memory_quota_bytes() / BUFFER_DIVISOR;
        let share = share / u64::try_from(self.links.len().max(1)).unwrap_or(1);
        u32::try_from(share.clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX)).unwrap_or(u32::MAX)
    }
}
