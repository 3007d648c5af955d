//! What statistics show of durable writes.

use document::{Seqno, VbucketState};

use super::Monitor;

/// Durable writes of a vBucket at one moment. Source: docs/specification/engine.md, section 5.9.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurabilityStatus {
    /// The role of the vBucket.
    pub state: VbucketState,
    /// Writes that are tracked: those that have not ended, and in a replica those that have and are
    /// not held here yet as their levels demand.
    pub tracked_count: usize,
    /// Bytes that tracking takes, the prepares left out.
    pub tracked_bytes: usize,
    /// Bytes of the prepares.
    pub prepares_bytes: usize,
    /// All prepares up to here are held here as their levels demand.
    pub high_prepared_seqno: Seqno,
    /// The highest prepare that has ended.
    pub high_completed_seqno: Seqno,
    /// The last prepare that is tracked; 0 if none is.
    pub last_tracked_seqno: Seqno,
    /// The last prepare that was committed since the vBucket is active.
    pub last_committed_seqno: Seqno,
    /// The last prepare that was aborted since the vBucket is active.
    pub last_aborted_seqno: Seqno,
    /// Received snapshots whose prepares are not all held yet.
    pub waiting_snapshot_count: usize,
    /// Of an active vBucket with a topology: its chains.
    pub chains: Vec<Vec<ChainNode>>,
}

/// A node in a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainNode {
    /// Its name; none for a replica that is not placed.
    pub name: Option<String>,
    /// The last tracked prepare that it holds; 0 if it holds none of those.
    pub last_write_seqno: Seqno,
    /// It holds all prepares up to here.
    pub last_ack_seqno: Seqno,
}

impl DurabilityStatus {
    pub(crate) fn of(monitor: &Monitor, state: VbucketState, prepares_bytes: usize) -> Self {
        let writes = monitor.writes();
        let mut status = Self {
            state,
            tracked_count: writes.len(),
            tracked_bytes: writes.bytes(),
            prepares_bytes,
            high_prepared_seqno: writes.high_prepared,
            high_completed_seqno: writes.high_completed,
            last_tracked_seqno: writes.last_seqno(),
            last_committed_seqno: Seqno(0),
            last_aborted_seqno: Seqno(0),
            waiting_snapshot_count: 0,
            chains: Vec::new(),
        };
        match monitor {
            Monitor::Active(active) => {
                status.last_committed_seqno = active.last_committed;
                status.last_aborted_seqno = active.last_aborted;
                let last_write = |held: Seqno| {
                    let index = writes.count_through(held).checked_sub(1)?;
                    writes.get(index).map(|write| write.seqno)
                };
                let chains = active.chains().into_iter().flat_map(|chains| chains.placed());
                status.chains = chains
                    .map(|nodes| {
                        nodes
                            .map(|node| {
                                let held = node.map_or(Seqno(0), |node| node.held);
                                ChainNode {
                                    name: node.map(|node| node.name.to_string()),
                                    last_write_seqno: last_write(held).unwrap_or_default(),
                                    last_ack_seqno: held,
                                }
                            })
                            .collect()
                    })
                    .collect();
            }
            Monitor::Passive(passive) | Monitor::Dead(passive) => {
                status.waiting_snapshot_count = passive.end_count();
            }
        }
        status
    }
}
