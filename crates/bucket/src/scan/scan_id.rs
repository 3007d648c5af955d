//! What names a scan.

use std::fmt;

/// Names a scan, as clients know it. Not to be guessed by chance; no secret.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScanId(pub [u8; 16]);

impl fmt::Display for ScanId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for ScanId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}
