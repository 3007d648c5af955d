//! One vBucket in memory: hash table, checkpoints, failover table, clock, locks.
//!
//! A state machine without threads, files or sockets (architecture invariant 3). Callers hold the
//! vBucket's lock, pass the time in, and carry out the [`Effect`]s after they have let the lock go.

pub mod checkpoint;
mod destruction;
mod document_locks;
mod durability;
mod effect;
pub mod eviction;
mod failover_table;
mod hash_table;
mod hlc;
mod memory_account;
mod operation;
mod persistence;
mod statistics;
mod vbucket;

pub use destruction::Destruction;
pub use durability::{
    ChainNode, DurabilityLimits, DurabilityStatus, InvalidTopology, check_topology,
};
pub use effect::{Effect, Waiter};
pub use failover_table::{FailoverEntry, FailoverTable, StreamStart};
pub use hash_table::{DatatypeCounts, HashSeed, ItemAction, VisitPosition};
pub use hlc::Hlc;
pub use memory_account::MemoryAccount;
pub use operation::{
    Found, KeptXattrs, Mutation, Now, Refusal, StoreMode, SyncWriteEnd, SyncWriteRequest,
    WriteCondition,
};
pub use persistence::{
    FileFacts, FlushBatch, PersistentState, SeqnoStatus, SnapshotRange, Topology,
};
pub use statistics::VbucketStatistics;
pub use vbucket::{
    Departures, EvictableSample, Paged, PagingLimits, ReceiveError, Received, ReceivedSnapshot,
    RecoveryStep, Restored, RoleChange, StreamPosition, Vbucket,
};
