//! Group "compaction": what it has done, and how far what is under way is.

use super::emitter::{Emitter, NoGroup};
use crate::buckets::BucketPart;
use crate::compaction_statistics::COMPACTION_STATISTICS;
use crate::parameters::ShownIn;

/// Group "compaction".
pub(super) fn compaction(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    _: &str,
) -> Result<(), NoGroup> {
    let statistics = part.bucket.compaction_statistics();
    super::emitter::statistics(emitter, "compaction", COMPACTION_STATISTICS, &statistics);
    super::emitter::parameters(emitter, &part.bucket, ShownIn::Compaction);
    for running in statistics.running {
        let vbid = running.vbid;
        emitter.emit(&format!("vb_{vbid}:phase"), running.phase.name());
        emitter.emit(&format!("vb_{vbid}:bytes_done"), running.bytes_done);
        emitter.emit(&format!("vb_{vbid}:bytes_total"), running.bytes_total);
        emitter.emit(&format!("vb_{vbid}:seconds"), running.took.as_secs());
        if let Some(left) = running.left {
            emitter.emit(&format!("vb_{vbid}:seconds_left"), left.as_secs());
        }
    }
    Ok(())
}
