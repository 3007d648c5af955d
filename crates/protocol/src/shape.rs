//! What the requests of a command look like. Source: docs/specification/protocol.md, section 25.

/// Whether a section may, must or must not be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Must not.
    Forbidden,
    /// May.
    Optional,
    /// Must.
    Required,
}

/// What the CAS of a request may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CasRule {
    /// Anything.
    Any,
    /// Only 0.
    Zero,
    /// Anything but 0.
    NonZero,
}

/// The form of a command's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The sizes that the extras may have; `None` for commands whose form nobody checks.
    pub extras_sizes: Option<&'static [u8]>,
    /// The key.
    pub key: Presence,
    /// Whether the key names a document, with its collection when collections were negotiated.
    pub is_document_key: bool,
    /// The value.
    pub value: Presence,
    /// The CAS.
    pub cas: CasRule,
    /// The datatype bits that may be set once they were negotiated.
    pub datatypes: u8,
    /// Whether the vBucket must be 0.
    pub is_vbucket_zero: bool,
}

/// The value may be marked as JSON.
pub(crate) const JSON: u8 = 0b001;
/// The value may be JSON or compressed.
pub(crate) const COMPRESSIBLE: u8 = 0b011;
/// The value may have xattrs as well.
pub(crate) const ALL: u8 = 0b111;

/// Not checked here.
pub(crate) const UNCHECKED: Shape =
    EMPTY.without_extras_rule().optional_key().optional_value().datatypes(ALL);
/// Nothing but a header.
pub(crate) const EMPTY: Shape = Shape {
    extras_sizes: Some(&[0]),
    key: Presence::Forbidden,
    is_document_key: false,
    value: Presence::Forbidden,
    cas: CasRule::Any,
    datatypes: 0,
    is_vbucket_zero: false,
};
/// A document's key.
pub(crate) const DOCUMENT: Shape = EMPTY.document_key();
/// Flags, expiry and a body.
pub(crate) const STORE: Shape = DOCUMENT.extras(&[8]).optional_value().datatypes(COMPRESSIBLE);
/// Delta, initial value and expiry.
pub(crate) const COUNTER: Shape = DOCUMENT.extras(&[20]).cas_zero();
/// A mechanism and its data. That the data is there is judged by the exchange.
pub(crate) const SASL: Shape = EMPTY.key().optional_value().cas_zero().vbucket_zero();
/// A JSON text.
pub(crate) const JSON_VALUE: Shape = EMPTY.value().datatypes(JSON);
/// A path of collections, in the value or, from older clients, in the key.
pub(crate) const PATH: Shape = EMPTY.optional_key().optional_value().vbucket_zero();
/// One path to look up.
pub(crate) const LOOKUP: Shape = DOCUMENT.extras(&[3, 4]).value();
/// One path to change.
pub(crate) const PATH_MUTATION: Shape = DOCUMENT.extras(&[3, 4, 7, 8, 11, 12]).value();
/// Several paths to look up. That there is one is judged later, with a status of its own.
pub(crate) const MULTI_LOOKUP: Shape = DOCUMENT.extras(&[0, 1]).optional_value();
/// Several paths to change.
pub(crate) const MULTI_MUTATION: Shape = DOCUMENT.extras(&[0, 1, 4, 5, 8, 9]).optional_value();
/// A document with the metadata that it has elsewhere.
pub(crate) const WITH_META: Shape =
    DOCUMENT.extras(&[24, 26, 28, 30]).optional_value().datatypes(ALL);
/// A mutation by number.
pub(crate) const RETURN_META: Shape =
    DOCUMENT.extras(&[12]).optional_value().datatypes(COMPRESSIBLE);
/// A document, or what is left of one, on its way to a replica.
pub(crate) const STREAMED: Shape = DOCUMENT.optional_value().datatypes(ALL);
/// A collection or scope that comes or goes.
pub(crate) const SYSTEM_EVENT: Shape = EMPTY.extras(&[13]).optional_key().optional_value();
/// A cluster map with its version and bucket.
pub(crate) const CLUSTER_CONFIG: Shape = JSON_VALUE.extras(&[16]).optional_key();
/// Whether a bucket takes data.
pub(crate) const DATA_LIMIT: Shape = EMPTY.extras(&[2]).key();

impl Shape {
    pub(crate) const fn extras(self, sizes: &'static [u8]) -> Self {
        Self { extras_sizes: Some(sizes), ..self }
    }

    const fn without_extras_rule(self) -> Self {
        Self { extras_sizes: None, ..self }
    }

    pub(crate) const fn key(self) -> Self {
        Self { key: Presence::Required, ..self }
    }

    pub(crate) const fn optional_key(self) -> Self {
        Self { key: Presence::Optional, ..self }
    }

    pub(crate) const fn document_key(self) -> Self {
        Self { key: Presence::Required, is_document_key: true, ..self }
    }

    pub(crate) const fn value(self) -> Self {
        Self { value: Presence::Required, ..self }
    }

    pub(crate) const fn optional_value(self) -> Self {
        Self { value: Presence::Optional, ..self }
    }

    pub(crate) const fn cas_zero(self) -> Self {
        Self { cas: CasRule::Zero, ..self }
    }

    pub(crate) const fn cas_required(self) -> Self {
        Self { cas: CasRule::NonZero, ..self }
    }

    pub(crate) const fn datatypes(self, bits: u8) -> Self {
        Self { datatypes: bits, ..self }
    }

    pub(crate) const fn vbucket_zero(self) -> Self {
        Self { is_vbucket_zero: true, ..self }
    }
}
