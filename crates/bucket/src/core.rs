//! The middle of a bucket: its vBuckets and how they are reached. Knows no task.

mod attempted;
mod awaited_role;
mod back_off;
mod background;
mod bucket;
mod completion;
mod counters;
mod damage_mark;
mod door;
mod effects;
mod listeners;
mod refused;
mod session;
mod stream_observer;
mod timings;
mod vbucket_factory;
mod vbucket_slot;
mod vbuckets;
mod wakeable;
mod write_block;
mod write_rules;

pub use attempted::Attempted;
pub use bucket::{Bucket, Surroundings};
pub use completion::{Completion, Completions};
pub use damage_mark::{DamageKind, VbucketDamage};
pub use refused::Refused;
pub use session::Session;
pub use stream_observer::StreamObserver;
pub use timings::Timings;
pub use write_block::WriteBlock;

pub(crate) use awaited_role::AwaitedRole;
pub(crate) use back_off::BackOff;
pub(crate) use background::Background;
pub(crate) use bucket::BucketCore;
pub(crate) use counters::Counters;
pub(crate) use listeners::Listeners;
pub(crate) use timings::micros;
pub(crate) use vbucket_factory::VbucketFactory;
pub(crate) use vbucket_slot::{VbucketGuard, VbucketSlot};
pub(crate) use vbuckets::Vbuckets;
pub(crate) use wakeable::Wakeable;
pub(crate) use write_rules::WriteRules;
