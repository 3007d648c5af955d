//! The flags of paths and of documents. Source: docs/specification/protocol.md, section 12.2.

/// What a path's flags say. Any bits may be set; a request is refused for those that its command
/// does not allow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathFlags(u8);

/// What a request's flags say of the whole document. Any bits may be set, as for paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DocumentFlags(u8);

macro_rules! bits {
    ($flags:ident) => {
        impl $flags {
            /// The flags with these bits of the wire.
            pub const fn from_bits(bits: u8) -> Self {
                Self(bits)
            }

            /// The bits of the wire.
            pub const fn bits(self) -> u8 {
                self.0
            }

            /// With those of `other`.
            #[must_use]
            pub const fn with(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// Whether all of `other` are set.
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }
        }
    };
}

bits!(PathFlags);
bits!(DocumentFlags);

impl PathFlags {
    /// Objects that are missing on the way are made.
    pub const MKDIR_P: Self = Self(0x01);
    /// The path is one of the attributes: its first component is the attribute's key.
    pub const XATTR: Self = Self(0x04);
    /// The value is a macro.
    pub const EXPAND_MACROS: Self = Self(0x10);
    /// The value is bytes, not JSON.
    pub const BINARY: Self = Self(0x20);
}

impl DocumentFlags {
    /// A missing document is made, as are missing objects on the way.
    pub const MKDOC: Self = Self(0x01);
    /// There must be no document; it is made.
    pub const ADD: Self = Self(0x02);
    /// A deleted document is one, too.
    pub const ACCESS_DELETED: Self = Self(0x04);
    /// What is made is a deleted document.
    pub const CREATE_AS_DELETED: Self = Self(0x08);
    /// A deleted document becomes a live one.
    pub const REVIVE: Self = Self(0x10);
    /// The vBucket may be a replica.
    pub const REPLICA_READ: Self = Self(0x20);

    /// Whether a missing document is made.
    pub const fn creates(self) -> bool {
        self.0 & (Self::MKDOC.0 | Self::ADD.0) != 0
    }
}
