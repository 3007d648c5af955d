//! Carrying out what vBuckets want done once their locks are free.

use document::{Vbid, VbucketState};
use vbucket::{Effect, SyncWriteEnd, Waiter};

use super::bucket::BucketCore;
use super::completion::Completion;
use super::stream_observer::StreamObserver;
use super::timings::micros;

impl BucketCore {
    /// Carries out what a vBucket wanted done once its lock was free.
    pub(crate) fn carry_out(&self, vbid: Vbid, effects: &mut Vec<Effect>) {
        for effect in effects.drain(..) {
            match effect {
                Effect::Flush(urgency) => self.queue_flush(vbid, urgency),
                Effect::EraseCollections => self.manifest.wake_eraser(),
                Effect::WakeDecayer => self.memory.wake_decayer(),
                Effect::Release(item) => drop(item),
                Effect::Destroy(destruction) => self.memory.destroy(vbid, destruction),
                Effect::CursorDropped(cursor) => {
                    self.tell_streams(|streams| streams.cursor_dropped(vbid, cursor));
                }
                Effect::NotifyStreams => self.tell_streams(|streams| streams.log_grew(vbid)),
                Effect::RoleChanged(state) => {
                    if state != VbucketState::Active {
                        self.range_scans.cancel_all_of(vbid);
                    }
                    self.tell_streams(|streams| streams.role_changed(vbid, Some(state)));
                }
                Effect::AcknowledgePrepares(seqno) => {
                    self.tell_streams(|streams| streams.prepares_held(vbid, seqno));
                }
                Effect::TimeSyncWrites(deadline) => {
                    self.background.timeouts.expect_sync_write_by(vbid, deadline)
                }
                Effect::SyncWriteEnded(waiter, end) => {
                    if let SyncWriteEnd::Committed { level, began, .. } = end {
                        let took = micros(self.clock.now().since(began));
                        self.counters.timings.sync_write_commit(level).record(took);
                    }
                    self.complete(waiter, Completion::SyncWrite(end));
                }
                Effect::Retry(waiter) => self.complete(waiter, Completion::Retry(None)),
                Effect::Persisted(waiter) => self.complete(waiter, Completion::Persisted),
                Effect::NotPersisted(waiter) => self.complete(waiter, Completion::NotPersisted),
            }
        }
    }

    /// Reports what `waiter` has waited for.
    pub(crate) fn complete(&self, waiter: Waiter, completion: Completion) {
        self.listeners.complete(waiter, completion);
    }

    /// Tells the observer what an effect says that is for streams.
    pub(crate) fn tell_streams(&self, news: impl FnOnce(&dyn StreamObserver)) {
        self.listeners.tell_streams(news);
    }
}
