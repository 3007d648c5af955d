//! SET_PARAM: what changes until the node stops. Source: protocol specification, section 18.1.

use bucket::{Bucket, BucketType, CompressionMode, FullPolicy, MemoryParameter, Named};
use executor::{TaskKind, ThreadCounts, ThreadSetting};
use protocol::Status;
use protocol::request::Parameter;

use crate::connection::{Connection, Done, Request, Turn};

/// Parameters of the first group that count the threads of a kind of task.
const THREAD_PARAMETERS: [(&str, TaskKind); 4] = [
    ("num_reader_threads", TaskKind::Reader),
    ("num_writer_threads", TaskKind::Writer),
    ("num_auxio_threads", TaskKind::AuxIo),
    ("num_nonio_threads", TaskKind::NonIo),
];
/// The group of parameters that the original calls "flush".
const FLUSH_GROUP: u32 = 1;

type Setter = fn(&Bucket, &str) -> Result<(), String>;

/// Parameters of the first group that are the bucket's.
const BUCKET_PARAMETERS: [(&str, Setter); 13] = [
    ("max_size", set_memory_quota),
    ("mem_low_wat_percent", set_low_watermark),
    ("mem_high_wat_percent", set_high_watermark),
    ("mutation_mem_ratio", set_mutation_ratio),
    ("compression_mode", set_compression_mode),
    ("min_compression_ratio", set_min_compression_ratio),
    ("ephemeral_full_policy", set_full_policy),
    ("ephemeral_metadata_purge_age", set_purge_age),
    ("ephemeral_metadata_purge_interval", set_purge_interval),
    ("persistent_metadata_purge_age", set_persistent_purge_age),
    ("compaction_fragmentation_percent", set_compaction_fragmentation),
    ("compaction_min_file_size", set_compaction_file_size),
    ("compaction_bytes_per_second", set_compaction_rate),
];

/// SET_PARAM.
pub(super) fn set_parameter(
    connection: &Connection,
    request: &Request<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let reply = request.reply(connection);
    if connection.is_anonymous {
        reply.fail(turn, Status::Eaccess, "parameters are set by administrators, not anonymously");
        return Done::Answered;
    }
    let result = match Parameter::parse(&request.frame) {
        Some(parameter) if parameter.group == FLUSH_GROUP => {
            set_in_flush_group(parameter.name, parameter.value, turn)
        }
        _ => Err(unknown()),
    };
    match result {
        Ok(()) => reply.done(turn),
        Err(context) => reply.fail(turn, Status::Einval, &context),
    }
    Done::Answered
}

fn set_in_flush_group(name: &str, value: &str, turn: &Turn<'_>) -> Result<(), String> {
    if let Some((_, kind)) = THREAD_PARAMETERS.iter().find(|(known, _)| *known == name) {
        return set_threads(*kind, value, turn);
    }
    match BUCKET_PARAMETERS.iter().find(|(known, _)| *known == name) {
        Some((name, set)) => {
            set(&turn.shared.bucket, value)?;
            tracing::info!(name, value, "a parameter was set");
            Ok(())
        }
        None => Err(unknown()),
    }
}

fn unknown() -> String {
    let threads = THREAD_PARAMETERS.iter().map(|(name, _)| *name);
    let names: Vec<&str> = threads.chain(BUCKET_PARAMETERS.iter().map(|(name, _)| *name)).collect();
    format!("there is no such parameter; in group {FLUSH_GROUP} there are: {}", names.join(", "))
}

fn set_threads(kind: TaskKind, value: &str, turn: &Turn<'_>) -> Result<(), String> {
    let setting: ThreadSetting = value.parse()?;
    let pool = &turn.shared.pool;
    let normal = setting.normal_threads(kind, platform::threads::available_cpus());
    let counts = ThreadCounts { normal, ..pool.threads(kind) };
    pool.set_threads(kind, counts)
        .map_err(|error| format!("a thread cannot be started: {error}"))?;
    tracing::info!(kind = kind.name(), threads = normal, "the number of threads was set");
    Ok(())
}

