//! A document as the storage has it, for those who look into it.

use document::{Cas, Datatype, RevSeqno, Seqno, VbUuid, xattr};

/// A document, or what a deletion has left of one.
#[derive(Clone, Copy, Debug)]
pub struct StoredDocument<'a> {
    /// Its value, not compressed: the section of attributes if `datatype` has XATTR, and the body.
    pub value: &'a [u8],
    /// What `value` is. Never SNAPPY.
    pub datatype: Datatype,
    /// What else is known of it.
    pub facts: DocumentFacts,
}

/// What is known of a document beside its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DocumentFacts {
    /// Its version.
    pub cas: Cas,
    /// The branch of its vBucket's history.
    pub vbucket_uuid: VbUuid,
    /// Its place in history.
    pub seqno: Seqno,
    /// How often it was changed.
    pub revision: RevSeqno,
    /// Seconds since the epoch, 0 for never.
    pub expiry: u32,
    /// The client's own, in the order in which they came.
    pub flags: [u8; 4],
    /// What its value is where it is stored, SNAPPY included.
    pub stored_datatype: Datatype,
    /// Whether it is a tombstone.
    pub is_deleted: bool,
    /// Whether its CAS is a time, as it is since the vBucket counts so.
    pub is_cas_a_time: bool,
}

/// The time of a vBucket's hybrid clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockFacts {
    /// Seconds since the epoch.
    pub seconds: u64,
    /// Whether it runs ahead of the wall clock, and only counts.
    pub is_logical: bool,
}

impl<'a> StoredDocument<'a> {
    /// The section of attributes without its length word, and the body.
    pub(crate) fn parts(&self) -> (&'a [u8], &'a [u8]) {
        assert!(!self.datatype.contains(Datatype::SNAPPY), "the value was inflated");
        if !self.datatype.contains(Datatype::XATTR) {
            return (&[], self.value);
        }
        let parts = xattr::split(self.value);
        parts.map_or((&[], &[]), |(section, body)| (section.get(4..).unwrap_or_default(), body))
    }

    /// Whether the body is JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.datatype.contains(Datatype::JSON)
    }
}
