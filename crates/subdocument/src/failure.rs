//! Why a request, or one of its paths, was not carried out.

/// What the client hears: the number of each is that of the status on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Failure {
    /// There is no such document.
    DocumentNotFound = 0x01,
    /// There is such a document, and there must be none; or it is another version of it.
    DocumentExists = 0x02,
    /// The document would exceed what documents may be.
    TooBig = 0x03,
    /// The request is not well-formed.
    InvalidArgument = 0x04,
    /// The client may not touch attributes of the system.
    AccessDenied = 0x24,
    /// The client has not agreed on attributes.
    NotSupported = 0x83,
    /// An attribute's key, or its binary value, is malformed.
    AttributeInvalid = 0x87,
    /// There is nothing at the path.
    PathNotFound = 0xc0,
    /// The path goes through something of another kind.
    PathMismatch = 0xc1,
    /// The path is malformed, or its last component is not what the command needs.
    PathInvalid = 0xc2,
    /// The path has too many components.
    PathTooLong = 0xc3,
    /// The document is nested too deeply.
    DocumentTooDeep = 0xc4,
    /// The value is no JSON for this place, or a counter would overflow.
    CannotInsert = 0xc5,
    /// The document is no JSON.
    NotJson = 0xc6,
    /// The number in the document is no `i64`.
    NumberOutOfRange = 0xc7,
    /// The delta of a counter is no `i64`, or zero.
    DeltaInvalid = 0xc8,
    /// There is something at the path already.
    PathExists = 0xc9,
    /// With the value the document would be nested too deeply.
    ValueTooDeep = 0xca,
    /// The commands cannot stand in one request, or there are too many or none.
    InvalidCombination = 0xcb,
    /// The flags of a path exclude each other.
    InvalidFlagCombination = 0xce,
    /// There is no such macro.
    UnknownMacro = 0xd0,
    /// There is no such virtual attribute.
    UnknownVirtualAttribute = 0xd1,
    /// Virtual attributes cannot be changed.
    VirtualAttribute = 0xd2,
    /// A path in the attributes comes after one in the body.
    AttributesComeFirst = 0xd4,
    /// The virtual attribute of a macro has no such field.
    UnknownDocumentMacro = 0xd5,
    /// Only a deleted document can be revived.
    DocumentIsAlive = 0xd6,
    /// A deleted document cannot have a body.
    DeletedHasBody = 0xd7,
    /// The value at the path holds no bytes.
    NotBinary = 0xd8,
}

impl Failure {
    /// The number of the status on the wire.
    pub fn code(self) -> u16 {
        self as u16
    }
}
