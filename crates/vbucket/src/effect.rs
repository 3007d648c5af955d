//! What a vBucket wants done once its lock is free.

use document::{Item, Seqno, VbucketState};
use platform::Instant;

use crate::checkpoint::CursorId;
use crate::destruction::Destruction;
use crate::operation::SyncWriteEnd;
use crate::persistence::FlushUrgency;
use crate::waiter::Waiter;

/// An action for after the lock. The order of effects is the order in which they came about.
#[derive(Debug)]
pub enum Effect {
    /// The vBucket has something to flush, and is not queued for it with that urgency yet.
    Flush(FlushUrgency),
    /// A document is read so often that its counter is full: all counters are to be halved.
    WakeDecayer,
    /// Memory that must not be freed under the lock. Dropping it is all there is to do.
    Release(Item),
    /// A collection was dropped: its documents are to be erased
    /// ([`crate::Vbucket::erase_dropped`]).
    EraseCollections,
    /// A part of the log that nobody needs any more, to be dropped like [`Effect::Release`].
    Destroy(Destruction),
    /// A stream's cursor was dropped because memory is short: it has to go on from the file.
    CursorDropped(CursorId),
    /// There is more in the log than when a stream last looked. Said once until one looks again.
    NotifyStreams,
    /// The vBucket has this role now: streams of it may have to end.
    RoleChanged(VbucketState),
    /// A replica holds all prepares up to this seqno as their levels demand: the active vBucket is
    /// to hear of it.
    AcknowledgePrepares(Seqno),
    /// The durable write that waits first becomes ambiguous at this moment unless it ends before:
    /// look again then ([`crate::Vbucket::end_overdue_sync_writes`]). Said only for an earlier
    /// moment than the last one, and never taken back: of two that are said, whichever is carried
    /// out first, the earlier one holds.
    TimeSyncWrites(Instant),
    /// The durable write that the waiter waited for has ended.
    SyncWriteEnded(Waiter, SyncWriteEnd),
    /// The vBucket has taken up another role: what the waiter asked for is to be tried again.
    Retry(Waiter),
    /// What the waiter waited for is persisted.
    Persisted(Waiter),
    /// What the waiter waited for will not be persisted in time, or not by this vBucket.
    NotPersisted(Waiter),
}
