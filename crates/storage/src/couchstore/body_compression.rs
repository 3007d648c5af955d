//! Whether bodies are worth compressing. What is tried is stored as the original stores it,
//! compressed even where that takes more room; what is not tried is stored as it is.

/// So many bodies that do not shrink in a row are taken for what all are like: encrypted, or
/// compressed already.
const FAILURES_MAX: u32 = 8;

/// Of such bodies one in so many is tried.
const TRIED_EVERY: u32 = 16;

/// Decides for the bodies of one commit.
#[derive(Debug, Default)]
pub(super) struct BodyCompression {
    /// How many in a row have not shrunk.
    failures: u32,
    /// How many are still to be left as they are.
    left: u32,
}

impl BodyCompression {
    /// Whether the next body is to be compressed.
    pub(super) fn is_due(&mut self) -> bool {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                false
            }
            None => true,
        }
    }

    /// Takes note of a body that was compressed.
    pub(super) fn note(&mut self, body_bytes: usize, compressed_bytes: usize) {
        let shrinks = compressed_bytes < body_bytes;
        self.failures = if shrinks { 0 } else { FAILURES_MAX.min(self.failures + 1) };
        self.left = if self.failures == FAILURES_MAX { TRIED_EVERY - 1 } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of the bodies are tried; those that `shrinks` names shrink.
    fn tried(count: usize, shrinks: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut compression = BodyCompression::default();
        let is_tried = |index: &usize| {
            let is_due = compression.is_due();
            if is_due {
                compression.note(100, if shrinks(*index) { 99 } else { 100 });
            }
            is_due
        };
        (0..count).filter(is_tried).collect()
    }

    #[test]
    fn bodies_that_do_not_shrink_are_hardly_tried_any_more() {
        assert_eq!(tried(100, |_| true).len(), 100);
        assert_eq!(tried(100, |index| index % 8 == 7).len(), 100, "some shrink");
        assert_eq!(tried(56, |_| false), [0, 1, 2, 3, 4, 5, 6, 7, 23, 39, 55]);
        assert_eq!(tried(26, |index| index >= 10), [0, 1, 2, 3, 4, 5, 6, 7, 23, 24, 25]);
    }
}
