//! The bucket's files, as a backup over the REST port takes them.

use bucket::{Bucket, FreezeError, FrozenBucket, FrozenEntry};
use document::Vbid;
use management::{BackupCatalogue, BackupError, BackupSink, BackupSource, BackupVbucket};

/// Holds the files of a bucket.
pub(crate) fn begin(bucket: &Bucket) -> Result<Box<dyn BackupSource>, BackupError> {
    match bucket.freeze() {
        Ok(frozen) => {
            let vbuckets = frozen.vbuckets().len();
            tracing::info!(
                vbuckets,
                took_ms = u64::try_from(frozen.took().as_millis()).unwrap_or(u64::MAX),
                "a backup begins"
            );
            Ok(Box::new(Source(frozen)))
        }
        Err(error @ FreezeError::Ephemeral) => Err(BackupError::Impossible(error.to_string())),
        Err(error) => {
            tracing::warn!(%error, "a backup cannot begin");
            Err(BackupError::Failed(error.to_string()))
        }
    }
}

struct Source(FrozenBucket);

impl BackupSource for Source {
    fn catalogue(&self) -> BackupCatalogue {
        let vbuckets = self.0.vbuckets().iter().map(describe).collect();
        let numbers = |vbids: &[Vbid]| vbids.iter().map(|vbid| vbid.0).collect();
        let (deleted, empty) = (numbers(self.0.deleted()), numbers(self.0.empty()));
        BackupCatalogue { vbuckets, deleted, empty, took: self.0.took() }
    }

    fn write(&self, vbid: u16, sink: BackupSink) -> Result<(), String> {
        match self.0.write(Vbid(vbid), sink) {
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
