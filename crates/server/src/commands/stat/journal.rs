//! What the journal says of itself.

use super::emitter::{Emitter, NoGroup};
use crate::buckets::BucketPart;
use crate::journal_statistics::JOURNAL_STATISTICS;

/// Group "journal": how full it is, how far the files are behind, what it has written.
pub(super) fn journal(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    _: &str,
) -> Result<(), NoGroup> {
    let statistics = part.bucket.statistics();
    emitter.emit("enabled", statistics.journal.is_some());
    if statistics.journal.is_some() {
        super::emitter::statistics(emitter, "journal", JOURNAL_STATISTICS, &statistics);
    }
    Ok(())
}
