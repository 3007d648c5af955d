//! What is made of several figures at each moment.

use std::collections::BTreeMap;

use crate::stats_history::Point;

/// How several figures become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aggregate {
    Sum,
    Least,
    Greatest,
    Average,
}

impl Aggregate {
    pub(super) fn by_name(name: &str) -> Option<Self> {
        match name {
            "sum" => Some(Self::Sum),
            "min" => Some(Self::Least),
            "max" => Some(Self::Greatest),
            "avg" => Some(Self::Average),
            _ => None,
        }
    }

    /// The one figure. At a moment at which one of them has no value it is made of the others.
    pub(crate) fn of(self, figures: &[Vec<Point>]) -> Vec<Point> {
        let mut moments: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
        for point in figures.iter().flatten() {
            let joined = |(value, count): &mut (f64, f64)| {
                *value = self.join(*value, point.value);
                *count += 1.0;
            };
            moments.entry(point.seconds).and_modify(joined).or_insert((point.value, 1.0));
        }
        let point = |(seconds, (value, count))| match self {
            Self::Average => Point { seconds, value: value / count },
            _ => Point { seconds, value },
        };
        moments.into_iter().map(point).collect()
    }

    fn join(self, one: f64, other: f64) -> f64 {
        match self {
            Self::Sum | Self::Average => one + other,
            Self::Least => one.min(other),
            Self::Greatest => one.max(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_become_one_at_each_moment_at_which_any_has_a_value() {
        let points = |values: &[(u64, f64)]| -> Vec<Point> {
            values.iter().map(|&(seconds, value)| Point { seconds, value }).collect()
        };
        let figures = [points(&[(10, 1.0), (20, 2.0)]), points(&[(20, 6.0), (30, 5.0)])];
        for (name, at_20) in [("sum", 8.0), ("min", 2.0), ("max", 6.0), ("avg", 4.0)] {
            let together = Aggregate::by_name(name).unwrap().of(&figures);
            assert_eq!(together, points(&[(10, 1.0), (20, at_20), (30, 5.0)]), "{name}");
        }
        assert!(Aggregate::Sum.of(&[]).is_empty());
    }
}
