//! Buckets that come and go while the node runs.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard, PoisonError, Weak};

use cluster::{BucketPlan, ClusterPlan};
use server::{BucketRefusal, Departure};

use super::Membership;
use super::bucket_member::BucketMember;
use super::plan_order::PlanOrder;
use super::unmade::{Made, Unmade};
use crate::bucket_steps::{BucketKeeper, BucketSteps};
use crate::buckets::NodeBucket;

impl Membership {
    /// Has `keeper` make and delete the buckets of plans.
    pub(crate) fn keep_buckets_with(&self, keeper: Weak<dyn BucketKeeper>) {
        assert!(self.keeper.set(keeper).is_ok(), "a node has its buckets from one place");
    }

    fn keeper(&self) -> Option<Arc<dyn BucketKeeper>> {
        self.keeper.get()?.upgrade()
    }

    /// From now on there is this bucket, too, on a node that is alone: it is in the map, and
    /// clients can select it. The caller holds the buckets.
    pub(crate) fn add_bucket(&self, bucket: &NodeBucket) {
        let member = self.admit(bucket);
        member.bucket.assume_topology(&self.alone_topology());
        let plan = self.next_plan().with_bucket(bucket.name(), member.alone());
        *self.lock_plan() = plan;
        self.serve(bucket);
        self.tell();
    }

    /// From now on there is no bucket of that name on a node that is alone. Returned are the
    /// connections that have it. The caller holds the buckets.
    pub(crate) fn remove_bucket(&self, name: &str) -> Option<Departure> {
        let mut plan = self.next_plan();
        plan.buckets.remove(name);
        let departure = self.take_out(name);
        *self.lock_plan() = plan;
        self.tell();
        departure
    }

    /// Takes a bucket out that the plan is about to lose. Returned are the connections that have
    /// it. The caller holds the buckets.
    pub(crate) fn take_out(&self, name: &str) -> Option<Departure> {
        let mut buckets = self.buckets.write().unwrap_or_else(PoisonError::into_inner);
        let member = buckets.remove(name);
        // What follows takes locks of the replicator and the server, which is not done under this
        // one.
        drop(buckets);
        if let Some(member) = member {
            member.leave();
        }
        self.server.get().and_then(|server| server.remove_bucket(name))
    }

    /// Whether the buckets could come and go as the plan says.
    pub(super) fn try_buckets(
        &self,
        steps: &BucketSteps,
        plan: &ClusterPlan,
    ) -> Result<(), BucketRefusal> {
        let Some(keeper) = self.keeper() else { return Ok(()) };
        for name in steps.made.iter().filter(|name| !steps.removed.contains(name)) {
            let Some(planned) = plan.buckets.get(name) else { continue };
            keeper.make(name, planned, true)?;
        }
        for (name, settings) in self.settings_of(plan) {
            keeper.adapt(name, settings, true)?;
        }
        Ok(())
    }

    /// Deletes what `plan` says that is here by `current`. A start goes on from every step: with
    /// all of them here, or with the new plan and none of them.
    pub(super) fn remove_deleted(
        &self,
        steps: &BucketSteps,
        plan: &ClusterPlan,
        current: &ClusterPlan,
    ) -> Result<(), String> {
        if steps.removed.is_empty() {
            return Ok(());
        }
        let keeper = self.keeper().ok_or("the node is starting, or stopping; try again")?;
        // First: a start behind a crash finds which of them are to go, however many of them are
        // marked.
        let written = self.remembered.write(&self.identity.name, plan, &steps.removed);
        let removed = written.map_err(|error| format!("the cluster map cannot be kept: {error}"));
        let removed = removed.and_then(|()| {
            let names: Vec<&str> = steps.removed.iter().map(String::as_str).collect();
            keeper.remove(&names).map_err(|error| {
                let names = names.join("`, `");
                format!("what it deletes stays (`{names}`): {error}")
            })
        });
        if removed.is_err() {
            self.remember_refusal(current);
        }
        removed
    }

    /// What follows `current` was refused, and may be in the file for all that, even where writing
    /// it has failed: a start would carry it out.
    fn remember_refusal(&self, current: &ClusterPlan) {
        self.remember(current);
        if self.is_unremembered() {
            self.retries.begin(true);
        }
    }

    /// A plan is about to be carried out that follows `current`.
    pub(super) fn note_unmade(
        &self,
        steps: &BucketSteps,
        plan: &ClusterPlan,
        current: &ClusterPlan,
    ) {
        let (next, last) = (plan.revision, current.revision);
        let follows = next.epoch == last.epoch && next.revision == last.revision + 1;
        let is_fresh = |name: &&String| {
            let Some(planned) = plan.buckets.get(*name) else { return false };
            let is_other = |known: &BucketPlan| known.uuid != planned.uuid;
            current.buckets.get(*name).is_none_or(is_other)
                && !current.is_deleted(name, planned.uuid)
        };
        let is_known_predecessor = follows && !self.is_alone();
        let made = steps.made.iter().filter(|_| is_known_predecessor).filter(is_fresh);
        let fresh = made.cloned().collect();
        *self.lock_unmade() = Unmade { fresh, ..Unmade::default() };
    }

