//! Which node owns which vBucket, and how that is told to clients.

mod cluster_map;
mod config_json;
mod uuid;

pub use cluster_map::{BucketMap, ClusterMap, NodeAddress, Revision};
pub use uuid::Uuid;
