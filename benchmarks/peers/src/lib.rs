//! What the benchmarks share: servers as child processes, a load generator, and reports.

pub mod cluster;
pub mod couchbase;
pub mod dcp_reader;
pub mod dialect;
mod ended_child;
pub mod fragmentation;
pub mod generator;
pub mod load;
pub mod machine;
pub mod options;
pub mod process_stat;
pub mod report;
pub mod servers;
pub mod syscalls;
