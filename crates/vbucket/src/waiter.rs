//! Who waits for a vBucket.

/// Whoever waits for something that a vBucket will report: an opaque name that the bucket gives
/// out and takes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Waiter(pub u64);
