//! SUBDOC_DICT_ADD and its kin: a new version is computed outside the lock of its vBucket, and
//! stored if the document is still what it was computed from.

use document::{Cas, Deletion, Item, ItemBuilder, ItemMeta, Key, Vbid};
use platform::WallTime;
use subdocument::{DocumentFlags, Failure, Mutated, MutationFailure, MutationRequest};
use vbucket::{Found, NewVersion, Refusal, Visibility, WriteCondition, Written};

use super::ATTEMPTS_MAX;
use super::value::compressed_like;
use super::version::Version;
use crate::core::{Attempted, Bucket, Refused, Session};

/// A change of parts of a document.
#[derive(Clone, Copy, Debug)]
pub struct PathMutation<'a> {
    /// Where the document belongs.
    pub vbid: Vbid,
    /// What it is called.
    pub key: Key<'a>,
    /// What is to be done. It names the version that `condition` names.
    pub request: &'a MutationRequest<'a>,
    /// The document's flags; `None`: as before.
    pub flags: Option<[u8; 4]>,
    /// The absolute expiry that the document has from now on.
    pub expiry: u32,
    /// Bytes that the client has sent.
    pub value_bytes: usize,
    /// Which version may be changed, and how durable the new one is to be.
    pub condition: WriteCondition,
}

/// A document that has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathsChanged {
    /// The version that it is now.
    pub written: Written,
    /// Whether what was found or made, and not revived, is a tombstone.
    pub is_about_deleted: bool,
    /// The new numbers of counters, each with the number of its path, counted from 0.
    pub numbers: Vec<(u8, i64)>,
}

/// Why nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathsRefused {
    /// As any other operation.
    Document(Refused),
    /// The document is not what the request needs.
    Paths(MutationFailure),
}

impl From<Refused> for PathsRefused {
    fn from(refused: Refused) -> Self {
        Self::Document(refused)
    }
}

impl From<MutationFailure> for PathsRefused {
    fn from(failure: MutationFailure) -> Self {
        Self::Paths(failure)
    }
}

impl Bucket {
    /// Changes parts of a document, or makes one.
    pub fn change_paths(
        &self,
        session: &mut Session,
        mutation: PathMutation<'_>,
    ) -> Result<Attempted<PathsChanged>, PathsRefused> {
        let PathMutation { vbid, key, request, condition, value_bytes, .. } = mutation;
        self.check_write_gate(vbid, key, &condition, value_bytes)?;
        let condition = self.as_durable_as_configured(session, condition)?;
        let sees_deleted = request.document_flags().contains(DocumentFlags::ACCESS_DELETED);
        let visibility = if sees_deleted { Visibility::Deleted } else { Visibility::Live };
        // The first attempt takes it out of the session, and each of them needs it.
        let fetched = session.fetched.clone();
        let fetched = fetched.as_ref();
        for _ in 0..ATTEMPTS_MAX {
            let now = self.time_of(session);
            let found = self.attempt(session, vbid, |vbucket, effects| {
                let found = vbucket
                    .get_version_for_write(key, visibility, fetched, condition, now, effects)?;
                Ok(found.map(|item| {
                    // A lock is the version for who holds it.
                    let cas = if condition.cas == Cas::ANY { item.cas() } else { condition.cas };
                    Version::of(Found { item, cas }, vbucket, now)
                }))
            });
            // Who wants to make a document does not wait for whoever has locked one.
            let makes_one = request.document_flags().contains(DocumentFlags::ADD);
            if makes_one && matches!(found, Err(Refusal::Locked)) {
                return Err(PathsRefused::Paths(Failure::DocumentExists.into()));
            }
            let Attempted::Answered(version) = self.answer(session, vbid, found)? else {
                return Ok(Attempted::Waits);
            };
            let value = version.as_ref().map(Version::value);
            let stored = version.as_ref().zip(value.as_ref());
            let stored = stored.map(|(version, value)| version.stored(value));
            let mutated = request.mutate(stored.as_ref())?;
            let existing = version.as_ref().map(Version::item);
            let builder = self.changed(&mutation, existing, &mutated, condition, now.wall);
            let new = NewVersion {
                builder,
                placeholders: mutated.placeholders,
                computed_from: existing.map(Item::seqno),
                visibility,
            };
            let result = self.attempt(session, vbid, |vbucket, effects| {
                vbucket.store_version(new, fetched, condition, now, effects)
            });
            let Err(Refusal::Changed) = result else {
                let Mutated { is_about_deleted, numbers, .. } = mutated;
                let changed =
                    result.map(|written| PathsChanged { written, is_about_deleted, numbers });
                return Ok(self.answer(session, vbid, changed)?);
            };
        }
        Err(Refused::Contended.into())
    }

    fn changed(
        &self,
        mutation: &PathMutation<'_>,
        existing: Option<&Item>,
        mutated: &Mutated,
        condition: WriteCondition,
        now: WallTime,
    ) -> ItemBuilder {
        let live = existing.filter(|item| !item.is_deleted());
        let before = live.map(Item::meta).unwrap_or_default();
        let keeps_expiry = condition.preserve_expiry && live.is_some();
        let datatype = mutated.datatype;
        let meta = match mutated.is_deleted {
            true => ItemMeta {
                flags: [0; 4],
                expiry: now.seconds().max(1),
                datatype,
                deletion: Some(Deletion::Explicit),
            },
            false => ItemMeta {
                flags: mutation.flags.unwrap_or(before.flags),
                expiry: if keeps_expiry { before.expiry } else { mutation.expiry },
                datatype,
                deletion: None,
            },
        };
        let operation = condition.operation();
        match live {
            // Places are those of the plain value, so a value that has any is not compressed.
            Some(item) if mutated.placeholders.is_empty() && !mutated.is_deleted => {
                let compression = self.0.memory.compression();
                compressed_like(item, meta, operation, &mutated.value, compression)
            }
            _ => ItemBuilder::step(mutation.key, meta, operation, &mutated.value),
        }
    }
}
