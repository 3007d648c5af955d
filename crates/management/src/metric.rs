//! Samples, and how Prometheus reads them (text format 0.0.4).
//!
//! Names that the original has do not all keep Prometheus' rules: its counters do not end in
//! `_total`, and some of its gauges end in `_count`. Dashboards and alerts ask for them as they
//! are, so they stay, and such a family is told without a type: Prometheus' own tool accepts that,
//! and nothing that is asked about it depends on the type.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Once;

/// What names of our own begin with. They keep Prometheus' rules.
const OWN: &str = "settee_";
/// What the names of a histogram's samples end in.
const HISTOGRAM_ENDINGS: [&str; 3] = ["_bucket", "_sum", "_count"];

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

    /// The same sample with one more label.
    #[must_use]
    pub fn with_label(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.labels.push((name, value.into()));
        self
    }

    /// Which rule for names (`promtool check metrics`) it does not keep.
    pub fn broken_rule(&self) -> Option<&'static str> {
        // Some names of the original have capitals.
        let may_be_upper = !self.name.starts_with(OWN);
        let is_allowed = |byte: u8| {
            let is_letter =
                byte.is_ascii_lowercase() || (may_be_upper && byte.is_ascii_uppercase());
            is_letter || byte.is_ascii_digit() || byte == b'_'
        };
        let is_histogram = self.kind == MetricKind::Histogram;
        match () {
            () if self.help.is_empty() || self.help.contains(['\n', '\\']) => Some("has no help"),
            () if !self.name.bytes().all(is_allowed) => Some("has other characters than letters"),
            () if self.says_a_label_twice() => Some("says a label twice"),
            () if is_histogram && !self.says_its_kind() => Some("has no ending of a histogram"),
            () if self.name.starts_with(OWN) && !self.says_its_kind() => {
                Some("_total is for counters, _bucket, _sum and _count for histograms")
            }
            () => None,
        }
    }

    fn says_a_label_twice(&self) -> bool {
        let is_twice = |(index, (name, _)): (usize, &(&str, Cow<'_, str>))| {
            self.labels.iter().take(index).any(|(other, _)| other == name)
        };
        self.labels.iter().enumerate().any(is_twice)
    }

    /// Whether the name ends as Prometheus has it for its kind.
    fn says_its_kind(&self) -> bool {
        let is_of_histogram = HISTOGRAM_ENDINGS.iter().any(|end| self.name.ends_with(end));
        let is_of_counter = self.name.ends_with("_total");
        match self.kind {
            MetricKind::Counter => is_of_counter,
            MetricKind::Gauge => !is_of_counter && !is_of_histogram,
            MetricKind::Histogram => is_of_histogram,
        }
    }

    /// What Prometheus is told that it is.
    fn told_kind(&self) -> &'static str {
        match self.kind {
            _ if !self.says_its_kind() => "untyped",
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        }
    }

    /// What the samples of one histogram have in common; otherwise the name.
    fn family(&self) -> &str {
        if self.kind != MetricKind::Histogram {
            return &self.name;
        }
        let stripped = HISTOGRAM_ENDINGS.iter().find_map(|ending| self.name.strip_suffix(ending));
        stripped.unwrap_or(&self.name)
    }
}

/// All samples as text, families together and in the order of their names. A sample that breaks a
/// rule is left out: it is a mistake in a name, and who asks for it is no reason to end a node.
pub(crate) fn encode(mut metrics: Vec<Metric>) -> String {
    // Monitoring drops a whole answer for one sample that it cannot read.
    metrics.retain(|metric| is_kept(metric, metric.broken_rule()));
    // The sort is stable: the buckets of a histogram stay in their order.
    metrics.sort_by(|a, b| a.family().cmp(b.family()));
    let mut text = String::new();
    for family in metrics.chunk_by(|a, b| a.family() == b.family()) {
        let Some(first) = family.first() else { continue };
        writeln!(text, "# HELP {} {}", first.family(), first.help).expect("a string takes all");
        writeln!(text, "# TYPE {} {}", first.family(), first.told_kind())
            .expect("a string takes all");
        let broken_rule = |it: &Metric| (it.kind != first.kind).then_some("is of another kind");
        let kept = family.iter().filter(|metric| is_kept(metric, broken_rule(metric)));
        kept.for_each(|metric| encode_sample(metric, &mut text));
    }
    text
}

