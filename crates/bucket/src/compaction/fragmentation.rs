//! How much of a file is of no use.

use storage::FileSizes;

/// The part of a file that nothing needs.
pub(super) fn fragmentation_percent(sizes: FileSizes) -> u64 {
    let useless = sizes.file_bytes.saturating_sub(sizes.live_bytes);
    useless.saturating_mul(100).checked_div(sizes.file_bytes).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragmentation_is_what_nothing_needs() {
        let percent =
            |file_bytes, live_bytes| fragmentation_percent(FileSizes { file_bytes, live_bytes });
        assert_eq!([percent(0, 0), percent(100, 100), percent(100, 70)], [0, 0, 30]);
        assert_eq!([percent(100, 0), percent(100, 200)], [100, 0]);
    }
}
