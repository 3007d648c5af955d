//! The REST port: how clients, tools and operators look at a node.
//!
//! What it says comes from a [`NodeView`] and its [`BucketView`]s, which `settee` implements;
//! nothing here knows buckets or connections of the data port. Source:
//! docs/specification/clients.md, section 10.
#![warn(clippy::indexing_slicing)]

mod answers;
mod audit_log;
mod authentication;
mod authorization;
mod backups;
mod bucket_order;
mod bucket_view;
mod connection;
mod console;
mod context;
mod cross_site;
mod date;
mod failed_logins;
mod label_match;
mod limits;
mod live_figures;
mod log_entry;
mod metric;
mod node_view;
mod observed;
mod openapi;
mod other_nodes;
mod permission;
mod query_stub;
mod range_query;
mod request_body;
mod route_table;
mod routes;
mod server;
mod session_cookie;
mod sessions;
mod set_up;
mod shown_document;
mod stalling_stream;
mod stats_history;
mod stopping;
mod tls_connection;

pub use audit_log::AuditLog;
pub use bucket_order::{BucketOrder, BucketOrderError};
pub use bucket_view::{
    BackupCatalogue, BackupError, BackupSink, BackupSource, BackupVbucket, BucketFacts, BucketKind,
    BucketView, CompactionError, DamagedVbucket, FlushError, ManifestEditError, ResetError, Timing,
    TimingUnit, VbucketFacts, Warmup,
};
pub use limits::Limits;
pub use metric::{Metric, MetricKind};
pub use node_view::{CarryOutError, NodeFacts, NodeView, SetupChange, SetupError};
pub use observed::{HotKeys, SlowOperationFacts};
pub use route_table::{NeededAt, REST_ROUTES, RestRoute};
pub use routes::new_bucket_order;
pub use server::{Handle, ManagementServer, Ports, TlsPort};
pub use set_up::SetUp;
pub use shown_document::{
    DocumentError, DocumentId, KeyPage, KeyPosition, KeyQuery, NewDocument, ShownDocument,
};

#[cfg(test)]
#[global_allocator]
static ALLOCATOR: platform::counting_allocator::CountingAllocator =
    platform::counting_allocator::CountingAllocator;
