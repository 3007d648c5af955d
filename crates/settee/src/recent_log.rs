//! The last lines of the log, for who looks at them over REST.

use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, PoisonError};

/// Lines that are kept.
const LINES_MAX: usize = 1_000;
/// Bytes of a line that are kept: a longer one is cut.
const LINE_BYTES_MAX: usize = 2_048;

/// The last lines of a log. Written to as the log itself is, one whole line at a time.
#[derive(Debug, Default)]
pub(crate) struct RecentLog {
    lines: Mutex<VecDeque<String>>,
}

impl RecentLog {
    pub(crate) const fn new() -> Self {
        Self { lines: Mutex::new(VecDeque::new()) }
    }

    /// All of them, the oldest first.
    pub(crate) fn lines(&self) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().cloned().collect()
    }

    fn push(&self, line: &[u8]) {
        let whole = line.strip_suffix(b"\n").unwrap_or(line);
        let kept = whole.get(..LINE_BYTES_MAX).unwrap_or(whole);
        // Before the lock is taken, which every thread that logs takes.
        let line = without_colours(&String::from_utf8_lossy(kept));
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

impl io::Write for &RecentLog {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The text without what tells terminals its colours: escape, `[`, numbers, `m`.
fn without_colours(line: &str) -> String {
    let mut parts = line.split("\u{1b}[");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str(part.split_once('m').map_or(part, |(_, rest)| rest));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_last_lines_are_kept_without_their_colours() {
        let log = RecentLog::new();
        for number in 0..LINES_MAX + 5 {
            let line = format!("\u{1b}[2mtime\u{1b}[0m \u{1b}[32mINFO\u{1b}[0m line {number}\n");
            (&log).write_all(line.as_bytes()).unwrap();
        }
        let lines = log.lines();
        assert_eq!(lines.len(), LINES_MAX);
        assert_eq!(lines.first().unwrap(), "time INFO line 5");
        assert_eq!(lines.last().unwrap(), &format!("time INFO line {}", LINES_MAX + 4));
    }

    #[test]
    fn a_long_line_is_cut_wherever_that_is() {
        let log = RecentLog::new();
        (&log).write_all("\u{e4}".repeat(LINE_BYTES_MAX).as_bytes()).unwrap();
        (&log).write_all(b"\xff\n").unwrap();
        let lines = log.lines();
        assert_eq!(lines.first().unwrap().chars().count(), LINE_BYTES_MAX / 2);
        assert_eq!(lines.last().unwrap(), "\u{fffd}");
    }
}
