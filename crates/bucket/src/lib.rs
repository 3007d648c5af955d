//! One bucket: its vBuckets, their files, and the background tasks that join the two.
//!
//! Front-end workers call the operations of [`Bucket`] with a [`Session`] of their own. An
//! operation never blocks: what must wait for a file answers [`Refused::Pending`] and is completed
//! later through [`Completions`].

mod absent_vbuckets;
mod adoption;
mod apply_pace;
mod back_off;
mod backfill;
mod backing_store;
mod bucket;
mod bucket_file;
mod bucket_type;
mod checkpoint_memory;
mod compaction;
mod compaction_settings;
mod completion;
mod compression;
mod config;
mod damage;
mod durability_config;
mod effects;
mod emptying;
mod file_state;
mod frozen;
mod memory_limits;
mod named;
mod operations;
mod page_density;
mod rebuild;
mod refused;
mod reset;
mod role_flush;
mod rollback;
mod session;
mod settings;
mod start_up;
mod statistics;
mod stream_observer;
mod tasks;
mod timings;
mod value;
mod vbucket_life;
mod vbucket_slot;
mod write_gate;

pub use adoption::is_bucket_directory;
pub use backfill::{Backfill, BackfillFacts, BackfillOrder};
pub use bucket::{Bucket, Surroundings};
pub use bucket_file::describe_restored;
pub use bucket_type::{BucketType, FullPolicy};
pub use compaction::{CompactionEnd, CompactionOrder, CompactionStatistics, RunningCompaction};
pub use completion::{Completion, Completions};
pub use compression::{CompressionMode, inflated};
pub use config::{ApplyConfig, BucketConfig, EvictionConfig, Persistence, PersistenceMode};
pub use damage::{DamageKind, VbucketDamage};
pub use durability_config::{DurabilityConfig, DurabilityMinLevel};
pub use frozen::{FreezeError, FrozenBucket, FrozenEntry};
pub use memory_limits::{MemoryParameter, QuotaError};
pub use named::Named;
pub use operations::{Counter, CounterRequest, Observed, ObservedState, Placement};
pub use refused::Refused;
pub use reset::ResetLoss;
pub use session::Session;
pub use start_up::OpenError;
pub use statistics::BucketStatistics;
pub use storage::{Remains, StorageError};
pub use stream_observer::StreamObserver;
pub use tasks::{WarmupPhase, WarmupProgress};
pub use timings::Timings;
pub use value::{Incoming, body_of};
pub use vbucket::Topology;
pub use vbucket::eviction::EvictionPolicy;
pub use vbucket_life::{LifeError, NewRole};
pub use write_gate::WriteBlock;
