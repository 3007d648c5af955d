//! How it goes, a line at a time.

use std::fmt::Write;
use std::time::Duration;

use document::HistogramSnapshot;
use platform::{Instant, terminal};

use super::counters::Totals;
use crate::histogram_table::duration_text;
use crate::output::note;

/// Between two lines for a person, who sees only the last.
const INTERVAL_TERMINAL: Duration = Duration::from_secs(1);
/// Between two lines in a file.
const INTERVAL_FILE: Duration = Duration::from_secs(5);

/// The progress of one phase.
pub(super) struct Progress {
    name: &'static str,
    is_terminal: bool,
    started_at: Instant,
    last_at: Instant,
    last: HistogramSnapshot,
    /// Operations in all, when that is known.
    goal: Option<u64>,
}

impl Progress {
    pub(super) fn new(name: &'static str, goal: Option<u64>, now: Instant) -> Self {
        let is_terminal = terminal::is_stderr_terminal();
        let last = HistogramSnapshot::default();
        Self { name, is_terminal, started_at: now, last_at: now, last, goal }
    }

    /// Writes a line if it is time for one.
    pub(super) fn show(&mut self, totals: impl FnOnce() -> Totals, now: Instant) {
        let interval = if self.is_terminal { INTERVAL_TERMINAL } else { INTERVAL_FILE };
        if now.since(self.last_at) < interval {
            return;
        }
        let line = self.line(&totals(), now);
        note(&if self.is_terminal { format!("\r{line}\x1b[K") } else { format!("{line}\n") });
    }

    /// Clears the line, so that something else can follow.
    pub(super) fn end(&self) {
        if self.is_terminal {
            note("\r\x1b[K");
        }
    }

    fn line(&mut self, totals: &Totals, now: Instant) -> String {
        let all = totals.all();
        let recent = all.since(&self.last);
        let rate = recent.count() as f64 / now.since(self.last_at).as_secs_f64();
        let elapsed = now.since(self.started_at).as_secs();
        let mut line = format!("{} {elapsed:>4} s {rate:>9.0} operations/s", self.name);
        if let Some(goal) = self.goal {
            let share = 100.0 * all.count() as f64 / goal.max(1) as f64;
            put(&mut line, format_args!("  {share:5.1} %"));
        }
        for (name, quantile) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)] {
            let value = duration_text(recent.value_at_quantile(quantile));
            put(&mut line, format_args!("  {name} {value}"));
        }
        let counts = totals.errors.iter().chain(&totals.retries);
        for (status, count) in counts {
            put(&mut line, format_args!("  {status} {count}"));
        }
        let lost: u64 = totals.losses.values().sum();
        if lost > 0 {
            put(&mut line, format_args!("  lost connections {lost}"));
        }
        (self.last, self.last_at) = (all, now);
        line
    }
}

fn put(line: &mut String, text: std::fmt::Arguments<'_>) {
    line.write_fmt(text).expect("a string takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::counters::Counters;

    #[test]
    fn a_line_tells_of_the_time_since_the_last_one() {
        let counters = Counters::new();
        let mut progress = Progress::new("population", Some(200), Instant(0));
        for _ in 0..100 {
            counters.sets.record(5_000);
        }
        let after = |seconds| Instant(0).after(Duration::from_secs(seconds));
        let line = progress.line(&Totals::of([&counters]), after(2));
        let expected = "population    2 s        50 operations/s   50.0 %  \
                        p50 5.000us  p99 5.000us  p99.9 5.000us";
        assert_eq!(line, expected);
        counters.sets.record(9_000);
        counters.count_retry(0x86);
        counters.count_loss("reset".to_owned(), 1);
        let line = progress.line(&Totals::of([&counters]), after(3));
        let expected = "population    3 s         1 operations/s   50.5 %  p50 9.000us  \
                        p99 9.000us  p99.9 9.000us  ETMPFAIL 1  lost connections 1";
        assert_eq!(line, expected);
    }
}
