//! What the journal says of itself.

use super::{Emitter, NoGroup};

/// Group "journal": how full it is, how far the files are behind, what it has written.
pub(super) fn journal(emitter: &mut Emitter<'_, '_>, _argument: &str) -> Result<(), NoGroup> {
    let statistics = emitter.bucket.statistics();
    let Some(journal) = statistics.journal else {
        emitter.emit("enabled", false);
        return Ok(());
    };
    emitter.emit("enabled", true);
    for (name, value) in [
        ("durable_lsn", journal.durable_lsn.0),
        ("needed_from_lsn", journal.needed_from.0),
        ("segments", journal.segment_count),
        ("used_bytes", journal.used_bytes),
        ("bytes_max", journal.bytes_max),
        ("spares", journal.spare_count),
        ("memory_bytes", journal.memory_bytes),
        ("groups", journal.group_count),
        ("records", journal.record_count),
        ("written_bytes", journal.written_bytes),
        ("failures", journal.failure_count),
        ("refused_groups", journal.refused_count),
        ("full_groups", journal.full_count),
        ("full_waits", statistics.journal_full_waits),
        ("applies", statistics.applies),
        ("applies_failed", statistics.applies_failed),
        ("unapplied_bytes", statistics.backlog.bytes),
    ] {
        emitter.emit(name, value);
    }
    emitter.emit("unapplied_items", statistics.backlog.items);
    emitter.emit("unapplied_vbuckets", statistics.backlog.vbuckets);
    Ok(())
}
