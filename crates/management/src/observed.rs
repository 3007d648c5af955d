//! What a node has observed of single operations of its clients.

use std::time::Duration;

/// An operation that took long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowOperationFacts {
    /// Milliseconds since 1970.
    pub ended_at_ms: u64,
    /// The command's name.
    pub command: &'static str,
    /// The document's name; empty where none is known.
    pub key: String,
    /// Who has asked.
    pub client: String,
    /// Without the time in the queue.
    pub took: Duration,
    /// What it waited for, by names.
    pub spans: Vec<(&'static str, Duration)>,
}

/// What was asked for most in the last sampling.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HotKeys {
    /// The documents' names with how often they were counted, the hottest first.
    pub keys: Vec<(String, u64)>,
    /// Requests that were counted in all, of all buckets.
    pub counted: u64,
    /// Each of them stands for so many.
    pub sampled_every: u64,
    /// For how long the sampling still goes on.
    pub time_left: Duration,
}
