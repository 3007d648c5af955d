//! The log of a vBucket while it is read, removed and freed: benchmarks under the names of the
//! original's, for our design and for the original's, re-created by its description.

pub mod log;
pub mod options;
pub mod original_log;
pub mod queue_dirty;
pub mod report;
pub mod settee_log;
pub mod successors;
