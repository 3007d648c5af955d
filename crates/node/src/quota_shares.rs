//! What buckets have whose quota nobody has said: what the others leave.

use bucket::{Bucket, MEMORY_QUOTA_BYTES_MIN};

use crate::bucket_settings::BucketSettings;

/// Bytes of each bucket that has an equal part of the rest, of `all` those that there are.
pub(crate) fn part_of_rest<'a>(
    all: impl Iterator<Item = &'a BucketSettings>,
    buckets_bytes_max: u64,
) -> u64 {
    let (mut said, mut count) = (0_u64, 0);
    for settings in all {
        if settings.has_part_of_rest {
            count += 1;
        } else {
            said = said.saturating_add(settings.memory_quota_bytes);
        }
    }
    let rest = buckets_bytes_max.saturating_sub(said);
    (rest / u64::max(count, 1)).max(MEMORY_QUOTA_BYTES_MIN)
}

/// The least that such a bucket is left with: a quota in which what it has in memory now is below
/// the watermark at which documents leave memory.
pub(crate) fn least_bytes(bucket: &Bucket) -> u64 {
    let used = bucket.statistics().used_bytes();
    (used + used / 2).max(MEMORY_QUOTA_BYTES_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_divided_and_is_never_nothing() {
        let said = |mib: u64| BucketSettings {
            memory_quota_bytes: mib << 20,
            ..BucketSettings::default()
        };
        let unsaid = || BucketSettings { has_part_of_rest: true, ..said(7) };
        for (all, expected_mib) in [
            (vec![unsaid()], 1000),
            (vec![unsaid(), unsaid()], 500),
            (vec![unsaid(), said(600)], 400),
            (vec![unsaid(), unsaid(), said(600), said(100)], 150),
            (vec![unsaid(), said(2000)], MEMORY_QUOTA_BYTES_MIN >> 20),
        ] {
            assert_eq!(part_of_rest(all.iter(), 1000 << 20), expected_mib << 20, "{all:?}");
        }
    }
}
