//! A version of a document whose parts somebody looks at.

use std::borrow::Cow;

use document::{Cas, Datatype, Item};
use subdocument::{ClockFacts, DocumentFacts, StoredDocument};
use vbucket::{Found, Now, Vbucket};

use crate::memory::inflated;

/// Whose copy of a document is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyRole {
    /// That of the active vBucket.
    Active,
    /// That of a vBucket that is a replica here.
    Replica,
}

/// A version, and what is to be known of it when it is looked into outside its vBucket's lock.
#[derive(Debug)]
pub struct Version {
    item: Item,
    facts: DocumentFacts,
    clock: ClockFacts,
}

impl Version {
    /// What was found in `vbucket`, as clients may see it.
    pub(super) fn of(found: Found, vbucket: &Vbucket, now: Now) -> Self {
        let Found { item, cas } = found;
        let meta = item.meta();
        let facts = DocumentFacts {
            cas,
            vbucket_uuid: vbucket.uuid(),
            seqno: item.seqno(),
            revision: item.revision(),
            expiry: meta.expiry,
            flags: meta.flags,
            stored_datatype: meta.datatype,
            is_deleted: item.is_deleted(),
            is_cas_a_time: cas != Cas::LOCKED && vbucket.is_cas_a_time(item.seqno()),
        };
        let (time, is_logical) = vbucket.clock_reading(now);
        let clock = ClockFacts { seconds: time.0 / 1_000_000_000, is_logical };
        Self { item, facts, clock }
    }

    /// The CAS to show.
    pub fn cas(&self) -> Cas {
        self.facts.cas
    }

    /// What was found.
    pub(super) fn item(&self) -> &Item {
        &self.item
    }

    /// The clock of its vBucket.
    pub fn clock(&self) -> ClockFacts {
        self.clock
    }

    /// Its whole value, inflated.
    pub fn value(&self) -> Cow<'_, [u8]> {
        inflated(&self.item)
    }

    /// The version for those who look into its value, which came from [`Version::value`].
    pub fn stored<'a>(&self, value: &'a [u8]) -> StoredDocument<'a> {
        let datatype = self.item.datatype().without(Datatype::SNAPPY);
        StoredDocument { value, datatype, facts: self.facts }
    }
}
