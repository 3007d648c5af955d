//! Where a scan goes on, and how it reads: a portion at a time.

use std::ops::ControlFlow;
use std::time::Duration;

use document::Item;
use platform::{Clock, Instant, Random};
use storage::{KeyView, StorageError};

use super::key_range::KeyRange;
use super::refused::ScanRefused;
use super::scan_content::ScanContent;

/// Bytes of a portion, and one result more.
const PORTION_BYTES: u64 = 128 << 10;
/// A portion ends after this long, so that others of its kind have their turn.
const PORTION_DURATION_MAX: Duration = Duration::from_millis(25);
/// Keys between two looks at the clock.
const KEYS_BETWEEN_LOOKS: u32 = 64;

/// Where results go, in the form that they are sent in.
pub trait ScanSink {
    /// A key without its collection. Returns how many bytes it takes.
    fn key(&mut self, name: &[u8]) -> usize;

    /// A document. Returns how many bytes it takes.
    fn document(&mut self, item: &Item) -> usize;
}

/// Which of many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanSampling {
    /// About so many. Not 0.
    pub samples: u64,
    /// The same seed chooses the same ones of the same documents.
    pub seed: u64,
}

/// Why a portion is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortionEnd {
    /// It was long enough, and the next one is to be read once it is sent.
    Portion,
    /// A limit is reached: the scan pauses.
    Paused,
    /// Everything has been found, and the scan is over.
    Complete,
    /// The scan is over for another reason.
    Ended(ScanRefused),
}

/// Where a scan goes on.
pub(super) struct Cursor {
    pub(super) view: KeyView,
    /// What is still to be read.
    pub(super) range: KeyRange,
    pub(super) chance: Option<Chance>,
}

/// Takes one in so many.
#[derive(Debug)]
pub(super) struct Chance {
    random: Random,
    /// A random number below this takes.
    threshold: u64,
}

/// What is left until a pause.
pub(super) struct LimitsLeft {
    pub(super) items: u64,
    pub(super) bytes: u64,
    pub(super) deadline: Option<Instant>,
    pub(super) has_found: bool,
}

impl Chance {
    /// Takes about as many of `count` as there are to be; `None` when these are all.
    pub(super) fn of(sampling: ScanSampling, count: u64) -> Option<Self> {
        let ScanSampling { samples, seed } = sampling;
        if samples >= count {
            return None;
        }
        let part = (u128::from(samples) << 64) / u128::from(count);
        let threshold = u64::try_from(part).unwrap_or(u64::MAX);
        Some(Self { random: Random::from_seed(seed), threshold })
    }

    fn takes(&mut self) -> bool {
        self.random.next_u64() < self.threshold
    }
}

/// What a portion has come to.
pub(super) struct Portion<'a> {
    clock: &'a Clock,
    /// When it is over.
    end: Instant,
    now_seconds: u32,
    keys_until_look: u32,
    pub(super) items: u64,
    pub(super) bytes: u64,
}

impl<'a> Portion<'a> {
    pub(super) fn begin(clock: &'a Clock, now_seconds: u32) -> Self {
        let end = clock.now().after(PORTION_DURATION_MAX);
        let keys_until_look = KEYS_BETWEEN_LOOKS;
        Self { clock, end, now_seconds, keys_until_look, items: 0, bytes: 0 }
    }

    /// Whether it, or all there is to be until a pause, is over now.
    fn is_over(&mut self, limits: &LimitsLeft) -> Option<PortionEnd> {
        if limits.has_found && (limits.items == 0 || limits.bytes == 0) {
            return Some(PortionEnd::Paused);
        }
        if self.bytes >= PORTION_BYTES {
            return Some(PortionEnd::Portion);
        }
        self.keys_until_look -= 1;
        if self.keys_until_look > 0 {
            return None;
        }
        self.keys_until_look = KEYS_BETWEEN_LOOKS;
        let now = self.clock.now();
        if limits.has_found && limits.deadline.is_some_and(|deadline| deadline <= now) {
            return Some(PortionEnd::Paused);
        }
        (self.end <= now).then_some(PortionEnd::Portion)
    }

    fn note(&mut self, bytes: usize, limits: &mut LimitsLeft) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.items += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        limits.items = limits.items.saturating_sub(1);
        limits.bytes = limits.bytes.saturating_sub(bytes);
        limits.has_found = true;
    }
}

impl Cursor {
    /// Reads until the portion is over, or everything is read.
    pub(super) fn read(
        &mut self,
        portion: &mut Portion<'_>,
        limits: &mut LimitsLeft,
        content: ScanContent,
        sink: &mut dyn ScanSink,
    ) -> Result<PortionEnd, StorageError> {
        let Self { view, range, chance } = self;
        let mut end = None;
        let mut last = Vec::new();
        view.scan(&range.from, &range.to, |entry| {
            let key = entry.key()?;
            let is_found = entry.is_live(portion.now_seconds)?
                && chance.as_mut().is_none_or(|chance| chance.takes());
            if is_found {
                let bytes = match content {
                    ScanContent::Keys => sink.key(key.name()),
                    _ => sink.document(&entry.item()?),
                };
                portion.note(bytes, limits);
            }
            end = portion.is_over(limits);
            if end.is_none() {
                return Ok(ControlFlow::Continue(()));
            }
            last.extend_from_slice(key.encoded());
            Ok(ControlFlow::Break(()))
        })?;
        let Some(end) = end else { return Ok(PortionEnd::Complete) };
        // The least key behind the last one.
        last.push(0);
        range.from = last;
        Ok(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_takes_about_as_many_as_it_is_to() {
        for (samples, count) in [(1, 2), (100, 10_000), (999, 1_000), (5_000, 10_000)] {
            let mut chance = Chance::of(ScanSampling { samples, seed: 7 }, count).unwrap();
            let taken = (0..count).filter(|_| chance.takes()).count();
            let difference = u64::try_from(taken).unwrap().abs_diff(samples);
            assert!(difference * difference <= 25 * samples, "{taken} of {samples}");
        }
        for (samples, count) in [(1, 1), (2, 1), (1, 0), (u64::MAX, 5)] {
            assert!(Chance::of(ScanSampling { samples, seed: 7 }, count).is_none());
        }
    }
}
