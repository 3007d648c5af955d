//! Statistics under memcached's names, for its clients. Source: memcached's protocol.txt,
//! "Statistics".

use super::{Emitter, NoGroup};

/// What memcached's general statistics have beside those that the data port counts by the same
/// names.
pub(super) fn general(emitter: &mut Emitter<'_, '_>) {
    let bucket = emitter.bucket.statistics();
    let [user, system] = platform::process::cpu_times();
    emitter.emit("pointer_size", usize::BITS);
    emitter.emit("rusage_user", seconds(user));
    emitter.emit("rusage_system", seconds(system));
    emitter.emit("bytes", bucket.documents_bytes);
    emitter.emit("limit_maxbytes", bucket.memory_quota_bytes);
    emitter.emit("total_items", bucket.vbuckets.creations + bucket.vbuckets.updates);
    emitter.emit("evictions", bucket.vbuckets.auto_deletions);
}

/// As memcached prints them: seconds, a point, microseconds.
fn seconds(time: std::time::Duration) -> String {
    format!("{}.{:06}", time.as_secs(), time.subsec_micros())
}

/// Group "items": of each slab class how many documents there are. All are in one here: memory is
/// not divided into classes.
pub(super) fn items(emitter: &mut Emitter<'_, '_>, _argument: &str) -> Result<(), NoGroup> {
    let bucket = emitter.bucket.statistics();
    let numbers = [
        ("number", bucket.active_document_count as u64),
        ("mem_requested", bucket.documents_bytes),
        ("evicted", bucket.vbuckets.auto_deletions),
        ("outofmemory", bucket.memory_refusals),
    ];
    for (name, value) in numbers {
        emitter.emit(&format!("items:1:{name}"), value);
    }
    Ok(())
}

/// Group "slabs": there is one class, and the allocator's memory.
pub(super) fn slabs(emitter: &mut Emitter<'_, '_>, _argument: &str) -> Result<(), NoGroup> {
    let bucket = emitter.bucket.statistics();
    emitter.emit("1:used_chunks", bucket.document_count);
    emitter.emit("1:mem_requested", bucket.documents_bytes);
    emitter.emit("active_slabs", 1);
    emitter.emit("total_malloced", bucket.used_bytes());
    Ok(())
}

/// Group "sizes": not counted, as memcached says when it is not told to.
pub(super) fn sizes(emitter: &mut Emitter<'_, '_>, _argument: &str) -> Result<(), NoGroup> {
    emitter.emit("sizes_status", "disabled");
    Ok(())
}

/// Group "reset": memcached's counters begin anew. Those of this node are read by others, who take
/// the difference to what they read before, so they go on.
pub(super) fn reset(_: &mut Emitter<'_, '_>, _argument: &str) -> Result<(), NoGroup> {
    Ok(())
}
