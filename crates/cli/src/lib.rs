//! Tools at the command line: documents, load generator, statistics, timings, parameters,
//! couchstore files, backups, users, groups, buckets, collections and health.
//!
//! Each tool is a clap structure and a `run`; the binary makes subcommands of them. Results go to
//! standard output, everything else to standard error.

pub mod aliases;
pub mod backup;
pub mod bucket;
pub mod collect;
pub mod collection;
mod delete;
pub mod doctor;
mod document_tool;
pub mod dump;
mod encryption;
pub mod engine_control;
mod file_list;
mod get;
pub mod group;
pub mod health;
pub mod histogram_table;
pub mod hot_keys;
mod incr;
pub mod load;
mod node_arguments;
mod node_port;
mod output;
mod output_format;
mod pause;
mod printable;
mod progress;
mod property;
mod range_scan;
pub mod reset_vbucket;
mod scan;
pub mod server_arguments;
mod set;
pub mod set_log_level;
pub mod set_param;
pub mod shell;
pub mod stats;
mod table;
pub mod timings;
pub mod top;
mod touch;
pub mod user;
pub mod verify_file;
pub mod why_slow;

pub use backup::{BackupArguments, RestoreArguments};
pub use bucket::BucketArguments;
pub use collect::CollectArguments;
pub use collection::CollectionArguments;
pub use delete::DeleteOrder;
pub use doctor::DoctorArguments;
pub use document_tool::{DocumentOrder, DocumentTool, Documents};
pub use dump::DumpArguments;
pub use engine_control::EngineControlArguments;
pub use get::GetOrder;
pub use group::GroupArguments;
pub use health::HealthArguments;
pub use hot_keys::HotKeysArguments;
pub use incr::IncrOrder;
pub use load::LoadArguments;
pub use reset_vbucket::ResetVbucketArguments;
pub use scan::ScanOrder;
pub use set::SetOrder;
pub use set_log_level::SetLogLevelArguments;
pub use set_param::SetParamArguments;
pub use shell::ShellArguments;
pub use stats::StatsArguments;
pub use timings::TimingsArguments;
pub use top::TopArguments;
pub use touch::TouchOrder;
pub use user::UserArguments;
pub use verify_file::VerifyFileArguments;
pub use why_slow::WhySlowArguments;
