//! The hybrid logical clock that names versions. Source: docs/specification/engine.md, section 6.3.

use document::Cas;
use platform::WallTime;

use crate::clock_rules::ClockRules;

/// The bits of a CAS that count versions within one tick of the wall clock.
const LOGICAL_BITS: u64 = 0xffff;

/// The clock does not follow other clocks further than this, in the year 2518: what is left are
/// more versions than one vBucket is ever given.
const FOLLOWED_MAX: u64 = u64::MAX - (1 << 60);

/// A clock that never repeats and never goes back, whatever the wall clock does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hlc {
    /// The highest CAS given out or seen.
    max_cas: u64,
    /// Versions named without the wall clock, which had not moved past the last one.
    logical_ticks: u64,
    drift: Drift,
}

/// How far other clocks, whose versions have come, were from the wall clock here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drift {
    /// Distances of all versions, microseconds.
    pub total_us: u64,
    /// Versions.
    pub count: u64,
    /// Of those, the ones that were too far ahead ([`ClockRules::drift_ahead_max_us`]).
    pub ahead_exceeded: u64,
    /// Of those, the ones that were too far behind ([`ClockRules::drift_behind_max_us`]).
    pub behind_exceeded: u64,
}

impl Drift {
    /// Adds what another clock counted.
    pub fn add(&mut self, other: Self) {
        self.total_us = self.total_us.saturating_add(other.total_us);
        self.count += other.count;
        self.ahead_exceeded += other.ahead_exceeded;
        self.behind_exceeded += other.behind_exceeded;
    }

    /// Counts the version that another clock named `cas` when it is `wall` here.
    fn note(&mut self, cas: Cas, wall: WallTime, rules: &ClockRules) {
        let distance_us = cas.0.abs_diff(wall.0) / 1000;
        self.total_us = self.total_us.saturating_add(distance_us);
        self.count += 1;
        let is_ahead = cas.0 > wall.0;
        self.ahead_exceeded += u64::from(is_ahead && distance_us > rules.drift_ahead_max_us());
        self.behind_exceeded += u64::from(!is_ahead && distance_us > rules.drift_behind_max_us());
    }
}

impl Hlc {
    /// A clock that continues after `max_cas`.
    pub fn continuing(max_cas: Cas) -> Self {
        let mut clock = Self::default();
        clock.observe(max_cas);
        clock
    }

    /// The next version name: the wall time with its low 16 bits cleared, or one more than the
    /// last name when the wall clock has not moved past it.
    pub fn next(&mut self, wall: WallTime) -> Cas {
        let wall = wall.0 & !LOGICAL_BITS;
        if wall > self.max_cas {
            self.max_cas = wall;
        } else {
            self.max_cas += 1;
            self.logical_ticks += 1;
        }
        assert!(self.max_cas != Cas::LOCKED.0, "the clock has run out of versions");
        Cas(self.max_cas)
    }

    /// What [`Hlc::next`] would give out.
    pub fn peek(&self, wall: WallTime) -> Cas {
        let mut ahead = *self;
        ahead.next(wall)
    }

    /// The time by this clock, in nanoseconds since the epoch, and whether that only counts because
    /// it runs ahead of the wall clock.
    pub fn reading(&self, wall: WallTime) -> (WallTime, bool) {
        let is_logical = self.max_cas > wall.0;
        (WallTime(wall.0.max(self.max_cas)), is_logical)
    }

    /// Moves the clock past a CAS that another clock made, unless that has run away: its versions
    /// count as any, but a clock behind them would run out of its own.
    pub fn observe(&mut self, cas: Cas) {
        // All ones is a marker, never a version; a file that holds it was written by a fault
        // that the original had as well and is read as "no clock yet".
        if cas != Cas::LOCKED {
            self.max_cas = self.max_cas.max(cas.0.min(FOLLOWED_MAX));
        }
    }

    /// The name of a version that another clock made as `cas`: that, unless it is none. Those two
    /// values mean something else in requests and answers, and are never stored.
    pub fn adopt(&mut self, cas: Cas, wall: WallTime, rules: &ClockRules) -> Cas {
        if cas == Cas::ANY || cas == Cas::LOCKED {
            return self.next(wall);
        }
        self.drift.note(cas, wall, rules);
        self.observe(cas);
        cas
    }

