//! How many cases passed, failed and were skipped, read from what test programs print.

use std::fmt;
use std::ops::AddAssign;

/// Cases by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, failed, skipped } = self;
        write!(formatter, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

impl Counts {
    /// From the closing lines of `cargo test` or `cargo nextest run`.
    pub(crate) fn of_tests(output: &str) -> Self {
        let mut counts = Self::default();
        for line in output.lines().map(str::trim) {
            let is_summary = line.starts_with("test result:") || line.starts_with("Summary [");
            if is_summary {
                counts += Self {
                    passed: number_before(line, "passed"),
                    failed: number_before(line, "failed"),
                    skipped: number_before(line, "ignored") + number_before(line, "skipped"),
                };
            }
        }
        counts
    }

    /// From lines `CASE name ok`, `CASE name FAIL why` and `CASE name SKIP why`. Any other outcome
    /// counts as a failure.
    pub(crate) fn of_cases(output: &str) -> Self {
        let mut counts = Self::default();
        for line in output.lines() {
            let mut words = line.split_whitespace();
            if words.next() != Some("CASE") {
                continue;
            }
            match words.nth(1) {
                Some("ok") => counts.passed += 1,
                Some("SKIP") => counts.skipped += 1,
                _ => counts.failed += 1,
            }
        }
        counts
    }
}

/// What failed, and why where that is said: the first few lines of cases and tests that tell of it.
pub(crate) fn failures(output: &str) -> Option<String> {
    const SHOWN_COUNT_MAX: usize = 8;
    let is_failure = |line: &&str| {
        line.starts_with("CASE ") && Counts::of_cases(line).failed > 0
            || line.starts_with("test ") && line.ends_with("... FAILED")
    };
    let mut lines = output.lines().filter(is_failure);
    let shown: Vec<&str> = lines.by_ref().take(SHOWN_COUNT_MAX).collect();
    let more = match lines.count() {
        0 => String::new(),
        count => format!("\n  and {count} more"),
    };
    (!shown.is_empty()).then(|| format!("\n  {}{more}", shown.join("\n  ")))
}

/// The number in front of `word`, 0 when there is none.
fn number_before(line: &str, word: &str) -> u64 {
    let words: Vec<&str> = line.split([' ', ',', ';']).filter(|word| !word.is_empty()).collect();
    words.windows(2).find(|pair| pair[1] == word).and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_cargo_test_add_up() {
        let output = "running 2 tests\n\
            test result: ok. 24 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n\
            test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let expected = Counts { passed: 27, failed: 2, skipped: 1 };
        assert_eq!(Counts::of_tests(output), expected);
    }

    #[test]
    fn the_summary_of_nextest_is_understood() {
        let output = "     Summary [   0.9s] 59 tests run: 57 passed, 2 failed, 3 skipped\n";
        let expected = Counts { passed: 57, failed: 2, skipped: 3 };
        assert_eq!(Counts::of_tests(output), expected);
    }

    #[test]
    fn failures_of_cases_and_tests_are_named() {
        let output =
            "CASE get ok\nCASE set FAIL not there\ntest a::b ... ok\ntest c::d ... FAILED\n";
        let named = failures(output).unwrap();
        assert_eq!(named, "\n  CASE set FAIL not there\n  test c::d ... FAILED");
        assert_eq!(failures("CASE get ok\nCASE tls SKIP no\ntest a::b ... ok\n"), None);
        let many = "CASE a FAIL\n".repeat(10);
        assert!(failures(&many).unwrap().ends_with("\n  CASE a FAIL\n  and 2 more"));
    }

    #[test]
    fn cases_are_counted_and_a_strange_outcome_is_a_failure() {
        let output = "starting\nCASE get ok\nCASE set FAIL it was not there\nCASE tls SKIP no\n\
            CASE odd maybe\nCASE bare\n";
        let counts = Counts::of_cases(output);
        assert_eq!(counts, Counts { passed: 1, failed: 3, skipped: 1 });
        assert_eq!(counts.to_string(), "1 passed, 3 failed, 1 skipped");
    }
}
