//! What the node knows of its part in the cluster.

use super::{Emitter, NoGroup};

/// Group "clustermap": which map counts, and which vBuckets are not yet what it says.
pub(super) fn clustermap(emitter: &mut Emitter<'_, '_>, _argument: &str) -> Result<(), NoGroup> {
    let cluster = &emitter.turn.shared.cluster;
    let (view, pending) = (cluster.get(), cluster.pending());
    emitter.emit("epoch", view.revision.epoch);
    emitter.emit("revision", view.revision.revision);
    emitter.emit("pending_vbuckets", pending.len());
    for pending in pending.iter() {
        let vbid = pending.vbid;
        emitter.emit(&format!("vb_{vbid}:wanted"), pending.wanted);
        emitter.emit(&format!("vb_{vbid}:reason"), &pending.reason);
    }
    Ok(())
}
