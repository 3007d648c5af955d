//! Hours of mixed load on one node: whether it stays as fast and as large as it is at first, and
//! whether everything is there that it has acknowledged.

pub mod documents;
pub mod driver;
pub mod flatness;
pub mod ledger;
mod link;
pub mod mix;
pub mod node_sample;
pub mod window;
