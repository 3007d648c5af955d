//! What a backup says of itself. It is put last: objects without a manifest are no backup.

use std::collections::BTreeMap;

use anyhow::{Context, bail, ensure};
use document::limits::VBUCKET_COUNT_MAX;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::checked::Checked;
use super::target::Target;

/// The version of the manifest's layout.
pub(super) const FORMAT: u32 = 2;
const MANIFEST_NAME: &str = "manifest.json";

/// A whole backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) format: u32,
    pub(super) name: String,
    pub(super) bucket: BucketPart,
    /// The version of the node, or of the first of several.
    pub(super) node: String,
    /// The REST ports of the nodes whose active vBuckets it has. Older versions did not say it.
    #[serde(default)]
    pub(super) nodes: Vec<String>,
    /// Seconds since 1970.
    pub(super) began_at: u64,
    pub(super) ended_at: u64,
    /// How far the moments of the vBuckets lie apart, without those that are `late`.
    pub(super) cut_milliseconds: u64,
    /// Those that had a file, in order.
    pub(super) vbuckets: Vec<VbucketPart>,
    /// Those that were deleted, in order.
    pub(super) deleted: Vec<u16>,
    /// Those that had never had anything to write to a file, in order.
    pub(super) empty: Vec<u16>,
    /// The scopes and collections, and which ids come next. Older versions did not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) collections: Option<Value>,
    /// The settings that were kept of the bucket. Older versions did not say them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) settings: BTreeMap<String, String>,
}

/// What the layouts of all versions have.
#[derive(Deserialize)]
struct Layout {
    format: u32,
}

/// The bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BucketPart {
    pub(super) name: String,
    pub(super) uuid: String,
    #[serde(rename = "type")]
    pub(super) bucket_type: String,
    #[serde(rename = "vbuckets")]
    pub(super) vbucket_count: u16,
    /// Which version of a document wins. Older versions did not say it.
    #[serde(default = "by_seqno")]
    pub(super) conflict_resolution: String,
}

/// What most buckets do, and those of backups that do not say it did.
fn by_seqno() -> String {
    "seqno".to_owned()
}

/// One vBucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct VbucketPart {
    pub(super) vbid: u16,
    /// The object's name inside the backup.
    pub(super) object: String,
    pub(super) bytes: u64,
    /// 64 hexadecimal digits.
    pub(super) sha256: String,
    pub(super) high_seqno: u64,
    /// With the system events, as versions before these were told apart count and compare it.
    pub(super) documents: u64,
    /// What tells of scopes and collections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) system_events: Option<u64>,
    pub(super) tombstones: u64,
    /// Branches of its history, newest first.
    pub(super) failover_table: Vec<Branch>,
    /// Whether it was read after the others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) late: bool,
}

/// A branch of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Branch {
    pub(super) uuid: u64,
    pub(super) seqno: u64,
}

impl VbucketPart {
    /// Whether a file is the one that this tells of.
    pub(super) fn is_of(&self, checked: &Checked) -> bool {
        let found = checked.documents.saturating_add(checked.system_events);
        checked.high_seqno == self.high_seqno && found == self.documents
    }
}

impl Manifest {
    /// Documents, without system events where the manifest tells of those.
    pub(super) fn documents(&self) -> u64 {
        let documents = |vbucket: &VbucketPart| {
            vbucket.documents.saturating_sub(vbucket.system_events.unwrap_or(0))
        };
        self.vbuckets.iter().map(documents).sum()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.vbuckets.iter().map(|vbucket| vbucket.bytes).sum()
    }

    /// Makes the backup exist.
    pub(super) fn put(&self, target: &dyn Target) -> anyhow::Result<()> {
        target.put(&object_name(&self.name), &serde_json::to_vec_pretty(self)?)
    }

    /// The manifest of a backup; `None` if that does not exist.
    pub(super) fn get(target: &dyn Target, name: &str) -> anyhow::Result<Option<Self>> {
        let Some(content) = target.get_small(&object_name(name))? else { return Ok(None) };
        let damaged = || format!("the manifest of the backup {name} is damaged; use another");
        let Layout { format } = serde_json::from_slice(&content).with_context(damaged)?;
        ensure!(
            format == FORMAT,
            "the backup {name} was made by another version; use that version"
        );
        let manifest: Self = serde_json::from_slice(&content).with_context(damaged)?;
        manifest.check().with_context(damaged)?;
        Ok(Some(manifest))
    }

