//! The node's part in its cluster: carrying out a plan, and telling clients what follows from it.

mod bucket_member;
mod changing_buckets;
mod compacting;
mod exchange;
mod flushing;
mod identities;
mod known_identities;
mod manifests;
mod own_words;
mod plan_exchange;
mod plan_order;
mod retry;
mod roles;
mod silent;
mod unmade;
mod users;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};

use cluster::{
    BucketMap, ClusterMap, ClusterPlan, InvalidPlan, NodeAddress, PendingVbucket, PlannedNode,
    Revision, Uuid,
};
use platform::Clock;
use replication::{Replicator, Told};
use server::{BucketRefusal, ClusterView, Server};

use bucket_member::BucketMember;
use known_identities::KnownIdentities;
use manifests::ManifestExchange;
use plan_exchange::PlanExchange;
pub(crate) use plan_order::PlanOrder;
pub(crate) use retry::RunningRetries;
use silent::Silent;
use unmade::Unmade;
pub(crate) use users::SharedUsers;
use users::UsersExchange;
use waiting::Answers;

use crate::bucket_steps::{BucketKeeper, BucketSteps};
use crate::buckets::NodeBuckets;
use crate::own_setup::{OwnSetup, OwnSetupFile};
use crate::peer_copies::AskPeer;
use crate::remembered_map::RememberedMap;

/// Who this node is.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// Its name in topologies.
    pub(crate) name: String,
    /// Where it is reached.
    pub(crate) address: NodeAddress,
    /// The cluster's identity where a plan says none.
    pub(crate) cluster_uuid: Uuid,
    /// Its own identity, which stays whatever it is called.
    pub(crate) node_uuid: Uuid,
}

/// What becomes of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CarriedOut {
    /// The node does its part, but for what [`Membership::pending`] says.
    Done,
    /// It has a newer one.
    Older(Revision),
    /// It has another one of this revision.
    Another(Revision),
    /// It cannot be carried out here now, and may be offered again.
    NotNow(String),
    /// It cannot be carried out here, and never will be.
    Refused(String),
}

/// Why a plan that is carried out is not settled.
const UNREMEMBERED: &str = "its disk does not take the map, so that after a crash it goes on with \
                            the map before";
const UNHEARD: &str = "its replicator has not heard yet whom it is to follow";

/// A node's membership.
pub struct Membership {
    identity: Identity,
    /// By name. The lock is held for a look-up.
    buckets: RwLock<BTreeMap<String, Arc<BucketMember>>>,
    /// The bucket of a plan that names none.
    default_bucket: String,
    /// Held while a plan is carried out, and while the node's set of buckets changes.
    carrying_out: Mutex<()>,
    /// Who makes and deletes buckets, once there is somebody.
    keeper: OnceLock<Weak<dyn BucketKeeper>>,
    /// The buckets of the plan that are not here yet.
    unmade: Mutex<Unmade>,
    plan: Mutex<ClusterPlan>,
    /// Held while clients are told of the maps: the last that they hear is the newest.
    telling: Mutex<()>,
    ask_peer: OnceLock<AskPeer>,
    manifests: ManifestExchange,
    users: UsersExchange,
    plans: PlanExchange,
    identities: KnownIdentities,
    remembered: RememberedMap,
    own_setup_file: OwnSetupFile,
    own_setup: Mutex<OwnSetup>,
    /// Whether the plan is not remembered yet: the disk did not take it.
    is_unremembered: AtomicBool,
    /// Who has been told whom to follow by the plan, and has not heard it yet.
    unheard: Mutex<Vec<Told>>,
    retries: retry::Retries,
    server: OnceLock<Arc<Server>>,
    replicator: OnceLock<Arc<Replicator>>,
    /// Whether no plan was ever carried out: the buckets are this node's alone.
    is_alone: AtomicBool,
    notify: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// Itself, once it serves: buckets that come tell it of their manifests.
    itself: OnceLock<Weak<Self>>,
}

