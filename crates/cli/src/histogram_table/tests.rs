//! The table, letter by letter and by its laws.

use document::Histogram;

use super::*;

fn rows(rows: &[(u64, u64, u64)]) -> Vec<Row> {
    rows.iter().map(|&(low, high, count)| Row { low, high, count }).collect()
}

#[test]
fn a_table_looks_like_this() {
    let rows = rows(&[
        (400, 800, 10),
        (100, 200, 50),
        (200, 400, 30),
        (800, 1_500, 7),
        (1_500, 12_345, 2),
        (12_345, 2_000_000, 1),
        (3_000_000, 4_000_000, 0),
    ]);
    let table = HistogramTable::new(Unit::Microseconds, rows, 345);
    let expected = concat!(
        " disk_commit (100 total)\n",
        "      100us -   200us : ( 50.00%) 50 ####################\n",
        "      200us -   400us : ( 80.00%) 30 ############\n",
        "      400us -   800us : ( 90.00%) 10 ####\n",
        "      800us - 1.500ms : ( 97.00%)  7 ###\n",
        "    1.500ms - 12.35ms : ( 99.00%)  2 #\n",
        "    12.35ms - 2.000s  : (100.00%)  1\n",
        "    Avg               : (  345us)\n",
    );
    assert_eq!(table.render("disk_commit", 57), expected);
}

#[test]
fn plain_numbers_have_no_unit_and_no_values_no_rows() {
    let table = HistogramTable::new(Unit::Plain, rows(&[(1, 2, 3)]), 1);
    let expected = concat!(
        " sizes (3 total)\n",
        "    1 - 2 : (100.00%) 3 ##########\n",
        "    Avg   : (      1)\n",
    );
    assert_eq!(table.render("sizes", 20), expected);
    let empty = HistogramTable::new(Unit::Nanoseconds, Vec::new(), 0);
    assert_eq!(empty.render("none", 80), " none (0 total)\n    Avg       : (0.000us)\n");
    assert_eq!(empty.value_at(0.5), 0);
}

#[test]
fn rows_end_at_every_twentieth_and_then_at_every_half_of_the_rest() {
    let fine = (0..1_000).map(|value| Row { low: value, high: value, count: 1 });
    let table = HistogramTable::new(Unit::Plain, fine.collect(), 500);
    let steps = table.steps();
    let mut seen = 0;
    let ends: Vec<u64> = steps
        .iter()
        .map(|row| {
            seen += row.count;
            seen
        })
        .collect();
    let mut expected: Vec<u64> = (1..=19).map(|step| step * 50).collect();
    expected.extend([975, 988, 994, 997, 999, 1_000]);
    assert_eq!(ends, expected);
    assert_eq!((steps[0].low, steps[0].high), (0, 49));
    assert_eq!(table.value_at(0.99), 989);
    assert_eq!(table.value_at(1.0), 999);
}

#[test]
fn the_steps_of_any_histogram_hold_all_of_it_in_order() {
    for seed in platform::seeds::seeds(20) {
        let mut random = platform::Random::from_seed(seed);
        let histogram = Histogram::new();
        let count = 1 + random.below(5_000);
        for _ in 0..count {
            let shift = random.below(40);
            histogram.record(random.next_u64() >> (24 + shift));
        }
        let snapshot = histogram.snapshot();
        let table = HistogramTable::from_snapshot(Unit::Nanoseconds, &snapshot);
        let steps = table.steps();
        assert_eq!(steps.iter().map(|row| row.count).sum::<u64>(), count, "seed {seed}");
        assert!(steps.is_sorted_by(|a, b| a.high < b.low), "seed {seed}");
        assert!(steps.len() <= 20 + 14, "seed {seed}: {} rows", steps.len());
        assert_eq!(steps[0].low, snapshot.min(), "seed {seed}");
        assert_eq!(steps[steps.len() - 1].high, snapshot.max(), "seed {seed}");
        let json = table.to_json();
        assert_eq!((json["count"].as_u64(), json["unit"].as_str()), (Some(count), Some("ns")));
    }
}

#[test]
fn four_digits_are_enough_at_every_magnitude() {
    for (nanos, expected) in [
        (0, "0.000us"),
        (999, "0.999us"),
        (9_999, "9.999us"),
        (12_345, "12.35us"),
        (999_900, "999.9us"),
        (1_000_000, "1.000ms"),
        (250_000_000, "250.0ms"),
        (1_000_000_000, "1.000s"),
        (65_000_000_000, "65.00s"),
    ] {
        assert_eq!(duration_text(nanos), expected);
    }
}