    /// Whether it says of each vBucket what became of it.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let count = self.bucket.vbucket_count;
        ensure!(count.is_power_of_two() && count <= VBUCKET_COUNT_MAX, "{count} vBuckets");
        let mut next = 0;
        for VbucketPart { vbid, object, .. } in &self.vbuckets {
            ensure!(*vbid >= next && *vbid < count, "vBucket {vbid} is out of order");
            ensure!(!object.contains('/'), "the object {object} is elsewhere");
            next = vbid + 1;
        }
        let stored = self.vbuckets.iter().map(|part| part.vbid);
        let mut known: Vec<u16> = stored.chain(self.deleted.clone()).collect();
        known.extend(&self.empty);
        known.sort_unstable();
        let is_missing = |(wanted, known): (u16, Option<&u16>)| known != Some(&wanted);
        let mut wanted = (0..count).map(|vbid| (vbid, known.get(usize::from(vbid))));
        if let Some((vbid, _)) = wanted.find(|pair| is_missing(*pair)) {
            bail!("vBucket {vbid} is missing, or there twice");
        }
        ensure!(known.len() == usize::from(count), "it lists a vBucket twice");
        Ok(())
    }
}

/// The name of a manifest.
pub(super) fn object_name(backup: &str) -> String {
    format!("{backup}/{MANIFEST_NAME}")
}

/// The backup whose manifest this object is.
pub(super) fn backup_of(object: &str) -> Option<&str> {
    object.strip_suffix(MANIFEST_NAME)?.strip_suffix('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(vbid: u16) -> VbucketPart {
        VbucketPart {
            vbid,
            object: format!("{vbid}.state.0.couch"),
            bytes: 1,
            sha256: String::new(),
            high_seqno: 1,
            documents: 1,
            system_events: Some(0),
            tombstones: 0,
            failover_table: Vec::new(),
            late: false,
        }
    }

    #[test]
    fn a_file_is_known_by_manifests_of_all_versions() {
        let found = |high_seqno, documents, system_events| {
            let (tombstones, failover_table) = (0, Vec::new());
            Checked { high_seqno, documents, system_events, tombstones, failover_table }
        };
        let new = VbucketPart { high_seqno: 5, documents: 5, system_events: Some(3), ..part(0) };
        let old = VbucketPart { high_seqno: 5, documents: 5, system_events: None, ..part(0) };
        for part in [new, old] {
            assert!(part.is_of(&found(5, 2, 3)));
            assert!(!part.is_of(&found(5, 2, 2)));
            assert!(!part.is_of(&found(4, 2, 3)));
        }
    }

    #[test]
    fn a_manifest_says_of_each_vbucket_what_became_of_it() {
        let (name, uuid) = ("default".to_owned(), String::new());
        let bucket = BucketPart {
            name,
            uuid,
            bucket_type: "couchbase".to_owned(),
            vbucket_count: 4,
            conflict_resolution: by_seqno(),
        };
        let manifest = |stored: &[u16], deleted: &[u16], empty: &[u16]| Manifest {
            format: FORMAT,
            name: "default-1".to_owned(),
            bucket: bucket.clone(),
            node: String::new(),
            nodes: Vec::new(),
            began_at: 0,
            ended_at: 0,
            cut_milliseconds: 0,
            vbuckets: stored.iter().map(|vbid| part(*vbid)).collect(),
            deleted: deleted.to_vec(),
            empty: empty.to_vec(),
            collections: None,
            settings: BTreeMap::new(),
        };
        for (stored, deleted, empty) in
            [(&[0, 1, 2, 3][..], &[][..], &[][..]), (&[1], &[0], &[2, 3]), (&[], &[3], &[0, 1, 2])]
        {
            manifest(stored, deleted, empty).check().unwrap();
        }
        for (stored, deleted, empty) in [
            (&[0, 1, 3][..], &[][..], &[][..]),
            (&[0, 1, 2], &[2], &[3]),
            (&[0, 1], &[2], &[3, 3]),
            (&[0, 1], &[2], &[4]),
            (&[0, 1, 4], &[2], &[3]),
        ] {
            manifest(stored, deleted, empty).check().unwrap_err();
        }
    }
}
