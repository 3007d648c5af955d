//! What operations take and answer.

use document::{
    Cas, DurabilityLevel, Item, ItemBuilder, Operation, Placeholders, RevSeqno, Seqno, VbUuid,
};
use platform::{Instant, WallTime};

use crate::eviction::Lookup;
use crate::version_order::VersionOrder;
use crate::waiter::Waiter;

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
    /// Keep the expiry of the version that is replaced. The builder has room for one
    /// ([`ItemBuilder::with_room_for_expiry`]).
    pub preserve_expiry: bool,
    /// Set when the write is to be durable.
    pub sync_write: Option<SyncWriteRequest>,
}

impl WriteCondition {
    /// What a version that is written under this condition is in the history of its vBucket: that
    /// is what it has to be built as.
    pub fn operation(&self) -> Operation {
        let prepare = |request: SyncWriteRequest| Operation::Prepare(request.level);
        self.sync_write.map_or(Operation::Mutation, prepare)
    }
}

/// A version of a document that came about elsewhere and is to be stored here as what it is.
pub struct ForeignWrite {
    /// Its content; a tombstone for a deletion.
    pub builder: ItemBuilder,
    /// Its name.
    pub cas: Cas,
    /// How often the document has changed.
    pub revision: RevSeqno,
    /// Where its value says CAS and seqno, which it gets here.
    pub placeholders: Placeholders,
    /// On which terms it is taken.
    pub terms: ForeignTerms,
}

/// On which terms a version from elsewhere is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignTerms {
    /// Only where there is no document.
    pub only_adds: bool,
    /// Only in the place of this version; [`Cas::ANY`] for any.
    pub replaces: Cas,
    /// Only if it wins in this order over the version that is here, a tombstone included; whatever
    /// is here when there is none.
    pub order: Option<VersionOrder>,
    /// It gets a CAS of this vBucket's clock.
    pub renames: bool,
}

/// What a durable write asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncWriteRequest {
    /// Where the write must be before it counts.
    pub level: DurabilityLevel,
    /// When it becomes ambiguous.
    pub deadline: Instant,
    /// Who hears how it has ended ([`crate::Effect::SyncWriteEnded`]).
    pub waiter: Waiter,
}

/// A document that was found.
#[derive(Debug)]
pub struct Found {
    /// The version.
    pub item: Item,
    /// The CAS to show: the version's, or [`Cas::LOCKED`].
    pub cas: Cas,
}

/// Which versions of a document there are for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Those that live.
    Live,
    /// Tombstones as well.
    Deleted,
}

/// A version that was computed from another, of which it says everything: flags, expiry and xattrs
/// are its own, and it may be a tombstone with xattrs.
pub struct NewVersion {
    /// The version.
    pub builder: ItemBuilder,
    /// Where its CAS and seqno are written into its value, which then is not compressed.
    pub placeholders: Placeholders,
    /// The seqno of what it was computed from; `None` when there was nothing.
    pub computed_from: Option<Seqno>,
    /// What there was to be computed from.
    pub visibility: Visibility,
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

/// A write that was let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is done, and visible.
    Done(Mutation),
    /// It is durable, and has begun: its waiter hears of its end
    /// ([`crate::Effect::SyncWriteEnded`]), which may have come already.
    Begun,
}

impl Written {
    /// The mutation, unless it is that of a durable write.
    pub fn done(self) -> Option<Mutation> {
        match self {
            Self::Done(mutation) => Some(mutation),
            Self::Begun => None,
        }
    }
}

/// How a durable write has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncWriteEnd {
    /// Its level holds: the document is visible, at the seqno of the commit.
    Committed {
        /// The commit, with the CAS of the prepare.
        mutation: Mutation,
        /// Its level.
        level: DurabilityLevel,
        /// When it began.
        began: Instant,
    },
    /// Nobody here knows whether it happens.
    Ambiguous(Ambiguity),
    /// It does not happen: the collection of its document was dropped.
    Dropped,
}

/// Why nobody here knows whether a durable write happens. Clients are answered with one status, and
/// people with the reason. Source: docs/specification/protocol.md, section 11.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ambiguity {
    /// Too few nodes held it when its time was over.
    TimeIsOver,
    /// A new topology leaves too few nodes to hold it.
    TooFewNodes,
    /// The vBucket is not active here any more, or what it held is gone: others may commit it.
    NotActive,
}

/// Why an operation did not happen. Outcomes, not errors. Most are answered; the last group is work
/// for whoever has asked, who then tries again.
#[derive(Debug)]
pub enum Refusal {
    /// The vBucket does not serve requests here.
    NotActive,
    /// As [`Refusal::NotYetActive`], but too many requests wait. Said by whoever keeps the
    /// vBuckets, never by one.
    TooManyParked,
    /// Another node takes the vBucket over, which lasts too long because of those who write.
    TakeoverIsLate,
    /// It is still being loaded. Said by whoever keeps the vBuckets, never by one.
    Loading,
    /// Its file is damaged, and there is no vBucket. Said by whoever keeps the vBuckets.
    FileIsDamaged,
    /// There is no such document.
    NotFound,
    /// There is no such collection.
    UnknownCollection,
    /// There is one already.
    Exists,
    /// It is another version.
    CasMismatch,
    /// The version that was brought from elsewhere does not win over the one that is here.
    NotNewer,
    /// No version can have that CAS, or it lies too far in the future.
    InvalidCas,
    /// Somebody else holds its lock.
    Locked,
    /// Nobody holds its lock.
    NotLocked,
    /// As [`Refusal::Absent`], but too many keys are being looked up.
    TooManyLookups,
    /// A durable write of the document has not ended.
    SyncWriteInProgress,
    /// A durable write of the document may have been committed by another node before this one
    /// became active: whether it is visible is not known yet.
    RecommitInProgress,
    /// There are not enough nodes for a durable write.
    DurabilityImpossible,
    /// The vBucket does not know yet who must hold durable writes.
    NoTopology,
    /// A bucket without files cannot have this level.
    InvalidDurabilityLevel,
    /// The vBucket is about to take up another role: have the request wait
    /// ([`crate::Vbucket::park`]), and try again then.
    NotYetActive,
    /// Its value is only in the file: fetch it ([`crate::Vbucket::restore_value`]) and try again.
    /// This is its metadata.
    Ejected(Item),
    /// It is not in memory, and the file may have it: look the key up there
    /// ([`crate::Vbucket::finish_lookup`]) and try again.
    Absent(Box<Lookup>),
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
