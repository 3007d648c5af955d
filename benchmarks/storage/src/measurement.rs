//! What is read off while something runs: latencies, bytes handed to the system, CPU.

use std::time::Duration;

use anyhow::{Context, Result};
use platform::{Clock, Instant};

/// Times of single operations, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    times_ns: Vec<u64>,
    is_sorted: bool,
}

impl Latencies {
    /// Adds one.
    pub fn record(&mut self, time: Duration) {
        self.times_ns.push(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        self.is_sorted = false;
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.times_ns.len()
    }

    /// The mean in microseconds; 0 of none.
    pub fn average_us(&self) -> f64 {
        let sum: u64 = self.times_ns.iter().sum();
        sum as f64 / self.times_ns.len().max(1) as f64 / 1e3
    }

    /// The smallest time that this part of all does not exceed, in microseconds; 0 of none.
    pub fn quantile_us(&mut self, quantile: f64) -> f64 {
        if !self.is_sorted {
            self.times_ns.sort_unstable();
            self.is_sorted = true;
        }
        let rank = (quantile * self.times_ns.len() as f64).ceil() as usize;
        let time = self.times_ns.get(rank.saturating_sub(1));
        time.map_or(0.0, |time| *time as f64 / 1e3)
    }
}

/// What the process has used up to a moment.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    at: Instant,
    cpu_ns: u64,
    written_bytes: u64,
}

/// What the process used between two moments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used {
    /// Seconds on the clock.
    pub seconds: f64,
    /// Seconds of all its threads on CPUs.
    pub cpu_seconds: f64,
    /// Bytes that it handed to write calls, of files and of anything else.
    pub written_bytes: u64,
}

impl Usage {
    /// Up to now.
    pub fn now() -> Result<Self> {
        Ok(Self {
            at: Clock::real().now(),
            cpu_ns: platform::process::cpu_time_ns(),
            written_bytes: written_bytes()?,
        })
    }

    /// From this moment until now.
    pub fn until_now(&self) -> Result<Used> {
        let now = Self::now()?;
        Ok(Used {
            seconds: now.at.since(self.at).as_secs_f64(),
            cpu_seconds: now.cpu_ns.saturating_sub(self.cpu_ns) as f64 / 1e9,
            written_bytes: now.written_bytes.saturating_sub(self.written_bytes),
        })
    }
}

/// Bytes that all threads of this process, ended ones included, have handed to write calls: the
/// same measure for every engine. What the system says of pages is of no use: it counts large
/// folios whole, however few of their blocks are written.
fn written_bytes() -> Result<u64> {
    let path = "/proc/self/io";
    let text = std::fs::read_to_string(path).with_context(|| path.to_owned())?;
    let line = text.lines().find_map(|line| line.strip_prefix("wchar:"));
    line.and_then(|bytes| bytes.trim().parse().ok()).with_context(|| format!("wchar in {path}"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn quantiles_are_times_that_were_recorded() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.quantile_us(0.5), 0.0);
        (1..=100).rev().for_each(|number| latencies.record(Duration::from_micros(number)));
        assert_eq!(latencies.quantile_us(0.5), 50.0);
        assert_eq!(latencies.quantile_us(0.99), 99.0);
        assert_eq!(latencies.quantile_us(0.999), 100.0);
        assert_eq!(latencies.average_us(), 50.5);
    }

    #[test]
    fn bytes_of_threads_that_have_ended_count() {
        let before = Usage::now().expect("the system counts");
        let writer = || {
            let mut file = tempfile::tempfile().expect("a file");
            file.write_all(&[1; 100_000]).expect("room for it");
        };
        std::thread::spawn(writer).join().expect("it does not panic");
        let used = before.until_now().expect("the system counts");
        assert!(used.written_bytes >= 100_000, "{used:?}");
    }
}
