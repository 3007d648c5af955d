//! Writes that bring their metadata along, and one that has it told. Source:
//! docs/specification/protocol.md, section 15.

use serde::Deserialize;

use crate::fields::Fields;
use crate::frame::Frame;
use crate::validate::Invalid;

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
    /// These bits, if each of them means something.
    fn known(options: u32) -> Option<Self> {
        (options & !ALL_OPTIONS == 0).then_some(Self(options))
    }

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
        // Which of the two optional fields are there is told by the size alone.
        let has_options = matches!(extras.len(), 28 | 30);
        let options = if has_options { fields.u32()? } else { 0 };
        let extended_size = if fields.is_empty() { 0 } else { fields.u16()? };
        let value_size = frame.value.len().checked_sub(extended_size.into())?;
        let value = frame.value.get(..value_size)?;
        let options = WithMetaOptions::known(options)?;
        fields.finish(Self { flags, expiry, revision, cas, options, value })
    }
}

/// What MUTATE_WITH_META does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MetaCommand {
    /// As SET_WITH_META.
    Set,
    /// As ADD_WITH_META.
    Add,
    /// As DEL_WITH_META.
    Delete,
}

/// MUTATE_WITH_META:
///
/// ```text
/// json_size:4 | key | document | json
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MutateWithMeta<'a> {
    /// What is done.
    pub command: MetaCommand,
    /// Metadata and document.
    pub version: WithMeta<'a>,
    /// Offsets of texts in the document in whose place the CAS is written.
    pub cas_offsets: Vec<usize>,
    /// The same for the seqno.
    pub seqno_offsets: Vec<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MutateJson {
    command: MetaCommand,
    cas: Number,
    rev_seqno: Number,
    #[serde(default)]
    flags: Number,
    #[serde(default)]
    expiration: Number,
    #[serde(default)]
    options: Number,
    #[serde(default)]
    cas_offsets: Vec<usize>,
    #[serde(default)]
    seqno_offsets: Vec<usize>,
}

/// A number, or a text of `0x` and hexadecimal digits.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(try_from = "NumberJson")]
struct Number(u64);

#[derive(Deserialize)]
#[serde(untagged)]
enum NumberJson {
    Number(u64),
    Text(String),
}

impl TryFrom<NumberJson> for Number {
    type Error = &'static str;

    fn try_from(json: NumberJson) -> Result<Self, Self::Error> {
        match json {
            NumberJson::Number(number) => Ok(Self(number)),
            NumberJson::Text(text) => {
                // `from_str_radix` takes a sign, too.
                let digits = text.strip_prefix("0x").filter(|digits| !digits.starts_with('+'));
                let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
                number.map(Self).ok_or("a text is `0x` and hexadecimal digits")
            }
        }
    }
}

impl Number {
    fn to_u32(self) -> Option<u32> {
        u32::try_from(self.0).ok()
    }
}

impl<'a> MutateWithMeta<'a> {
    /// Reads extras and value.
    ///
    /// # Errors
    /// What is answered with EINVAL.
    pub fn parse(frame: &Frame<'a>) -> Result<Self, Invalid> {
        const BAD_JSON: Invalid = Invalid::argument(
            "the value ends in a JSON object with command, cas, rev_seqno and, where they are \
             not 0, flags, expiration, options, cas_offsets and seqno_offsets",
        );
        let mut fields = Fields::new(frame.extras);
        let json_size = fields.u32().and_then(|size| fields.finish(size));
        let json_size = json_size.and_then(|size| usize::try_from(size).ok());
        let value_size = json_size.and_then(|size| frame.value.len().checked_sub(size));
        let split = value_size.and_then(|size| frame.value.split_at_checked(size));
        let (value, json) = split.ok_or(Invalid::argument("the metadata exceed the value"))?;
        let json: MutateJson = serde_json::from_slice(json).map_err(|_| BAD_JSON)?;
        let numbers = [json.flags, json.expiration, json.options].map(Number::to_u32);
        let [Some(flags), Some(expiry), Some(options)] = numbers else { return Err(BAD_JSON) };
        let options = WithMetaOptions::known(options)
            .ok_or(Invalid::argument("there are options that nobody knows"))?;
        let version = WithMeta {
            flags: flags.to_be_bytes(),
            expiry,
            revision: json.rev_seqno.0,
            cas: json.cas.0,
            options,
            value,
        };
        let MutateJson { command, cas_offsets, seqno_offsets, .. } = json;
        let has_places = !cas_offsets.is_empty() || !seqno_offsets.is_empty();
        if has_places && !options.regenerates_cas() {
            let context = "offsets are for versions whose CAS is made here: REGENERATE_CAS";
            return Err(Invalid::argument(context));
        }
        Ok(Self { command, version, cas_offsets, seqno_offsets })
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
    use crate::status::Status;

    fn bytes_of(opcode: u8, extras: &[u8], value: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x80, opcode, 0, 0, u8::try_from(extras.len()).unwrap()];
        bytes.resize(HEADER_SIZE, 0);
        let body_size = u16::try_from(extras.len() + value.len()).unwrap();
        bytes[10..12].copy_from_slice(&body_size.to_be_bytes());
        bytes.extend_from_slice(extras);
        bytes.extend_from_slice(value);
        bytes
    }

