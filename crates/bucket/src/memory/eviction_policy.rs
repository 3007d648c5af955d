//! What leaves memory, changed while the bucket is in use.

use document::Vbid;
use vbucket::eviction::EvictionPolicy;

use crate::core::{Bucket, BucketCore};

impl Bucket {
    /// What leaves memory when it is full, if there are files.
    pub fn eviction_policy(&self) -> EvictionPolicy {
        self.0.vbuckets.factory.eviction_policy()
    }

    /// Changes what leaves memory when it is full, at once. Where keys are to stay that have left,
    /// they come back in the background, and are looked up in the files until then; the
    /// statistics say for how many vBuckets.
    pub fn set_eviction_policy(&self, policy: EvictionPolicy) {
        self.0.vbuckets.factory.set_eviction_policy(policy);
        for (vbid, _) in self.0.slots() {
            self.0.follow_eviction_policy(vbid);
        }
    }
}

impl BucketCore {
    /// Has a vBucket follow the bucket's policy, if it is here. Whoever puts a vBucket into its
    /// place calls this behind it: a policy that comes at the same time finds the vBucket, or this
    /// finds the policy.
    pub(crate) fn follow_eviction_policy(&self, vbid: Vbid) {
        let Some(slot) = self.slot(vbid) else { return };
        let has_keys_to_load = slot.lock().as_mut().is_some_and(|vbucket| {
            vbucket.set_eviction_policy(self.vbuckets.factory.eviction_policy());
            vbucket.has_keys_to_load()
        });
        if has_keys_to_load {
            self.memory.key_loader.wake();
        }
    }
}
