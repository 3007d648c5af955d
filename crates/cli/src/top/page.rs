//! The page, as lines.

use std::fmt;

use super::sample::Sample;
use crate::histogram_table::duration_text;

const NANOS_PER_MICRO: u64 = 1000;
/// The width of what stands in front of a line.
const LABEL: usize = 12;

/// What a bucket has done between two moments.
pub(super) struct Page<'a> {
    /// Which bucket, and where.
    pub(super) title: &'a str,
    pub(super) before: &'a Sample,
    pub(super) now: &'a Sample,
}

impl Page<'_> {
    fn rate(&self, name: &str) -> f64 {
        self.now.rate_since(self.before, name)
    }

    fn operations(&self) -> String {
        let [all, get, set, delete, waited] =
            ["cmd_total", "cmd_get", "cmd_set", "cmd_delete", "parked_requests"]
                .map(|name| self.rate(name));
        let (hits, misses) = (self.rate("get_hits"), self.rate("get_misses"));
        let reads = hits + misses;
        let hit = if reads > 0.0 {
            format!("   {:.1} % of reads hit", 100.0 * hits / reads)
        } else {
            String::new()
        };
        let kinds = format!("get {get:.0}   set {set:.0}   delete {delete:.0}");
        format!("{all:.0}/s   {kinds}   waited {waited:.0}{hit}")
    }

    fn latency(&self, histogram: &str) -> String {
        let durations = self.now.durations_since(self.before, histogram);
        if durations.total() == 0 {
            return "-".to_owned();
        }
        let at = |quantile: f64| {
            duration_text(durations.value_at(quantile).saturating_mul(NANOS_PER_MICRO))
        };
        format!("p50 {}   p99 {}   p99.9 {}", at(0.5), at(0.99), at(0.999))
    }

    fn memory(&self) -> String {
        let [used, high, most] = ["mem_used", "ep_mem_high_wat", "ep_max_size"]
            .map(|name| megabytes(self.now.get(name) as f64));
        let resident = self.now.get("vb_active_perc_mem_resident");
        let refused = self.rate("ep_tmp_oom_errors");
        let watermark = format!("values leave from {high} on");
        format!("{used} of {most}, {watermark}   {resident} % resident   refused {refused:.0}/s")
    }

    fn disk(&self) -> String {
        let waiting = self.now.get("ep_diskqueue_items");
        let [fetched, commits] = ["ep_bg_fetched", "ep_commit_num"].map(|name| self.rate(name));
        format!("{waiting} writes wait   fetched {fetched:.0}/s   commits {commits:.0}/s")
    }

    fn network(&self) -> String {
        let [read, written] =
            ["bytes_read", "bytes_written"].map(|name| megabytes(self.rate(name)));
        let connections = self.now.get("curr_connections");
        format!("in {read}/s   out {written}/s   {connections} connections")
    }

    fn process(&self) -> String {
        let cpu = self.rate("cpu_time_ns") / 1e7;
        let resident = megabytes(self.now.get("resident_bytes") as f64);
        let threads = self.now.get("threads");
        format!("{cpu:.0} % of a CPU   {resident} of memory   {threads} front-end threads")
    }
}

impl fmt::Display for Page<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let up = uptime(self.now.get("uptime"));
        writeln!(f, "settee top   {}   up {up}   q ends\n", self.title)?;
        let items = self.now.get("curr_items");
        for (label, line) in [
            ("operations", self.operations()),
            ("reads", self.latency("get_cmd")),
            ("writes", self.latency("store_cmd")),
            ("documents", items.to_string()),
            ("memory", self.memory()),
            ("disk", self.disk()),
            ("network", self.network()),
            ("process", self.process()),
        ] {
            writeln!(f, "{label:<LABEL$}{line}")?;
        }
        Ok(())
    }
}

fn megabytes(bytes: f64) -> String {
    format!("{:.1} MB", bytes / 1e6)
}

fn uptime(seconds: u64) -> String {
    match seconds {
        0..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {:02} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use platform::Instant;

    use super::*;

    fn sample(second: u64, general: &[(&str, &str)], timings: &[(&str, &str)]) -> Sample {
        let owned = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
        };
        Sample::parse(Instant(second * 1_000_000_000), &owned(general), &owned(timings))
    }

    #[test]
    fn a_page_tells_what_came_between_two_moments() {
        let before = sample(
            10,
            &[("cmd_total", "100"), ("cmd_get", "50"), ("get_hits", "50"), ("cpu_time_ns", "0")],
            &[("get_cmd_10,20", "100"), ("get_cmd_20,40", "1")],
        );
        let now = sample(
            12,
            &[
                ("cmd_total", "300"),
                ("cmd_get", "150"),
                ("get_hits", "140"),
                ("get_misses", "10"),
                ("cpu_time_ns", "3000000000"),
                ("mem_used", "2500000"),
                ("ep_max_size", "10000000"),
                ("uptime", "7260"),
                ("version", "7.6.0-settee"),
            ],
            &[("get_cmd_10,20", "100"), ("get_cmd_20,40", "5"), ("get_cmd_80,90", "1")],
        );
        let page = Page { title: "b at h:1", before: &before, now: &now }.to_string();
        let lines: Vec<&str> = page.lines().collect();
        assert_eq!(lines[0], "settee top   b at h:1   up 2 h 01 min   q ends");
        for (index, expected) in [
            (2, "operations  100/s   get 50   set 0   delete 0   waited 0   90.0 % of reads hit"),
            (3, "reads       p50 40.00us   p99 90.00us   p99.9 90.00us"),
            (4, "writes      -"),
            (
                6,
                "memory      2.5 MB of 10.0 MB, values leave from 0.0 MB on   0 % resident   \
                 refused 0/s",
            ),
            (9, "process     150 % of a CPU   0.0 MB of memory   0 front-end threads"),
        ] {
            assert_eq!(lines[index], expected);
        }
    }

    #[test]
    fn a_node_that_has_started_anew_has_no_rates_below_zero() {
        let before = sample(10, &[("cmd_total", "100")], &[("get_cmd_1,2", "9")]);
        let now = sample(11, &[("cmd_total", "5")], &[("get_cmd_1,2", "3")]);
        assert!(now.rate_since(&before, "cmd_total").abs() < f64::EPSILON);
        assert_eq!(now.durations_since(&before, "get_cmd").total(), 0);
    }
}
