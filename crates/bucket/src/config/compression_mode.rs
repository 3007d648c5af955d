//! Whether values are kept compressed.

use super::named::Named;

/// What happens to compressed values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressionMode {
    /// Values are kept inflated.
    Off,
    /// Values are kept as they come.
    Passive,
    /// Values that come as they are, are compressed behind the clients' backs, if it is worth it.
    Active,
}

impl Named for CompressionMode {
    const WHAT: &str = "compression mode";
    const NAMES: &[(&str, Self)] =
        &[("off", Self::Off), ("passive", Self::Passive), ("active", Self::Active)];
}
