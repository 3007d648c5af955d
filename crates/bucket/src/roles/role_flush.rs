//! How changed roles become durable, also while the journal is full.

use std::time::Duration;

use document::Vbid;
use vbucket::Vbucket;

use crate::core::BucketCore;

/// vBuckets whose changed roles are written together.
const ROLES_FLUSHED_TOGETHER: usize = 256;

/// For so long files are brought up to date where not even a role has room in the journal.
const PATIENCE: Duration = Duration::from_secs(10);

impl BucketCore {
    /// Makes the roles of `vbids` durable, as far as the disk lets. Returns those that are not. Of
    /// a journal that is full for items a part is kept for roles; when that is full, too, files
    /// follow first. The caller holds no vBucket.
    pub(crate) fn flush_roles(&self, vbids: impl IntoIterator<Item = Vbid>) -> Vec<Vbid> {
        let mut behind: Vec<Vbid> = vbids.into_iter().collect();
        behind.sort_unstable();
        behind.dedup();
        behind.retain(|&vbid| !self.is_role_flushed(vbid));
        let mut is_full = false;
        for group in behind.chunks(ROLES_FLUSHED_TOGETHER) {
            is_full |= self.flush(group).journal_is_full;
        }
        behind.retain(|&vbid| !self.is_role_flushed(vbid));
        let deadline = self.clock.now().after(PATIENCE);
        while is_full && !behind.is_empty() {
            is_full = false;
            for group in behind.chunks(ROLES_FLUSHED_TOGETHER) {
                is_full |= self.flush_states(group).journal_is_full;
            }
            behind.retain(|&vbid| !self.is_role_flushed(vbid));
            if is_full && (deadline <= self.clock.now() || !self.make_some_room()) {
                break;
            }
        }
        behind
    }

    /// Whether what is durable has the present role of a vBucket that is here.
    pub(crate) fn is_role_flushed(&self, vbid: Vbid) -> bool {
        let slot = self.slot(vbid);
        slot.is_some_and(|slot| slot.lock().as_ref().is_some_and(Vbucket::is_state_flushed))
    }

    /// Brings the file up to date that keeps the journal longest. Whether there was one.
    fn make_some_room(&self) -> bool {
        let behind = self.store.unapplied_vbuckets();
        let oldest = behind.into_iter().find(|&vbid| !self.file_is_damaged(vbid));
        oldest.is_some_and(|vbid| self.apply(vbid).is_ok())
    }
}
