//! The one door into a vBucket: its lock is taken here, and what it wants done is carried out once
//! the lock is free. Those who only look take the lock by themselves, and so do those who hold
//! several vBuckets' files at once (`disk/flush.rs`).

use std::sync::Arc;
use std::time::Duration;

use document::Vbid;
use vbucket::{Effect, Now, Refusal, Vbucket, VbucketFigures};

use super::bucket::{Bucket, BucketCore};
use super::vbucket_slot::{VbucketGuard, VbucketSlot};

impl Bucket {
    /// Shows the vBucket to `act` under its lock, and carries out the effects after it. `None` if
    /// it is not here, or still being loaded. For streams: requests of clients have operations of
    /// their own.
    pub fn on_vbucket<T>(
        &self,
        vbid: Vbid,
        act: impl FnOnce(&mut Vbucket, Now, &mut Vec<Effect>) -> T,
    ) -> Option<T> {
        let now = self.0.now();
        let act = |vbucket: &mut Vbucket, effects: &mut Vec<Effect>| act(vbucket, now, effects);
        self.0.on_vbucket(vbid, &mut Vec::new(), act).ok()
    }

    /// Looks at one vBucket, if it is loaded. `look` must not block.
    pub fn with_vbucket(&self, vbid: Vbid, look: impl FnOnce(&Vbucket)) {
        let Some(slot) = self.0.slot(vbid) else { return };
        if let Some(vbucket) = slot.lock().as_ref() {
            look(vbucket);
        }
    }

    /// Whether the vBucket is still being loaded, so that it answers nothing yet.
    pub fn is_loading(&self, vbid: Vbid) -> bool {
        let is_loading = |slot: &VbucketSlot| {
            slot.figures().is_none() && matches!(slot.why_not_here(), Refusal::Loading)
        };
        self.0.slot(vbid).is_some_and(is_loading)
    }

    /// What a vBucket has published, if it is loaded. Takes no lock that a request waits for.
    pub fn figures_of(&self, vbid: Vbid) -> Option<Arc<VbucketFigures>> {
        self.0.slot(vbid)?.figures()
    }

    /// Looks at what every loaded vBucket has published. Takes no lock that a request waits for.
    pub fn for_each_figures(&self, mut look: impl FnMut(Vbid, &VbucketFigures)) {
        for (vbid, slot) in self.0.slots() {
            if let Some(figures) = slot.figures() {
                look(vbid, &figures);
            }
        }
    }

    /// Looks at every loaded vBucket, one lock at a time. `look` must not block.
    pub fn for_each_vbucket(&self, mut look: impl FnMut(Vbid, &Vbucket)) {
        for (vbid, slot) in self.0.slots() {
            if let Some(vbucket) = slot.lock().as_ref() {
                look(vbid, vbucket);
            }
        }
    }
}

impl BucketCore {
    /// Shows the vBucket to `act` under its lock, and carries out the effects after it. `effects`
    /// is empty before and after: the caller keeps the allocation.
    ///
    /// # Errors
    /// Why there is no vBucket.
    pub(crate) fn on_vbucket<T>(
        &self,
        vbid: Vbid,
        effects: &mut Vec<Effect>,
        act: impl FnOnce(&mut Vbucket, &mut Vec<Effect>) -> T,
    ) -> Result<T, Refusal> {
        // Dropped behind the lock where there is no vBucket, with what it may hold.
        let mut act = Some(act);
        self.enter(vbid, effects, &mut Duration::default(), |entered, effects| {
            let vbucket = entered?;
            let act = act.take().expect("a vBucket is entered once");
            Ok(act(vbucket, effects))
        })
    }

    /// The same for `act` that answers with a refusal of its own kind where there is no vBucket: an
    /// answer within an answer would be moved once more for each request. The time that it waits
    /// for the lock is added to `waited`; the clock is read only where it does wait.
    #[inline]
    pub(crate) fn enter<R>(
        &self,
        vbid: Vbid,
        effects: &mut Vec<Effect>,
        waited: &mut Duration,
        act: impl FnOnce(Result<&mut Vbucket, Refusal>, &mut Vec<Effect>) -> R,
    ) -> R {
        assert!(effects.is_empty(), "effects are carried out before the next vBucket is entered");
        let Some(slot) = self.slot(vbid) else { return act(Err(Refusal::NotActive), effects) };
        let mut place = slot.try_lock().unwrap_or_else(|| self.await_lock(slot, waited));
        let result = act(place.as_mut().ok_or_else(|| slot.why_not_here()), effects);
        // Effects take locks of queues and of other components (invariant 10).
        drop(place);
        self.carry_out(vbid, effects);
        result
    }

    #[cold]
    fn await_lock<'a>(&self, slot: &'a VbucketSlot, waited: &mut Duration) -> VbucketGuard<'a> {
        let began = self.now().monotonic;
        let place = slot.lock();
        *waited += self.now().monotonic.since(began);
        place
    }
}
