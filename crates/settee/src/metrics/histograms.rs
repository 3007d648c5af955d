//! Histograms as Prometheus reads them: how many durations were not longer than each bound.

use bucket::Timings;
use document::Histogram;
use document::histogram::HistogramSnapshot;
use management::{Metric, MetricKind};

use super::{Label, float, with_labels};

/// Upper bounds of the buckets, in microseconds.
const BOUNDS_US: [u64; 16] = [
    10,
    25,
    50,
    100,
    250,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    50_000,
    100_000,
    1_000_000,
    10_000_000,
    50_000_000,
    100_000_000,
];
const NANOSECONDS_PER_US: u64 = 1_000;
const COMMANDS_HELP: &str = "Time from the end of the request before to the answer, by command";
const DISK_HELP: &str = "Time of work on disk, by kind";
const SYNC_WRITES_HELP: &str = "Durable writes from the prepare to the commit, by level";

/// A histogram of a bucket's background work, which is recorded in microseconds.
struct TimingFamily {
    name: &'static str,
    labels: &'static [(&'static str, &'static str)],
    help: &'static str,
    of: fn(&Timings) -> &Histogram,
}

const FAMILIES: [TimingFamily; 11] = [
    one("kv_bg_wait_seconds", "From the request for a value until its fetch begins", |timings| {
        &timings.bg_wait
    }),
    one("kv_bg_load_seconds", "Reading one batch of values", |timings| &timings.bg_load),
    one(
        "kv_storage_age_seconds",
        "From the first write of a batch until it is durable",
        |timings| &timings.storage_age,
    ),
    one("kv_item_pager_seconds", "Rounds of the item pager", |timings| &timings.item_pager),
    one("kv_seqno_persistence_seconds", "Waits for persistence that were met", |timings| {
        &timings.seqno_persistence
    }),
    disk(&[("op", "commit")], |timings| &timings.disk_commit),
    disk(&[("op", "apply")], |timings| &timings.disk_apply),
    disk(&[("op", "compact")], |timings| &timings.compact),
    sync_writes(&[("level", "majority")], |timings| &timings.sync_write_commit_majority),
    sync_writes(&[("level", "majority_and_persist_on_master")], |timings| {
        &timings.sync_write_commit_majority_and_persist_on_master
    }),
    sync_writes(&[("level", "persist_to_majority")], |timings| {
        &timings.sync_write_commit_persist_to_majority
    }),
];

const fn one(
    name: &'static str,
    help: &'static str,
    of: fn(&Timings) -> &Histogram,
) -> TimingFamily {
    TimingFamily { name, labels: &[], help, of }
}

const fn disk(
    labels: &'static [(&'static str, &'static str)],
    of: fn(&Timings) -> &Histogram,
) -> TimingFamily {
    TimingFamily { name: "kv_disk_seconds", labels, help: DISK_HELP, of }
}

const fn sync_writes(
    labels: &'static [(&'static str, &'static str)],
    of: fn(&Timings) -> &Histogram,
) -> TimingFamily {
    let name = "kv_sync_write_commit_duration_seconds";
    TimingFamily { name, labels, help: SYNC_WRITES_HELP, of }
}

/// How long the background work of a bucket takes, each with these labels before its own.
pub(super) fn of_bucket(timings: &Timings, labels: &[Label<'_>]) -> Vec<Metric> {
    let of_family = |family: &TimingFamily| {
        let snapshot = (family.of)(timings).snapshot();
        let labels = [labels, family.labels].concat();
        samples(family.name, family.help, &snapshot, 1, &labels)
    };
    FAMILIES.iter().flat_map(of_family).collect()
}

/// How long a command takes, recorded in nanoseconds.
pub(super) fn of_command(durations: &HistogramSnapshot, labels: &[Label<'_>]) -> Vec<Metric> {
    samples("kv_cmd_duration_seconds", COMMANDS_HELP, durations, NANOSECONDS_PER_US, labels)
}

/// The samples of a histogram whose unit is `units_per_us` times finer than a microsecond.
fn samples(
    name: &str,
    help: &'static str,
    snapshot: &HistogramSnapshot,
    units_per_us: u64,
    labels: &[Label<'_>],
) -> Vec<Metric> {
    let sample = |suffix: &str, value: f64| {
        let name = format!("{name}{suffix}").into();
        let kind = MetricKind::Histogram;
        with_labels(Metric { name, help, kind, labels: Vec::new(), value }, labels)
    };
    let mut samples = Vec::with_capacity(BOUNDS_US.len() + 3);
    let (mut below, mut buckets) = (0, snapshot.buckets().peekable());
    for bound_us in BOUNDS_US {
        while let Some(bucket) = buckets.next_if(|bucket| bucket.to <= bound_us * units_per_us) {
            below += bucket.count;
        }
        let bound = (float(bound_us) / 1e6).to_string();
        samples.push(sample("_bucket", float(below)).with_label("le", bound));
    }
    let total = float(snapshot.count());
    samples.push(sample("_bucket", total).with_label("le", "+Inf"));
    samples.push(sample("_sum", float(snapshot.sum()) / (float(units_per_us) * 1e6)));
    samples.push(sample("_count", total));
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(metrics: &[Metric], ending: &str, bound: &str) -> f64 {
        let is_it = |metric: &&Metric| {
            let is_bound = metric.labels.iter().any(|(_, value)| value == bound);
            metric.name.ends_with(ending) && (bound.is_empty() || is_bound)
        };
        metrics.iter().find(is_it).unwrap().value
    }

    #[test]
    fn exported_buckets_count_everything_below_their_bound_and_in_seconds() {
        for units_per_us in [1, NANOSECONDS_PER_US] {
            let recorded = Histogram::default();
            for micros in [5, 20, 20, 900] {
                recorded.record(micros * units_per_us);
            }
            let labels: &[Label<'_>] = &[("bucket", "travel"), ("opcode", "GET")];
            let metrics = samples("x_seconds", "What", &recorded.snapshot(), units_per_us, labels);
            let of = |bound: &str| value(&metrics, "_bucket", bound);
            assert_eq!((of("0.00001"), of("0.000025"), of("0.001")), (1.0, 3.0, 4.0));
            assert_eq!((of("100"), of("+Inf"), value(&metrics, "_count", "")), (4.0, 4.0, 4.0));
            assert!((value(&metrics, "_sum", "") - 945e-6).abs() < 1e-9);
            assert!(metrics.iter().all(|metric| metric.labels[0] == ("bucket", "travel".into())));
        }
    }

    #[test]
    fn every_histogram_of_a_bucket_has_all_its_samples() {
        let metrics = of_bucket(&Timings::default(), &[("bucket", "travel")]);
        assert_eq!(metrics.len(), FAMILIES.len() * (BOUNDS_US.len() + 3));
    }
}
