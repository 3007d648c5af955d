//! The role of a vBucket that is not there, because it is loaded or out of service.

use document::VbucketState;
use vbucket::Topology;

/// What somebody has wanted of a vBucket that was not there to become it: what it is if the bucket
/// is emptied before it comes. Nothing else knows that then; asking again may take a while, and
/// whoever has said it for all vBuckets of a node alone says it once.
#[derive(Clone, Debug, Default)]
pub(crate) struct AwaitedRole {
    /// Its role, if one was asked for.
    pub(crate) state: Option<VbucketState>,
    /// Who must hold durable writes, if it is active. Empty if nobody has said so.
    pub(crate) topology: Topology,
}

impl AwaitedRole {
    /// This role was asked for.
    pub(crate) fn new(state: VbucketState, topology: Option<Topology>) -> Self {
        Self { state: Some(state), topology: topology.unwrap_or_default() }
    }
}
