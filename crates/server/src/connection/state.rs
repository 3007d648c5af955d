//! What a connection remembers between its turns.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use auth::{Actor, Noted, PrivilegeSet};
use platform::network::counted_address;
use protocol::{FeatureSet, FrameLimits};
use replication::{Producer, Relay};

use super::dialect::Dialect;
use super::parked::ParkedRequest;
use super::receive::Receiving;
use super::rights::Rights;
use super::turn::Turn;
use crate::buckets::{BucketPart, BucketRegistry};
use crate::client_memory::{ClientMemory, Holder, STRANGER_BYTES_MIN};
use crate::completed::Completed;
use crate::entrance::Entrance;
use crate::limits::ServerLimits;
use crate::statistics::count;
use crate::user_meters::Metered;

/// What becomes of a login whose password, or certificate, is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoginEnd {
    /// The connection is this user's.
    LetIn,
    /// The user was removed meanwhile.
    NoUser,
    /// The user has as many connections as it may.
    TooManyConnections,
}

/// One connection. Most are idle, and many: what a few need, or for a moment, lies elsewhere.
pub(crate) struct Connection {
    /// What HELLO agreed on.
    pub(crate) features: FeatureSet,
    /// Whether there was a HELLO. Clients without one are classic memcached clients.
    pub(crate) said_hello: bool,
    /// The client's name for itself, for log lines.
    pub(crate) agent: Box<str>,
    /// Where it comes from, for log lines.
    pub(crate) peer: Option<SocketAddr>,
    /// It came through the door that asks nobody for a name.
    pub(crate) is_anonymous: bool,
    /// Who it is; `None` before authentication.
    pub(crate) user: Option<Box<str>>,
    /// Whether that is because it has said so.
    pub(crate) has_logged_in: bool,
    /// What counts what its user takes, if that is limited.
    pub(crate) metered: Option<Box<Metered>>,
    /// Privileges that it does without.
    pub(super) given_up: PrivilegeSet,
    /// What that leaves it in the selected bucket.
    pub(super) rights: Rights,
    /// The authentication that is under way, or that failed, if there is one.
    pub(crate) exchange: Option<Box<auth::Exchange>>,
    /// The password that is being checked for it, if one is.
    pub(crate) password_check: Option<auth::Asked>,
    /// The bucket that its document commands address.
    pub(crate) bucket: Option<Arc<BucketPart>>,
    /// It has that because of its certificate, which was shown before it could say anything.
    has_unasked_bucket: bool,
    /// The newest cluster map that the client is known to have.
    pub(crate) known_map: Option<cluster::Revision>,
    /// Set once it is one of replication that sends.
    pub(crate) producer: Option<Box<Producer>>,
    /// Set once it is one of replication that receives.
    pub(crate) relay: Option<Box<Relay>>,
    /// What its client speaks.
    pub(super) dialect: Dialect,
    /// Received and not executed yet. Empty, and without memory, while the connection is idle.
    pub(super) input: Vec<u8>,
    /// A large value on its way to its place.
    pub(super) receiving: Option<Box<Receiving>>,
    /// Bytes to come of a request that was refused.
    pub(super) skipped_bytes_left: usize,
    /// There was room in the node's budget for the large request that is being received.
    pub(super) is_admitted: bool,
    /// Requests that wait for something.
    pub(super) parked_count: usize,
    /// Bytes that are held of those.
    pub(super) parked_bytes: usize,
    /// Those of them that need not wait any more but for the client to take answers.
    pub(super) completed: VecDeque<(ParkedRequest, Completed)>,
    /// Whether one of those lets nothing overtake it.
    pub(super) is_blocked: bool,
    /// Closed once everything answered is sent.
    pub(crate) is_closing: bool,
}

impl Connection {
    /// A connection that has just been accepted.
    pub(crate) fn new(
        entrance: Entrance,
        peer: Option<SocketAddr>,
        buckets: &BucketRegistry,
    ) -> Self {
        let is_anonymous = entrance == Entrance::Memcached;
        let bucket = if is_anonymous { buckets.default_bucket() } else { None };
        Self {
            features: FeatureSet::default(),
            said_hello: false,
            agent: Box::default(),
            peer,
            is_anonymous,
            user: is_anonymous.then(anonymous),
            has_logged_in: false,
            metered: None,
            given_up: PrivilegeSet::NONE,
            rights: Rights::default(),
            exchange: None,
            password_check: None,
            bucket,
            has_unasked_bucket: false,
            known_map: None,
            producer: None,
            relay: None,
            dialect: if is_anonymous { Dialect::Undecided } else { Dialect::Frames },
            input: Vec::new(),
            receiving: None,
            skipped_bytes_left: 0,
            is_admitted: false,
            parked_count: 0,
            parked_bytes: 0,
            completed: VecDeque::new(),
            is_blocked: false,
            is_closing: false,
        }
    }

    /// The bucket that it has selected, if it has.
    pub(crate) fn selected(&self) -> Option<&BucketPart> {
        self.bucket.as_deref()
    }