impl Membership {
    /// The membership of a node that has no plan yet: it is alone.
    pub(crate) fn new(
        identity: Identity,
        node_buckets: &NodeBuckets,
        remembered: RememberedMap,
        own_setup_file: OwnSetupFile,
        clock: Clock,
    ) -> anyhow::Result<Self> {
        let own_setup = own_setup_file.read()?;
        let address = own_setup.applied_to(&identity.address);
        let this = PlannedNode { name: identity.name.clone(), address };
        let mut plan = ClusterPlan::of_nodes(vec![this]);
        let mut buckets = BTreeMap::new();
        for bucket in node_buckets.all() {
            let member = BucketMember::new(&bucket)?;
            plan = plan.with_bucket(bucket.name(), member.alone());
            buckets.insert(bucket.name().to_owned(), Arc::new(member));
        }
        Ok(Self {
            identity,
            buckets: RwLock::new(buckets),
            default_bucket: node_buckets.default_name().to_owned(),
            carrying_out: Mutex::default(),
            keeper: OnceLock::new(),
            unmade: Mutex::default(),
            plan: Mutex::new(plan),
            telling: Mutex::default(),
            ask_peer: OnceLock::new(),
            manifests: ManifestExchange::default(),
            users: UsersExchange::default(),
            plans: PlanExchange::default(),
            identities: KnownIdentities::default(),
            remembered,
            own_setup_file,
            own_setup: Mutex::new(own_setup),
            is_unremembered: AtomicBool::new(false),
            unheard: Mutex::default(),
            retries: retry::Retries::new(clock),
            server: OnceLock::new(),
            replicator: OnceLock::new(),
            is_alone: AtomicBool::new(true),
            notify: OnceLock::new(),
            itself: OnceLock::new(),
        })
    }

    /// From now on `replicator` follows whom the plan says.
    pub(crate) fn replicate_with(&self, replicator: Arc<Replicator>) {
        let plan = self.plan();
        let this = self.this_node_in(&plan);
        for member in self.members() {
            member.replicate_with(&replicator);
            member.follow(&plan, this);
        }
        assert!(self.replicator.set(replicator).is_ok(), "a node has one replicator");
    }

    /// From now on the clients of `server` are told of changes, those of manifests among them.
    pub(crate) fn serve_with(self: &Arc<Self>, server: Arc<Server>) {
        for member in self.members() {
            server.show_pending(member.name(), member.pending());
        }
        assert!(self.server.set(server).is_ok(), "a node has one data port");
        assert!(self.itself.set(Arc::downgrade(self)).is_ok(), "it serves once");
        let membership = Arc::downgrade(self);
        self.own_setup_file.kept.wake_with(Box::new(move || {
            if let Some(membership) = membership.upgrade() {
                membership.retries.begin(true);
            }
        }));
        for member in self.members() {
            self.watch_manifest_of(&member);
        }
        // What changed since the port was given its first maps.
        self.tell();
    }

    /// The map tells the uid of each bucket's manifest.
    fn watch_manifest_of(self: &Arc<Self>, member: &BucketMember) {
        let membership = Arc::downgrade(self);
        member.bucket.watch_manifest(move || {
            if let Some(membership) = membership.upgrade() {
                membership.tell();
            }
        });
    }

    /// Has `notify` called after each change.
    pub fn watch(&self, notify: Box<dyn Fn() + Send + Sync>) {
        assert!(self.notify.set(notify).is_ok(), "a node has one management port");
    }

    /// The plan that the node carries out.
    pub fn plan(&self) -> ClusterPlan {
        self.lock_plan().clone()
    }

