//! How far work is, for whoever waits for it: with a rate, and the time that is left.

use std::time::Duration;

use platform::{Clock, Instant, terminal};

use crate::output::note;

/// Work that is over sooner says nothing.
const SILENCE: Duration = Duration::from_secs(2);
/// Between two lines for a person, who sees only the last.
const INTERVAL_TERMINAL: Duration = Duration::from_secs(1);
/// Between two lines in a file.
const INTERVAL_FILE: Duration = Duration::from_secs(5);
/// Says all three, in milliseconds.
const VARIABLE: &str = "SETTEE_PROGRESS_INTERVAL_MS";

/// When lines about progress are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// Until the first line.
    pub(crate) silence: Duration,
    /// From one line to the next.
    pub(crate) interval: Duration,
    pub(crate) is_terminal: bool,
}

impl Pace {
    /// Of lines on standard error.
    pub(crate) fn of_stderr() -> Self {
        let said = std::env::var_os(VARIABLE).and_then(|said| said.into_string().ok());
        Self::new(terminal::is_stderr_terminal(), said.as_deref())
    }

    fn new(is_terminal: bool, said: Option<&str>) -> Self {
        // What is no number is nobody's wish.
        match said.and_then(|said| said.parse().ok()).map(Duration::from_millis) {
            Some(said) => Self { silence: said, interval: said, is_terminal },
            None if is_terminal => {
                Self { silence: SILENCE, interval: INTERVAL_TERMINAL, is_terminal }
            }
            None => Self { silence: SILENCE, interval: INTERVAL_FILE, is_terminal },
        }
    }

    /// Writes a line, on terminals in the place of the one before.
    pub(crate) fn write(self, line: &str) {
        note(&if self.is_terminal { format!("\r{line}\x1b[K") } else { format!("{line}\n") });
    }
}

/// The progress of one piece of work, on standard error.
pub(crate) struct Progress {
    clock: Clock,
    line: ProgressLine,
    /// When the next line is due.
    due_at: Instant,
    pace: Pace,
    is_shown: bool,
}

/// What a line says.
struct ProgressLine {
    started_at: Instant,
    /// What is counted, in the plural.
    what: &'static str,
    total: u64,
}

impl Progress {
    /// Of work on `total` things.
    pub(crate) fn new(clock: Clock, what: &'static str, total: u64) -> Self {
        let started_at = clock.now();
        let line = ProgressLine { started_at, what, total };
        let pace = Pace::of_stderr();
        Self { clock, line, due_at: started_at.after(pace.silence), pace, is_shown: false }
    }

    /// `done` things are done, and `bytes` with them. Writes a line if it is time for one.
    pub(crate) fn show(&mut self, done: u64, bytes: u64) {
        let now = self.clock.now();
        if now < self.due_at {
            return;
        }
        self.due_at = now.after(self.pace.interval);
        self.is_shown = self.pace.is_terminal;
        self.pace.write(&self.line.text(done, bytes, now));
    }

    /// Clears the line, so that something else can be written.
    pub(crate) fn clear(&mut self) {
        if self.is_shown {
            note("\r\x1b[K");
            self.is_shown = false;
        }
    }
}

impl ProgressLine {
    fn text(&self, done: u64, bytes: u64, now: Instant) -> String {
        let Self { started_at, what, total } = self;
        let seconds = now.since(*started_at).as_secs_f64();
        let rate = bytes as f64 / 1e6 / seconds.max(f64::MIN_POSITIVE);
        let line = format!("{done} of {total} {what}, {} MB, {rate:.1} MB/s", bytes / 1_000_000);
        if done == 0 {
            return line;
        }
        let left = seconds * total.saturating_sub(done) as f64 / done as f64;
        format!("{line}, {} left", time_text(left.round()))
    }
}

/// Seconds as people say them.
fn time_text(seconds: f64) -> String {
    // A float beyond the type becomes its largest value.
    let seconds = seconds as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_as_often_as_is_said() {
        let pace = |silence, interval, is_terminal| Pace {
            silence: Duration::from_millis(silence),
            interval: Duration::from_millis(interval),
            is_terminal,
        };
        assert_eq!(Pace::new(true, None), pace(2000, 1000, true));
        assert_eq!(Pace::new(false, Some("often")), pace(2000, 5000, false));
        assert_eq!(Pace::new(false, Some("10")), pace(10, 10, false));
    }

    #[test]
    fn a_line_tells_the_rate_and_what_is_left() {
        let line = ProgressLine { started_at: Instant(0), what: "files", total: 40 };
        for (done, bytes, seconds, expected) in [
            (0, 0, 2, "0 of 40 files, 0 MB, 0.0 MB/s"),
            (10, 50_000_000, 5, "10 of 40 files, 50 MB, 10.0 MB/s, 15 s left"),
            (1, 0, 2, "1 of 40 files, 0 MB, 0.0 MB/s, 1 min 18 s left"),
            (1, 0, 200, "1 of 40 files, 0 MB, 0.0 MB/s, 2 h 10 min left"),
            (41, 0, 200, "41 of 40 files, 0 MB, 0.0 MB/s, 0 s left"),
        ] {
            let now = Instant(0).after(Duration::from_secs(seconds));
            assert_eq!(line.text(done, bytes, now), expected);
        }
    }
}
