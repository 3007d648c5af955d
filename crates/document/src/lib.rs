//! The words every other crate speaks: what a document is, where it lives, when it was written.
//!
//! No type here is serializable: each boundary (wire, file, HTTP) has its own form and converts.

pub mod compression;
pub mod datatype;
pub mod durability;
pub mod expiry;
pub mod failover_entry;
pub mod flat_buffer;
pub mod fuzzing;
pub mod histogram;
pub mod ids;
pub mod item;
pub mod key;
pub mod limits;
pub mod manifest;
pub mod manifest_event;
pub mod map;
pub mod placeholders;
pub mod uri;
pub mod vbucket_state;
pub mod wanted_manifest;
pub mod xattr;

pub use datatype::Datatype;
pub use durability::DurabilityLevel;
pub use failover_entry::FailoverEntry;
pub use histogram::{Histogram, HistogramSnapshot};
pub use ids::{Cas, CollectionId, RevSeqno, ScopeId, Seqno, VbUuid, Vbid};
pub use item::{Deletion, Item, ItemBuilder, ItemMeta, Operation};
pub use key::{Key, KeyBuf};
pub use manifest::{
    MAX_TTL_SECONDS_MAX, Manifest, ManifestCollection, ManifestEdit, ManifestError, ManifestScope,
};
pub use manifest_event::ManifestEvent;
pub use map::{Map, Set};
pub use placeholders::{PlaceholderKind, Placeholders};
pub use vbucket_state::VbucketState;
pub use wanted_manifest::{WantedCollection, WantedManifest, WantedScope};
