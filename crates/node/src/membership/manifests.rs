//! How the nodes of a cluster come to have one manifest of each bucket.
//!
//! A change is made on any node, which first asks the others for what is newer, then has the first
//! node of the map that answers take the change, and gives it to all then. Whoever was not reached
//! is asked again until it is, and so is everybody after a start and when there is another map: in
//! either direction the newer manifest wins.

use std::sync::{Arc, OnceLock};

use auth::RolePlace;
use bucket::{Bucket, ManifestChangeError, manifest_json};
use cluster::{ClusterPlan, Uuid};
use document::{Manifest, ManifestEdit, ManifestError};

use super::Membership;
use super::exchange::{ATTEMPTS_MAX, Exchange, Precedence};
use super::silent::Silent;
use crate::peer_copies::ExchangeManifest;

/// What is left to be exchanged.
#[derive(Default)]
pub(super) struct ManifestExchange {
    with: OnceLock<ExchangeManifest>,
    pub(super) state: Exchange,
}

impl Membership {
    /// Has the node exchange manifests with `exchange`.
    pub(crate) fn exchange_with(&self, exchange: ExchangeManifest) {
        assert!(self.manifests.with.set(exchange).is_ok(), "there is one way to exchange");
    }

    /// Changes the manifest of a bucket, here and on all nodes that can be reached; the others get
    /// it when they can. With what it drops go the roles in that. May take as long as nodes do not
    /// answer.
    ///
    /// # Errors
    /// See [`ManifestChangeError`].
    pub fn edit_manifest(
        &self,
        bucket: &str,
        edit: ManifestEdit<'_>,
    ) -> Result<Arc<Manifest>, ManifestChangeError> {
        let none = || ManifestError::NotFound(format!("Bucket {bucket} is not found"));
        let member = self.member(bucket);
        let member = member.ok_or_else(|| ManifestChangeError::Refused(none()))?;
        let plan = self.plan();
        let changing = self.manifests.state.lock();
        let (before, manifest) = self.edit_behind_others(&member.bucket, &plan, edit)?;
        if !self.exchange_manifest_of(&member.bucket, &plan, &mut self.nobody_silent()) {
            self.manifests.state.set_due(true);
            self.retries.begin(true);
        }
        drop(changing);
        let dropped = before.dropped_by(&manifest).map(|(scope, collection)| RolePlace {
            bucket: bucket.to_owned(),
            scope: Some(scope.to_owned()),
            collection: collection.map(str::to_owned),
        });
        self.remove_roles_in(dropped.collect());
        Ok(manifest)
    }

    /// Of two changes on two nodes at a time the one comes behind the other: the first node of the
    /// map that answers has a change before the node that makes it, and refuses what does not
    /// follow the last one. Two equal changes of one moment are one. Returns the manifest before
    /// and the one behind the change.
    fn edit_behind_others(
        &self,
        bucket: &Bucket,
        plan: &ClusterPlan,
        edit: ManifestEdit<'_>,
    ) -> Result<(Arc<Manifest>, Arc<Manifest>), ManifestChangeError> {
        if !bucket.knows_its_manifest() {
            // Before another node takes what this one cannot.
            return Err(ManifestChangeError::Loading);
        }
        for _ in 0..ATTEMPTS_MAX {
            self.exchange_manifest_of(bucket, plan, &mut self.nobody_silent());
            let current = bucket.manifest();
            let next = current.edited(edit).map_err(ManifestChangeError::Refused)?;
            if next.uid == current.uid {
                return Ok((Arc::clone(&current), current));
            }
            match self.precede(bucket, plan, &next) {
                Precedence::Here => return Ok((current, bucket.edit_manifest(edit)?)),
                Precedence::Other => {}
                Precedence::Taken => {
                    let taken = bucket.set_manifest(next.clone());
                    // Who has heard of it has made another change already.
                    if bucket.manifest().uid <= next.uid {
                        taken?;
                    }
                    return Ok((current, Arc::new(next)));
                }
            }
        }
        let why = "Scopes and collections keep changing on other nodes, try again".to_owned();
        Err(ManifestChangeError::Refused(ManifestError::NotNext(why)))
    }

