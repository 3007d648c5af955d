//! When files are looked at again after the disk had no room for the copy of one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use platform::Instant;

use crate::core::BackOff;

/// From a copy that found no room to the next look.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// What each look without success doubles it to, at most.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Free room that has grown by one part in so many is another chance.
const GROWTH_PARTS: u64 = 8;

/// Keeps looks for files to compact apart while the disk has no room for their copies, for all
/// files of a bucket together: each of them finds the same disk.
#[derive(Debug)]
pub(super) struct RoomPause {
    back_off: BackOff,
    /// The most bytes of the disk that were free when a copy found no room: to fall and rise below
    /// that, as a disk in use does, is no room that came.
    free_bytes_max: AtomicU64,
}

impl Default for RoomPause {
    fn default() -> Self {
        Self { back_off: BackOff::new(PAUSE_MIN, PAUSE_MAX), free_bytes_max: AtomicU64::new(0) }
    }
}

impl RoomPause {
    /// A copy has found no room, and the disk has this much. Gives the pause before the next look.
    /// What fails during a pause was found by the same look, and does not make it longer.
    pub(super) fn note_failure(&self, now: Instant, free_bytes: u64) -> Duration {
        self.free_bytes_max.fetch_max(free_bytes, Ordering::Relaxed);
        let left = self.back_off.left(now);
        if left.is_zero() { self.back_off.note_failure(now) } else { left }
    }

    /// How long files are left alone, on a disk with this much room.
    pub(super) fn left(&self, now: Instant, free_bytes: u64) -> Duration {
        let left = self.back_off.left(now);
        let before = self.free_bytes_max.load(Ordering::Relaxed);
        if !left.is_zero() && free_bytes > before.saturating_add(before / GROWTH_PARTS) {
            self.back_off.clear();
            return Duration::ZERO;
        }
        left
    }

    /// A file was compacted, which has made room.
    pub(super) fn clear(&self) {
        self.free_bytes_max.store(0, Ordering::Relaxed);
        self.back_off.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn looks_without_success_are_further_and_further_apart() {
        let (pause, mut now) = (RoomPause::default(), Instant::default());
        let seconds = (0..8).map(|_| {
            let left = pause.note_failure(now, 1000);
            assert_eq!(pause.note_failure(now, 1000), left, "by the same look");
            assert_eq!(pause.left(now, 1000), left);
            now = now.after(left);
            assert_eq!(pause.left(now, 1000), Duration::ZERO);
            left.as_secs()
        });
        assert_eq!(seconds.collect::<Vec<_>>(), [1, 2, 4, 8, 16, 32, 60, 60]);
        pause.clear();
        assert_eq!(pause.note_failure(now, 1000), SECOND);
    }

    #[test]
    fn room_that_came_ends_the_pause_and_what_comes_and_goes_does_not() {
        let (pause, now) = (RoomPause::default(), Instant::default());
        pause.note_failure(now, 800);
        assert_eq!((pause.left(now, 100), pause.left(now, 900)), (SECOND, SECOND));
        assert_eq!(pause.left(now, 901), Duration::ZERO);
        // It was not enough.
        pause.note_failure(now, 700);
        assert_eq!(pause.left(now, 900), SECOND);
    }
}
