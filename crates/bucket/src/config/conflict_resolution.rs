//! Which of two versions of a document wins.

use serde::{Deserialize, Serialize};
use vbucket::{FutureCas, VersionOrder};

use super::named::Named;

/// Which version wins when one comes that came about elsewhere. Fixed when the bucket is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConflictResolution {
    /// The one that has changed more often.
    #[default]
    Seqno,
    /// The later one.
    Lww,
    /// The later one, unless whoever brings it has decided already.
    Custom,
}

impl ConflictResolution {
    /// What decides first.
    pub(crate) fn order(self) -> VersionOrder {
        match self {
            Self::Seqno => VersionOrder::Revision,
            Self::Lww | Self::Custom => VersionOrder::Cas,
        }
    }
}

impl Named for ConflictResolution {
    const WHAT: &str = "conflict resolution";
    const NAMES: &[(&str, Self)] =
        &[("seqno", Self::Seqno), ("lww", Self::Lww), ("custom", Self::Custom)];
}

impl Named for FutureCas {
    const WHAT: &str = "strategy for a CAS in the future";
    const NAMES: &[(&str, Self)] =
        &[("ignore", Self::Ignore), ("error", Self::Refuse), ("replace", Self::Replace)];
}
