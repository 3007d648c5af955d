//! Facts about the histogram, compared with sorted lists of the same values.

use platform::Random;
use platform::seeds::seeds;

use super::*;

const QUANTILES: [f64; 9] = [0.0, 0.001, 0.1, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0];

fn exact_quantile(sorted: &[u64], quantile: f64) -> u64 {
    let rank = ((quantile * sorted.len() as f64).ceil() as usize).max(1);
    sorted[rank - 1]
}

fn recorded(values: &[u64]) -> HistogramSnapshot {
    let histogram = Histogram::new();
    for (number, &value) in values.iter().enumerate() {
        match number % 2 {
            0 => histogram.record(value),
            _ => histogram.record_alone(value),
        }
    }
    histogram.snapshot()
}

fn random_values(random: &mut Random) -> Vec<u64> {
    let count = 1 + random.below(3_000);
    let bits = 1 + random.below(40);
    // The shift spreads the values evenly over the powers of two.
    (0..count).map(|_| random.below(1 << bits) >> random.below(bits)).collect()
}

#[test]
fn every_bucket_border_falls_into_its_own_bucket() {
    let mut expected_from = 0;
    for bucket in 0..GROUP_COUNT * GROUP_SIZE {
        let (from, to) = bounds_of(bucket);
        assert_eq!(from, expected_from, "no value is left out or counted twice");
        assert_eq!(bucket_of(from), bucket);
        assert_eq!(bucket_of(to), bucket);
        assert!((to - from) * 100 <= from, "bucket {from}..={to} is wider than 1 %");
        expected_from = to + 1;
    }
    assert_eq!(expected_from, VALUE_MAX + 1);
}

#[test]
fn quantiles_are_never_below_and_at_most_one_percent_above_the_exact_ones() {
    for seed in seeds(40) {
        let mut values = random_values(&mut Random::from_seed(seed));
        let snapshot = recorded(&values);
        values.sort_unstable();
        for quantile in QUANTILES {
            let exact = exact_quantile(&values, quantile);
            let answer = snapshot.value_at_quantile(quantile);
            assert!(answer >= exact, "seed {seed}: {answer} < {exact} at {quantile}");
            assert!(answer <= exact + exact / 100, "seed {seed}: {answer} > {exact} at {quantile}");
        }
        assert_eq!(snapshot.count(), values.len() as u64);
        assert_eq!(snapshot.sum(), values.iter().sum::<u64>());
        assert_eq!(snapshot.mean(), snapshot.sum() / snapshot.count());
        assert_eq!(Some(&snapshot.min()), values.first());
        assert_eq!(Some(&snapshot.max()), values.last());
    }
}

#[test]
fn small_values_are_counted_exactly() {
    let values: Vec<u64> = (0..128).collect();
    let snapshot = recorded(&values);
    for quantile in QUANTILES {
        assert_eq!(snapshot.value_at_quantile(quantile), exact_quantile(&values, quantile));
    }
}

#[test]
fn merged_snapshots_equal_the_snapshot_of_all_values() {
    for seed in seeds(40) {
        let mut random = Random::from_seed(seed);
        let (first, second) = (random_values(&mut random), random_values(&mut random));
        let mut merged = recorded(&first);
        merged.merge(&recorded(&second));
        let all: Vec<u64> = first.into_iter().chain(second).collect();
        assert_eq!(merged, recorded(&all), "seed {seed}");
    }
}

#[test]
fn merging_with_an_empty_snapshot_changes_nothing() {
    let filled = recorded(&[5, 9]);
    let mut merged = filled.clone();
    merged.merge(&HistogramSnapshot::default());
    assert_eq!(merged, filled);
    let mut merged = HistogramSnapshot::default();
    merged.merge(&filled);
    assert_eq!(merged, filled);
}

#[test]
fn an_empty_histogram_answers_zero() {
    assert_eq!(Histogram::new().mean(), 0);
    let snapshot = Histogram::new().snapshot();
    assert_eq!(snapshot, HistogramSnapshot::default());
    assert_eq!(snapshot.value_at_quantile(0.5), 0);
    assert_eq!((snapshot.min(), snapshot.max(), snapshot.mean()), (0, 0, 0));
    assert_eq!(snapshot.buckets().count(), 0);
}

#[test]
fn buckets_list_what_was_recorded_in_order() {
    let snapshot = recorded(&[300, 0, 300, 7]);
    let buckets: Vec<HistogramBucket> = snapshot.buckets().collect();
    let expected = [
        HistogramBucket { from: 0, to: 0, count: 1 },
        HistogramBucket { from: 7, to: 7, count: 1 },
        HistogramBucket { from: 300, to: 301, count: 2 },
    ];
    assert_eq!(buckets, expected);
}

#[test]
fn values_beyond_the_range_count_as_the_largest() {
    let snapshot = recorded(&[u64::MAX, VALUE_MAX + 1]);
    assert_eq!(snapshot.max(), VALUE_MAX);
    assert_eq!(snapshot.count(), 2);
    assert_eq!(snapshot.value_at_quantile(0.5), VALUE_MAX);
}

#[test]
fn an_untouched_power_of_two_takes_no_memory() {
    let histogram = Histogram::new();
    histogram.record(5);
    histogram.record(1 << 20);
    assert_eq!(histogram.groups.iter().filter(|group| group.get().is_some()).count(), 2);
}

#[test]
fn threads_record_without_losing_a_value() {
    let histogram = Histogram::new();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let histogram = &histogram;
            scope.spawn(move || (0..10_000).for_each(|value| histogram.record(value * 4 + thread)));
        }
    });
    let snapshot = histogram.snapshot();
    assert_eq!(snapshot.count(), 40_000);
    assert_eq!(snapshot.sum(), (0..40_000).sum::<u64>());
    assert_eq!(histogram.mean(), snapshot.mean());
    assert_eq!((snapshot.min(), snapshot.max()), (0, 39_999));
}

#[test]
fn a_difference_holds_what_came_between() {
    let histogram = Histogram::new();
    for value in [5, 5, 100, 3_000] {
        histogram.record(value);
    }
    let earlier = histogram.snapshot();
    assert_eq!(earlier.since(&earlier), HistogramSnapshot::default());
    assert_eq!(earlier.since(&HistogramSnapshot::default()).count(), 4);
    for value in [5, 20, 100] {
        histogram.record(value);
    }
    let between = histogram.snapshot().since(&earlier);
    let rows: Vec<_> = between.buckets().map(|bucket| (bucket.from, bucket.count)).collect();
    assert_eq!(rows, [(5, 1), (20, 1), (100, 1)]);
    assert_eq!((between.count(), between.sum()), (3, 125));
    assert_eq!((between.min(), between.max()), (5, 100));
}
