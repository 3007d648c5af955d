//! Samples, and how Prometheus reads them (text format 0.0.4).

use std::borrow::Cow;
use std::fmt::Write;
use std::ops::RangeInclusive;

use document::HistogramSnapshot;

/// The upper edges of a duration's buckets, as powers of two in nanoseconds: 1 us to 8.6 s. They
/// are edges of the recorded histogram as well, so that no bucket is split.
const DURATION_EDGES: RangeInclusive<u32> = 10..=33;

/// One sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// The name, of letters, digits and underscores, its unit last. A histogram's samples end in
    /// `_bucket` (with a label `le`), `_sum` and `_count`.
    pub name: Cow<'static, str>,
    /// What a person reads about it.
    pub help: &'static str,
    /// What the value is.
    pub kind: MetricKind,
    /// Names and values of labels.
    pub labels: Vec<(&'static str, Cow<'static, str>)>,
    /// The value now.
    pub value: f64,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only rises, from 0 at the start of the process.
    Counter,
    /// Goes up and down.
    Gauge,
    /// One of the samples of a histogram.
    Histogram,
}

impl Metric {
    /// A gauge without labels.
    pub fn gauge(name: &'static str, help: &'static str, value: f64) -> Self {
        Self { name: name.into(), help, kind: MetricKind::Gauge, labels: Vec::new(), value }
    }

    /// A counter without labels.
    pub fn counter(name: &'static str, help: &'static str, value: f64) -> Self {
        Self { name: name.into(), help, kind: MetricKind::Counter, labels: Vec::new(), value }
    }

    /// The samples of a histogram of durations recorded in nanoseconds. `family` ends in
    /// `_seconds`.
    pub fn durations(
        family: &'static str,
        help: &'static str,
        nanos: &HistogramSnapshot,
    ) -> Vec<Self> {
        let sample = |suffix: &str, value: f64| Self {
            name: format!("{family}_{suffix}").into(),
            help,
            kind: MetricKind::Histogram,
            labels: Vec::new(),
            value,
        };
        let mut samples = Vec::new();
        let mut buckets = nanos.buckets().peekable();
        let mut below = 0;
        for edge in DURATION_EDGES.map(|power| 1_u64 << power) {
            while let Some(bucket) = buckets.next_if(|bucket| bucket.to < edge) {
                below += bucket.count;
            }
            let seconds = edge as f64 / 1e9;
            samples.push(sample("bucket", below as f64).with_label("le", seconds.to_string()));
        }
        assert!(below <= nanos.count(), "no edge has more below it than there is");
        let count = nanos.count() as f64;
        samples.push(sample("bucket", count).with_label("le", "+Inf"));
        samples.push(sample("sum", nanos.sum() as f64 / 1e9));
        samples.push(sample("count", count));
        samples
    }

    /// The same sample with one more label.
    #[must_use]
    pub fn with_label(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        assert!(
            self.labels.iter().all(|(other, _)| *other != name),
            "a label is said once: {name}"
        );
        self.labels.push((name, value.into()));
        self
    }

    /// Which of Prometheus' rules for names (`promtool check metrics`) it does not keep.
    pub fn broken_rule(&self) -> Option<&'static str> {
        let is_counter = self.kind == MetricKind::Counter;
        let is_histogram = self.kind == MetricKind::Histogram;
        let is_allowed =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let has_own_ending =
            ["_bucket", "_sum", "_count"].iter().any(|end| self.name.ends_with(end));
        match () {
            () if self.help.is_empty() || self.help.contains(['\n', '\\']) => Some("has no help"),
            () if !self.name.bytes().all(is_allowed) => Some("has other characters than a to z"),
            () if is_counter != self.name.ends_with("_total") => Some("_total is for counters"),
            () if is_histogram != has_own_ending => Some("endings of histograms are for those"),
            () => None,
        }
    }

    /// What the samples of one histogram have in common; otherwise the name.
    fn family(&self) -> &str {
        if self.kind != MetricKind::Histogram {
            return &self.name;
        }
        let suffixes = ["_bucket", "_sum", "_count"];
        suffixes.iter().find_map(|suffix| self.name.strip_suffix(suffix)).unwrap_or(&self.name)
    }
}

/// All samples as text, families together and in the order of their names.
pub(crate) fn encode(mut metrics: Vec<Metric>) -> String {
    // The sort is stable: the buckets of a histogram stay in their order.
    metrics.sort_by(|a, b| a.family().cmp(b.family()));
    for metric in &metrics {
        // Monitoring drops a whole answer for one sample that it cannot read.
        assert_eq!(metric.broken_rule(), None, "{}", metric.name);
    }
    let mut text = String::new();
    for family in metrics.chunk_by(|a, b| a.family() == b.family()) {
        let Some(first) = family.first() else { continue };
        let is_one_kind = family.iter().all(|metric| metric.kind == first.kind);
        assert!(is_one_kind, "a family is of one kind: {}", first.name);
        let kind = match first.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        writeln!(text, "# HELP {} {}", first.family(), first.help).expect("a string takes all");
        writeln!(text, "# TYPE {} {kind}", first.family()).expect("a string takes all");
        family.iter().for_each(|metric| encode_sample(metric, &mut text));
    }
    text
}

