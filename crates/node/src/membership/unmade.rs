//! Buckets of a plan on their way: those that are not here yet, or not as the plan has them, and
//! those that have just been made.

use std::collections::{BTreeMap, BTreeSet};

use crate::buckets::NodeBucket;

/// The buckets of the plan that are not here yet.
#[derive(Debug, Default)]
pub(super) struct Unmade {
    /// Why each of those that were tried could not be made.
    pub(super) reasons: BTreeMap<String, String>,
    /// Those that this very plan has made, and no plan before it. Nobody can have written anything
    /// to what is active here: it may begin empty at once. Of others somebody may hold documents.
    pub(super) fresh: BTreeSet<String>,
    /// Whether a bucket has not taken the settings that the plan has for it.
    pub(super) has_unadapted: bool,
}

/// Buckets that were made for a plan and are not served yet.
#[derive(Default)]
pub(super) struct Made {
    pub(super) buckets: BTreeMap<String, NodeBucket>,
    /// Of these others have to be asked whether they hold documents.
    pub(super) to_ask: BTreeSet<String>,
}

impl Made {
    pub(super) fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.buckets.contains_key(name)
    }

    pub(super) fn is_to_ask(&self, name: &str) -> bool {
        self.to_ask.contains(name)
    }
}
