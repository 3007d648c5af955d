//! Histograms: for each `<name>_<from>,<to>` with the count of every bucket that is not empty, and
//! `<name>_mean`. Durations are microseconds.

use document::histogram::{HistogramBucket, HistogramSnapshot};

use super::emitter::{Emitter, NoGroup};
use crate::buckets::BucketPart;
use crate::command_statistics::timings as timings_of;

const NANOS_PER_MICRO: u64 = 1000;

/// Group "timings".
pub(super) fn timings(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    _: &str,
) -> Result<(), NoGroup> {
    for (name, snapshot) in timings_of(emitter.turn.shared.counters_of(part)) {
        emit(emitter, name, &snapshot, NANOS_PER_MICRO);
    }
    let bucket = part.bucket.clone();
    for (name, histogram) in bucket.timings().all() {
        emit(emitter, name, &histogram.snapshot(), 1);
    }
    Ok(())
}

/// Group "kvtimings".
pub(super) fn kvtimings(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    _: &str,
) -> Result<(), NoGroup> {
    let bucket = part.bucket.clone();
    let timings = bucket.timings();
    emit(emitter, "rw_0:commit", &timings.disk_commit.snapshot(), 1);
    emit(emitter, "rw_0:readTime", &timings.bg_load.snapshot(), 1);
    Ok(())
}

/// Emits one histogram whose unit is `divisor` times finer than what is shown. Buckets that fall
/// together in the coarser unit are added up.
pub(super) fn emit(
    emitter: &mut Emitter<'_, '_>,
    name: &str,
    snapshot: &HistogramSnapshot,
    divisor: u64,
) {
    if snapshot.count() == 0 {
        return;
    }
    for HistogramBucket { from, to, count } in coarser(snapshot, divisor) {
        emitter.emit(&format!("{name}_{from},{to}"), count);
    }
    emitter.emit(&format!("{name}_mean"), snapshot.mean() / divisor);
}

/// The buckets of a histogram in a unit that is `divisor` times coarser: `count` values that are
/// at least `from` and below `to`. Those that fall together are added up.
pub(crate) fn coarser(snapshot: &HistogramSnapshot, divisor: u64) -> Vec<HistogramBucket> {
    let mut coarser: Vec<HistogramBucket> = Vec::new();
    for HistogramBucket { from, to, count } in snapshot.buckets() {
        let (from, to) = (from / divisor, to / divisor);
        match coarser.last_mut() {
            Some(last) if from < last.to => {
                last.to = last.to.max(to);
                last.count += count;
            }
            _ => coarser.push(HistogramBucket { from, to: to.max(from + 1), count }),
        }
    }
    coarser
}