fn encode_sample(metric: &Metric, text: &mut String) {
    text.push_str(&metric.name);
    for (index, (name, value)) in metric.labels.iter().enumerate() {
        text.push(if index == 0 { '{' } else { ',' });
        text.push_str(name);
        text.push_str("=\"");
        value.chars().for_each(|character| push_escaped(character, text));
        text.push('"');
    }
    if !metric.labels.is_empty() {
        text.push('}');
    }
    text.push(' ');
    push_value(metric.value, text);
    text.push('\n');
}

fn push_escaped(character: char, text: &mut String) {
    match character {
        '\\' => text.push_str("\\\\"),
        '"' => text.push_str("\\\""),
        '\n' => text.push_str("\\n"),
        other => text.push(other),
    }
}

/// As Go writes and reads it, which is what Prometheus does.
fn push_value(value: f64, text: &mut String) {
    if value.is_nan() {
        text.push_str("NaN");
    } else if value.is_infinite() {
        text.push_str(if value > 0.0 { "+Inf" } else { "-Inf" });
    } else {
        write!(text, "{value}").expect("a string takes all");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_family_stand_together_under_one_type() {
        let histogram = |name: &'static str, value| Metric {
            kind: MetricKind::Histogram,
            ..Metric::gauge(name, "What", value)
        };
        let text = encode(vec![
            Metric::counter("kv_ops_total", "What", 3.0)
                .with_label("bucket", "b")
                .with_label("op", "get"),
            histogram("kv_seconds_bucket", 1.0).with_label("le", "0.5"),
            histogram("kv_seconds_bucket", 2.0).with_label("le", "+Inf"),
            Metric::gauge("kv_curr_items", "What", 7.0),
            histogram("kv_seconds_sum", 0.25),
            histogram("kv_seconds_count", 2.0),
            Metric::counter("kv_ops_total", "What", 4.0)
                .with_label("bucket", "b")
                .with_label("op", "set"),
        ]);
        let expected = "\
            # HELP kv_curr_items What\n\
            # TYPE kv_curr_items gauge\n\
            kv_curr_items 7\n\
            # HELP kv_ops_total What\n\
            # TYPE kv_ops_total counter\n\
            kv_ops_total{bucket=\"b\",op=\"get\"} 3\n\
            kv_ops_total{bucket=\"b\",op=\"set\"} 4\n\
            # HELP kv_seconds What\n\
            # TYPE kv_seconds histogram\n\
            kv_seconds_bucket{le=\"0.5\"} 1\n\
            kv_seconds_bucket{le=\"+Inf\"} 2\n\
            kv_seconds_sum 0.25\n\
            kv_seconds_count 2\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn durations_are_counted_below_each_edge_and_in_seconds() {
        let histogram = document::Histogram::new();
        for nanos in [500, 1023, 1024, 1_000_000, 20_000_000_000] {
            histogram.record(nanos);
        }
        let text =
            encode(Metric::durations("kv_cmd_duration_seconds", "Time", &histogram.snapshot()));
        for line in [
            "# TYPE kv_cmd_duration_seconds histogram",
            "kv_cmd_duration_seconds_bucket{le=\"0.000001024\"} 2",
            "kv_cmd_duration_seconds_bucket{le=\"0.000002048\"} 3",
            "kv_cmd_duration_seconds_bucket{le=\"0.001048576\"} 4",
            "kv_cmd_duration_seconds_bucket{le=\"8.589934592\"} 4",
            "kv_cmd_duration_seconds_bucket{le=\"+Inf\"} 5",
            "kv_cmd_duration_seconds_sum 20.001002547",
            "kv_cmd_duration_seconds_count 5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        assert_eq!(text.matches("# TYPE").count(), 1);
    }

    #[test]
    fn a_label_cannot_break_out_of_its_quotes() {
        let text = encode(vec![Metric::gauge("x", "What", 1.0).with_label("bucket", "a\"b\\c\nd")]);
        assert!(text.ends_with("x{bucket=\"a\\\"b\\\\c\\nd\"} 1\n"), "{text}");
    }

    #[test]
    fn values_are_written_as_prometheus_reads_them() {
        for (value, expected) in [
            (0.1, "0.1"),
            (1e6, "1000000"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
        ] {
            let mut text = String::new();
            push_value(value, &mut text);
            assert_eq!(text, expected);
        }
    }
}
