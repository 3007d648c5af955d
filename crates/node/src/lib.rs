//! The process: configuration, the order in which the parts start and stop, nothing else.

mod administrator;
mod backup_source;
mod client_limits;
mod cluster_run;
pub mod config;
mod damage;
mod data_directory;
mod logging;
mod membership;
mod memory_size;
mod metrics;
mod node;
mod node_view;
mod peer_copies;
mod ready_file;
mod restore;
mod serve;
mod setting_values;
pub mod settings;
mod temporary_directory;

pub use cluster_run::{ClusterRunArguments, cluster_run};
pub use node::Node;
pub use restore::restore;
pub use serve::{ServeArguments, serve};
pub use setting_values::{Choice, MemorySize, Threads};
