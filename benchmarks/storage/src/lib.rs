//! The bucket's storage and its peers under the same load, in one run: commits, durable writers,
//! compaction beside them, warmup and replay.

pub mod appliers;
/// Paces the appliers as the bucket does: the bucket's own source.
#[path = "../../../crates/bucket/src/disk/apply_pace.rs"]
mod apply_pace;
pub mod commit_table;
pub mod compaction;
mod config;
pub mod counted_files;
pub mod directories;
pub mod documents;
pub mod driver;
pub mod engines;
pub mod measurement;
pub mod options;
pub mod quiet;
pub mod replay;
pub mod report;
pub mod served_bucket;
pub mod warmup;
pub mod writers;
