//! Groups about the bucket as a whole.

use bucket::{BucketType, Named};

use super::emitter::{Emitter, NoGroup};
use crate::bucket_statistics::BUCKET_STATISTICS;
use crate::buckets::BucketPart;
use crate::parameters::ShownIn;
use crate::warmup_statistics::WARMUP_STATISTICS;

/// Group "warmup".
pub(super) fn warmup(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    _: &str,
) -> Result<(), NoGroup> {
    if part.bucket.bucket_type() == BucketType::Ephemeral {
        emitter.emit("ep_warmup", "disabled");
        return Ok(());
    }
    let progress = part.bucket.warmup_progress();
    let is_done = progress.phase == bucket::WarmupPhase::Done;
    emitter.emit("ep_warmup", "enabled");
    emitter.emit("ep_warmup_state", progress.phase.name());
    emitter.emit("ep_warmup_thread", if is_done { "complete" } else { "running" });
    emitter.emit("ep_warmup_clean_shutdown", progress.was_clean);
    super::emitter::statistics(emitter, "warmup", WARMUP_STATISTICS, &progress);
    Ok(())
}

/// Group "memory".
pub(super) fn memory(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    _: &str,
) -> Result<(), NoGroup> {
    let statistics = part.bucket.statistics();
    super::emitter::statistics(emitter, "memory", BUCKET_STATISTICS, &statistics);
    emitter.emit("client_bytes", emitter.turn.shared.client_memory.used_bytes());
    emitter.emit("client_bytes_max", emitter.turn.shared.client_memory.bytes_max());
    emitter.emit("resident_bytes", platform::process::resident_bytes());
    Ok(())
}

/// Group "config".
pub(super) fn config(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    _: &str,
) -> Result<(), NoGroup> {
    let config = part.bucket.config().clone();
    let bucket = part.bucket.clone();
    match bucket.bucket_type() {
        BucketType::Couchbase => {
            emitter.emit("ep_bucket_type", "persistent");
            emitter.emit("ep_item_eviction_policy", bucket.eviction_policy().name());
        }
        BucketType::Ephemeral => {
            emitter.emit("ep_bucket_type", "ephemeral");
        }
    }
    emitter.emit("ep_backend", "couchdb");
    emitter.emit("ep_conflict_resolution_type", bucket.conflict_resolution().name());
    emitter.emit("ep_couch_bucket", &config.name);
    emitter.emit("ep_max_vbuckets", config.vbucket_count);
    super::emitter::parameters(emitter, &part.bucket, ShownIn::Config);
    emitter.emit("ep_bfilter_enabled", true);
    emitter.emit("ep_bfilter_key_count", config.eviction.filter.key_count);
    emitter.emit("ep_bfilter_fp_prob", config.eviction.filter.false_positives);
    emitter.emit("ep_ht_temp_items_allowed_percent", config.eviction.lookups_max_percent);
    emitter.emit("ep_item_freq_decayer_percent", config.eviction.decay_percent);
    emitter.emit("ep_item_eviction_strategy", config.eviction.strategy.name());
    emitter.emit("ep_item_compressor_interval", config.item_compressor_interval.as_millis());
    let chunk = config.item_compressor_chunk_duration;
    emitter.emit("ep_item_compressor_chunk_duration", chunk.as_millis());
    emitter.emit("ep_defragmenter_interval", config.defragmenter_interval.as_secs_f64());
    let chunk = config.defragmenter_chunk_duration;
    emitter.emit("ep_defragmenter_chunk_duration", chunk.as_millis());
    emitter.emit("ep_seqno_persistence_timeout", config.seqno_persistence_timeout.as_secs());
    emitter.emit("ep_flush_batch_max_bytes", config.flush_batch_bytes_max);
    emitter.emit("ep_max_num_flushers", bucket::Persistence::flusher_count(config.persistence));
    emitter.emit("ep_open_files_max", config.open_files_max);
    Ok(())
}

/// Group "diskinfo".
pub(super) fn diskinfo(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    _: &str,
) -> Result<(), NoGroup> {
    let sizes = part.bucket.file_sizes();
    emitter.emit("ep_db_file_size", sizes.file_bytes);
    emitter.emit("ep_db_data_size", sizes.live_bytes);
    Ok(())
}

/// Group "kvstore".
pub(super) fn kvstore(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    _: &str,
) -> Result<(), NoGroup> {
    let statistics = part.bucket.statistics();
    emitter.emit("rw_0:backend_type", "couchstore");
    super::emitter::statistics(emitter, "kvstore", BUCKET_STATISTICS, &statistics);
    Ok(())
}
