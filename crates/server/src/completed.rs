//! What requests wait for.

use auth::Checked;
use bucket::{CompactionEnd, Completion, Refused, ScanId, ScanRefused};
use document::Item;
use protocol::Status;

use crate::bucket_administrator::BucketRefusal;
use crate::scan_results::ScanPortion;

/// What a parked request has waited for.
#[derive(Debug)]
pub(crate) enum Completed {
    /// The bucket has something to say.
    Bucket(Completion),
    /// A password has been checked.
    Plain(Checked),
    /// Users have been read again; or a person reads why not.
    UsersRead(Result<(), String>),
    /// The bucket has been emptied; or a person reads why not.
    Flushed(Result<(), String>),
    /// Which scan has been made, or why there is none.
    ScanOpened(Result<ScanId, ScanRefused>),
    /// What was read of a scan.
    ScanRead(Box<ScanPortion>),
    /// Keys, in the form in which they are sent.
    KeysListed(Result<Vec<u8>, ScanRefused>),
    /// Some document, or why there is none.
    RandomDocument(Result<Item, Refused>),
    /// What STAT tells of a document that was held against its file.
    KeyChecked(Vec<(&'static str, String)>),
    /// How a compaction has ended.
    Compacted(CompactionEnd),
    /// The bucket has another manifest; or what the client hears, and a person reads.
    ManifestSet(Result<(), (Status, String)>),
    /// A vBucket has another role, or is gone; or what the client hears, and a person reads.
    VbucketChanged(Result<(), (Status, &'static str)>),
    /// A bucket is there, or is gone; or why not.
    BucketChanged(Result<(), BucketRefusal>),
}

impl Completed {
    /// Bytes that it holds for the answer.
    pub(crate) fn held_bytes(&self) -> usize {
        match self {
            Self::ScanRead(portion) => portion.results.bytes(),
            Self::KeysListed(Ok(keys)) => keys.capacity(),
            // The bucket has let go of it, or will: it is the connection's.
            Self::Bucket(Completion::Retry(Some(item))) | Self::RandomDocument(Ok(item)) => {
                item.allocation_size()
            }
            _ => 0,
        }
    }

    /// Whether something has happened by it that its client asked for, or is known not to: what is
    /// read, or executed again, may be asked for once more instead.
    pub(crate) fn is_end_of_change(&self) -> bool {
        match self {
            Self::Bucket(Completion::SyncWrite(_))
            | Self::Plain(_)
            | Self::UsersRead(_)
            | Self::Flushed(_)
            | Self::Compacted(_)
            | Self::ManifestSet(_)
            | Self::VbucketChanged(_)
            | Self::BucketChanged(_) => true,
            Self::Bucket(_)
            | Self::ScanOpened(_)
            | Self::ScanRead(_)
            | Self::KeysListed(_)
            | Self::RandomDocument(_)
            | Self::KeyChecked(_) => false,
        }
    }

    /// The same without a document that its request can have fetched once more.
    pub(crate) fn without_document(self) -> Self {
        match self {
            Self::Bucket(Completion::Retry(Some(_))) => Self::Bucket(Completion::Retry(None)),
            other => other,
        }
    }
}
