//! What a request costs the node, beside what it costs the node of another commit.
//!
//! Nodes of both commits run at the same time; one of them has work at a time. Their turns are
//! short and alternate, so what the machine does meanwhile meets both. A step is judged by the
//! ratios of neighbouring turns.

pub mod comparison;
pub mod cost;
pub mod options;
pub mod other_binary;
pub mod report;
pub mod side;
pub mod steps;
pub mod verdict;