    /// Has the clock go on from `cas`, back as well: it had followed one that has run away.
    pub fn set_back(&mut self, cas: Cas) {
        self.max_cas = 0;
        self.observe(cas);
    }

    /// Versions named without the wall clock, which had not moved past the last one.
    pub fn logical_ticks(&self) -> u64 {
        self.logical_ticks
    }

    /// How far other clocks were from the wall clock.
    pub fn drift(&self) -> Drift {
        self.drift
    }

    /// The highest CAS given out or seen.
    pub fn max_cas(&self) -> Cas {
        Cas(self.max_cas)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_rise_while_the_wall_clock_stands_or_goes_back() {
        let mut clock = Hlc::default();
        let times = [10 << 16, 10 << 16, 9 << 16, (10 << 16) + 0xffff, 12 << 16, 0];
        let mut last = Cas(0);
        for time in times {
            let ahead = clock.peek(WallTime(time));
            let cas = clock.next(WallTime(time));
            assert!(cas > last && cas == ahead);
            last = cas;
        }
        assert_eq!(last, Cas((12 << 16) + 1));
    }

    #[test]
    fn a_clock_that_has_run_away_does_not_take_others_along() {
        for foreign in [FOLLOWED_MAX, u64::MAX - (1 << 16), u64::MAX - 2, u64::MAX - 1] {
            let mut clock = Hlc::continuing(Cas(foreign));
            assert_eq!(
                clock.adopt(Cas(foreign), WallTime(0), &ClockRules::default()),
                Cas(foreign),
                "it counts"
            );
            for number in 1..100 {
                assert_eq!(clock.next(WallTime(0)), Cas(FOLLOWED_MAX + number), "{foreign}");
            }
        }
    }

    #[test]
    fn a_clock_that_only_counts_says_so() {
        let clock = Hlc::continuing(Cas(5 << 32));
        assert_eq!(clock.reading(WallTime(6 << 32)), (WallTime(6 << 32), false));
        assert_eq!(clock.reading(WallTime(4 << 32)), (WallTime(5 << 32), true));
    }

    #[test]
    fn what_names_no_version_gets_a_name() {
        let (mut clock, rules) = (Hlc::default(), ClockRules::default());
        let named = [Cas::ANY, Cas::LOCKED].map(|cas| clock.adopt(cas, WallTime(7 << 16), &rules));
        assert_eq!(named, [Cas(7 << 16), Cas((7 << 16) + 1)]);
        assert_eq!((clock.drift(), clock.logical_ticks()), (Drift::default(), 1));
        let old = clock.adopt(Cas(5), WallTime(0), &rules);
        assert_eq!(old, Cas(5), "an old version keeps its name");
    }

    #[test]
    fn other_clocks_are_compared_with_the_wall_clock() {
        const SECOND: u64 = 1_000_000_000;
        let (mut clock, rules) = (Hlc::default(), ClockRules::default());
        rules.set_drift_behind_max_us(1_000_000);
        for ahead in [0, 5 * SECOND, 5 * SECOND + 1000] {
            clock.adopt(Cas(100 * SECOND + ahead), WallTime(100 * SECOND), &rules);
        }
        for behind in [SECOND, SECOND + 1000] {
            clock.adopt(Cas(100 * SECOND - behind), WallTime(100 * SECOND), &rules);
        }
        let drift = Drift { total_us: 12_000_002, count: 5, ahead_exceeded: 1, behind_exceeded: 1 };
        assert_eq!(clock.drift(), drift);
    }

    #[test]
    fn a_clock_that_has_followed_another_is_set_back() {
        let mut clock = Hlc::continuing(Cas(5 << 40));
        clock.set_back(Cas(3 << 16));
        assert_eq!(clock.max_cas(), Cas(3 << 16));
        assert_eq!(clock.next(WallTime(4 << 16)), Cas(4 << 16));
    }

    #[test]
    fn a_foreign_version_moves_the_clock() {
        let mut clock = Hlc::continuing(Cas(5 << 32));
        assert_eq!(clock.next(WallTime(1 << 20)), Cas((5 << 32) + 1));
        clock.observe(Cas::LOCKED);
        assert_eq!(clock.max_cas(), Cas((5 << 32) + 1));
    }
}
