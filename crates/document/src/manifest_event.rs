//! What becomes of collections and scopes in the history of a vBucket: items of a collection that
//! no client may address.
//!
//! Key, as in files: `01`, LEB128 of the kind (0 collection, 1 scope, 2 changed collection), LEB128
//! of the id, `_collection` or `_scope`. Value: a FlatBuffer; what is dropped is a deleted document
//! with a value. Source: docs/specification/storage.md, sections 3.2 and 3.5.

use crate::flat_buffer::{Field, FlatBuffer, encode_table};
use crate::ids::{CollectionId, ScopeId};
use crate::key::EVENT_PREFIX;

/// One change of the manifest, as a vBucket has it in its history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManifestEvent<'a> {
    /// A collection has come.
    CollectionCreated(EventCollection<'a>),
    /// A collection has other properties.
    CollectionChanged(EventCollection<'a>),
    /// A collection is gone.
    CollectionDropped {
        /// The uid of the manifest that says so.
        uid: u64,
        /// Its scope.
        scope: ScopeId,
        /// Which.
        collection: CollectionId,
    },
    /// A scope has come.
    ScopeCreated {
        /// The uid of the manifest that says so.
        uid: u64,
        /// Which.
        scope: ScopeId,
        /// Its name.
        name: &'a str,
    },
    /// A scope is gone.
    ScopeDropped {
        /// The uid of the manifest that says so.
        uid: u64,
        /// Which.
        scope: ScopeId,
    },
}

/// A collection as an event tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventCollection<'a> {
    /// The uid of the manifest that says so.
    pub uid: u64,
    /// Its scope.
    pub scope: ScopeId,
    /// Which.
    pub id: CollectionId,
    /// Its name.
    pub name: &'a str,
    /// The longest life of its documents in seconds, if it is limited here.
    pub max_ttl: Option<u32>,
    /// Whether older versions are to be kept.
    pub history: bool,
}

const KIND_COLLECTION: u32 = 0;
const KIND_SCOPE: u32 = 1;
const KIND_CHANGED: u32 = 2;
const COLLECTION_TEXT: &str = "_collection";

impl<'a> ManifestEvent<'a> {
    /// The uid of the manifest that says so.
    pub fn uid(&self) -> u64 {
        match self {
            Self::CollectionCreated(it) | Self::CollectionChanged(it) => it.uid,
            Self::CollectionDropped { uid, .. }
            | Self::ScopeCreated { uid, .. }
            | Self::ScopeDropped { uid, .. } => *uid,
        }
    }

    /// The scope that it is about, or whose collection.
    pub fn scope(&self) -> ScopeId {
        match self {
            Self::CollectionCreated(it) | Self::CollectionChanged(it) => it.scope,
            Self::CollectionDropped { scope, .. }
            | Self::ScopeCreated { scope, .. }
            | Self::ScopeDropped { scope, .. } => *scope,
        }
    }

    /// The collection that it is about.
    pub fn collection(&self) -> Option<CollectionId> {
        match self {
            Self::CollectionCreated(it) | Self::CollectionChanged(it) => Some(it.id),
            Self::CollectionDropped { collection, .. } => Some(*collection),
            Self::ScopeCreated { .. } | Self::ScopeDropped { .. } => None,
        }
    }

