//! Which documents leave memory first, and which keys are known to be on disk.
//!
//! Decisions only: who walks the hash tables, and when, is the business of the bucket's pager.

mod absent_keys;
pub mod frequency_counter;
mod frequency_histogram;
mod key_filter;
mod options;
mod paging_plan;
mod residency;
mod strategy;

pub(crate) use absent_keys::{Absent, AbsentKeys};
pub use absent_keys::{Lookup, LookupTicket};
pub use frequency_histogram::FrequencyHistogram;
pub use key_filter::{FilterOptions, KeyFilter};
pub use options::{EvictionOptions, InitialFrequency};
pub use paging_plan::{Evictable, PagingPlan, Watermarks};
pub use residency::KeyLoad;
pub(crate) use residency::Residency;
pub use strategy::{EvictionPolicy, EvictionStrategy, StrategyKind, Verdict};
