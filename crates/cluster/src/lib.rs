//! Which node owns which vBucket, and how that is told to clients.

mod bucket_changes;
mod bucket_plan;
mod cluster_map;
mod cluster_name;
mod config_json;
pub mod fuzzing;
mod host;
mod membership_changes;
mod pending;
mod plan;
mod plan_json;
mod storage_figures;
mod uuid;

pub use bucket_plan::BucketPlan;
pub use cluster_map::{BucketMap, ClusterMap, ExternalAddress, NodeAddress, Revision, TlsPorts};
pub use cluster_name::{CLUSTER_NAME_RULE, is_cluster_name};
pub use config_json::{SERVER_GROUP, host_and_port};
pub use host::{HOST_RULE, is_host};
pub use membership_changes::{FailoverError, JoinError};
pub use pending::PendingVbucket;
pub use plan::{ClusterPlan, DeletedBucket, PlannedNode, VbucketRole};
pub use plan_json::InvalidPlan;
pub use storage_figures::{StorageFigures, Usage};
pub use uuid::Uuid;
