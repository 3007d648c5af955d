//! How fast files follow the journal: evenly, and faster the fuller it is.
//!
//! Each vBucket that is behind gets its turn once a cycle, so with `n` of them a turn comes every
//! `cycle / n`. Bursts would make everybody's sync wait; what is put off long enough is written
//! once instead of many times. Under pressure the cycle shrinks, to nothing when a limit is
//! reached; and when something waits for longer than a cycle, so that the last ones of many do not
//! wait for many cycles.

use std::time::Duration;

use storage::Unapplied;

use crate::config::ApplyConfig;

/// Of the quota, the part that may be kept in memory for the files without any pressure.
const PINNED_RATIO: f64 = 0.05;
/// Of the journal, the part that may be in use without any pressure.
const JOURNAL_RATIO: f64 = 0.5;
/// Of the journal, the part in use above which commits are slowed down.
const SLOWED_RATIO: f64 = 0.8;
/// The pause between two groups when next to nothing of the journal is left.
const COMMIT_PAUSE_MAX: Duration = Duration::from_millis(50);
/// The level when a limit is reached.
const LIMIT_LEVEL: f64 = 2.0;
/// The level from which on files are written at the priority of clients, too.
const CRITICAL_LEVEL: f64 = 1.5;
/// vBuckets with fewer items wait longer: a commit costs the same for one item as for some.
const TURN_ITEMS_MIN: usize = 8;
/// Cycles after which a vBucket gets its turn however few its items are.
const SKIPPED_CYCLES_MAX: u32 = 3;
/// While files are behind, an applier looks at least this often whether it has to hurry.
pub(crate) const LOOK_INTERVAL_MAX: Duration = Duration::from_millis(200);

/// How urgent it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ApplyPressure {
    /// vBuckets that are behind.
    pub(crate) vbuckets: usize,
    /// Of the journal's part for items, what is in use: 1 for all of it.
    pub(crate) journal_ratio: f64,
    /// The flusher waits for room in the journal, however much of that is in use.
    pub(crate) is_journal_full: bool,
    /// Writers are refused until files that could not be written are.
    pub(crate) is_gate_closed: bool,
    /// Bytes that stay in memory for files that can be written, in parts of the quota.
    pub(crate) pinned_ratio: f64,
    /// How long the oldest of that has waited.
    pub(crate) waited: Duration,
}

impl ApplyPressure {
    /// 0 for none, 1 from which on turns come faster, 2 when a limit is reached.
    fn level(self) -> f64 {
        if self.is_journal_full || self.is_gate_closed {
            return LIMIT_LEVEL;
        }
        (self.journal_ratio / JOURNAL_RATIO).max(self.pinned_ratio / PINNED_RATIO)
    }

    /// Whether anything but the clock asks for a turn.
    pub(crate) fn is_high(self) -> bool {
        self.level() > 1.0
    }

    /// Whether those who write files at the lowest priority do not keep up.
    pub(crate) fn is_critical(self) -> bool {
        self.level() > CRITICAL_LEVEL
    }
}

/// Time from one turn to the next of one applier; `None` when nothing is behind.
pub(crate) fn pause(config: &ApplyConfig, pressure: ApplyPressure) -> Option<Duration> {
    let vbuckets = u32::try_from(pressure.vbuckets).ok().filter(|count| *count > 0)?;
    let appliers = u32::try_from(config.applier_count).unwrap_or(1).max(1);
    let part_left = (LIMIT_LEVEL - pressure.level()).clamp(0.0, 1.0);
    let cycles_waited = pressure.waited.as_secs_f64() / config.cycle.as_secs_f64().max(1e-9);
    let haste = cycles_waited.max(1.0).powi(2);
    Some((config.cycle * appliers / vbuckets).mul_f64(part_left / haste))
}

/// Time that who fills the journal leaves to those who empty it, after each group: nothing as long
/// as there is room, and then more and more. Otherwise groups would be as fast as ever until it is
/// full, and the next one would wait for a whole segment.
pub(crate) fn pause_of_commits(pressure: ApplyPressure) -> Duration {
    let part = (pressure.journal_ratio - SLOWED_RATIO) / (1.0 - SLOWED_RATIO);
    COMMIT_PAUSE_MAX.mul_f64(part.clamp(0.0, 1.0).powi(2))
}

