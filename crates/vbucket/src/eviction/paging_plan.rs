//! How much has to leave memory, and from where (docs/specification/engine.md, section 2.5).

/// Bytes at which paging begins, and at which it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watermarks {
    /// Paging ends here.
    pub low_bytes: u64,
    /// Paging begins above it.
    pub high_bytes: u64,
}

/// Bytes that could leave memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evictable {
    /// In replica vBuckets.
    pub replica_bytes: u64,
    /// In active and pending ones.
    pub active_bytes: u64,
}

/// Which part of the evictable bytes a round is to take: replicas give first, nobody reads there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PagingPlan {
    /// Part of the replicas', from 0 to 1.
    pub replica_ratio: f64,
    /// Part of the active and pending ones', from 0 to 1.
    pub active_ratio: f64,
}

impl Watermarks {
    /// Bytes that a round has to free when `used_bytes` are in use: not more than lie between the
    /// marks, so that a round which began late frees no more than one that began in time.
    pub fn bytes_to_page(self, used_bytes: u64) -> u64 {
        let range = self.high_bytes.saturating_sub(self.low_bytes);
        used_bytes.saturating_sub(self.low_bytes).min(range)
    }
}

impl PagingPlan {
    /// Takes `bytes` out of what is evictable.
    pub fn new(bytes: u64, evictable: Evictable) -> Self {
        let replica_ratio = ratio(bytes, evictable.replica_bytes);
        let rest = bytes.saturating_sub(evictable.replica_bytes);
        Self { replica_ratio, active_ratio: ratio(rest, evictable.active_bytes) }
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        _ => (part as f64 / whole as f64).min(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKS: Watermarks = Watermarks { low_bytes: 75, high_bytes: 85 };

    #[test]
    fn a_round_frees_what_lies_above_the_low_mark_and_at_most_the_range() {
        let freed = [0, 75, 76, 85, 90, 1000].map(|used| MARKS.bytes_to_page(used));
        assert_eq!(freed, [0, 0, 1, 10, 10, 10]);
        let crossed = Watermarks { low_bytes: 9, high_bytes: 8 };
        assert_eq!(crossed.bytes_to_page(100), 0);
    }

    #[test]
    fn replicas_give_first_and_active_ones_the_rest() {
        let plan = |bytes, replica_bytes, active_bytes| {
            let plan = PagingPlan::new(bytes, Evictable { replica_bytes, active_bytes });
            (plan.replica_ratio, plan.active_ratio)
        };
        assert_eq!(plan(10, 100, 100), (0.1, 0.0));
        assert_eq!(plan(100, 100, 100), (1.0, 0.0));
        assert_eq!(plan(150, 100, 100), (1.0, 0.5));
        assert_eq!(plan(500, 100, 100), (1.0, 1.0));
        assert_eq!(plan(10, 0, 100), (0.0, 0.1));
        assert_eq!(plan(10, 0, 0), (0.0, 0.0));
    }
}
