//! What clients have seen in one stretch of time.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use protocol::Status;

use super::ledger::Verdict;

const NANOS_PER_MILLI: f64 = 1e6;
/// Of wrong answers, how many are kept in words.
const WORDS_MAX: usize = 10;

/// Counters and latencies of a stretch.
#[derive(Clone, Debug)]
pub struct Window {
    /// How long it was.
    pub duration: Duration,
    /// Requests that were answered.
    pub answered: u64,
    /// From the time that a request was due until its answer, in nanoseconds.
    pub latency: Histogram<u64>,
    /// By status.
    pub refused: BTreeMap<u16, u64>,
    /// Answers that contradict others.
    pub wrong: u64,
    /// The first of them in words.
    pub wrong_words: Vec<String>,
    /// Requests that were not sent, because too many were under way.
    pub shed: u64,
    /// How late a request left at most: what is the generator's part of its latency.
    pub late: Duration,
}

impl Default for Window {
    fn default() -> Self {
        // From 1 us to 10 minutes.
        let latency = Histogram::new_with_bounds(1_000, 600_000_000_000, 3);
        Self {
            duration: Duration::ZERO,
            answered: 0,
            latency: latency.expect("the bounds are in order"),
            refused: BTreeMap::new(),
            wrong: 0,
            wrong_words: Vec::new(),
            shed: 0,
            late: Duration::ZERO,
        }
    }
}

impl Window {
    /// A request was answered.
    pub fn note(&mut self, latency: Duration, verdict: Verdict) {
        self.answered += 1;
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.latency.saturating_record(nanos);
        match verdict {
            Verdict::Right => {}
            Verdict::Refused(status) => *self.refused.entry(status).or_default() += 1,
            Verdict::Wrong(words) => {
                self.wrong += 1;
                if self.wrong_words.len() < WORDS_MAX {
                    self.wrong_words.push(words);
                }
            }
        }
    }

    /// Answers a second.
    pub fn rate(&self) -> f64 {
        self.answered as f64 / self.duration.as_secs_f64()
    }

    /// In milliseconds.
    pub fn latency_ms(&self, quantile: f64) -> f64 {
        self.latency.value_at_quantile(quantile) as f64 / NANOS_PER_MILLI
    }

    /// In milliseconds.
    pub fn longest_ms(&self) -> f64 {
        self.latency.max() as f64 / NANOS_PER_MILLI
    }

    /// Temporary failures.
    pub fn temporary_failures(&self) -> u64 {
        self.refused.get(&Status::Etmpfail.code()).copied().unwrap_or(0)
    }

    /// Refusals of all other kinds.
    pub fn other_refusals(&self) -> u64 {
        self.refused.values().sum::<u64>() - self.temporary_failures()
    }

    /// Refusals by the name of their status.
    pub fn refusals(&self) -> String {
        let name = |code| Status::from_code(code).map_or("unknown status", Status::name);
        let each = self.refused.iter().map(|(&code, count)| format!("{} {count}", name(code)));
        each.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_tells_rates_latencies_and_refusals() {
        let mut window = Window { duration: Duration::from_secs(2), ..Window::default() };
        for millis in 1..=1000 {
            window.note(Duration::from_millis(millis), Verdict::Right);
        }
        let millisecond = Duration::from_millis(1);
        (0..3).for_each(|_| window.note(millisecond, Verdict::Refused(0x86)));
        window.note(millisecond, Verdict::Refused(0xa3));
        (0..20).for_each(|_| window.note(millisecond, Verdict::Wrong("no".to_owned())));
        assert_eq!((window.answered, window.rate()), (1024, 512.0));
        assert!((window.latency_ms(0.5) - 488.0).abs() < 1.0, "{}", window.latency_ms(0.5));
        assert!((window.longest_ms() - 1000.0).abs() < 1.0);
        assert_eq!((window.temporary_failures(), window.other_refusals()), (3, 1));
        assert_eq!(window.refusals(), "ETMPFAIL 3, SYNC_WRITE_AMBIGUOUS 1");
        assert_eq!((window.wrong, window.wrong_words.len()), (20, WORDS_MAX));
    }
}
