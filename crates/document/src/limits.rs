//! What a document may be at most. Source: docs/specification/protocol.md, section 19.1.

/// Bytes of a document name in the default collection.
pub const KEY_SIZE_MAX: usize = 250;
/// Bytes of a document name in any other collection.
pub const COLLECTION_KEY_SIZE_MAX: usize = 246;
/// Bytes of an encoded key: collection id and name.
pub const ENCODED_KEY_SIZE_MAX: usize = 251;
/// Bytes of a document's body and user xattrs.
pub const VALUE_SIZE_MAX: usize = 20 * 1024 * 1024;
/// Bytes of system xattrs in addition to [`VALUE_SIZE_MAX`].
pub const SYSTEM_XATTR_SIZE_MAX: usize = 1024 * 1024;
/// Bytes of what is stored of a document: the length word of its xattrs, those and the body.
pub const STORED_VALUE_SIZE_MAX: usize = 4 + VALUE_SIZE_MAX + SYSTEM_XATTR_SIZE_MAX;
/// Bytes of a bucket's name.
pub const BUCKET_NAME_SIZE_MAX: usize = 100;
/// vBuckets of one bucket: clients mask 15 bits of the hash.
pub const VBUCKET_COUNT_MAX: u16 = 32768;
/// Entries of a failover table.
pub const FAILOVER_ENTRIES_MAX: usize = 25;
/// Seconds that a lock lasts when the client names none (or too many).
pub const LOCK_SECONDS_DEFAULT: u32 = 15;
/// Seconds that a lock lasts at most.
pub const LOCK_SECONDS_MAX: u32 = 30;
