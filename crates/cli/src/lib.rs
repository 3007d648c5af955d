//! Tools at the command line: load generator, statistics, timings, couchstore files, backups,
//! users, buckets, collections and health.
//!
//! Each tool is a clap structure and a `run`; the binary makes subcommands of them. Results go to
//! standard output, everything else to standard error.

pub mod backup;
pub mod bucket;
pub mod collection;
pub mod dump;
mod file_list;
pub mod health;
pub mod histogram_table;
pub mod load;
mod node_arguments;
mod node_port;
mod output;
pub mod reset_vbucket;
pub mod server_arguments;
pub mod stats;
mod table;
pub mod timings;
pub mod user;
pub mod verify_file;

pub use backup::{BackupArguments, RestoreArguments};
pub use bucket::BucketArguments;
pub use collection::CollectionArguments;
pub use dump::DumpArguments;
pub use health::HealthArguments;
pub use load::LoadArguments;
pub use reset_vbucket::ResetVbucketArguments;
pub use stats::StatsArguments;
pub use timings::TimingsArguments;
pub use user::UserArguments;
pub use verify_file::VerifyFileArguments;
