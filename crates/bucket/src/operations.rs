//! The operations on documents, one file a family.

mod attempt;
mod concatenate;
mod counter;
mod durability;
mod expect;
mod foreign;
mod in_file;
mod lock;
mod metadata;
mod observe;
mod path_lookup;
mod path_mutation;
mod persistence;
mod read;
mod remove;
mod store;
mod touch;
mod value;
mod version;

pub use concatenate::{Addition, Concatenated, Placement};
pub use counter::{Counter, CounterRequest};
pub use expect::Expecting;
pub use foreign::{ForeignKind, ForeignVersion};
pub use in_file::InFile;
pub use observe::{Observed, ObservedState};
pub use path_mutation::{PathMutation, PathsChanged, PathsRefused};
pub use store::Write;
pub use value::{Incoming, body_of};
pub use version::{CopyRole, Version};

/// How often a new version is computed again because the document changed meanwhile.
const ATTEMPTS_MAX: usize = 100;
