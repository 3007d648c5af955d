//! Who holds which durable writes, and what follows from it: decisions alone, the vBucket acts.
//! Source: docs/specification/engine.md, section 5.
//!
//! A write is prepared, its prepare goes to the replicas, and it is committed once its level holds
//! on a majority. Prepares are tracked in the order of their seqnos. A node that holds all prepares
//! up to a seqno says so, so that a node is one number and not a mark at each write; what is
//! committed is what lies below the numbers of enough nodes.

mod active_monitor;
mod monitor;
mod passive_monitor;
mod status;
mod topology;
mod tracked_write;

pub use status::{ChainNode, DurabilityStatus};
pub use topology::{DurabilityLimits, InvalidTopology, check_topology};

pub(crate) use active_monitor::{ActiveMonitor, BeginRefusal, GivenUp};
pub(crate) use monitor::Monitor;
pub(crate) use passive_monitor::{PassiveMonitor, SnapshotEnd};
pub(crate) use topology::Chains;
pub(crate) use tracked_write::{ClientWait, TrackedWrite, TrackedWrites};

#[cfg(test)]
mod tests;
