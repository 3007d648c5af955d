//! Compactions of a bucket on all nodes: each has files of its own.

use super::Membership;
use crate::peer_copies::CompactionChange;

impl Membership {
    /// Gives every other node of the cluster an order about the compactions of a bucket. Nobody
    /// waits for the end of one. May take as long as nodes do not answer.
    ///
    /// # Errors
    /// In words: these have not heard of it, all others have.
    pub fn order_compaction_elsewhere(
        &self,
        bucket: &str,
        order: CompactionChange,
    ) -> Result<(), String> {
        let plan = self.plan();
        let Some(peers) = self.plan_peers().filter(|_| !self.is_alone()) else { return Ok(()) };
        let mut unreached = Vec::new();
        for node in self.other_members(&plan) {
            if let Err(error) = peers.order_compaction(&node.address, bucket, order) {
                unreached.push(format!("{} does not: {error:#}", node.name));
            }
        }
        if unreached.is_empty() {
            return Ok(());
        }
        let done = match order {
            CompactionChange::Begin => "This node compacts its files, and so do others",
            CompactionChange::Cancel => "This node has stopped, and so have others",
        };
        Err(format!("{done}, but {}; try again", unreached.join(", ")))
    }
}