/// Whether no rule is broken; says so, once.
fn is_kept(metric: &Metric, broken_rule: Option<&str>) -> bool {
    static SAID: Once = Once::new();
    if let Some(rule) = broken_rule {
        SAID.call_once(|| tracing::error!(name = &*metric.name, rule, "a metric is left out"));
    }
    broken_rule.is_none()
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
            Metric::counter("settee_ops_total", "What", 3.0)
                .with_label("bucket", "b")
                .with_label("op", "get"),
            histogram("kv_seconds_bucket", 1.0).with_label("le", "0.5"),
            histogram("kv_seconds_bucket", 2.0).with_label("le", "+Inf"),
            Metric::gauge("kv_curr_items", "What", 7.0),
            histogram("kv_seconds_sum", 0.25),
            histogram("kv_seconds_count", 2.0),
            Metric::counter("settee_ops_total", "What", 4.0)
                .with_label("bucket", "b")
                .with_label("op", "set"),
        ]);
        let expected = "\
            # HELP kv_curr_items What\n\
            # TYPE kv_curr_items gauge\n\
            kv_curr_items 7\n\
            # HELP kv_seconds What\n\
            # TYPE kv_seconds histogram\n\
            kv_seconds_bucket{le=\"0.5\"} 1\n\
            kv_seconds_bucket{le=\"+Inf\"} 2\n\
            kv_seconds_sum 0.25\n\
            kv_seconds_count 2\n\
            # HELP settee_ops_total What\n\
            # TYPE settee_ops_total counter\n\
            settee_ops_total{bucket=\"b\",op=\"get\"} 3\n\
            settee_ops_total{bucket=\"b\",op=\"set\"} 4\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn names_of_the_original_stay_and_are_told_without_a_type_where_they_break_the_rules() {
        let gauge = |name: &'static str| Metric::gauge(name, "What", 1.0);
        let counter = |name: &'static str| Metric::counter(name, "What", 1.0);
        for (metric, kind, is_allowed) in [
            (gauge("kv_curr_items"), "gauge", true),
            (gauge("kv_dcp_stream_count"), "untyped", true),
            (gauge("sys_mem_total"), "untyped", true),
            (counter("kv_ops"), "untyped", true),
            (counter("sysproc_cpu_seconds_total"), "counter", true),
            (counter("settee_groups_total"), "counter", true),
            (counter("settee_groups"), "untyped", false),
            (gauge("settee_stream_count"), "untyped", false),
            (gauge("kv_collection_maxTTL_seconds"), "gauge", true),
            (gauge("settee_Items"), "gauge", false),
            (gauge("kv_items{"), "gauge", false),
            (gauge("kv_items").with_label("a", "1").with_label("a", "2"), "gauge", false),
        ] {
            assert_eq!(metric.told_kind(), kind, "{}", metric.name);
            assert_eq!(metric.broken_rule().is_none(), is_allowed, "{}", metric.name);
        }
    }

    #[test]
    fn what_breaks_a_rule_is_left_out_and_the_others_are_told() {
        let gauge = |name: &'static str| Metric::gauge(name, "What", 1.0);
        let bad = [gauge("kv-items"), Metric::gauge("kv_items", "", 1.0)];
        let another_kind = Metric::counter("kv_curr_items", "What", 2.0);
        let text = encode([&bad[..], &[gauge("kv_curr_items"), another_kind]].concat());
        let expected = "# HELP kv_curr_items What\n# TYPE kv_curr_items gauge\nkv_curr_items 1\n";
        assert_eq!(text, expected);
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
