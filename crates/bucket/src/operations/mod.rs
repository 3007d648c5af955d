//! The operations on documents, one file a family.

mod concatenate;
mod counter;
mod durability;
mod lock;
mod metadata;
mod observe;
mod persistence;
mod read;
mod remove;
mod store;
mod touch;

pub use concatenate::Placement;
pub use counter::{Counter, CounterRequest};
pub use observe::{Observed, ObservedState};

/// How often a new version is computed again because the document changed meanwhile.
const ATTEMPTS_MAX: usize = 100;