    fn parsed(extras: &[u8], value: &'static [u8]) -> Option<(u32, usize)> {
        let bytes = bytes_of(0xa2, extras, value);
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

    /// What MUTATE_WITH_META is read as: command, flags, expiry, revision, CAS, options, value and
    /// the number of offsets.
    type Mutated = (MetaCommand, [u8; 4], u32, u64, u64, u32, Vec<u8>, usize);

    fn mutated(json: &str) -> Result<Mutated, Status> {
        let size = u32::try_from(json.len()).unwrap().to_be_bytes();
        let bytes = bytes_of(0x4b, &size, format!("document{json}").as_bytes());
        let Parsed::Complete { frame, .. } = Frame::parse(&bytes, usize::MAX) else {
            panic!("the frame is whole");
        };
        let read = MutateWithMeta::parse(&frame).map_err(|invalid| invalid.status)?;
        let WithMeta { flags, expiry, revision, cas, options, value } = read.version;
        let offset_count = read.cas_offsets.len() + read.seqno_offsets.len();
        Ok((read.command, flags, expiry, revision, cas, options.0, value.to_vec(), offset_count))
    }

    #[test]
    fn the_metadata_of_a_mutation_are_json_behind_the_document() {
        use MetaCommand::{Add, Delete, Set};
        let document = b"document".to_vec();
        for (json, expected) in [
            (
                r#"{"command":"set","cas":7,"rev_seqno":8}"#,
                (Set, [0; 4], 0, 8, 7, 0, document.clone(), 0),
            ),
            (
                r#"{"command":"add","cas":"0x7f","rev_seqno":"0xA","flags":258,"expiration":9}"#,
                (Add, [0, 0, 1, 2], 9, 10, 0x7f, 0, document.clone(), 0),
            ),
            (
                r#"{"command":"delete","cas":1,"rev_seqno":1,"options":28,
                    "cas_offsets":[1,2],"seqno_offsets":[3]}"#,
                (Delete, [0; 4], 0, 1, 1, 28, document, 3),
            ),
        ] {
            assert_eq!(mutated(json), Ok(expected), "{json}");
        }
        for json in [
            "",
            "{}",
            "[]",
            r#"{"command":"get","cas":7,"rev_seqno":8}"#,
            r#"{"command":"set","rev_seqno":8}"#,
            r#"{"command":"set","cas":7}"#,
            r#"{"command":"set","cas":-7,"rev_seqno":8}"#,
            r#"{"command":"set","cas":"7","rev_seqno":8}"#,
            r#"{"command":"set","cas":"0x+7","rev_seqno":8}"#,
            r#"{"command":"set","cas":"0x","rev_seqno":8}"#,
            r#"{"command":"set","cas":7,"rev_seqno":8,"flags":4294967296}"#,
            r#"{"command":"set","cas":7,"rev_seqno":8,"options":32}"#,
            r#"{"command":"set","cas":7,"rev_seqno":8,"more":0}"#,
            r#"{"command":"set","cas":7,"rev_seqno":8,"options":8,"cas_offsets":[1]}"#,
            r#"{"command":"set","cas":7,"rev_seqno":8,"options":12,"cas_offsets":[-1]}"#,
        ] {
            assert_eq!(mutated(json), Err(Status::Einval), "{json}");
        }
        let bytes = bytes_of(0x4b, &[0, 0, 0, 9], b"document");
        let Parsed::Complete { frame, .. } = Frame::parse(&bytes, usize::MAX) else {
            panic!("the frame is whole");
        };
        assert!(MutateWithMeta::parse(&frame).is_err(), "there is less than that");
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