    /// Gives `next`, which follows the manifest of this node, to the first node that answers.
    fn precede(&self, bucket: &Bucket, plan: &ClusterPlan, next: &Manifest) -> Precedence {
        let this = self.this_node_in(plan);
        let (Some(exchange), Some(this)) = (self.manifests.with.get(), this) else {
            return Precedence::Here;
        };
        let Some(uuid) = self.planned_uuid(bucket) else { return Precedence::Here };
        let meant = (bucket.config().name.as_str(), uuid);
        let offer = manifest_json::encode_whole(next);
        for node in plan.nodes.iter().take(this) {
            let tell = |ours: &str| -> anyhow::Result<Manifest> {
                let theirs = exchange(&node.address, meant, ours)?;
                manifest_json::decode(theirs.as_bytes()).map_err(anyhow::Error::msg)
            };
            match tell(&offer) {
                Ok(before) if before.uid < next.uid => return Precedence::Taken,
                Ok(_) => return Precedence::Other,
                Err(_) => {}
            }
            // It has refused the offer, its answer was lost, or it does not answer.
            match tell(&manifest_json::encode_whole(&bucket.manifest())) {
                Ok(now) if now.uid == next.uid && now.scopes == next.scopes => {
                    return Precedence::Taken;
                }
                Ok(_) => return Precedence::Other,
                Err(_) => {}
            }
        }
        Precedence::Here
    }

    /// The identity that the plan says of a bucket, if it says one; `None` if the node has that
    /// bucket no more, be it that it has another one of its name.
    fn planned_uuid(&self, bucket: &Bucket) -> Option<Option<Uuid>> {
        // Plan and buckets change one behind the other.
        let _one_at_a_time = self.hold_buckets();
        let name = &bucket.config().name;
        let is_same = self.member(name).is_some_and(|it| it.bucket.uuid() == bucket.uuid());
        is_same.then(|| self.plan().buckets.get(name).and_then(|planned| planned.uuid))
    }

    pub(super) fn nobody_silent(&self) -> Silent<'_> {
        Silent::nobody(self.retries.clock())
    }

    /// Exchanges what is left to be.
    pub(super) fn exchange_manifests(&self, plan: &ClusterPlan, silent: &mut Silent<'_>) {
        if !self.manifests.state.is_due() {
            return;
        }
        let _exchanging = self.manifests.state.lock();
        // Before the exchange: a map that is carried out meanwhile sets it again, and that counts.
        self.manifests.state.set_due(false);
        let members = self.members();
        for member in members {
            if !self.exchange_manifest_of(&member.bucket, plan, silent) {
                self.manifests.state.set_due(true);
            }
        }
    }

    /// Exchanges the manifest of a bucket with all other nodes of the map. Whether all were
    /// reached.
    fn exchange_manifest_of(
        &self,
        bucket: &Bucket,
        plan: &ClusterPlan,
        silent: &mut Silent<'_>,
    ) -> bool {
        let Some(exchange) = self.manifests.with.get() else { return true };
        let this = self.this_node_in(plan);
        // One that is gone by now has nothing that another one could have.
        let Some(uuid) = self.planned_uuid(bucket) else { return true };
        let meant = (bucket.config().name.as_str(), uuid);
        let mut all_reached = true;
        for (index, node) in plan.nodes.iter().enumerate() {
            if this.is_none() || this == Some(index) {
                continue;
            }
            if self.is_stopping() {
                return false;
            }
            // Encoded anew for each node: the one before may have had a newer manifest.
            let ours = manifest_json::encode_whole(&bucket.manifest());
            let answer = silent.ask(node, || exchange(&node.address, meant, &ours));
            let taken = answer.and_then(|theirs| {
                let theirs =
                    manifest_json::decode(theirs.as_bytes()).map_err(anyhow::Error::msg)?;
                let known = bucket.manifest();
                if theirs.uid == known.uid && theirs.scopes != known.scopes {
                    let uid = known.uid;
                    tracing::warn!(node = node.name, uid, "two manifests have one uid");
                }
                if theirs.uid > known.uid {
                    bucket.set_manifest(theirs)?;
                }
                Ok(())
            });
            if let Err(error) = taken {
                tracing::debug!(node = node.name, "no manifest is exchanged: {error:#}");
                all_reached = false;
            }
        }
        all_reached
    }
}
