//! The data port: listeners, front-end workers, connections, dispatch.
//!
//! A worker is one thread with one readiness loop. A connection belongs to one worker for life; it
//! is bytes in, bytes out, and completions by token, and knows neither socket nor thread.

mod adjustable;
mod bucket_administrator;
mod bucket_statistics;
mod buckets;
mod client_memory;
mod cluster_view;
mod collection_statistics;
mod command_statistics;
mod commands;
mod compaction_statistics;
mod completed;
mod connection;
mod dcp_statistics;
mod departure;
mod emptying;
mod entrance;
mod hot_keys;
mod journal_statistics;
mod limits;
mod parameters;
mod privileges;
mod range_scan_statistics;
mod recache_marks;
mod scan_results;
mod shared;
mod slow_operations;
mod state_statistics;
mod statistic;
mod statistics;
mod strangers;
mod timings;
mod user_meters;
mod warmup_statistics;
mod worker;

pub use bucket_administrator::{BucketAdministrator, BucketRefusal, BucketWords, Followers};
pub use bucket_statistics::BUCKET_STATISTICS;
pub use buckets::{BUCKET_COUNT_MAX, ServedBucket, TooManyBuckets};
pub use cluster_view::ClusterView;
pub use collection_statistics::{COLLECTION_LABELS, COLLECTION_STATISTICS, ListedCollection};
pub use command_statistics::{COMMAND_STATISTICS, CommandStatistics};
pub use compaction_statistics::COMPACTION_STATISTICS;
pub use dcp_statistics::{CONNECTION_TYPE_LABEL, DCP_STATISTICS, DcpStatistics};
pub use departure::Departure;
pub use hot_keys::{HotKey, SAMPLED_EVERY};
pub use journal_statistics::JOURNAL_STATISTICS;
pub use limits::ServerLimits;
pub use parameters::{Buckets, PARAMETERS, RuntimeParameter, ShownIn};
pub use privileges::{Need, NeededIn, needed_for};
pub use range_scan_statistics::RANGE_SCAN_STATISTICS;
pub use shared::ServerOptions;
pub use slow_operations::{SlowOperation, Spans};
pub use state_statistics::{STATE_LABEL, STATE_STATISTICS, STATES};
pub use statistic::{MetricName, Statistic, StatisticKind};
pub use statistics::{SERVER_STATISTICS, ServerStatistics};
pub use warmup_statistics::WARMUP_STATISTICS;
pub use worker::{Doors, Mailboxes, Parts, Server, TlsDoor, open_door};
