//! The REST port: how clients, tools and operators look at a node.
//!
//! What it says comes from a [`NodeView`], which `node` implements; nothing here knows buckets or
//! connections of the data port. Sources: client compatibility specification, section 10; ecosystem
//! specification, section 4.
#![warn(clippy::indexing_slicing)]

mod answers;
mod authentication;
mod backups;
mod connection;
mod cross_site;
mod limits;
mod metric;
mod node_view;
mod routes;
mod server;
mod stalling_stream;

pub use limits::Limits;
pub use metric::{Metric, MetricKind};
pub use node_view::{
    BackupCatalogue, BackupError, BackupSink, BackupSource, BackupVbucket, BucketFacts, BucketKind,
    CarryOutError, DamagedVbucket, FlushError, NodeFacts, NodeView, ResetError, Warmup,
};
pub use server::{Handle, ManagementServer};
