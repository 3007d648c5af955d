//! Histograms as people read them: a row for every 5 % of the values, finer towards the end.
//!
//! ```text
//!  get (20 total)
//!     10us - 12us : (  5.00%)  1 #####
//!     ...
//!     Avg         : (   14us)
//! ```

use std::fmt::Write;

use document::HistogramSnapshot;
use serde_json::{Value, json};

/// Steps of the cumulative share up to [`EVEN_STEPS_END`]; from there each step halves the rest.
const EVEN_STEP: f64 = 0.05;
const EVEN_STEPS_END: f64 = 0.95;
/// More than the errors of adding up steps, less than the share of any value.
const ROUNDING: f64 = 1e-12;
/// Columns of a bar when the terminal leaves fewer.
const BAR_COLUMNS_MIN: usize = 10;

/// What the values of a histogram count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Durations.
    Nanoseconds,
    /// Durations.
    Microseconds,
    /// Bytes, or anything else that is counted.
    Plain,
}

/// Some values, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The smallest value.
    pub low: u64,
    /// The largest value.
    pub high: u64,
    /// How many.
    pub count: u64,
}

/// A histogram to be shown.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramTable {
    unit: Unit,
    /// Rising.
    rows: Vec<Row>,
    total: u64,
    mean: u64,
}

impl HistogramTable {
    /// A histogram of rows in any order. `mean` is in the unit of the rows.
    pub fn new(unit: Unit, mut rows: Vec<Row>, mean: u64) -> Self {
        rows.retain(|row| row.count > 0);
        rows.sort_unstable_by_key(|row| (row.low, row.high));
        let total = rows.iter().map(|row| row.count).sum();
        Self { unit, rows, total, mean }
    }

    /// A histogram of this process.
    pub fn from_snapshot(unit: Unit, snapshot: &HistogramSnapshot) -> Self {
        let rows = snapshot.buckets().map(|bucket| Row {
            low: bucket.from.max(snapshot.min()),
            high: bucket.to.min(snapshot.max()),
            count: bucket.count,
        });
        Self::new(unit, rows.collect(), snapshot.mean())
    }

    /// How many values there are.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// A value that this share (0.0 to 1.0) of all values do not exceed; 0 when there are none.
    pub fn value_at(&self, quantile: f64) -> u64 {
        let mut seen = 0;
        for row in &self.rows {
            seen += row.count;
            if seen as f64 >= quantile * self.total as f64 {
                return row.high;
            }
        }
        self.rows.last().map_or(0, |row| row.high)
    }

    /// The table, in lines of at most `columns` where that is possible.
    pub fn render(&self, name: &str, columns: usize) -> String {
        let steps = self.steps();
        let show = |value| quantity(value, self.unit);
        let bounds: Vec<_> = steps.iter().map(|row| [show(row.low), show(row.high)]).collect();
        let widths =
            [0, 1].map(|side| bounds.iter().map(|pair| pair[side].0.len()).max().unwrap_or(1));
        let unit_width = if self.unit == Unit::Plain { 0 } else { 2 };
        let count_max = steps.iter().map(|row| row.count).max().unwrap_or(1);
        let count_width = count_max.to_string().len();
        let label_width = widths[0] + widths[1] + 2 * unit_width + 3;
        let text_width = 4 + label_width + " : (100.00%) ".len() + count_width + 1;
        let bar_columns = columns.saturating_sub(text_width).max(BAR_COLUMNS_MIN);

        let mut text = format!(" {name} ({} total)\n", self.total);
        let mut seen = 0;
        for (row, [low, high]) in steps.iter().zip(&bounds) {
            seen += row.count;
            let share = 100.0 * seen as f64 / self.total as f64;
            let bar = "#".repeat(scale(row.count, count_max, bar_columns));
            let line = format!(
                "    {:>w0$}{:<unit_width$} - {:>w1$}{:<unit_width$} : ({share:6.2}%) \
                 {:>count_width$} {bar}",
                low.0,
                low.1,
                high.0,
                high.1,
                row.count,
                w0 = widths[0],
                w1 = widths[1],
            );
            push_line(&mut text, &line);
        }
        let (mean, unit) = show(self.mean);
        push_line(&mut text, &format!("    {:<label_width$} : ({:>7})", "Avg", mean + unit));
        text
    }

    /// The same for machines: count, mean, percentiles, and every non-empty row.
    pub fn to_json(&self) -> Value {
        let row = |row: &Row| json!([row.low, row.high, row.count]);
        let rows: Vec<Value> = self.rows.iter().map(row).collect();
        json!({
            "unit": match self.unit {
                Unit::Nanoseconds => "ns",
                Unit::Microseconds => "us",
                Unit::Plain => "",
            },
            "count": self.total,
            "mean": self.mean,
            "p50": self.value_at(0.5),
            "p90": self.value_at(0.9),
            "p95": self.value_at(0.95),
            "p99": self.value_at(0.99),
            "p99.9": self.value_at(0.999),
            "max": self.value_at(1.0),
            "buckets": rows,
        })
    }

    /// The rows, joined so that each ends at a step of the cumulative share.
    fn steps(&self) -> Vec<Row> {
        let mut steps = Vec::new();
        let mut target = EVEN_STEP;
        let mut seen = 0;
        let mut open: Option<Row> = None;
        for row in &self.rows {
            seen += row.count;
            let joined = match open {
                Some(first) => {
                    Row { low: first.low, high: row.high, count: first.count + row.count }
                }
                None => *row,
            };
            let share = seen as f64 / self.total as f64;
            if share + ROUNDING >= target || seen == self.total {
                steps.push(joined);
                open = None;
                target = next_step(target, share);
            } else {
                open = Some(joined);
            }
        }
        steps
    }
}

/// The first step behind `share`.
fn next_step(mut target: f64, share: f64) -> f64 {
    while target <= share + ROUNDING && target < 1.0 {
        // Below the end by more than rounding errors of the sum.
        let is_even = target < EVEN_STEPS_END - EVEN_STEP / 2.0;
        target = if is_even { target + EVEN_STEP } else { target + (1.0 - target) / 2.0 };
    }
    target
}

fn scale(count: u64, count_max: u64, columns: usize) -> usize {
    let share = count as f64 / count_max.max(1) as f64;
    (share * columns as f64).round() as usize
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}

/// A value in the text that says it best: number and unit.
fn quantity(value: u64, unit: Unit) -> (String, &'static str) {
    let nanos = match unit {
        Unit::Plain => return (value.to_string(), ""),
        Unit::Microseconds if value < 1_000 => return (value.to_string(), "us"),
        Unit::Microseconds => value.saturating_mul(1_000),
        Unit::Nanoseconds => value,
    };
    match nanos {
        0..1_000_000 => (four_digits(nanos as f64 / 1e3), "us"),
        1_000_000..1_000_000_000 => (four_digits(nanos as f64 / 1e6), "ms"),
        _ => (four_digits(nanos as f64 / 1e9), "s"),
    }
}

/// A duration, number and unit together.
pub(crate) fn duration_text(nanos: u64) -> String {
    let (number, unit) = quantity(nanos, Unit::Nanoseconds);
    number + unit
}

fn four_digits(number: f64) -> String {
    let mut text = String::new();
    let digits = match number {
        ..9.9995 => 3,
        ..99.995 => 2,
        ..999.95 => 1,
        _ => 0,
    };
    write!(text, "{number:.digits$}").expect("a string takes everything");
    text
}

#[cfg(test)]
mod tests;
