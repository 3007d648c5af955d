//! Whether a figure that was taken every minute stays where it is: the last quarter of a run beside
//! its second. The first is left out, in which caches, files and the journal fill up.

use crate::report;

/// Minutes without which a run has no quarters.
pub const ROWS_MIN: usize = 4;

/// How far a figure may move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The last quarter by the second, at least.
    pub min: f64,
    /// At most.
    pub max: f64,
}

/// How far a figure has moved.
#[derive(Clone, Debug, PartialEq)]
pub struct Flatness {
    /// The figure.
    pub name: &'static str,
    /// The median of the ratios of minutes of the last quarter to those of the second.
    pub ratio: f64,
    /// Whether that is within bounds.
    pub is_flat: bool,
}

impl Flatness {
    /// Of a figure of each minute; none if there are too few.
    pub fn of(name: &'static str, minutes: &[f64], bounds: Bounds) -> Option<Self> {
        let quarter = minutes.len() / ROWS_MIN;
        if quarter == 0 {
            return None;
        }
        let second = &minutes[quarter..2 * quarter];
        let last = &minutes[minutes.len() - quarter..];
        let ratio = report::ratio(last, second);
        Some(Self { name, ratio, is_flat: ratio >= bounds.min && ratio <= bounds.max })
    }
}

/// In one line.
pub fn summary(figures: &[Flatness]) -> String {
    if figures.is_empty() {
        return format!("too short to say whether it is flat: fewer than {ROWS_MIN} rows");
    }
    let steep: Vec<&str> =
        figures.iter().filter(|figure| !figure.is_flat).map(|figure| figure.name).collect();
    let verdict = if steep.is_empty() {
        "flat".to_owned()
    } else {
        format!("not flat ({})", steep.join(", "))
    };
    let ratios = figures.iter().map(|figure| format!("{} x{:.3}", figure.name, figure.ratio));
    let ratios = ratios.collect::<Vec<_>>().join(", ");
    format!("{verdict}: the last quarter by the second: {ratios}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { min: 0.0, max: 1.1 };

    fn of(minutes: &[f64]) -> Flatness {
        Flatness::of("memory", minutes, BOUNDS).expect("long enough")
    }

    #[test]
    fn the_first_quarter_does_not_count() {
        let flat = of(&[1.0, 9.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0]);
        assert_eq!((flat.ratio, flat.is_flat), (1.0, true));
        let growing = of(&[10.0, 10.0, 10.0, 10.0, 11.0, 12.0, 13.0, 14.0]);
        assert_eq!((growing.ratio, growing.is_flat), (1.35, false));
        assert!(!of(&[1.0, 1.0, 1.0, f64::NAN]).is_flat, "no number is not flat");
    }

    #[test]
    fn what_is_too_short_is_not_judged() {
        assert_eq!(Flatness::of("memory", &[1.0; 3], BOUNDS), None);
        assert!(summary(&[]).starts_with("too short"));
    }

    #[test]
    fn the_summary_names_what_is_not_flat() {
        let [flat, steep] = [of(&[1.0; 4]), of(&[1.0, 1.0, 1.0, 2.0])];
        let expected = "flat: the last quarter by the second: memory x1.000";
        assert_eq!(summary(std::slice::from_ref(&flat)), expected);
        assert!(summary(&[flat, steep]).starts_with("not flat (memory): "));
    }
}
