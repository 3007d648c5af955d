//! The roles of a node's vBuckets: what a plan says, and having the bucket play them.

use bucket::{DamageKind, LifeError, NewRole};
use cluster::{ClusterPlan, PendingVbucket, VbucketRole};
use document::{Vbid, VbucketState};

use super::bucket_member::BucketMember;

/// Why a replica is not built anew.
const KEPT: &str = "its file is damaged, and stays as it is while no node has the vBucket active: \
                    what is here may be the last of it";

impl BucketMember {
    /// Has these vBuckets play the roles that the plan says for `this` node. What one of them
    /// answers stops no other one; returned is what is left.
    pub(super) fn take_up_roles(
        &self,
        plan: &ClusterPlan,
        this: Option<usize>,
        vbids: impl Iterator<Item = u16>,
    ) -> Vec<PendingVbucket> {
        let planned = plan.buckets.get(self.name()).expect("the map was found to have this bucket");
        let count = usize::from(self.vbucket_count());
        assert_eq!(planned.chains.len(), count, "the map was found to have these vBuckets");
        let mut roles = Vec::new();
        let mut given_up = Vec::new();
        // No node has these active: their copies here may be the last ones, as after two failovers,
        // and are for a map that makes one of them active.
        let mut kept = Vec::new();
        let mut left = Vec::new();
        for number in vbids {
            let vbid = Vbid(number);
            // A node that is given up keeps what it has, for whoever may want it.
            let role = this.map_or(VbucketRole::None, |this| plan.role(self.name(), number, this));
            let waits = self.waits(number);
            let (state, topology) = match role {
                VbucketRole::Active(_) if waits.is_some() => {
                    left.extend(waits);
                    (VbucketState::Dead, None)
                }
                VbucketRole::Active(chain) => (VbucketState::Active, Some(vec![chain])),
                // A replica is built anew of what its active copy has. Where there is none, what is
                // here may be the last that there is of the vBucket. One that is built anew at this
                // moment is not taken up for what it was: others hear behind the map what it is.
                VbucketRole::Replica(None) if self.file_is_damaged(vbid) => {
                    left.push(PendingVbucket {
                        vbid: number,
                        wanted: "replica",
                        reason: KEPT.into(),
                    });
                    if !self.is_active(vbid) {
                        continue;
                    }
                    (VbucketState::Dead, None)
                }
                VbucketRole::Replica(_) => (VbucketState::Replica, None),
                // The file of one that is out of service stays: it may be all that there is.
                VbucketRole::None if !self.is_here(vbid) => {
                    self.bucket.expect_no_role(vbid);
                    continue;
                }
                VbucketRole::None => {
                    let is_elsewhere = matches!(planned.chain(number), [Some(_), ..]);
                    if is_elsewhere {
                        given_up.push(vbid)
                    } else {
                        kept.push(number.to_string())
                    }
                    (VbucketState::Dead, None)
                }
            };
            roles.push(NewRole { vbid, state, topology });
        }
        let wanted: Vec<(Vbid, VbucketState)> =
            roles.iter().map(|role| (role.vbid, role.state)).collect();
        let name_of = |vbid| wanted.iter().find(|(of, _)| *of == vbid).map(|(_, state)| *state);
        let failed = self.bucket.set_vbucket_states(roles);
        left.extend(failed.iter().map(|(vbid, error)| {
            let state = name_of(*vbid).expect("no other role fails than was to be taken up");
            pending(*vbid, state.name(), error)
        }));
        if this.is_some() {
            // One that is not dead yet is not deleted: it is left, and tried again.
            given_up.retain(|vbid| failed.iter().all(|(of, _)| of != vbid));
            left.extend(given_up.into_iter().filter_map(|vbid| self.delete(vbid)));
            self.tell_of_kept(&kept);
        }
        left.sort_by_key(|pending| pending.vbid);
        left
    }

    fn tell_of_kept(&self, kept: &[String]) {
        if kept.is_empty() {
            return;
        }
        tracing::warn!(
            bucket = self.name(),
            vbuckets = kept.join(", "),
            "the map has these vBuckets active on no node, and this node keeps what it has of them"
        );
    }

    fn delete(&self, vbid: Vbid) -> Option<PendingVbucket> {
        match self.bucket.delete_vbucket(vbid) {
            Ok(()) | Err(LifeError::NotHere) => None,
            Err(LifeError::Storage(error)) => {
                let vbucket = vbid.0;
                tracing::warn!(%error, vbucket, "the file of a deleted vBucket stays for now");
                None
            }
            Err(error) => Some(pending(vbid, "deleted", &error)),
        }
    }

    /// Whether the vBucket would be built anew as a replica, and nobody is about to.
    fn file_is_damaged(&self, vbid: Vbid) -> bool {
        self.bucket.settled_damage_of(vbid) >= Some(DamageKind::RefusesWrites)
    }

    fn is_active(&self, vbid: Vbid) -> bool {
        let mut is_active = false;
        self.bucket
            .with_vbucket(vbid, |vbucket| is_active = vbucket.state() == VbucketState::Active);
        is_active
    }

    fn is_here(&self, vbid: Vbid) -> bool {
        let mut is_here = false;
        self.bucket.with_vbucket(vbid, |_| is_here = true);
        is_here
    }
}

fn pending(vbid: Vbid, wanted: &'static str, error: &LifeError) -> PendingVbucket {
    PendingVbucket { vbid: vbid.0, wanted, reason: error.to_string() }
}
