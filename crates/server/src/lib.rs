//! The data port: listeners, front-end workers, connections, dispatch.
//!
//! A worker is one thread with one readiness loop. A connection belongs to one worker for life; it
//! is bytes in, bytes out, and completions by token, and knows neither socket nor thread.

mod client_memory;
mod cluster_view;
mod commands;
mod connection;
mod delayed_flush;
mod limits;
mod shared;
mod statistics;
mod timings;
mod worker;

pub use cluster_view::ClusterView;
pub use limits::ServerLimits;
pub use shared::ServerOptions;
pub use statistics::ServerStatistics;
pub use timings::CommandTimings;
pub use worker::{Doors, Mailboxes, Parts, Server, open_door};
