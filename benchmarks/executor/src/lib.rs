//! The executor pool and its peers under the same load: pools behind one trait, a harness, reports.

pub mod baton;
pub mod benchmarks;
pub mod contender;
pub mod folly;
pub mod foreign_load;
pub mod harness;
pub mod options;
pub mod pool_under_test;
pub mod pools;
pub mod report;