    /// Makes the buckets of the plan that are not here. What fails is tried again. Not before the
    /// plan is remembered: a start would not know what to do with a bucket that its plan lacks.
    pub(super) fn make_missing(&self, plan: &ClusterPlan) -> Made {
        let mut made = Made::default();
        let Some(keeper) = self.keeper().filter(|_| !self.is_unremembered()) else { return made };
        for (name, planned) in &plan.buckets {
            if planned.settings.is_none() || self.member(name).is_some() {
                continue;
            }
            match keeper.make(name, planned, false) {
                Ok(Some(bucket)) => {
                    // Clients do not have it yet: they select it once its vBuckets have their roles
                    // (`serve_made`).
                    self.admit(&bucket);
                    let mut unmade = self.lock_unmade();
                    unmade.reasons.remove(name);
                    if !unmade.fresh.remove(name) {
                        made.to_ask.insert(name.clone());
                    }
                    made.buckets.insert(name.clone(), bucket);
                }
                Ok(None) => {}
                Err(refusal) => self.note_failure(name, refusal.to_string()),
            }
        }
        made
    }

    fn note_failure(&self, name: &str, reason: String) {
        let before = self.lock_unmade().reasons.insert(name.to_owned(), reason.clone());
        // It is tried every few seconds: the log has each reason once.
        if before.as_ref() != Some(&reason) {
            tracing::warn!(
                bucket = name,
                reason,
                "a bucket of the map cannot be made yet, which is tried again"
            );
        }
    }

    /// Whether the plan has buckets that are not here.
    pub(super) fn has_unmade(&self) -> bool {
        self.lock_plan().buckets.keys().any(|name| self.member(name).is_none())
    }

    /// From now on clients can select these, which are in the plan.
    pub(super) fn serve_made(&self, made: Made) {
        made.buckets.values().for_each(|bucket| self.serve(bucket));
    }

    /// Gives buckets the settings that the plan has for them.
    pub(super) fn adapt_settings(&self, plan: &ClusterPlan) {
        let Some(keeper) = self.keeper() else { return };
        let mut has_unadapted = false;
        for (name, settings) in self.settings_of(plan) {
            if let Err(error) = keeper.adapt(name, settings, false) {
                tracing::warn!(
                    %error,
                    bucket = name,
                    "the bucket's settings stay as they were, which is tried again"
                );
                has_unadapted = true;
            }
        }
        self.lock_unmade().has_unadapted = has_unadapted;
    }

    /// Whether a bucket has not taken the settings that the plan has for it.
    pub(super) fn has_unadapted(&self) -> bool {
        self.lock_unmade().has_unadapted
    }

    /// Why what was ordered is not done here yet, though it will be.
    pub(super) fn obstacle(&self, order: &PlanOrder) -> Option<String> {
        let unmade = self.lock_unmade();
        match order {
            _ if self.is_unremembered() => {
                Some("the disk does not take the cluster map that says so".to_owned())
            }
            PlanOrder::Make { name, .. } => unmade.reasons.get(name).cloned(),
            PlanOrder::Change { .. } if unmade.has_unadapted => {
                Some("a bucket does not take its settings, see the log".to_owned())
            }
            PlanOrder::Change { .. } | PlanOrder::Delete { .. } | PlanOrder::Name(_) => None,
        }
    }

    /// The settings that a plan has for buckets that are here.
    fn settings_of<'a>(
        &self,
        plan: &'a ClusterPlan,
    ) -> Vec<(&'a String, &'a BTreeMap<String, String>)> {
        let buckets = plan.buckets.iter().filter(|(name, _)| self.member(name).is_some());
        buckets.filter_map(|(name, bucket)| Some((name, bucket.settings.as_ref()?))).collect()
    }

    /// Takes a bucket in that clients do not know yet.
    fn admit(&self, bucket: &NodeBucket) -> Arc<BucketMember> {
        let member = BucketMember::new(bucket).expect("a bucket that was just made has a uuid");
        if let Some(replicator) = self.replicator.get() {
            member.replicate_with(replicator);
        }
        let member = Arc::new(member);
        // Before the node serves there is nobody to tell; `serve_with` watches those that are there
        // by then.
        if let Some(itself) = self.itself.get().and_then(Weak::upgrade) {
            itself.watch_manifest_of(&member);
        }
        let mut buckets = self.buckets.write().unwrap_or_else(PoisonError::into_inner);
        let before = buckets.insert(bucket.name().to_owned(), Arc::clone(&member));
        drop(buckets);
        assert!(before.is_none(), "buckets have different names");
        member
    }

    fn serve(&self, bucket: &NodeBucket) {
        if let Some(server) = self.server.get() {
            let added = server.add_bucket(bucket.served(), &self.view());
            added.expect("there was found to be a place for it");
        }
    }

    /// The plan, to be changed: clients take a map only if it is newer.
    pub(super) fn next_plan(&self) -> ClusterPlan {
        let mut plan = self.plan();
        plan.revision.revision += 1;
        plan
    }

    fn lock_unmade(&self) -> MutexGuard<'_, Unmade> {
        self.unmade.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
