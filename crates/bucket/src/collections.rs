//! Which scopes and collections the bucket has, how its vBuckets come to have them, and how the
//! documents of those that are dropped go.

mod change;
pub(crate) mod eraser;
pub mod manifest_json;
pub(crate) mod manifest_keeper;
mod manifest_store;

pub use change::ManifestChangeError;
pub(crate) use manifest_store::{ManifestStore, check_manifest};
