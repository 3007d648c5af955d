//! How the nodes of a cluster come to have one manifest of each bucket.
//!
//! A change is made on one node, which first asks the others for what is newer, and gives it to
//! them then. Whoever was not reached is asked again until it is, and so is everybody after a start
//! and when there is another map: in either direction the newer manifest wins.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bucket::{Bucket, ManifestChangeError, manifest_json};
use cluster::ClusterPlan;
use document::{Manifest, ManifestEdit, ManifestError};

use super::Membership;
use crate::peer_copies::ExchangeManifest;

/// What is left to be exchanged.
#[derive(Default)]
pub(super) struct ManifestExchange {
    exchange: OnceLock<ExchangeManifest>,
    /// Held while a manifest is changed here, and while it is exchanged.
    exchanging: Mutex<()>,
    /// Whether somebody was not reached.
    is_due: AtomicBool,
}

impl ManifestExchange {
    pub(super) fn is_due(&self) -> bool {
        self.is_due.load(Ordering::Relaxed)
    }

    /// A map was carried out.
    pub(super) fn note_other_nodes(&self, has_others: bool) {
        self.is_due.store(has_others, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.exchanging.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Membership {
    /// Has the node exchange manifests with `exchange`.
    pub(crate) fn exchange_with(&self, exchange: ExchangeManifest) {
        assert!(self.manifests.exchange.set(exchange).is_ok(), "there is one way to exchange");
    }

    /// Changes the manifest of a bucket, here and on all nodes that can be reached; the others get
    /// it when they can. May take as long as nodes do not answer.
    ///
    /// # Errors
    /// See [`ManifestChangeError`].
    pub fn edit_manifest(
        &self,
        bucket: &str,
        edit: ManifestEdit<'_>,
    ) -> Result<Arc<Manifest>, ManifestChangeError> {
        let none = || ManifestError::NotFound(format!("Bucket {bucket} is not found"));
        let member = self.buckets.get(bucket);
        let member = member.ok_or_else(|| ManifestChangeError::Refused(none()))?;
        let plan = self.plan();
        let _changing = self.manifests.lock();
        self.exchange_manifest_of(&member.bucket, &plan);
        let manifest = member.bucket.edit_manifest(edit)?;
        if !self.exchange_manifest_of(&member.bucket, &plan) {
            self.manifests.is_due.store(true, Ordering::Relaxed);
            self.retries.begin(true);
        }
        Ok(manifest)
    }

    /// Exchanges what is left to be.
    pub(super) fn exchange_manifests(&self, plan: &ClusterPlan) {
        if !self.manifests.is_due() {
            return;
        }
        let _exchanging = self.manifests.lock();
        self.manifests.is_due.store(false, Ordering::Relaxed);
        let members = self.buckets.values();
        let left = members.filter(|member| !self.exchange_manifest_of(&member.bucket, plan));
        if left.count() > 0 {
            self.manifests.is_due.store(true, Ordering::Relaxed);
        }
    }

    /// Exchanges the manifest of a bucket with all other nodes of the map. Whether all were
    /// reached.
    fn exchange_manifest_of(&self, bucket: &Bucket, plan: &ClusterPlan) -> bool {
        let Some(exchange) = self.manifests.exchange.get() else { return true };
        let this = self.this_node_in(plan);
        let name = &bucket.config().name;
        let mut all_reached = true;
        for (index, node) in plan.nodes.iter().enumerate() {
            if this.is_none() || this == Some(index) {
                continue;
            }
            let ours = manifest_json::encode_whole(&bucket.manifest());
            let taken = exchange(&node.address, name, &ours).and_then(|theirs| {
                let theirs =
                    manifest_json::decode(theirs.as_bytes()).map_err(anyhow::Error::msg)?;
                if theirs.uid > bucket.manifest().uid {
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