fn set_memory_quota(bucket: &Bucket, value: &str) -> Result<(), String> {
    bucket.set_memory_quota(bytes(value)?).map_err(|error| error.to_string())
}

fn set_low_watermark(bucket: &Bucket, value: &str) -> Result<(), String> {
    set_memory_ratio(bucket, MemoryParameter::LowWatermark, value)
}

fn set_high_watermark(bucket: &Bucket, value: &str) -> Result<(), String> {
    set_memory_ratio(bucket, MemoryParameter::HighWatermark, value)
}

fn set_mutation_ratio(bucket: &Bucket, value: &str) -> Result<(), String> {
    set_memory_ratio(bucket, MemoryParameter::MutationRatio, value)
}

fn set_memory_ratio(
    bucket: &Bucket,
    parameter: MemoryParameter,
    value: &str,
) -> Result<(), String> {
    let ratio = value.parse().map_err(|_| format!("`{value}` is no part between 0 and 1"))?;
    bucket.set_memory_ratio(parameter, ratio).map_err(|error| error.to_string())
}

fn set_compression_mode(bucket: &Bucket, value: &str) -> Result<(), String> {
    bucket.set_compression_mode(CompressionMode::by_name(value)?);
    Ok(())
}

fn set_min_compression_ratio(bucket: &Bucket, value: &str) -> Result<(), String> {
    let ratio: Option<f64> =
        value.parse().ok().filter(|ratio| (0.0..f64::INFINITY).contains(ratio));
    bucket.set_min_compression_ratio(ratio.ok_or_else(|| format!("`{value}` is no ratio"))?);
    Ok(())
}

fn set_full_policy(bucket: &Bucket, value: &str) -> Result<(), String> {
    check_ephemeral(bucket)?;
    bucket.set_full_policy(FullPolicy::by_name(value)?);
    Ok(())
}

fn set_purge_age(bucket: &Bucket, value: &str) -> Result<(), String> {
    check_ephemeral(bucket)?;
    bucket.set_tombstone_purge_age_seconds(seconds(value)?);
    Ok(())
}

fn set_purge_interval(bucket: &Bucket, value: &str) -> Result<(), String> {
    check_ephemeral(bucket)?;
    bucket.set_tombstone_purge_interval_seconds(seconds(value)?);
    Ok(())
}

fn set_persistent_purge_age(bucket: &Bucket, value: &str) -> Result<(), String> {
    check_has_files(bucket)?;
    bucket.set_persistent_purge_age_seconds(seconds(value)?);
    Ok(())
}

fn set_compaction_fragmentation(bucket: &Bucket, value: &str) -> Result<(), String> {
    check_has_files(bucket)?;
    let percent = value.parse().ok().filter(|percent| (0..=100).contains(percent));
    let percent = percent.ok_or_else(|| format!("`{value}` is no percentage; 0 is for never"))?;
    bucket.set_compaction_fragmentation_percent(percent);
    Ok(())
}

fn set_compaction_file_size(bucket: &Bucket, value: &str) -> Result<(), String> {
    check_has_files(bucket)?;
    bucket.set_compaction_file_bytes_min(bytes(value)?);
    Ok(())
}

fn set_compaction_rate(bucket: &Bucket, value: &str) -> Result<(), String> {
    check_has_files(bucket)?;
    bucket.set_compaction_bytes_per_second(bytes(value)?);
    Ok(())
}

fn check_has_files(bucket: &Bucket) -> Result<(), String> {
    match bucket.bucket_type() {
        BucketType::Couchbase => Ok(()),
        BucketType::Ephemeral => Err("an ephemeral bucket has no files to compact".to_owned()),
    }
}

fn bytes(value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| format!("`{value}` is no number of bytes"))
}

fn check_ephemeral(bucket: &Bucket) -> Result<(), String> {
    match bucket.bucket_type() {
        BucketType::Ephemeral => Ok(()),
        BucketType::Couchbase => Err("only an ephemeral bucket has this parameter".to_owned()),
    }
}

fn seconds(value: &str) -> Result<u64, String> {
    let seconds: Option<u32> = value.parse().ok();
    seconds.map(u64::from).ok_or_else(|| format!("`{value}` is no number of seconds"))
}
