//! Which vBuckets' files are damaged.

use super::emitter::{Emitter, NoGroup};
use crate::buckets::BucketPart;

/// Group "damaged-vbuckets": how many there are, and of each what it cannot do, and what is wrong
/// with its file.
pub(super) fn damaged_vbuckets(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    _: &str,
) -> Result<(), NoGroup> {
    let damaged = part.bucket.damaged_vbuckets();
    emitter.emit("ep_vbuckets_damaged", damaged.len());
    for damage in damaged {
        let vbid = damage.vbid;
        emitter.emit(&format!("vb_{vbid}:damage"), damage.kind.name());
        emitter.emit(&format!("vb_{vbid}:reason"), damage.reason);
    }
    Ok(())
}
