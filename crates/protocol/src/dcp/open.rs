//! How a connection becomes one of replication. Source: docs/specification/protocol.md,
//! section 20.2.

use serde::Deserialize;

use crate::fields::Fields;
use crate::frame::Frame;
use crate::validate::Invalid;

/// Bytes of a connection's name, at most.
const NAME_SIZE_MAX: usize = 200;

/// What kind of connection it is to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenFlags(pub u32);

impl OpenFlags {
    /// The server sends the data.
    pub const PRODUCER: Self = Self(0x01);
    /// Values have their xattrs.
    pub const XATTRS: Self = Self(0x04);
    /// Documents come without their body, as what is then left.
    pub const NO_VALUE: Self = Self(0x08);
    /// Deletions say when.
    pub const DELETE_TIMES: Self = Self(0x20);
    /// Documents come without their body, marked as what they are.
    pub const NO_VALUE_UNDERLYING_DATATYPE: Self = Self(0x40);
    /// Tombstones have the xattrs of users, too.
    pub const DELETED_USER_XATTRS: Self = Self(0x100);
    /// The first backfill has no tombstones.
    pub const SKIP_DELETES: Self = Self(0x200);

    const KNOWN: u32 = 0x36d;

    /// Whether all bits of `other` are set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These and `other`.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn check(self) -> Result<(), Invalid> {
        let both_ways = Self::NO_VALUE.with(Self::NO_VALUE_UNDERLYING_DATATYPE);
        if self.0 & !Self::KNOWN != 0 {
            return Err(Invalid::argument("a flag is unknown or retired"));
        }
        if self.contains(both_ways) {
            return Err(Invalid::argument("a document is left out in one way only"));
        }
        if self.contains(Self::DELETED_USER_XATTRS) && !self.contains(Self::XATTRS) {
            return Err(Invalid::argument("xattrs of tombstones come with those of documents"));
        }
        if self.contains(Self::SKIP_DELETES) && !self.contains(Self::PRODUCER) {
            return Err(Invalid::argument("only a producer leaves out deletions"));
        }
        Ok(())
    }
}

/// The connection becomes one of replication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open<'a> {
    /// What kind.
    pub flags: OpenFlags,
    /// What it is called; 1 to 200 bytes.
    pub name: &'a [u8],
    /// Of a consumer, a JSON text with its name among the nodes.
    pub value: &'a [u8],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConsumerJson {
    consumer_name: String,
}

impl<'a> Open<'a> {
    /// The name among the nodes that a consumer says here, if it does.
    ///
    /// # Errors
    /// What is answered where the value says anything else.
    pub fn consumer_name(&self) -> Result<Option<String>, Invalid> {
        if self.value.is_empty() {
            return Ok(None);
        }
        let json: Option<ConsumerJson> = serde_json::from_slice(self.value).ok();
        let name = json.map(|json| json.consumer_name).filter(|name| !name.is_empty());
        let context = "the value is a JSON object with a consumer_name";
        name.map(Some).ok_or(Invalid::argument(context))
    }

    pub(super) fn parse(frame: &Frame<'a>) -> Result<Self, Invalid> {
        let mut fields = Fields::new(frame.extras);
        fields.u32();
        let flags = fields.u32().and_then(|flags| fields.finish(OpenFlags(flags)));
        let flags = flags.ok_or(Invalid::argument("the extras have the wrong size"))?;
        flags.check()?;
        if frame.key.is_empty() || frame.key.len() > NAME_SIZE_MAX {
            return Err(Invalid::argument("a connection's name has 1 to 200 bytes"));
        }
        if !frame.value.is_empty() && flags.contains(OpenFlags::PRODUCER) {
            return Err(Invalid::argument("only a consumer says more than its name"));
        }
        Ok(Self { flags, name: frame.key, value: frame.value })
    }
}
