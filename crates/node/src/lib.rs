//! A node: its parts put together in the world that it is given, and the order in which they start
//! and stop. What a process has around it, and REST, is in `settee`.

mod administrator;
mod bucket_changes;
mod bucket_opener;
mod bucket_settings;
mod bucket_steps;
mod bucket_words;
mod buckets;
mod certificate_reminder;
mod client_limits;
mod closing;
mod config;
mod data_directory;
mod document_access;
mod doors;
mod failover;
mod kept_files;
mod membership;
mod node;
mod note_check;
mod own_setup;
mod peer_copies;
mod quota_shares;
mod remembered_map;
mod start_check;
mod temporary_directory;
mod tls_part;
mod world;

pub use bucket_changes::{BucketChanges, is_bucket_name};
pub use bucket_settings::BucketSettings;
pub use buckets::{NodeBucket, NodeBuckets};
pub use config::{MakesBuckets, NodeConfig, TlsConfig};
pub use data_directory::{DataDirectory, FoundDirectory};
pub use document_access::{AccessError, DocumentAccess, DocumentToStore};
pub use doors::cannot_listen;
pub use failover::{
    Choice, Members, Replicas, Standing, ask_kept, ask_replicas, ask_replicas_behind,
};
pub use membership::{CarriedOut, Membership};
pub use node::{Node, VERSION};
pub use note_check::{NoteFault, faults_of_notes};
pub use own_setup::OwnSetupError;
pub use peer_copies::{
    COPIES_GROUP, CompactionChange, Copies, Held, Introduction, OfferPurpose, PeerLogin,
    PeerRefusal, Peers, PlanOffer, UsersOffer, copies_of,
};
pub use start_check::check_start;
pub use temporary_directory::temporary_data_directory;
pub use world::World;
