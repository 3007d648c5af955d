//! Writes that bring their metadata along, and one that has it told. Source:
//! docs/specification/protocol.md, section 15.

use crate::fields::Fields;
use crate::frame::Frame;

const FORCE_WITH_META: u32 = 0x01;
const FORCE_ACCEPT: u32 = 0x02;
const REGENERATE_CAS: u32 = 0x04;
const SKIP_CONFLICT: u32 = 0x08;
const IS_EXPIRATION: u32 = 0x10;
const ALL_OPTIONS: u32 =
    FORCE_WITH_META | FORCE_ACCEPT | REGENERATE_CAS | SKIP_CONFLICT | IS_EXPIRATION;

/// SET_WITH_META, ADD_WITH_META and DEL_WITH_META:
///
/// ```text
/// flags:4 expiry:4 revision:8 cas:8 [options:4] [extended_size:2] | key | document | extended
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithMeta<'a> {
    /// The client's own.
    pub flags: [u8; 4],
    /// Seconds since the epoch, 0 for never; of a deletion, when that was.
    pub expiry: u32,
    /// How often the document has changed.
    pub revision: u64,
    /// Its name.
    pub cas: u64,
    /// How it is to be taken.
    pub options: WithMetaOptions,
    /// The document, without the extended metadata behind it, which is passed over.
    pub value: &'a [u8],
}

/// How a version with its metadata is to be taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WithMetaOptions(u32);

impl WithMetaOptions {
    /// Whether the sender knows that later versions win in this bucket.
    pub fn accepts_last_write_wins(self) -> bool {
        self.0 & FORCE_ACCEPT != 0
    }

    /// Whether the version gets a CAS of the server.
    pub fn regenerates_cas(self) -> bool {
        self.0 & REGENERATE_CAS != 0
    }

    /// Whether it is taken even if the version that is there wins.
    pub fn skips_conflict_resolution(self) -> bool {
        self.0 & (SKIP_CONFLICT | FORCE_WITH_META) != 0
    }

    /// Whether the deletion came about because the document's time was over.
    pub fn is_expiration(self) -> bool {
        self.0 & IS_EXPIRATION != 0
    }
}

impl<'a> WithMeta<'a> {
    /// Reads extras and value. `None` for options that nobody knows, too.
    pub fn parse(frame: &Frame<'a>) -> Option<Self> {
        let extras = frame.extras;
        let mut fields = Fields::new(extras);
        let (flags, expiry) = (fields.array()?, fields.u32()?);
        let (revision, cas) = (fields.u64()?, fields.u64()?);
        let has_options = matches!(extras.len(), 28 | 30);
        let options = if has_options { fields.u32()? } else { 0 };
        let extended_size = if fields.is_empty() { 0 } else { fields.u16()? };
        let value_size = frame.value.len().checked_sub(extended_size.into())?;
        let value = frame.value.get(..value_size)?;
        let options = Some(options).filter(|options| options & !ALL_OPTIONS == 0)?;
        let options = WithMetaOptions(options);
        fields.finish(Self { flags, expiry, revision, cas, options, value })
    }
}

/// What RETURN_META does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnMetaKind {
    /// As SET.
    Set,
    /// As ADD.
    Add,
    /// As DELETE.
    Delete,
}

/// The extras of RETURN_META: kind:4 flags:4 expiry:4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnMeta {
    /// What is done.
    pub kind: ReturnMetaKind,
    /// The client's own.
    pub flags: [u8; 4],
    /// As in a store.
    pub expiry: u32,
}

impl ReturnMeta {
    /// Decodes the extras.
    pub fn parse(extras: &[u8]) -> Option<Self> {
        let mut fields = Fields::new(extras);
        let kind = match fields.u32()? {
            1 => ReturnMetaKind::Set,
            2 => ReturnMetaKind::Add,
            3 => ReturnMetaKind::Delete,
            _ => return None,
        };
        let (flags, expiry) = (fields.array()?, fields.u32()?);
        fields.finish(Self { kind, flags, expiry })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{HEADER_SIZE, Parsed};

    fn parsed(extras: &[u8], value: &'static [u8]) -> Option<(u32, usize)> {
        let mut bytes = vec![0x80, 0xa2, 0, 0, u8::try_from(extras.len()).unwrap()];
        bytes.resize(HEADER_SIZE, 0);
        bytes[11] = u8::try_from(extras.len() + value.len()).unwrap();
        bytes.extend_from_slice(extras);
        bytes.extend_from_slice(value);
        let Parsed::Complete { frame, .. } = Frame::parse(&bytes, usize::MAX) else {
            panic!("the frame is whole");
        };
        WithMeta::parse(&frame).map(|it| (it.options.0, it.value.len()))
    }

    /// The options and the size of the value, when the request has the form.
    type OptionsAndSize = Option<(u32, usize)>;

    #[test]
    fn the_optional_fields_are_told_by_the_size_of_the_extras() {
        let fixed = [7; 24];
        let with = |more: &[u8]| [&fixed[..], more].concat();
        let cases: [(Vec<u8>, OptionsAndSize); 9] = [
            (with(&[]), Some((0, 6))),
            (with(&[0, 2]), Some((0, 4))),
            (with(&[0, 6]), Some((0, 0))),
            (with(&[0, 7]), None),
            (with(&[0, 0, 0, 0x0c]), Some((0x0c, 6))),
            (with(&[0, 0, 0, 0x20]), None),
            (with(&[0, 0, 0, 0x1f, 0, 3]), Some((0x1f, 3))),
            (with(&[0, 0, 0, 0, 0]), None),
            (fixed[1..].to_vec(), None),
        ];
        for (extras, expected) in cases {
            assert_eq!(parsed(&extras, b"abcdef"), expected, "{extras:?}");
        }
    }

    #[test]
    fn return_meta_knows_three_kinds() {
        let extras = |kind| [0, 0, 0, kind, 1, 2, 3, 4, 0, 0, 0, 9];
        let read = ReturnMeta::parse(&extras(3)).unwrap();
        let expected = ReturnMeta { kind: ReturnMetaKind::Delete, flags: [1, 2, 3, 4], expiry: 9 };
        assert_eq!(read, expected);
        assert_eq!([0, 4].map(|kind| ReturnMeta::parse(&extras(kind))), [None, None]);
        assert_eq!(ReturnMeta::parse(&extras(1)[..11]), None);
    }
}