    /// Selects a bucket, or none. What it asks for from now on is counted there.
    pub(crate) fn select(&mut self, bucket: Option<Arc<BucketPart>>, turn: &mut Turn<'_>) {
        self.bucket = bucket;
        self.has_unasked_bucket = false;
        // Of the maps of two buckets, and of the global one, each counts by itself.
        self.known_map = None;
        self.settle_rights(turn.shared);
        turn.count_for(self.selected());
    }

    /// Whoever it was is forgotten: it is who its door makes of it.
    pub(crate) fn log_out(&mut self, turn: &Turn<'_>) {
        self.user = self.is_anonymous.then(anonymous);
        self.has_logged_in = false;
        self.metered = None;
        self.given_up = PrivilegeSet::NONE;
        self.settle_rights(turn.shared);
    }

    /// It has shown that it is this user. Unless it is let in nothing has changed.
    pub(crate) fn log_in(&mut self, user: String, turn: &mut Turn<'_>) -> LoginEnd {
        let Some(access) = turn.shared.users.access(&user) else { return LoginEnd::NoUser };
        if self.begin_metering(&user, turn.shared).is_err() {
            count(&turn.counters.limited_requests);
            return LoginEnd::TooManyConnections;
        }
        self.user = Some(user.into_boxed_str());
        self.has_logged_in = true;
        self.exchange = None;
        let may_use = |part: &Arc<BucketPart>| access.in_bucket(part.name()).is_any();
        // Classic memcached clients never select a bucket: they land in the default one.
        let bucket = match self.bucket.take() {
            None if !self.said_hello => turn.shared.buckets.default_bucket(),
            selected => selected,
        };
        self.select(bucket.filter(may_use), turn);
        LoginEnd::LetIn
    }

    /// The same by a certificate, before it has said anything.
    pub(crate) fn log_in_by_certificate(&mut self, user: String, turn: &mut Turn<'_>) -> LoginEnd {
        let end = self.log_in(user, turn);
        self.has_unasked_bucket = self.bucket.is_some();
        end
    }

    /// It says HELLO, so it is no classic client, for which it was taken if it had said nothing
    /// when it was let in: it has no bucket before it selects one.
    pub(crate) fn leave_unasked_bucket(&mut self, turn: &mut Turn<'_>) {
        if self.has_unasked_bucket {
            self.select(None, turn);
        }
    }

    /// Has it noted that its user has asked for a change of more than documents, perhaps in the
    /// name of another one. Of those whom nobody asks for a name one is noted in a while: they
    /// would push all others out.
    pub(crate) fn note_order(
        &self,
        command: &str,
        key: &[u8],
        in_name_of: Option<&str>,
        turn: &Turn<'_>,
    ) {
        let is_guest = self.holder() == Holder::Guest;
        if is_guest && turn.shared.guest_orders.passes(turn.shared.clock.now()).is_none() {
            return;
        }
        let address = self.peer.map(|peer| peer.ip());
        let actor = Actor { user: self.user.as_deref().unwrap_or_default(), address };
        let bucket = self.selected().map(BucketPart::name);
        turn.shared.users.note(actor, Noted::Ordered { command, key, bucket, in_name_of });
    }

    /// Where it comes from, as people read it.
    pub(crate) fn peer_name(&self) -> String {
        self.peer.map_or_else(|| "an unknown address".to_owned(), |peer| peer.to_string())
    }

    /// Where it comes from, as limits count it.
    pub(crate) fn counted_address(&self) -> Option<IpAddr> {
        self.peer.map(|peer| counted_address(peer.ip()))
    }

    /// Whether it is known who this is.
    pub(crate) fn is_authenticated(&self) -> bool {
        self.user.is_some()
    }

    /// Whether it waits for the completion of a request before it goes on.
    pub(crate) fn is_waiting(&self, parked_max: usize) -> bool {
        self.is_blocked || self.parked_count >= parked_max
    }

    /// Whether any of its requests waits for a completion.
    pub(crate) fn has_parked(&self) -> bool {
        self.parked_count > 0
    }

    /// Whether it is one of replication, which it stays.
    pub(crate) fn is_of_replication(&self) -> bool {
        self.producer.is_some() || self.relay.is_some()
    }

    /// Whether something received waits to be executed.
    pub(crate) fn has_input(&self) -> bool {
        !self.input.is_empty()
    }

    /// How many bytes may wait for its reader now.
    pub(crate) fn unsent_bytes_max(&self, limits: &ServerLimits, memory: &ClientMemory) -> usize {
        let has_room = memory.has_room_for(self.holder(), 0);
        match (self.holder(), has_room) {
            (Holder::Client | Holder::Guest, true) => limits.unsent_bytes_max,
            (Holder::Client | Holder::Guest, false) => 0,
            (Holder::Stranger, true) => limits.unauthenticated_unsent_bytes_max,
            (Holder::Stranger, false) => STRANGER_BYTES_MIN,
        }
    }

    /// How large a frame may be now.
    pub(super) fn frame_size_max(&self, limits: FrameLimits) -> usize {
        limits.size_max(self.is_authenticated())
    }
}

/// Everybody who reaches the port that asks nobody for a name.
fn anonymous() -> Box<str> {
    "anonymous".into()
}