    /// Reads a plan. One that names no bucket is about the node's first.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(&self, text: &str) -> Result<ClusterPlan, InvalidPlan> {
        ClusterPlan::parse(text, &self.default_bucket)
    }

    /// The vBuckets of a bucket that are not yet what the plan says. They are tried again.
    pub fn pending(&self, bucket: &str) -> Vec<PendingVbucket> {
        self.member(bucket).map_or_else(Vec::new, |member| member.pending())
    }

    /// Why nobody may rest on the plan yet, though the node has carried it out: for a failover this
    /// node is one that was not told. Nothing, usually.
    pub fn unsettled(&self) -> Vec<&'static str> {
        let mut unheard = self.lock_unheard();
        unheard.retain(|told| !told.is_heard());
        let reasons = [(self.is_unremembered(), UNREMEMBERED), (!unheard.is_empty(), UNHEARD)];
        reasons.into_iter().filter_map(|(is_so, reason)| is_so.then_some(reason)).collect()
    }

    /// This node's place in a plan; `None` if it has none.
    pub fn this_node_in(&self, plan: &ClusterPlan) -> Option<usize> {
        plan.index_of(&self.identity.name)
    }

    /// The cluster, as clients are told.
    pub fn cluster_map(&self) -> ClusterMap {
        self.cluster_map_of(&self.lock_plan())
    }

    /// Where the documents of a bucket are, as clients are told; `None` if the node has no such
    /// bucket.
    pub fn bucket_map(&self, bucket: &str) -> Option<BucketMap> {
        self.member(bucket)?.map(&self.lock_plan())
    }

    /// The maps, as the data port tells them.
    pub(crate) fn view(&self) -> ClusterView {
        let members = self.members();
        let plan = self.lock_plan();
        let map = self.cluster_map_of(&plan);
        let config_of = |member: &Arc<BucketMember>| {
            Some((member.name().to_owned(), map.bucket_config(&member.map(&plan)?)))
        };
        let bucket_configs: BTreeMap<_, _> = members.iter().filter_map(config_of).collect();
        ClusterView { revision: map.revision, global_config: map.global_config(), bucket_configs }
    }

    /// Does this node's part of `plan`: the buckets that it has, the roles of its vBuckets, durable
    /// on return, whom they follow, and what clients are told. A vBucket that cannot play its role,
    /// or a bucket that cannot be made, stops none of this: it is pending, and tried again. The
    /// same plan again does no harm.
    pub fn carry_out(&self, plan: &ClusterPlan) -> CarriedOut {
        let _one_at_a_time = self.hold_buckets();
        let current = self.plan();
        let steps = match self.checked(plan, &current) {
            Ok(steps) => steps,
            Err(refusal) => return refusal,
        };
        let is_first = self.is_first(&current);
        if is_first || *plan != current {
            if let Err(reason) = self.remove_deleted(&steps, plan, &current) {
                return CarriedOut::Refused(reason);
            }
            // Before anything is made: it says which of the missing buckets may begin empty.
            self.note_unmade(&steps, plan, &current);
            self.remember(plan);
        } else if self.is_unremembered() {
            self.remember(plan);
        }
        // Nobody may take a place that a newer map has given away: the answer above said so.
        assert!(is_first || plan.revision >= current.revision, "maps only become newer");
        let this = self.this_node_in(plan);
        let made = self.make_missing(plan);
        self.adapt_settings(plan);
        let members = self.members();
        let mut left = Vec::with_capacity(members.len());
        let mut told = Vec::with_capacity(members.len());
        for member in &members {
            let may_be_elsewhere = is_first || made.is_to_ask(member.name());
            member.adapt_waiting(plan, this, may_be_elsewhere);
            // Before the roles, which wait for rollbacks that are under way: what this node says
            // behind the map of how far its copies are is not taken back by one that is left out.
            member.heed(plan, this);
            let pending = member.take_up_roles(plan, this, 0..member.vbucket_count());
            told.extend(member.follow(plan, this));
            left.push((member, pending));
        }
        // Nor does anything come from it any more.
        told.retain(|told| !told.wait());
        *self.lock_unheard() = told;
        let pending_count: usize = left.iter().map(|(_, pending)| pending.len()).sum();
        // Behind the roles: clients are sent to vBuckets that are active already.
        *self.lock_plan() = plan.clone();
        self.is_alone.store(false, Ordering::Relaxed);
        self.serve_made(made);
        self.tell();
        tracing::info!(
            epoch = plan.revision.epoch,
            revision = plan.revision.revision,
            nodes = plan.nodes.len(),
            is_member = this.is_some(),
            buckets = plan.buckets.len(),
            pending = pending_count,
            "the cluster map is carried out"
        );
        let has_others = plan.nodes.len() > 1;
        self.manifests.state.set_due(has_others);
        self.users.state.set_due(has_others);
        self.identities.state.set_due(has_others);
        let has_bucket_changes = plan.changes > if is_first { 0 } else { current.changes };
        if has_others && has_bucket_changes {
            self.plans.state.set_due(true);
        }
        // A start has nobody yet who gives buckets the settings of its plan.
        let has_settings_to_adapt = is_first && plan.changes > 0;
        let has_more = has_settings_to_adapt || self.has_more_to_try();
        self.retries.begin(pending_count > 0 || has_more);
        for (member, pending) in left {
            member.show_pending(pending, self.server.get());
        }
        CarriedOut::Done
    }

    /// Whether the plan could be carried out now, as far as can be known.
    pub fn try_out(&self, plan: &ClusterPlan) -> CarriedOut {
        let _one_at_a_time = self.hold_buckets();
        let steps = match self.checked(plan, &self.plan()) {
            Ok(steps) => steps,
            Err(refusal) => return refusal,
        };
        match self.try_buckets(&steps, plan) {
            Ok(()) => CarriedOut::Done,
            Err(BucketRefusal::Failed(why)) => CarriedOut::NotNow(why),
            Err(refusal) => CarriedOut::Refused(refusal.to_string()),
        }
    }

    /// What the plan asks of the node's set of buckets, if it is one that follows `current`.
    fn checked(
        &self,
        plan: &ClusterPlan,
        current: &ClusterPlan,
    ) -> Result<BucketSteps, CarriedOut> {
        let is_first = self.is_first(current);
        // Whoever hands over an old plan is to hear that it is old, whatever else it is.
        if !is_first && plan.revision < current.revision {
            return Err(CarriedOut::Older(current.revision));
        }
        if !is_first && plan.revision == current.revision && plan != current {
            return Err(CarriedOut::Another(current.revision));
        }
        self.check(plan, current).map_err(CarriedOut::Refused)
    }

    /// The plan of a node alone is nobody's: any other comes after it.
    fn is_first(&self, current: &ClusterPlan) -> bool {
        current.nodes.len() == 1 && self.server.get().is_none()
    }

    /// Whether the plan is one for the buckets of this node, and what of them comes and goes; if
    /// not, why.
    fn check(&self, plan: &ClusterPlan, current: &ClusterPlan) -> Result<BucketSteps, String> {
        let members = self.members();
        let here: BTreeSet<String> = members.iter().map(|it| it.name().to_owned()).collect();
        let before = (!self.is_alone()).then_some(current);
        let steps = BucketSteps::between(&here, before, plan)?;
        for member in members {
            let name = member.name();
            let Some(bucket) = plan.buckets.get(name) else { continue };
            let (planned, count) = (bucket.chains.len(), usize::from(member.vbucket_count()));
            let stays = !steps.removed.iter().any(|removed| removed == name);
            if stays && planned != count {
                return Err(format!("the map has {planned} vBuckets, the bucket `{name}` {count}"));
            }
        }
        Ok(steps)
    }

    /// Tries what is left of the plan again.
    fn try_again(&self) {
        self.own_setup_file.kept.make_sure();
        // First what waits for nobody: others answer in their time, or not at all.
        let asked = self.plan();
        let mut has_advanced = self.take_up_what_is_left(&asked, &BTreeMap::new());
        // The buckets are not held while others are asked; what comes of it may be another plan.
        let mut silent = self.nobody_silent();
        let answers = self.ask_peers(&asked, &mut silent);
        if answers.values().any(|answers| !answers.is_empty()) {
            has_advanced |= self.take_up_what_is_left(&asked, &answers);
        }
        self.exchange_plans();
        self.exchange_manifests(&self.plan(), &mut silent);
        let members = self.members();
        let is_pending = members.iter().any(|member| !member.pending().is_empty());
        self.retries.tried(is_pending || self.has_more_to_try(), has_advanced);
        // The plan that counts by now may come of the exchange.
        let asked = self.plan();
        self.exchange_users(&asked);
        self.ask_identities(&asked);
    }

    /// Takes up the roles that are left, with what others have `answers`ed about the plan `asked`.
    /// Whether something has come of it.
    fn take_up_what_is_left(
        &self,
        asked: &ClusterPlan,
        answers: &BTreeMap<String, Answers>,
    ) -> bool {
        // Nobody else carries out a plan while this is held.
        let _one_at_a_time = self.hold_buckets();
        let plan = self.plan();
        if self.is_unremembered() {
            self.remember(&plan);
        }
        let this = self.this_node_in(&plan);
        let made = self.make_missing(&plan);
        self.adapt_settings(&plan);
        let mut has_advanced = false;
        let members = self.members();
        let mut left = Vec::with_capacity(members.len());
        for member in &members {
            // What was answered names members by their index in the plan that was asked about.
            if let Some(answers) = answers.get(member.name()).filter(|_| plan == *asked) {
                member.hear_peers(&plan, this, answers);
            }
            let before = member.pending();
            let is_made = made.contains(member.name());
            let pending = if is_made {
                member.adapt_waiting(&plan, this, made.is_to_ask(member.name()));
                member.take_up_roles(&plan, this, 0..member.vbucket_count())
            } else {
                let vbids = before.iter().map(|pending| pending.vbid);
                member.take_up_roles(&plan, this, vbids)
            };
            if is_made || pending.len() < before.len() {
                has_advanced = true;
                member.follow(&plan, this);
            }
            left.push((member, pending));
        }
        if !made.is_empty() {
            self.serve_made(made);
            self.tell();
        }
        for (member, pending) in left {
            member.show_pending(pending, self.server.get());
        }
        has_advanced
    }

    /// Asks those for whom vBuckets wait, by bucket. Not while a plan is carried out: answers take
    /// their time.
    fn ask_peers(&self, plan: &ClusterPlan, silent: &mut Silent<'_>) -> BTreeMap<String, Answers> {
        let (Some(this), Some(ask)) = (self.this_node_in(plan), self.ask_peer.get()) else {
            return BTreeMap::new();
        };
        let members = self.members();
        let members = members.iter().take_while(|_| !self.is_stopping());
        members.map(|it| (it.name().to_owned(), it.ask_peers(plan, this, ask, silent))).collect()
    }

    /// Has the node ask others with `ask`.
    pub(crate) fn ask_with(&self, ask: AskPeer) {
        assert!(self.ask_peer.set(ask).is_ok(), "there is one way to ask");
    }

    /// A start that is told of no map goes on with this one. That it cannot be written keeps nobody
    /// from carrying it out.
    fn remember(&self, plan: &ClusterPlan) {
        let written = self.remembered.write(&self.identity.name, plan, &[]);
        let was_unremembered = self.is_unremembered.swap(written.is_err(), Ordering::Relaxed);
        if let Err(error) = written
            && !was_unremembered
        {
            tracing::warn!(
                %error,
                "the cluster map cannot be kept in the data directory, which is tried again"
            );
        }
    }

    fn has_more_to_try(&self) -> bool {
        let (manifests, users) = (&self.manifests.state, &self.users.state);
        let exchanges = [manifests, users, &self.plans.state, &self.identities.state];
        let is_due = exchanges.iter().any(|exchange| exchange.is_due());
        let is_unsure = self.own_setup_file.kept.has_unsure();
        is_due || is_unsure || self.is_unremembered() || self.has_unmade() || self.has_unadapted()
    }

    /// Whether the node stops, which waits for no other one: nobody is asked any more.
    fn is_stopping(&self) -> bool {
        self.retries.is_stopping()
    }

    fn is_unremembered(&self) -> bool {
        self.is_unremembered.load(Ordering::Relaxed)
    }

    /// Lets a node alone take durable writes: it is the only one that has to hold them. The roles
    /// that an operator has given to vBuckets stay. A node that is one of a cluster has its chains
    /// from the map, which may have come while it was loading: they stay, too, or durable writes
    /// would be acknowledged that no other node has.
    pub(crate) fn serve_alone(&self) {
        // Until it is done no map may come.
        let _one_at_a_time = self.hold_buckets();
        if !self.is_alone() {
            return;
        }
        let topology = self.alone_topology();
        self.members().iter().for_each(|member| member.bucket.assume_topology(&topology));
    }

    /// Whether no plan was ever carried out.
    pub(crate) fn is_alone(&self) -> bool {
        self.is_alone.load(Ordering::Relaxed)
    }

    /// While this is held no plan is carried out, and nobody else changes the set of buckets.
    pub(crate) fn hold_buckets(&self) -> MutexGuard<'_, ()> {
        self.carrying_out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn alone_topology(&self) -> bucket::Topology {
        vec![vec![Some(self.identity.name.clone())]]
    }

    fn members(&self) -> Vec<Arc<BucketMember>> {
        let buckets = self.buckets.read().unwrap_or_else(PoisonError::into_inner);
        buckets.values().cloned().collect()
    }

    fn member(&self, bucket: &str) -> Option<Arc<BucketMember>> {
        self.buckets.read().unwrap_or_else(PoisonError::into_inner).get(bucket).cloned()
    }

    fn tell(&self) {
        // Taken before the view is made: one made before could be told behind a newer one.
        let _in_order = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = self.server.get() {
            server.publish(self.view());
        }
        if let Some(notify) = self.notify.get() {
            notify();
        }
    }

    fn cluster_map_of(&self, plan: &ClusterPlan) -> ClusterMap {
        let Identity { name, cluster_uuid, .. } = &self.identity;
        let mut map = plan.cluster_map(name, self.this_address(), *cluster_uuid);
        if let Some(name) = self.own_cluster_name() {
            map.name = name;
        }
        map
    }

    fn lock_unheard(&self) -> MutexGuard<'_, Vec<Told>> {
        self.unheard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_plan(&self) -> MutexGuard<'_, ClusterPlan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
