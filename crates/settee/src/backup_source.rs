//! The bucket's files, as a backup over the REST port takes them.

use std::collections::BTreeMap;

use bucket::{Bucket, FreezeError, FrozenBucket, FrozenEntry, manifest_json};
use cluster::{ClusterPlan, PendingVbucket};
use document::{Vbid, VbucketState};
use management::{BackupCatalogue, BackupError, BackupSink, BackupSource, BackupVbucket};
use node::Membership;

/// What a node has to give of a bucket.
struct Share {
    plan: ClusterPlan,
    /// For each vBucket whether the map has it active here.
    is_active: Vec<bool>,
}

/// Holds the files of what is active here of a bucket.
pub(crate) fn begin(
    membership: &Membership,
    bucket: &Bucket,
) -> Result<Box<dyn BackupSource>, BackupError> {
    let name = &bucket.config().name;
    let share = Share::of(membership, name)?;
    let frozen = bucket.freeze(|vbid| share.has(vbid)).map_err(refusal)?;
    share.check(&frozen, &membership.pending(name))?;
    // Nothing was taken away from this node before it was frozen: behind the roles comes the map.
    if membership.plan() != share.plan {
        return Err(BackupError::MapChanges("the map has changed meanwhile".to_owned()));
    }
    tracing::info!(
        vbuckets = frozen.vbuckets().len(),
        took_ms = u64::try_from(frozen.took().as_millis()).unwrap_or(u64::MAX),
        "a backup begins"
    );
    // Behind the files: these follow no newer one.
    let collections = manifest_json::encode_whole(&bucket.manifest());
    let settings = kept_settings(bucket)?;
    Ok(Box::new(Source { frozen, share, collections, settings }))
}

/// What a restored bucket is to have; what a start says of others, it says of that one, too.
fn kept_settings(bucket: &Bucket) -> Result<BTreeMap<String, String>, BackupError> {
    let failed = |why: String| BackupError::Failed(format!("the bucket's settings: {why}"));
    let kept = bucket.kept_settings().map_err(|error| failed(error.to_string()))?;
    let Some(kept) = kept else { return Ok(BTreeMap::new()) };
    serde_json::from_slice(&kept).map_err(|error| failed(error.to_string()))
}

fn refusal(error: FreezeError) -> BackupError {
    match error {
        FreezeError::Ephemeral => BackupError::Impossible(error.to_string()),
        FreezeError::OtherRole(_) => BackupError::MapChanges(error.to_string()),
        error => {
            tracing::warn!(%error, "a backup cannot begin");
            BackupError::Failed(error.to_string())
        }
    }
}

impl Share {
    fn of(membership: &Membership, bucket: &str) -> Result<Self, BackupError> {
        let plan = membership.plan();
        let this = membership.this_node_in(&plan);
        let gone = || BackupError::Failed(format!("the map has no bucket {bucket} any more"));
        let chains = &plan.buckets.get(bucket).ok_or_else(gone)?.chains;
        let is_active = |chain: &Vec<_>| this.is_some() && chain.first().copied().flatten() == this;
        let is_active = chains.iter().map(is_active).collect();
        Ok(Self { plan, is_active })
    }

    fn has(&self, vbid: Vbid) -> bool {
        self.is_active.get(usize::from(vbid.0)).copied().unwrap_or(false)
    }

    /// Whether each vBucket is what the map says. On a node alone an operator may have made of them
    /// whatever he wants: nobody else has more of them.
    fn check(&self, frozen: &FrozenBucket, pending: &[PendingVbucket]) -> Result<(), BackupError> {
        if let Some(pending) = pending.iter().find(|pending| self.has(Vbid(pending.vbid))) {
            let PendingVbucket { vbid, reason, .. } = pending;
            let what = format!("vBucket {vbid} is not active yet, as the map says: {reason}");
            return Err(BackupError::Failed(what));
        }
        if self.plan.nodes.len() == 1 {
            return Ok(());
        }
        let is_other = |entry: &&FrozenEntry| entry.facts.state != Some(VbucketState::Active);
        let other = frozen.vbuckets().iter().find(is_other).map(|entry| entry.vbid);
        match other.or(frozen.deleted().first().copied()) {
            None => Ok(()),
            Some(Vbid(vbid)) => {
                let what = format!("vBucket {vbid} is not active here, as the map says");
                Err(BackupError::MapChanges(what))
            }
        }
    }

    fn elsewhere(&self) -> Vec<u16> {
        let numbered = (0..).zip(&self.is_active);
        numbered.filter(|(_, is_active)| !**is_active).map(|(vbid, _)| vbid).collect()
    }
}

struct Source {
    frozen: FrozenBucket,
    share: Share,
    collections: String,
    settings: BTreeMap<String, String>,
}

impl BackupSource for Source {
    fn catalogue(&self) -> BackupCatalogue {
        let numbers = |vbids: &[Vbid]| vbids.iter().map(|vbid| vbid.0).collect();
        BackupCatalogue {
            revision: self.share.plan.revision,
            vbuckets: self.frozen.vbuckets().iter().map(describe).collect(),
            deleted: numbers(self.frozen.deleted()),
            empty: numbers(self.frozen.empty()),
            elsewhere: self.share.elsewhere(),
            collections: self.collections.clone(),
            settings: self.settings.clone(),
            took: self.frozen.took(),
        }
    }

    fn write(&self, vbid: u16, sink: BackupSink) -> Result<(), String> {
        match self.frozen.write(Vbid(vbid), sink) {
            Ok(true) => Ok(()),
            Ok(false) => Err("the vBucket is gone, or was given already".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn describe(entry: &FrozenEntry) -> BackupVbucket {
    let facts = &entry.facts;
    let branch = facts.failover_table.first().map_or(0, |entry| entry.uuid.0);
    BackupVbucket {
        vbid: entry.vbid.0,
        // Every commit has a time of its own, and so has whatever else changes a file.
        state: format!(
            "{branch:x}-{:x}-{:x}-{:x}-{:x}",
            facts.high_seqno.0, facts.purge_seqno.0, facts.document_count, facts.committed_at
        ),
        bytes: facts.live_bytes,
        is_late: entry.is_late,
    }
}
