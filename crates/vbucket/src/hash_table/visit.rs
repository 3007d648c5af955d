//! Walking a hash table in portions.

use document::Item;

/// Where a walk through a hash table goes on: a fraction of the order of hashes, which stays good
/// while the table grows and shrinks. An item that stays in the table is met once or, when the
/// table has shrunk in between, more than once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct VisitPosition(pub(super) u64);

impl VisitPosition {
    /// Any place: all are equally far apart.
    pub fn at(place: u64) -> Self {
        Self(place)
    }
}

/// What becomes of an item that a walk has met.
#[derive(Debug)]
pub enum ItemAction {
    /// It stays.
    Keep,
    /// Another version of the same key takes its place.
    Replace(Item),
    /// It leaves the table.
    Remove,
}
