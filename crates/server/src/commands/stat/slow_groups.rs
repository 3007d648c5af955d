//! What was slow, and what is asked for most.

use serde_json::{Map, Value, json};

use super::emitter::{Emitter, NoGroup};
use crate::buckets::BucketPart;
use crate::hot_keys::{HotKey, SAMPLED_EVERY};
use crate::slow_operations::SlowOperation;

/// Hot documents that are told.
const HOT_MAX: usize = 50;

/// Group "slow-operations": the newest first, each as JSON. Durations are microseconds.
pub(super) fn slow_operations(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    _: &str,
) -> Result<(), NoGroup> {
    let found = emitter.turn.shared.slow_operations.of(part.name());
    for (index, operation) in found.iter().enumerate() {
        emitter.emit(&format!("slow_{index}"), to_json(operation));
    }
    Ok(())
}

/// Group "hot-keys": what was asked for most in the last sampling, with how often that was, among
/// how many requests, and how many each of those stands for.
pub(super) fn hot_keys(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    _: &str,
) -> Result<(), NoGroup> {
    let (hot, counted) = emitter.turn.shared.hot_keys.of(part.name());
    let is_sampling = emitter.turn.shared.hot_keys.is_sampling();
    emitter.emit("hot_keys_sampling", u8::from(is_sampling));
    emitter.emit("hot_keys_counted", counted);
    emitter.emit("hot_keys_sampled_every", SAMPLED_EVERY);
    for (index, HotKey { key, count }) in hot.iter().take(HOT_MAX).enumerate() {
        let key = String::from_utf8_lossy(key);
        emitter.emit(&format!("hot_{index}"), json!({"key": key, "count": count}));
    }
    Ok(())
}

fn to_json(operation: &SlowOperation) -> Value {
    let SlowOperation { ended_at, key, client, took, spans, .. } = operation;
    let micros = |duration: std::time::Duration| {
        Value::from(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
    };
    let mut members = Map::new();
    members.insert("ended_at_ms".to_owned(), (ended_at.0 / 1_000_000).into());
    members.insert("command".to_owned(), operation.command().into());
    members.insert("key".to_owned(), String::from_utf8_lossy(key).into());
    members.insert("client".to_owned(), client.as_str().into());
    members.insert("took_us".to_owned(), micros(*took));
    for (span, duration) in spans.named() {
        members.insert(format!("{span}_us"), micros(duration));
    }
    Value::Object(members)
}
