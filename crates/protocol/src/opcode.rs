//! Every command there is. Source: docs/specification/protocol.md, section 25.

mod table;

pub use table::Opcode;

use crate::shape::Shape;

/// Who needs a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Every client library.
    Core,
    /// Tools and the less usual calls of client libraries.
    Ext,
    /// The cluster manager and operators.
    Admin,
    /// Replication.
    Dcp,
    /// Few, or nobody but tests.
    Rare,
    /// Nobody any more: the answer is NOT_SUPPORTED.
    Retired,
}

/// What may be done with a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(u8);

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpcodeInfo {
    /// The name by which clients and people know it.
    pub name: &'static str,
    /// Who needs it.
    pub class: Class,
    /// What may be done with it.
    pub flags: Flags,
    /// What its requests look like.
    pub shape: Shape,
}

impl Flags {
    const NONE: Self = Self(0);

    const fn dur(self) -> Self {
        Self(self.0 | 1)
    }

    const fn ttl(self) -> Self {
        Self(self.0 | 2)
    }

    const fn ro(self) -> Self {
        Self(self.0 | 4)
    }

    const fn q(self) -> Self {
        Self(self.0 | 8)
    }

    /// Whether requests may ask for durability.
    pub const fn accepts_durability(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether requests may ask to keep the expiry.
    pub const fn accepts_preserve_ttl(self) -> bool {
        self.0 & 2 != 0
    }

    /// Whether, with unordered execution, the request may overtake others and be overtaken.
    pub const fn is_reorderable(self) -> bool {
        self.0 & 4 != 0
    }

    /// Whether the usual outcome is not answered: success of mutations, a miss of gets.
    pub const fn is_quiet(self) -> bool {
        self.0 & 8 != 0
    }
}

impl Opcode {
    /// The number on the wire.
    pub fn byte(self) -> u8 {
        self as u8
    }

    /// The name by which clients and people know it.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// What may be done with it.
    pub fn flags(self) -> Flags {
        self.info().flags
    }

    /// The command that does the same and is always answered; itself when it is not quiet.
    #[must_use]
    pub fn loud(self) -> Self {
        match self {
            Self::GetQ => Self::Get,
            Self::GetkQ => Self::Getk,
            Self::GatQ => Self::Gat,
            Self::SetQ => Self::Set,
            Self::AddQ => Self::Add,
            Self::ReplaceQ => Self::Replace,
            Self::DeleteQ => Self::Delete,
            Self::IncrementQ => Self::Increment,
            Self::DecrementQ => Self::Decrement,
            Self::QuitQ => Self::Quit,
            Self::AppendQ => Self::Append,
            Self::PrependQ => Self::Prepend,
            Self::GetQMeta => Self::GetMeta,
            Self::SetQWithMeta => Self::SetWithMeta,
            Self::AddQWithMeta => Self::AddWithMeta,
            Self::DelQWithMeta => Self::DelWithMeta,
            other => other,
        }
    }

    /// Whether the command belongs to replication; such connections have rules of their own.
    pub fn is_dcp(self) -> bool {
        matches!(self.info().class, Class::Dcp)
            || matches!(self, Self::DcpCacheTransfer | Self::DcpCacheTransferEnd)
    }

    /// Whether the command is about parts of a document.
    pub fn is_subdoc(self) -> bool {
        (Self::SubdocGet..=Self::SubdocReplaceBodyWithXattr).contains(&self)
    }
}

#[cfg(test)]
mod tests;
