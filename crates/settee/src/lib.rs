//! The process around a node: the command line, what a node is to be by flags, environment and
//! file, logging, REST on top of it, and several of them on one machine.

mod adopt;
mod audit;
mod backup_source;
mod bucket_view;
mod cluster_run;
mod config;
mod configuration_check;
#[cfg(test)]
mod configuration_page;
mod damage;
mod doctor;
mod document_view;
mod init_files;
mod log_file;
mod logging;
mod manual;
mod memory_size;
mod metrics;
#[cfg(test)]
mod metrics_page;
mod node_view;
mod peer_agent;
mod rate;
mod ready_file;
mod real_peers;
mod real_world;
mod recent_log;
mod reload;
mod restore;
mod serve;
mod service;
mod setting_table;
mod setting_values;
mod settings;
mod unknown_variables;

pub use adopt::{AdoptArguments, adopt};
pub use cluster_run::{ClusterRunArguments, cluster_run};
pub use doctor::doctor;
pub use manual::write_manual;
pub use restore::restore;
pub use serve::{ServeArguments, serve};
