//! What is left of a plan that a node carries out.

/// A vBucket that is not yet what the plan says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingVbucket {
    /// The vBucket.
    pub vbid: u16,
    /// What it is to be: a role, or `deleted`.
    pub wanted: &'static str,
    /// Why it is not, for people.
    pub reason: String,
}
