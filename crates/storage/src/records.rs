//! What a vBucket's file says beside the format: documents, the vBucket's state, its collections.

pub(crate) mod collection_statistics;
pub(crate) mod disk_document;
pub(crate) mod document_view;
pub(crate) mod dropped_collections;
pub(crate) mod prepares;
pub(crate) mod vbucket_record;
