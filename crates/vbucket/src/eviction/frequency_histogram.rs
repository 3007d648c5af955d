//! How many documents have which frequency counter.

/// A count for each of the 256 counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrequencyHistogram {
    counts: [u32; 256],
    total: u64,
}

impl Default for FrequencyHistogram {
    fn default() -> Self {
        Self { counts: [0; 256], total: 0 }
    }
}

impl FrequencyHistogram {
    /// Counts a document.
    pub fn record(&mut self, counter: u8) {
        let count = &mut self.counts[usize::from(counter)];
        *count = count.saturating_add(1);
        self.total += 1;
    }

    /// Counts all documents of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (count, added) in self.counts.iter_mut().zip(other.counts) {
            *count = count.saturating_add(added);
        }
        self.total += other.total;
    }

    /// How many documents were counted.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The lowest counter that at least this percentage of the documents does not exceed; `None`
    /// without documents. At 0 it is the lowest counter that there is.
    pub fn percentile(&self, percent: f64) -> Option<u8> {
        let wanted = (self.total as f64 * percent.clamp(0.0, 100.0) / 100.0).ceil().max(1.0);
        let mut seen = 0.0;
        for (counter, &count) in (0..=u8::MAX).zip(&self.counts) {
            seen += f64::from(count);
            if seen >= wanted {
                return Some(counter);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_the_lowest_counters_that_cover_them() {
        let mut histogram = FrequencyHistogram::default();
        assert_eq!(histogram.percentile(50.0), None);
        for counter in 1..=100 {
            histogram.record(counter);
        }
        let percentiles = [0.0, 1.0, 1.1, 25.0, 50.0, 99.5, 100.0, 1e9];
        let found = percentiles.map(|percent| histogram.percentile(percent).unwrap());
        assert_eq!(found, [1, 1, 2, 25, 50, 100, 100, 100]);
    }

    #[test]
    fn merging_adds() {
        let mut histogram = FrequencyHistogram::default();
        histogram.record(7);
        let mut other = FrequencyHistogram::default();
        other.record(9);
        other.record(9);
        histogram.merge(&other);
        assert_eq!(histogram.total(), 3);
        assert_eq!(histogram.percentile(33.0), Some(7));
        assert_eq!(histogram.percentile(34.0), Some(9));
    }
}
