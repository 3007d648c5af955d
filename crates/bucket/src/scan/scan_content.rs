//! What a scan is to find of documents.

/// What a scan is to find of documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanContent {
    /// Their keys.
    Keys,
    /// Everything but extended attributes.
    Documents,
    /// Everything.
    DocumentsWithXattrs,
}
