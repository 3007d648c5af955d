//! Tools at the command line: load generator, statistics, timings.
//!
//! Each tool is a clap structure and a `run`; the binary makes subcommands of them. Results go to
//! standard output, everything else to standard error.

pub mod histogram_table;
pub mod load;
mod output;
pub mod server_arguments;
pub mod stats;
pub mod timings;

pub use load::LoadArguments;
pub use stats::StatsArguments;
pub use timings::TimingsArguments;
