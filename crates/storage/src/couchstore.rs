//! The couchstore file format, byte for byte: what `docs/file-format.md` draws.
//!
//! A file is an append-only sequence of chunks in 4096-byte blocks. Three B+trees (documents by
//! id, documents by seqno, local documents) hang on a header; each commit appends what changed and
//! a new header. Reading bytes that somebody else wrote, or that a disk has damaged, gives
//! [`crate::error::StorageError::Corrupt`], never a panic and never an endless walk.

mod body_compression;
mod btree_build;
pub(crate) mod btree_read;
mod btree_write;
pub(crate) mod bytes;
mod checksum;
pub(crate) mod chunk;
mod commit;
mod copy;
mod document_info;
mod file;
pub(crate) mod header;
pub mod layout;
mod local_document;
pub(crate) mod node;
mod read_ahead;
pub(crate) mod scratch;
#[cfg(test)]
mod tests;

pub(crate) use commit::{Commit, NewDocument, PreparedCommit};
pub(crate) use copy::{Verdict, copy};
pub use document_info::DocumentInfo;
pub(crate) use document_info::{BODY_IS_SNAPPY, REV_META_SIZE_MAX, RevMeta};
pub(crate) use file::BodyReader;
pub use file::{CouchFile, OpenReport, Reader};
pub use header::FileHeader;
pub(crate) use local_document::LocalEdit;
pub(crate) use scratch::Scratch;
