//! The general statistics, under the names that operators and their dashboards know.

use super::emitter::{Emitter, NoGroup};
use crate::bucket_statistics::BUCKET_STATISTICS;
use crate::buckets::BucketPart;
use crate::command_statistics::{COMMAND_STATISTICS, CommandStatistics};
use crate::compaction_statistics::COMPACTION_STATISTICS;
use crate::recache_marks::RECACHE_MARKS_MAX;
use crate::state_statistics::{STATE_STATISTICS, STATES};
use crate::statistics::SERVER_STATISTICS;

/// Group "".
pub(super) fn all(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    _: &str,
) -> Result<(), NoGroup> {
    process(emitter);
    super::classic::general(emitter);
    let counted = emitter.turn.shared.statistics();
    super::emitter::statistics(emitter, "", SERVER_STATISTICS, &counted);
    let commands = CommandStatistics::of(emitter.turn.shared.counters_of(part));
    super::emitter::statistics(emitter, "", COMMAND_STATISTICS, &commands);
    let bucket = part.bucket.statistics();
    super::emitter::statistics(emitter, "", BUCKET_STATISTICS, &bucket);
    for (state, of_state) in STATES.iter().zip(&bucket.by_state) {
        for statistic in STATE_STATISTICS {
            for name in statistic.names_in("") {
                emitter.emit(&format!("vb_{state}_{name}"), (statistic.read)(of_state));
            }
        }
    }
    let compactions = part.bucket.compaction_statistics();
    super::emitter::statistics(emitter, "", COMPACTION_STATISTICS, &compactions);
    Ok(())
}

fn process(emitter: &mut Emitter<'_, '_>) {
    let shared = emitter.turn.shared;
    let uptime = shared.clock.now().since(shared.started);
    emitter.emit("pid", platform::process::id());
    emitter.emit("uptime", uptime.as_secs());
    emitter.emit("time", shared.clock.wall_time().seconds());
    emitter.emit("version", &shared.options.version);
    emitter.emit("threads", shared.mailboxes.count());
    emitter.emit("max_connections", shared.options.limits.connections_max);
    emitter.emit("resident_bytes", platform::process::resident_bytes());
    emitter.emit("cpu_time_ns", platform::process::cpu_time_ns());
}

/// Group "clocks".
pub(super) fn clocks(emitter: &mut Emitter<'_, '_>, _: Option<&BucketPart>) {
    let clock = &emitter.turn.shared.clock;
    let (now, wall) = (clock.now(), clock.wall_time());
    emitter.emit("clock.monotonic_ns", now.0);
    emitter.emit("clock.wall_ns", wall.0);
}

/// Group "connections".
pub(super) fn connections(emitter: &mut Emitter<'_, '_>, _: Option<&BucketPart>) {
    let statistics = emitter.turn.shared.statistics();
    let limits = emitter.turn.shared.options.limits;
    super::emitter::statistics(emitter, "connections", SERVER_STATISTICS, &statistics);
    emitter.emit("connections_max", limits.connections_max);
    emitter.emit("strangers", emitter.turn.shared.strangers.count());
    emitter.emit("strangers_of_address_max", limits.strangers_of_address_max);
    emitter.emit("packet_bytes_max", limits.packet_bytes_max);
    emitter.emit("unsent_bytes_max", limits.unsent_bytes_max);
    emitter.emit("unauthenticated_unsent_bytes_max", limits.unauthenticated_unsent_bytes_max);
    emitter.emit("parked_requests_max", limits.parked_requests_max);
    let memory = &emitter.turn.shared.client_memory;
    emitter.emit("recache_marks", emitter.turn.shared.recache_marks.count());
    emitter.emit("recache_marks_max", RECACHE_MARKS_MAX);
    emitter.emit("client_bytes", memory.used_bytes());
    emitter.emit("client_bytes_max", memory.bytes_max());
    emitter.emit("guests_bytes", memory.guests_bytes());
    emitter.emit("guests_bytes_max", memory.guests_bytes_max());
    emitter.emit("strangers_bytes_max", memory.strangers_bytes_max());
    emitter.emit("login_time_max_s", limits.login_time_max.as_secs());
    emitter.emit("stalled_time_max_s", limits.stalled_time_max.as_secs());
}

/// Group "info".
pub(super) fn info(emitter: &mut Emitter<'_, '_>, _: &BucketPart, _: &str) -> Result<(), NoGroup> {
    let version = emitter.turn.shared.options.version.clone();
    emitter.emit("info", format!(r#"{{"version":"{version}"}}"#));
    Ok(())
}

/// Group "settings". Where no bucket is selected, FLUSH is said to be enabled wherever it is for
/// any.
pub(super) fn settings(emitter: &mut Emitter<'_, '_>, part: Option<&BucketPart>) {
    let shared = emitter.turn.shared;
    let has_flush = part.map_or_else(|| shared.buckets.has_flush(), BucketPart::flush_enabled);
    emitter.emit("num_threads", shared.mailboxes.count());
    emitter.emit("maxconns", shared.options.limits.connections_max);
    emitter.emit("item_size_max", document::limits::VALUE_SIZE_MAX);
    // At the memcached port the first byte of a connection decides.
    let protocol = if emitter.listener.is_anonymous { "auto-negotiate" } else { "binary" };
    emitter.emit("binding_protocol", protocol);
    emitter.emit("cas_enabled", "yes");
    emitter.emit("flush_enabled", if has_flush { "yes" } else { "no" });
    if emitter.listener.is_anonymous {
        super::classic::settings(emitter, part);
    }
}

/// Group "uuid".
pub(super) fn uuid(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    _: &str,
) -> Result<(), NoGroup> {
    let uuid = part.bucket.uuid().to_owned();
    emitter.emit("uuid", uuid);
    Ok(())
}
