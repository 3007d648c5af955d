//! What requests wait for.

use bucket::{CompactionEnd, Completion};
use protocol::Status;

/// Who a checked password belongs to; `None` when it was wrong.
pub(crate) type PlainResult = Option<String>;

/// What a parked request has waited for.
#[derive(Clone, Debug)]
pub(crate) enum Completed {
    /// The bucket has something to say.
    Bucket(Completion),
    /// A password has been checked.
    Plain(PlainResult),
    /// Whether the bucket has been emptied.
    Flushed(bool),
    /// How a compaction has ended.
    Compacted(CompactionEnd),
    /// The bucket has another manifest; or what the client hears, and a person reads.
    ManifestSet(Result<(), (Status, String)>),
    /// A vBucket has another role, or is gone; or what the client hears, and a person reads.
    VbucketChanged(Result<(), (Status, &'static str)>),
}