    /// The name that it gives.
    pub fn name(&self) -> &'a str {
        match self {
            Self::CollectionCreated(it) | Self::CollectionChanged(it) => it.name,
            Self::ScopeCreated { name, .. } => name,
            Self::CollectionDropped { .. } | Self::ScopeDropped { .. } => "",
        }
    }

    /// Whether it is kept as a deleted document.
    pub fn is_deletion(&self) -> bool {
        matches!(self, Self::CollectionDropped { .. } | Self::ScopeDropped { .. })
    }

    /// The key under which it is kept.
    pub fn key(&self) -> Vec<u8> {
        match self {
            Self::CollectionCreated(it) => key_of(KIND_COLLECTION, it.id.0, COLLECTION_TEXT),
            Self::CollectionChanged(it) => Self::key_of_changes(it.id),
            Self::CollectionDropped { collection, .. } => {
                key_of(KIND_COLLECTION, collection.0, COLLECTION_TEXT)
            }
            Self::ScopeCreated { scope, .. } | Self::ScopeDropped { scope, .. } => {
                key_of(KIND_SCOPE, scope.0, "_scope")
            }
        }
    }

    /// The key under which the last change of a collection's properties is kept, beside what says
    /// that it has come or gone.
    pub fn key_of_changes(collection: CollectionId) -> Vec<u8> {
        key_of(KIND_CHANGED, collection.0, COLLECTION_TEXT)
    }

    /// The value.
    pub fn encode(&self) -> Vec<u8> {
        use Field::{Bool, Text, U32, U64};
        match self {
            Self::CollectionCreated(it) | Self::CollectionChanged(it) => encode_table(&[
                U64(it.uid),
                U32(it.scope.0),
                U32(it.id.0),
                Bool(it.max_ttl.is_some()),
                U32(it.max_ttl.unwrap_or(0)),
                Text(it.name),
                Bool(it.history),
            ]),
            Self::CollectionDropped { uid, scope, collection } => {
                encode_table(&[U64(*uid), U32(scope.0), U32(collection.0), Bool(false)])
            }
            Self::ScopeCreated { uid, scope, name } => {
                encode_table(&[U64(*uid), U32(scope.0), Text(name)])
            }
            Self::ScopeDropped { uid, scope } => {
                encode_table(&[U64(*uid), U32(scope.0), Bool(false)])
            }
        }
    }

    /// Reads what was kept under `key`; `None` if it is no event, or a damaged one.
    pub fn decode(key: &[u8], is_deleted: bool, value: &'a [u8]) -> Option<Self> {
        let (kind, id) = kind_and_id(key)?;
        let buffer = FlatBuffer(value);
        let table = buffer.root()?;
        let uid = buffer.field_u64(table, 0)?;
        let scope = ScopeId(buffer.field_u32(table, 1)?);
        let event = match (kind, is_deleted) {
            (KIND_COLLECTION, true) => {
                Self::CollectionDropped { uid, scope, collection: CollectionId(id) }
            }
            (KIND_COLLECTION | KIND_CHANGED, false) => {
                let is_limited = buffer.field_bool(table, 3)?;
                let collection = EventCollection {
                    uid,
                    scope,
                    id: CollectionId(id),
                    name: buffer.field_text(table, 5)?,
                    max_ttl: is_limited.then_some(buffer.field_u32(table, 4)?),
                    history: buffer.field_bool(table, 6)?,
                };
                if kind == KIND_CHANGED {
                    Self::CollectionChanged(collection)
                } else {
                    Self::CollectionCreated(collection)
                }
            }
            (KIND_SCOPE, true) => Self::ScopeDropped { uid, scope: ScopeId(id) },
            (KIND_SCOPE, false) => {
                let name = buffer.field_text(table, 2)?;
                Self::ScopeCreated { uid, scope: ScopeId(id), name }
            }
            _ => return None,
        };
        Some(event)
    }
}

/// The collection whose end a deleted document under `key` is.
pub fn collection_dropped_by(key: &[u8]) -> Option<CollectionId> {
    let (kind, id) = kind_and_id(key)?;
    (kind == KIND_COLLECTION).then_some(CollectionId(id))
}

fn kind_and_id(key: &[u8]) -> Option<(u32, u32)> {
    let (&prefix, rest) = key.split_first()?;
    if prefix != EVENT_PREFIX {
        return None;
    }
    let (kind, rest) = crate::key::decode_collection(rest).ok()?;
    let (id, _) = crate::key::decode_collection(rest).ok()?;
    Some((kind.0, id.0))
}

fn key_of(kind: u32, id: u32, text: &str) -> Vec<u8> {
    let mut key = vec![EVENT_PREFIX];
    put_leb128(&mut key, kind);
    put_leb128(&mut key, id);
    key.extend_from_slice(text.as_bytes());
    key
}

fn put_leb128(target: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        target.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    target.push((number & 0x7f) as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collection(max_ttl: Option<u32>) -> EventCollection<'static> {
        let (scope, id) = (ScopeId(8), CollectionId(300));
        EventCollection { uid: 7, scope, id, name: "fruit", max_ttl, history: true }
    }

    #[test]
    fn events_read_back_from_their_keys_and_values_and_no_damage_panics() {
        let (scope, dropped) = (ScopeId(9), CollectionId(300));
        for event in [
            ManifestEvent::CollectionCreated(collection(None)),
            ManifestEvent::CollectionCreated(collection(Some(0))),
            ManifestEvent::CollectionChanged(collection(Some(60))),
            ManifestEvent::CollectionDropped { uid: 8, scope, collection: dropped },
            ManifestEvent::ScopeCreated { uid: 9, scope, name: "s" },
            ManifestEvent::ScopeDropped { uid: u64::MAX, scope },
        ] {
            let (key, value, is_deleted) = (event.key(), event.encode(), event.is_deletion());
            assert_eq!(ManifestEvent::decode(&key, is_deleted, &value), Some(event));
            for length in 0..value.len() {
                let _ = ManifestEvent::decode(&key, is_deleted, &value[..length]);
                let mut damaged = value.clone();
                damaged[length] ^= 0xff;
                let _ = ManifestEvent::decode(&key, is_deleted, &damaged);
            }
            for length in 0..key.len() {
                let _ = ManifestEvent::decode(&key[..length], is_deleted, &value);
            }
        }
    }

    #[test]
    fn keys_are_those_of_the_files() {
        let key = ManifestEvent::CollectionCreated(collection(None)).key();
        assert_eq!(key, b"\x01\x00\xac\x02_collection");
        assert_eq!(collection_dropped_by(&key), Some(CollectionId(300)));
        let key = ManifestEvent::ScopeDropped { uid: 1, scope: ScopeId(8) }.key();
        assert_eq!(key, b"\x01\x01\x08_scope");
        assert_eq!(collection_dropped_by(&key), None);
        assert_eq!(collection_dropped_by(b"\x00k"), None);
    }
}
