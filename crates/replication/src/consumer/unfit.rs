//! What did not fit, for the log.

use document::Vbid;
use vbucket::{DurabilityStatus, ReceiveError, StreamPosition, Vbucket};

use super::changes::Told;

/// A change that could not be carried out, and where its vBucket was then.
pub(super) struct Unfit {
    pub(super) error: ReceiveError,
    change: Told,
    position: StreamPosition,
    durability: DurabilityStatus,
}

impl Unfit {
    pub(super) fn new(error: ReceiveError, change: Told, vbucket: &Vbucket) -> Box<Self> {
        let (position, durability) = (vbucket.stream_position(), vbucket.durability_status());
        Box::new(Self { error, change, position, durability })
    }

    /// Says so in the log. A role that has changed meanwhile is nothing that the producer does
    /// wrong. Not under the vBucket's lock.
    pub(super) fn log(&self, vbid: Vbid) {
        let Self { error, change, position, durability } = self;
        if *error == ReceiveError::NotReceiving {
            return;
        }
        tracing::error!(
            ?error,
            vbucket = vbid.0,
            %change,
            start = position.start.0,
            snapshot_start = position.snapshot_start.0,
            snapshot_end = position.snapshot_end.0,
            high_prepared = durability.high_prepared_seqno.0,
            high_completed = durability.high_completed_seqno.0,
            last_tracked = durability.last_tracked_seqno.0,
            tracked = durability.tracked_count,
            "a stream does not fit and ends"
        );
    }
}
