//! What a start finds in the bucket's directory, and how it is loaded.

mod absent_vbuckets;
mod adoption;
mod bucket_file;
mod directory;
mod found;
mod open_error;
mod rebuild;
pub(crate) mod warmup;
mod warmup_state;

pub use adoption::is_bucket_directory;
pub use bucket_file::describe_restored;
pub use open_error::OpenError;
pub use warmup_state::{WarmupPhase, WarmupProgress};

pub(crate) use bucket_file::MANIFEST_NAME;
pub(crate) use directory::BucketDirectory;
pub(crate) use rebuild::{FileContent, MissingInFile, Visit};
pub(crate) use warmup_state::WarmupState;
