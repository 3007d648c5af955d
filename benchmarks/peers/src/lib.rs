//! What the benchmarks share: servers as child processes, a load generator, and reports.

pub mod batch_client;
pub mod certificate;
pub mod churn;
pub mod cluster;
pub mod couchbase;
pub mod dcp_reader;
pub mod dialect;
mod ended_child;
pub mod fragmentation;
pub mod gate;
pub mod generator;
pub mod load;
pub mod machine;
pub mod options;
pub mod perf_count;
pub mod process_counters;
pub mod process_stat;
pub mod report;
pub mod resident;
pub mod servers;
pub mod soak;
pub mod wire;
pub mod zipf;
