//! A vBucket whose file is damaged begins anew, by an order that knows what is lost: for a node
//! alone, which no other can give its copy.

use std::sync::Arc;

use document::{Seqno, Vbid, VbucketState};
use storage::Remains;
use vbucket::{RoleChange, Topology, Vbucket};

use super::life_error::LifeError;
use crate::core::{AwaitedRole, Bucket, BucketCore, DamageKind, VbucketDamage, VbucketSlot};

/// What a vBucket would lose by beginning anew.
#[derive(Clone, Debug)]
pub struct ResetLoss {
    /// What is wrong with it.
    pub damage: VbucketDamage,
    /// What there is on disk.
    pub remains: Remains,
    /// What it serves from memory: high seqno, and documents; `None` out of service.
    pub in_memory: Option<(Seqno, usize)>,
}

impl ResetLoss {
    /// The highest seqno that anything tells of.
    pub fn high_seqno(&self) -> Option<Seqno> {
        let in_file = self.remains.newest_header.map(|(seqno, _)| seqno);
        let in_memory = self.in_memory.map(|(seqno, _)| seqno);
        [in_file, self.remains.known_seqno, in_memory].into_iter().flatten().max()
    }

    /// Documents alive, as far as anything tells.
    pub fn document_count(&self) -> Option<u64> {
        let in_memory = self.in_memory.map(|(_, count)| u64::try_from(count).unwrap_or(u64::MAX));
        in_memory.or(self.remains.newest_header.map(|(_, count)| count))
    }
}

impl Bucket {
    /// What [`Bucket::reset_vbucket`] would lose. Reads what there is of the file: not for
    /// front-end workers.
    ///
    /// # Errors
    /// See [`LifeError`]: there is nothing to be reset.
    pub fn reset_loss(&self, vbid: Vbid) -> Result<ResetLoss, LifeError> {
        let core = &self.0;
        let slot = core.slot(vbid).ok_or(LifeError::OutOfRange)?;
        let (kind, reason) = slot.why_reset()?;
        let of = |vbucket: &Vbucket| (vbucket.high_seqno(), vbucket.document_count());
        let in_memory = slot.lock().as_ref().map(of);
        let damage = VbucketDamage { vbid, kind, reason };
        Ok(ResetLoss { damage, remains: core.store.remains(vbid), in_memory })
    }

    /// Has a vBucket whose file is damaged, and which cannot be flushed or does not serve, begin
    /// anew: empty and active, with a branch of history and a revision of its own. What is left of
    /// its file is set aside. Whatever fails, and whenever the power goes, it is out of service as
    /// before or has begun anew. Not for front-end workers.
    ///
    /// # Errors
    /// See [`LifeError`]. After one of a file it is out of service; callers may ask again.
    pub fn reset_vbucket(&self, vbid: Vbid, topology: Option<Topology>) -> Result<(), LifeError> {
        let core = &self.0;
        let slot = core.slot(vbid).ok_or(LifeError::OutOfRange)?;
        let history = slot.lock_history();
        let file = slot.lock_file();
        slot.why_reset()?;
        let (old, made) = core.begin_without(vbid, slot, topology);
        drop(file);
        drop(history);
        drop(old);
        made
    }
}

impl VbucketSlot {
    /// What is wrong with the vBucket, if that is bad enough to begin anew.
    fn why_reset(&self) -> Result<(DamageKind, Arc<str>), LifeError> {
        if self.is_absent() {
            return Err(LifeError::NotHere);
        }
        self.damage.get().filter(|_| self.file_is_damaged()).ok_or(LifeError::NotDamaged)
    }
}

impl BucketCore {
    /// The caller holds the vBucket's history and file, and drops what it is given behind these.
    /// Unlike a deletion this needs no list: a start finds the damaged file, which is not believed;
    /// or none that the journal expects, which is not believed either; or one that nobody expects.
    fn begin_without(
        &self,
        vbid: Vbid,
        slot: &VbucketSlot,
        topology: Option<Topology>,
    ) -> (Option<Vbucket>, Result<(), LifeError>) {
        let reason = slot.damage.get().map(|(_, reason)| reason).unwrap_or_default();
        self.store.distrust(vbid);
        let mut old = slot.take_out_of_service(&reason);
        self.retire(vbid, old.as_mut());
        let (state, fresh_uuid) = (VbucketState::Active, self.vbuckets.factory.new_uuid());
        slot.await_role(AwaitedRole::new(state, topology.clone()));
        let change = RoleChange { state, topology, is_takeover: false, fresh_uuid };
        let made = self.create_vbucket(vbid, slot, change);
        match &made {
            Ok(()) => tracing::warn!(
                vbucket = vbid.0,
                reason = &*reason,
                "the vBucket begins anew, empty and active, by order; what is left of its damaged \
                 file is set aside"
            ),
            Err(error) => tracing::error!(
                %error,
                vbucket = vbid.0,
                "the vBucket does not begin anew and stays out of service; give the order again"
            ),
        }
        (old, made)
    }
}
