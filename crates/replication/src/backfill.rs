//! Reading files for streams that begin further back than the log: on the executor's threads, in
//! portions, with a bound on what waits to be sent.

mod feed;
mod manager;

pub(crate) use feed::{Fed, Feed};
pub(crate) use manager::{Backfills, UnsentOfAll, size_of_item};
