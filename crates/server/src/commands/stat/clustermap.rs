//! What the node knows of its part in the cluster.

use super::emitter::{Emitter, NoGroup};
use crate::buckets::BucketPart;

/// Group "clustermap": which map counts, and which vBuckets are not yet what it says.
pub(super) fn clustermap(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    _: &str,
) -> Result<(), NoGroup> {
    let (map, pending) = (part.map.get(), part.pending.get());
    emitter.emit("epoch", map.revision.epoch);
    emitter.emit("revision", map.revision.revision);
    emitter.emit("pending_vbuckets", pending.len());
    for pending in pending.iter() {
        let vbid = pending.vbid;
        emitter.emit(&format!("vb_{vbid}:wanted"), pending.wanted);
        emitter.emit(&format!("vb_{vbid}:reason"), &pending.reason);
    }
    Ok(())
}
