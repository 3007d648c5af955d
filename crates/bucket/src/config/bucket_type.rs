//! Whether a bucket keeps documents on disk, and what it does without one when memory is full.

use serde::{Deserialize, Serialize};

use super::named::Named;

/// Where a bucket keeps its documents. Fixed when the bucket is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BucketType {
    /// In memory and on disk.
    #[default]
    Couchbase,
    /// In memory alone: a bucket that is started again is empty.
    Ephemeral,
}

impl Named for BucketType {
    const WHAT: &str = "bucket type";
    const NAMES: &[(&str, Self)] =
        &[("couchbase", Self::Couchbase), ("ephemeral", Self::Ephemeral)];
}

/// What an ephemeral bucket does when its memory is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullPolicy {
    /// It deletes the documents that are used least.
    AutoDelete,
    /// It refuses new ones.
    FailNewData,
}

impl Named for FullPolicy {
    const WHAT: &str = "policy of a full ephemeral bucket";
    const NAMES: &[(&str, Self)] =
        &[("auto_delete", Self::AutoDelete), ("fail_new_data", Self::FailNewData)];
}
