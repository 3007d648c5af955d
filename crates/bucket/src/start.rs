//! What a start finds in the bucket's directory, and how it is loaded.

mod absent_vbuckets;
mod adoption;
mod bucket_file;
mod deletion;
mod directory;
mod directory_check;
mod found;
mod lost_description;
mod open_error;
mod rebuild;
pub(crate) mod warmup;
mod warmup_state;

pub use adoption::{OriginalBucket, is_bucket_directory, look_at_original};
pub use bucket_file::{RestoredBucket, SETTINGS_NAME, describe_restored, is_described};
pub use deletion::{DirectoryState, directory_state, mark_deleted, remove_remains, unmark_deleted};
pub use directory_check::{DirectoryCheck, check_directory, check_journal};
pub use lost_description::is_taken_over;
pub use open_error::OpenError;
pub use warmup_state::{WarmupPhase, WarmupProgress};

pub(crate) use bucket_file::MANIFEST_NAME;
pub(crate) use directory::BucketDirectory;
pub(crate) use rebuild::{FileContent, MissingInFile, Visit};
pub(crate) use warmup_state::WarmupState;
