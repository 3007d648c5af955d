//! Which documents leave memory first, and which keys are known to be on disk.
//!
//! Decisions only: who walks the hash tables, and when, is the business of the bucket's pager.

pub mod frequency_counter;
mod frequency_histogram;
mod key_filter;
mod paging_plan;
mod strategy;

pub use frequency_histogram::FrequencyHistogram;
pub use key_filter::{FilterOptions, KeyFilter};
pub use paging_plan::{Evictable, PagingPlan, Watermarks};
pub use strategy::{EvictionPolicy, EvictionStrategy, Verdict};
