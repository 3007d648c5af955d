//! Statistics under memcached's names, for its clients. Source: memcached's protocol.txt,
//! "Statistics".

use bucket::{BucketType, FullPolicy};

use super::emitter::{Emitter, NoGroup};
use crate::bucket_statistics::BUCKET_STATISTICS;
use crate::buckets::BucketPart;

/// What memcached's general statistics have beside those of the tables.
pub(super) fn general(emitter: &mut Emitter<'_, '_>) {
    let [user, system] = platform::process::cpu_times();
    emitter.emit("pointer_size", usize::BITS);
    emitter.emit("rusage_user", seconds(user));
    emitter.emit("rusage_system", seconds(system));
    // Who comes when there are too many is let in and told so: nobody waits to be heard.
    emitter.emit("accepting_conns", 1);
    emitter.emit("listen_disabled_num", 0);
    emitter.emit("time_in_listen_disabled_us", 0);
}

/// What memcached's settings have beside those of the node, for those who come by its port.
pub(super) fn settings(emitter: &mut Emitter<'_, '_>, part: Option<&BucketPart>) {
    if let Some(part) = part {
        emitter.emit("maxbytes", part.bucket.memory_quota_bytes());
        let is_ephemeral = part.bucket.bucket_type() == BucketType::Ephemeral;
        let deletes = is_ephemeral && part.bucket.full_policy() == FullPolicy::AutoDelete;
        emitter.emit("evictions", if deletes { "on" } else { "off" });
    }
    emitter.emit("domain_socket", "NULL");
    for name in ["auth_enabled_sasl", "auth_enabled_ascii", "detail_enabled", "shutdown_command"] {
        emitter.emit(name, "no");
    }
}

/// As memcached prints them: seconds, a point, microseconds.
fn seconds(time: std::time::Duration) -> String {
    format!("{}.{:06}", time.as_secs(), time.subsec_micros())
}

/// Group "items": of each slab class how many documents there are. All are in one here: memory is
/// not divided into classes.
pub(super) fn items(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    _: &str,
) -> Result<(), NoGroup> {
    let bucket = part.bucket.statistics();
    super::emitter::statistics(emitter, "items", BUCKET_STATISTICS, &bucket);
    Ok(())
}

/// Group "slabs": there is one class, and the allocator's memory.
pub(super) fn slabs(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    _: &str,
) -> Result<(), NoGroup> {
    let bucket = part.bucket.statistics();
    super::emitter::statistics(emitter, "slabs", BUCKET_STATISTICS, &bucket);
    emitter.emit("active_slabs", 1);
    Ok(())
}

/// Group "sizes": not counted, as memcached says when it is not told to.
pub(super) fn sizes(emitter: &mut Emitter<'_, '_>, _: &BucketPart, _: &str) -> Result<(), NoGroup> {
    emitter.emit("sizes_status", "disabled");
    Ok(())
}

/// Group "reset": memcached's counters begin anew. Those of this node are read by others, who take
/// the difference to what they read before, so they go on.
pub(super) fn reset(_: &mut Emitter<'_, '_>, _: &BucketPart, _: &str) -> Result<(), NoGroup> {
    Ok(())
}
