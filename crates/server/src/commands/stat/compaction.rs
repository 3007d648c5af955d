//! Group "compaction": what it has done, and how far what is under way is.

use super::{Emitter, NoGroup};

/// Group "compaction".
pub(super) fn compaction(emitter: &mut Emitter<'_, '_>, _argument: &str) -> Result<(), NoGroup> {
    counters(emitter);
    let bucket = emitter.bucket.clone();
    emitter.emit("ep_compaction_fragmentation_percent", bucket.compaction_fragmentation_percent());
    emitter.emit("ep_compaction_min_file_size", bucket.compaction_file_bytes_min());
    emitter.emit("ep_compaction_bytes_per_second", bucket.compaction_bytes_per_second());
    emitter.emit("ep_persistent_metadata_purge_age", bucket.persistent_purge_age_seconds());
    for running in bucket.compaction_statistics().running {
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

/// Those of its counters that stand in the group of all statistics, too.
pub(super) fn counters(emitter: &mut Emitter<'_, '_>) {
    let statistics = emitter.bucket.compaction_statistics();
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let waiting = statistics.ordered_count + statistics.fragmented_count;
    let numbers = [
        ("ep_pending_compactions", count(waiting + statistics.running.len())),
        ("ep_compaction_running", count(statistics.running.len())),
        ("ep_compaction_done", statistics.done),
        ("ep_compaction_failed", statistics.failed),
        ("ep_compaction_aborted", statistics.aborted),
        ("ep_compaction_bytes_freed", statistics.bytes_freed),
        ("ep_compaction_tombstones_purged", statistics.tombstones_purged),
        ("ep_compaction_prepares_purged", statistics.prepares_purged),
        ("ep_compaction_dropped_collection_items_purged", statistics.of_dropped_collections),
        ("ep_compaction_damaged_bodies", statistics.damaged_bodies),
        ("ep_expired_compactor", statistics.expired),
    ];
    for (name, value) in numbers {
        emitter.emit(name, value);
    }
}