/// Whether a vBucket's turn is worth its commit, `waited` after the oldest of it came.
pub(crate) fn is_due(
    config: &ApplyConfig,
    pressure: ApplyPressure,
    unapplied: &Unapplied,
    waited: Duration,
) -> bool {
    pressure.is_high()
        || unapplied.item_count >= TURN_ITEMS_MIN
        || waited >= config.cycle * SKIPPED_CYCLES_MAX
}

#[cfg(test)]
mod tests {
    use document::Vbid;
    use platform::Instant;

    use super::*;

    const CONFIG: ApplyConfig = ApplyConfig { cycle: Duration::from_secs(10), applier_count: 2 };

    fn pause_ms(vbuckets: usize, journal_ratio: f64, pinned_ratio: f64) -> Option<u128> {
        let waited = Duration::from_secs(10);
        let pressure = ApplyPressure {
            vbuckets,
            journal_ratio,
            pinned_ratio,
            waited,
            ..ApplyPressure::default()
        };
        pause(&CONFIG, pressure).map(|pause| pause.as_millis())
    }

    #[test]
    fn each_vbucket_has_its_turn_once_a_cycle_and_oftener_under_pressure() {
        let rows = [
            (0, 0.0, 0.0, None),
            (1, 0.0, 0.0, Some(20_000)),
            (1_000, 0.0, 0.0, Some(20)),
            (1_000, 0.5, 0.05, Some(20)),
            (1_000, 0.75, 0.0, Some(10)),
            (1_000, 0.0, 0.075, Some(10)),
            (1_000, 0.9, 0.0, Some(4)),
            (1_000, 1.0, 0.0, Some(0)),
            (1_000, 3.0, 0.0, Some(0)),
        ];
        for (vbuckets, journal, pinned, expected) in rows {
            let pause = pause_ms(vbuckets, journal, pinned);
            let is_near = match (pause, expected) {
                (Some(pause), Some(expected)) => u128::abs_diff(pause, expected) <= 1,
                (pause, expected) => pause == expected,
            };
            assert!(is_near, "{vbuckets} {journal} {pinned}: {pause:?}");
        }
    }

    #[test]
    fn nothing_waits_for_its_turn_while_somebody_waits_for_files() {
        for (is_journal_full, is_gate_closed) in [(true, false), (false, true)] {
            let pressure = ApplyPressure {
                vbuckets: 1,
                is_journal_full,
                is_gate_closed,
                ..ApplyPressure::default()
            };
            assert_eq!(pause(&CONFIG, pressure), Some(Duration::ZERO));
            assert!(pressure.is_high() && pressure.is_critical());
        }
    }

    #[test]
    fn commits_are_slowed_down_as_the_journal_fills_up() {
        for (journal_ratio, expected_us) in [(0.0, 0), (0.8, 0), (0.9, 12_500), (1.0, 50_000)] {
            let pressure = ApplyPressure { journal_ratio, ..ApplyPressure::default() };
            let pause_us = pause_of_commits(pressure).as_micros();
            assert!(pause_us.abs_diff(expected_us) <= 1, "{journal_ratio}: {pause_us}");
        }
    }

    #[test]
    fn the_last_of_many_do_not_wait_for_many_cycles() {
        let (mut waited, mut vbuckets) = (Duration::ZERO, 1024);
        while vbuckets > 0 {
            let pressure = ApplyPressure { vbuckets, waited, ..ApplyPressure::default() };
            waited += pause(&CONFIG, pressure).unwrap() / 2;
            vbuckets -= 1;
        }
        assert!(waited > CONFIG.cycle && waited < CONFIG.cycle * 5, "{waited:?}");
    }

    #[test]
    fn few_items_wait_for_more_unless_it_presses() {
        let rows = [
            (8, 0, 0.0, true),
            (7, 0, 0.0, false),
            (7, 29, 0.5, false),
            (7, 30, 0.0, true),
            (1, 0, 0.51, true),
        ];
        for (item_count, seconds, journal_ratio, expected) in rows {
            let unapplied = Unapplied { vbid: Vbid(0), item_count, since: Instant::default() };
            let waited = Duration::from_secs(seconds);
            let pressure =
                ApplyPressure { vbuckets: 1, journal_ratio, waited, ..ApplyPressure::default() };
            let is_due = is_due(&CONFIG, pressure, &unapplied, waited);
            assert_eq!(is_due, expected, "{item_count} {seconds} {journal_ratio}");
        }
    }
}
