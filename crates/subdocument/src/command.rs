//! What can be done with a path, and what each command allows. Source:
//! docs/specification/protocol.md, section 12.1.

use crate::flags::{DocumentFlags, PathFlags};

/// A command of a path, or of the whole document beside paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Command {
    /// The whole body.
    GetBody = 0x00,
    /// Another body.
    SetBody = 0x01,
    /// Deletes the document.
    DeleteBody = 0x04,
    /// The value.
    Get = 0xc5,
    /// Whether there is a value.
    Exists = 0xc6,
    /// A new name in an object.
    DictAdd = 0xc7,
    /// A name in an object, new or not.
    DictUpsert = 0xc8,
    /// Takes a value away.
    Delete = 0xc9,
    /// Another value.
    Replace = 0xca,
    /// Values at an array's end.
    ArrayPushLast = 0xcb,
    /// Values at an array's beginning.
    ArrayPushFirst = 0xcc,
    /// Values in front of an element.
    ArrayInsert = 0xcd,
    /// A value at an array's end, unless the array has it.
    ArrayAddUnique = 0xce,
    /// Adds to a number.
    Counter = 0xcf,
    /// How many entries an array or object has.
    GetCount = 0xd2,
    /// Another body: what is in an attribute.
    ReplaceBodyWithXattr = 0xd3,
}

/// Whether a command has something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Never,
    Perhaps,
    Always,
}

/// What a request with a command may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traits {
    pub(crate) is_mutation: bool,
    pub(crate) path_flags: PathFlags,
    pub(crate) document_flags: DocumentFlags,
    pub(crate) value: Need,
    pub(crate) path: Need,
}

const MKDIR: u8 = PathFlags::MKDIR_P.bits();
const XATTR: u8 = PathFlags::XATTR.bits();
const MACRO: u8 = PathFlags::EXPAND_MACROS.bits();
const BINARY: u8 = PathFlags::BINARY.bits();

const LOOKUPS: u8 = DocumentFlags::ACCESS_DELETED.bits()
    | DocumentFlags::REVIVE.bits()
    | DocumentFlags::REPLICA_READ.bits();
const TOUCHES_DELETED: u8 = DocumentFlags::ACCESS_DELETED.bits() | DocumentFlags::REVIVE.bits();
const REPLACES: u8 = TOUCHES_DELETED | DocumentFlags::ADD.bits();
const CREATES: u8 = DocumentFlags::MKDOC.bits() | DocumentFlags::ADD.bits();
const INSERTS: u8 = REPLACES | DocumentFlags::CREATE_AS_DELETED.bits();
const ADDS: u8 = INSERTS | CREATES;

impl Command {
    /// The command with this opcode, which stands in a request of its own or in a multi request.
    pub fn from_opcode(opcode: u8) -> Option<Self> {
        const ALL: [Command; 16] = [
            Command::GetBody,
            Command::SetBody,
            Command::DeleteBody,
            Command::Get,
            Command::Exists,
            Command::DictAdd,
            Command::DictUpsert,
            Command::Delete,
            Command::Replace,
            Command::ArrayPushLast,
            Command::ArrayPushFirst,
            Command::ArrayInsert,
            Command::ArrayAddUnique,
            Command::Counter,
            Command::GetCount,
            Command::ReplaceBodyWithXattr,
        ];
        ALL.into_iter().find(|command| *command as u8 == opcode)
    }

    /// Whether it is about the whole document: only beside others, and without a path.
    pub(crate) fn is_of_body(self) -> bool {
        matches!(self, Self::GetBody | Self::SetBody | Self::DeleteBody)
    }

    /// Whether its path leads to an array that the command may make.
    pub(crate) fn is_of_array(self) -> bool {
        matches!(self, Self::ArrayPushLast | Self::ArrayPushFirst | Self::ArrayAddUnique)
    }

    #[rustfmt::skip]
    pub(crate) fn traits(self) -> Traits {
        use Need::{Always, Never, Perhaps};
        match self {
            Self::GetBody => row(false, 0, LOOKUPS, Never, Never),
            Self::Get => row(false, XATTR | BINARY, LOOKUPS, Never, Always),
            Self::Exists => row(false, XATTR, LOOKUPS, Never, Always),
            Self::GetCount => row(false, XATTR, LOOKUPS, Never, Perhaps),
            Self::SetBody => row(true, 0, CREATES, Always, Never),
            Self::DeleteBody => row(true, 0, TOUCHES_DELETED, Never, Never),
            Self::DictAdd | Self::DictUpsert =>
                row(true, MKDIR | XATTR | MACRO | BINARY, ADDS, Always, Always),
            Self::Delete => row(true, XATTR, TOUCHES_DELETED, Never, Always),
            Self::Replace => row(true, XATTR | MACRO | BINARY, REPLACES, Always, Always),
            Self::ArrayPushLast | Self::ArrayPushFirst =>
                row(true, MKDIR | XATTR | MACRO, ADDS, Always, Perhaps),
            Self::ArrayInsert => row(true, XATTR | MACRO, INSERTS, Always, Always),
            Self::ArrayAddUnique => row(true, MKDIR | XATTR, ADDS, Always, Perhaps),
            Self::Counter => row(true, MKDIR | XATTR, ADDS, Always, Always),
            Self::ReplaceBodyWithXattr =>
                row(true, XATTR | BINARY, TOUCHES_DELETED, Never, Always),
        }
    }
}

impl Need {
    /// Whether `size` bytes are what is needed.
    pub(crate) fn is_met_by(self, size: usize) -> bool {
        match self {
            Self::Never => size == 0,
            Self::Perhaps => true,
            Self::Always => size > 0,
        }
    }
}

fn row(is_mutation: bool, path: u8, document: u8, value: Need, path_need: Need) -> Traits {
    Traits {
        is_mutation,
        path_flags: PathFlags::from_bits(path),
        document_flags: DocumentFlags::from_bits(document),
        value,
        path: path_need,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opcodes_and_commands_are_one_to_one() {
        let commands = (0..=u8::MAX).filter_map(Command::from_opcode);
        assert_eq!(commands.count(), 16);
        for opcode in [0x00, 0x04, 0xc5, 0xd2, 0xd3] {
            assert_eq!(Command::from_opcode(opcode).map(|command| command as u8), Some(opcode));
        }
        assert_eq!(Command::from_opcode(0xd0), None);
    }
}
