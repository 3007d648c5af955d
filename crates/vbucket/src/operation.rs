//! What operations take and answer.

use document::{Cas, Item, ItemBuilder, Seqno, VbUuid};
use platform::{Instant, WallTime};

use crate::eviction::Lookup;

/// The time of an operation, read once by the caller.
#[derive(Clone, Copy, Debug, Default)]
pub struct Now {
    /// For durations: locks, waiters.
    pub monotonic: Instant,
    /// For expiry and CAS.
    pub wall: WallTime,
}

/// What must be there for a store to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreMode {
    /// Anything or nothing.
    Set,
    /// Nothing.
    Add,
    /// A document.
    Replace,
}

/// Which version a write may replace.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteCondition {
    /// The CAS that the client sent; [`Cas::ANY`] for none. On a locked document, the lock's.
    pub cas: Cas,
    /// Set when the new version was computed from an old one: the seqno of that. Another version
    /// in its place answers [`Refusal::Changed`].
    pub computed_from: Option<Seqno>,
    /// Keep the expiry of the version that is replaced.
    pub preserve_expiry: bool,
}

/// A document that was found.
#[derive(Debug)]
pub struct Found {
    /// The version.
    pub item: Item,
    /// The CAS to show: the version's, or [`Cas::LOCKED`].
    pub cas: Cas,
}

/// A write that took its place in history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mutation {
    /// The new version's name.
    pub cas: Cas,
    /// Its place.
    pub seqno: Seqno,
    /// The branch of history that it is in.
    pub uuid: VbUuid,
}

/// Why an operation did not happen. Outcomes, not errors: each has its answer on the wire.
#[derive(Debug)]
pub enum Refusal {
    /// The vBucket does not serve requests here.
    NotActive,
    /// The vBucket is about to take up another role: have the request wait
    /// ([`crate::Vbucket::park`]), and try again then.
    NotYetActive,
    /// As [`Refusal::NotYetActive`], but too many requests wait. Said by whoever keeps the
    /// vBuckets, never by one.
    TooManyParked,
    /// It is still being loaded. Said by whoever keeps the vBuckets, never by one.
    Loading,
    /// There is no such document.
    NotFound,
    /// There is one already.
    Exists,
    /// It is another version.
    CasMismatch,
    /// Somebody else holds its lock.
    Locked,
    /// Nobody holds its lock.
    NotLocked,
    /// Its value is only in the file: fetch it ([`crate::Vbucket::restore_value`]) and try again.
    /// This is its metadata.
    Ejected(Item),
    /// It is not in memory, and the file may have it: look the key up there
    /// ([`crate::Vbucket::finish_lookup`]) and try again.
    Absent(Box<Lookup>),
    /// As [`Refusal::Absent`], but too many keys are being looked up.
    TooManyLookups,
    /// The new version was computed from one that is no longer the newest: compute it again.
    Changed,
    /// The document has xattrs, which a store keeps: put those of the version that is there in
    /// front of the body that was to be stored, with the seqno of the former as
    /// [`WriteCondition::computed_from`].
    KeepsXattrs(Box<KeptXattrs>),
}

/// A store that did not happen because it has to keep xattrs.
pub struct KeptXattrs {
    /// The version that has them.
    pub existing: Item,
    /// What was to be stored.
    pub stored: ItemBuilder,
}

impl std::fmt::Debug for KeptXattrs {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "KeptXattrs({:?})", self.existing)
    }
}
