//! What a failing disk means for writers.

use document::Vbid;
use storage::StorageError;

use super::write_gate::WritePath;
use crate::core::{BucketCore, DamageKind, WriteBlock};

impl BucketCore {
    /// Looks how much the disk can take.
    pub(crate) fn look_for_room(&self) {
        self.disk.gate.note_room(self.store.room_bytes());
    }

    /// Notes what the disk said to the flush of a vBucket; logs when that is news.
    pub(crate) fn note_disk(&self, vbid: Vbid, path: WritePath, error: Option<&StorageError>) {
        let block = error.map(|error| match error {
            StorageError::NoSpace { .. } => WriteBlock::DiskFull,
            _ => WriteBlock::DiskFailed,
        });
        if block == Some(WriteBlock::DiskFull) {
            self.note_growth();
        }
        if self.disk.gate.note_write(vbid, path, block) {
            match error {
                Some(error) => {
                    tracing::error!(%error, "flushing fails; writes are refused until it succeeds");
                }
                None => tracing::info!("flushing succeeds again; writes are let in"),
            }
        }
        // Somebody else has found meanwhile that the file is damaged. Nobody tries to write it
        // again, whose success would let writers of the other vBuckets in.
        let refuses_writes = Some(DamageKind::RefusesWrites);
        if error.is_some() && self.slot(vbid).and_then(|it| it.damage.kind()) == refuses_writes {
            self.forget_failed_writes(vbid);
        }
    }

    /// What could not be written of a vBucket is not wanted any more: it keeps nobody out.
    pub(crate) fn forget_failed_writes(&self, vbid: Vbid) {
        self.note_disk(vbid, WritePath::Flush, None);
        self.note_disk(vbid, WritePath::Apply, None);
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;
    use std::sync::Arc;

    use executor::DeterministicPool;
    use platform::simulated::SimulatedFiles;
    use platform::{Clock, Entropy, FileError, WallTime};
    use vbucket::Waiter;

    use super::*;
    use crate::config::BucketConfig;
    use crate::core::{Bucket, Completion, Completions, Surroundings};

    const VBID: Vbid = Vbid(0);
    const OTHER: Vbid = Vbid(1);

    struct Nobody;

    impl Completions for Nobody {
        fn complete(&self, _: Waiter, _: Completion) {}

        fn release_memory(&self) {}
    }

    /// An applier is on its way with what the disk said to it while a flush finds the file damaged.
    /// The gate stayed closed for ever, to all vBuckets.
    #[test]
    fn a_failure_that_is_told_behind_the_damage_of_the_same_file_keeps_nobody_out() {
        let clock = Clock::simulated(WallTime(1_700_000_000_000_000_000));
        let driver = DeterministicPool::new(clock.clone(), 1);
        let surroundings = Surroundings {
            clock,
            files: Arc::new(SimulatedFiles::new()),
            pool: driver.pool().clone(),
            completions: Arc::new(Nobody),
            entropy: Entropy::simulated(1),
        };
        let config = BucketConfig { vbucket_count: 4, ..BucketConfig::named("test") };
        let path = Path::new("/data/bucket");
        let bucket = Bucket::open(surroundings, config, path).unwrap();
        let core = &bucket.0;
        let file = path.join("0.couch.1");
        let damage = StorageError::OutOfOrder { file: file.clone(), seqno: 1, high_seqno: 1 };
        let failure = || StorageError::from(FileError::new("sync", &file, io::Error::other("EIO")));
        for path in [WritePath::Apply, WritePath::Flush] {
            core.note_disk(VBID, path, Some(&failure()));
            assert_eq!(core.disk.gate.disk_block(), Some(WriteBlock::DiskFailed));
            core.give_up_file(VBID, &damage);
            assert_eq!(core.disk.gate.disk_block(), None);
            core.note_disk(VBID, path, Some(&failure()));
            assert_eq!(core.disk.gate.disk_block(), None, "{path:?}");
            core.note_disk(OTHER, path, Some(&failure()));
            core.note_disk(VBID, path, Some(&failure()));
            assert_eq!(core.disk.gate.disk_block(), Some(WriteBlock::DiskFailed));
            core.note_disk(OTHER, path, None);
            assert_eq!(core.disk.gate.disk_block(), None, "{path:?}");
            core.slot(VBID).unwrap().forget_file();
        }
    }
}
