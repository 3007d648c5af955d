//! What is made of one figure over a window of time.

use crate::stats_history::Point;

/// What is made of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    /// How much a counter rises in a second, over the window.
    Rate,
    /// The same of the last two samples.
    InstantRate,
    /// How much a counter has risen in the window.
    Increase,
    Average,
    Least,
    Greatest,
    /// How far a gauge has gone in the window.
    Delta,
    /// The same of the last two samples.
    InstantDelta,
    /// How much a gauge rises in a second, by the line through the samples of the window that is
    /// nearest to them (least squares).
    Derivative,
}

impl Function {
    pub(super) fn by_name(name: &str) -> Option<Self> {
        match name {
            "rate" => Some(Self::Rate),
            "irate" => Some(Self::InstantRate),
            "increase" => Some(Self::Increase),
            "avg_over_time" => Some(Self::Average),
            "min_over_time" => Some(Self::Least),
            "max_over_time" => Some(Self::Greatest),
            "delta" => Some(Self::Delta),
            "idelta" => Some(Self::InstantDelta),
            "deriv" => Some(Self::Derivative),
            _ => None,
        }
    }

    /// What it makes of the samples of a window, of which there is at least one.
    pub(super) fn apply(self, points: &[Point]) -> Option<f64> {
        let values = || points.iter().map(|point| point.value);
        let (first, last) = (points.first()?, points.last()?);
        let before_last = points.len().checked_sub(2).and_then(|index| points.get(index));
        match self {
            Self::Average => Some(values().sum::<f64>() / values().map(|_| 1.0).sum::<f64>()),
            Self::Least => values().reduce(f64::min),
            Self::Greatest => values().reduce(f64::max),
            Self::Increase => before_last.map(|_| rise(points)),
            Self::Rate => before_last.map(|_| rise(points) / elapsed(first, last)),
            Self::InstantRate => {
                before_last.map(|before| rise(&[*before, *last]) / elapsed(before, last))
            }
            Self::Delta => before_last.map(|_| last.value - first.value),
            Self::InstantDelta => before_last.map(|before| last.value - before.value),
            Self::Derivative => before_last.map(|_| slope(first, points)),
        }
    }
}

/// The function `p` of a number from 1 to 99.
pub(super) fn is_percentile(name: &str) -> bool {
    let number = name.strip_prefix('p').and_then(|number| number.parse::<u8>().ok());
    number.is_some_and(|number| (1..=99).contains(&number))
}

/// How steep the line is that is nearest to the points (least squares), of which there are two at
/// different moments.
fn slope(first: &Point, points: &[Point]) -> f64 {
    let count = points.iter().map(|_| 1.0).sum::<f64>();
    // From the first one on: squares of seconds since 1970 would leave no digits for the rest.
    let at = |point: &Point| seconds_between(first, point);
    let mean_at = points.iter().map(at).sum::<f64>() / count;
    let mean = points.iter().map(|point| point.value).sum::<f64>() / count;
    let together = |point: &Point| (at(point) - mean_at) * (point.value - mean);
    let alone = |point: &Point| (at(point) - mean_at).powi(2);
    points.iter().map(together).sum::<f64>() / points.iter().map(alone).sum::<f64>()
}

/// How much a counter has risen. One that is less than before began anew at 0.
fn rise(points: &[Point]) -> f64 {
    let pairs = points.iter().zip(points.iter().skip(1));
    let step = |(before, after): (&Point, &Point)| match after.value - before.value {
        step if step < 0.0 => after.value,
        step => step,
    };
    pairs.map(step).sum()
}

/// Seconds between two samples, which are never at one moment.
fn elapsed(first: &Point, last: &Point) -> f64 {
    seconds_between(first, last).max(1.0)
}

fn seconds_between(first: &Point, last: &Point) -> f64 {
    u32::try_from(last.seconds.saturating_sub(first.seconds)).map_or(f64::MAX, f64::from)
}
