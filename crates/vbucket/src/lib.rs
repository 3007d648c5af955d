//! One vBucket in memory: hash table, checkpoints, failover table, clock, locks.
//!
//! A state machine without threads, files or sockets (architecture invariant 3). Callers hold the
//! vBucket's lock, pass the time in, and carry out the [`Effect`]s after they have let the lock go.

mod by_collection;
pub mod checkpoint;
mod clock_rules;
mod collection_figures;
mod collections;
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
mod version_order;
mod waiter;

pub use clock_rules::{ClockRules, FutureCas};
pub use collection_figures::CollectionFigures;
pub use collections::{OpenCollection, OtherMeaning};
pub use destruction::Destruction;
pub use durability::{
    ChainNode, DurabilityLimits, DurabilityStatus, InvalidTopology, check_topology,
};
pub use effect::Effect;
pub use failover_table::{FailoverTable, StreamStart};
pub use hash_table::{DatatypeCounts, HashSeed, ItemAction, VisitPosition};
pub use hlc::{Drift, Hlc};
pub use memory_account::MemoryAccount;
pub use operation::{
    Ambiguity, ForeignTerms, ForeignWrite, Found, KeptXattrs, Mutation, NewVersion, Now, Refusal,
    StoreMode, SyncWriteEnd, SyncWriteRequest, Visibility, WriteCondition, Written,
};
pub use persistence::{
    FileFacts, FlushUrgency, FlushWork, PersistentState, SeqnoStatus, SnapshotRange, Topology,
};
pub use statistics::{VbucketFigures, VbucketGauges, VbucketStatistics};
pub use vbucket::Vbucket;
pub use vbucket::collections::{Erasure, ReceivedEvent, event_builder};
pub use vbucket::paging::{EvictableSample, Paged, PagingLimits};
pub use vbucket::receiving::{ReceiveError, Received, ReceivedSnapshot, StreamPosition};
pub use vbucket::recovery::RecoveryStep;
pub use vbucket::restore::{Departures, Restored};
pub use vbucket::role::RoleChange;
pub use version_order::VersionOrder;
pub use waiter::Waiter;
