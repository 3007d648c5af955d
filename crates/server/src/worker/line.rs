//! Clients whose last turn was a long one. Who asks for little does not wait for all of them: they
//! stand in a line, which gets its share of the worker's time between two looks at what has come.
//! Source: the multi-level feedback queues of operating systems.

use std::collections::VecDeque;
use std::time::Duration;

use platform::Instant;

use super::peer::Afterwards;

/// Bytes read and sent in a turn from which on it is a long one.
const LONG_BYTES: usize = 32 << 10;
/// The same for its time, far beyond what a machine that others use, too, makes of a short one.
const LONG_TIME: Duration = Duration::from_millis(1);
/// What the line gets of the worker's time at least, each time.
const SHARE_MIN: Duration = Duration::from_micros(250);

/// Those who wait. A connection stands there once, which it knows itself.
#[derive(Debug, Default)]
pub(super) struct Line {
    queue: VecDeque<usize>,
    /// Of those, how many stood there when the line's time began.
    expected: usize,
    /// When its time is over; the first has its turn in any case.
    end: Instant,
    is_first: bool,
}

impl Line {
    /// The connection wants a turn.
    pub(super) fn enter(&mut self, token: usize) {
        self.queue.push_back(token);
    }

    /// Whether nobody waits.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The line's time begins, for those who stand there now. If somebody stood there already when
    /// others got their turns, at `others_began`, it is as long as those took: the line goes on
    /// however many the others are.
    pub(super) fn begin(&mut self, others_began: Option<Instant>, now: Instant) {
        let others_time = others_began.map_or(Duration::ZERO, |began| now.since(began));
        self.end = now.after(others_time.max(SHARE_MIN));
        self.expected = self.queue.len();
        self.is_first = true;
    }

    /// Whose turn it is at `now`, who waits no longer. The connection may have gone meanwhile.
    pub(super) fn next(&mut self, now: Instant) -> Option<usize> {
        let has_time = std::mem::take(&mut self.is_first) || now < self.end;
        if self.expected == 0 || !has_time {
            return None;
        }
        self.expected -= 1;
        self.queue.pop_front()
    }
}

/// Whether a turn was a long one, that moved so many bytes and took so long.
pub(super) fn is_long(afterwards: Afterwards, moved_bytes: usize, time: Duration) -> bool {
    let is_cut_short = afterwards == Afterwards::AnotherTurn;
    is_cut_short || moved_bytes >= LONG_BYTES || time >= LONG_TIME
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves a line of `tokens` whose turns take `turn_us` each; those served.
    fn serve(tokens: usize, turn_us: u64, others_us: Option<u64>) -> Vec<usize> {
        let mut line = Line::default();
        (0..tokens).for_each(|token| line.enter(token));
        let began = Instant::default().after(Duration::from_secs(1));
        let mut now = began.after(Duration::from_micros(others_us.unwrap_or(7)));
        line.begin(others_us.map(|_| began), now);
        let mut served = Vec::new();
        while let Some(token) = line.next(now) {
            now = now.after(Duration::from_micros(turn_us));
            served.push(token);
            // Wants another turn at once.
            line.enter(token);
        }
        assert!(!line.is_empty());
        served
    }

    #[test]
    fn a_line_has_its_share_and_everybody_at_most_one_turn() {
        let cases: [(usize, u64, Option<u64>, usize); 6] = [
            // As many as fit, and the one that is under way at the end.
            (30, 100, None, 3),
            (30, 100, Some(100), 3),
            // As long as others had.
            (30, 100, Some(2_000), 20),
            // Each once.
            (30, 1, None, 30),
            (30, 1, Some(100_000), 30),
            // One in any case.
            (30, 1_000_000, None, 1),
        ];
        for (tokens, turn_us, others_us, served) in cases {
            let expected: Vec<usize> = (0..served).collect();
            assert_eq!(serve(tokens, turn_us, others_us), expected, "{turn_us} {others_us:?}");
        }
    }

    #[test]
    fn a_turn_is_long_by_what_is_left_or_by_bytes_or_by_time() {
        let (short, millisecond) = (Duration::from_micros(999), Duration::from_millis(1));
        assert!(!is_long(Afterwards::Idle, LONG_BYTES - 1, short));
        assert!(is_long(Afterwards::AnotherTurn, 0, Duration::ZERO));
        assert!(is_long(Afterwards::Idle, LONG_BYTES, Duration::ZERO));
        assert!(is_long(Afterwards::Idle, 0, millisecond));
    }
}
