//! Carrying out what vBuckets want done once their locks are free.

use document::Vbid;
use vbucket::{Effect, SyncWriteEnd};

use crate::bucket::BucketCore;
use crate::completion::Completion;
use crate::tasks::micros;

impl BucketCore {
    /// Carries out what a vBucket wanted done once its lock was free.
    pub(crate) fn carry_out(&self, vbid: Vbid, effects: &mut Vec<Effect>) {
        for effect in effects.drain(..) {
            match effect {
                Effect::WakeFlusher => self.flush_queues.push(vbid),
                Effect::DeferFlush => self.defer_flush(vbid),
                Effect::WakeDecayer => self.decayer.wake(),
                Effect::Release(item) => drop(item),
                Effect::Destroy(destruction) => self.destroyers.destroy(vbid, destruction),
                Effect::CursorDropped(cursor) => {
                    self.tell_streams(|streams| streams.cursor_dropped(vbid, cursor));
                }
                Effect::NotifyStreams => self.tell_streams(|streams| streams.log_grew(vbid)),
                Effect::RoleChanged(state) => {
                    self.tell_streams(|streams| streams.role_changed(vbid, Some(state)));
                }
                Effect::AcknowledgePrepares(seqno) => {
                    self.tell_streams(|streams| streams.prepares_held(vbid, seqno));
                }
                Effect::TimeSyncWrites(deadline) => {
                    self.sync_write_timeouts.expect_by(vbid, deadline)
                }
                Effect::SyncWriteEnded(waiter, end) => {
                    if let SyncWriteEnd::Committed { level, began, .. } = end {
                        let took = micros(self.clock.now().since(began));
                        self.timings.sync_write_commit(level).record(took);
                    }
                    self.complete(waiter, Completion::SyncWrite(end));
                }
                Effect::Retry(waiter) => self.complete(waiter, Completion::Retry(None)),
                Effect::Persisted(waiter) => self.complete(waiter, Completion::Persisted),
                Effect::NotPersisted(waiter) => self.complete(waiter, Completion::NotPersisted),
            }
        }
    }

    pub(crate) fn complete(&self, waiter: vbucket::Waiter, completion: Completion) {
        self.completions.complete(waiter, completion);
    }
}
