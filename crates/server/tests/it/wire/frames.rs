//! How frames are written in cases, requests and responses.

use blessed::{Line, Names, bytes_of, number_of, shown};
use protocol::{Header, Magic, Opcode, Status};

use crate::support::{RawFrame, frame, set};

/// Requests that every client begins with, and that succeed.
pub(super) struct Greeting(pub(super) RawFrame);

impl Greeting {
    pub(super) fn hello(features: &[u8]) -> Self {
        Self(frame(Opcode::Hello.byte()).key(b"wire").value(features))
    }

    pub(super) fn login() -> Self {
        Self(frame(Opcode::SaslAuth.byte()).key(b"PLAIN").value(b"\0user\0password"))
    }

    pub(super) fn bucket() -> Self {
        Self(frame(Opcode::SelectBucket.byte()).key(b"default"))
    }
}

/// What stands for numbers that nobody chose.
pub(super) struct KnownNames {
    cas: Names,
    /// Scans in the order in which they were made, in hexadecimal digits: the first one is `scan1`.
    scans: Vec<String>,
}

impl Default for KnownNames {
    fn default() -> Self {
        Self { cas: Names::new("cas"), scans: Vec::new() }
    }
}

impl KnownNames {
    /// A text with the scans that are named in it.
    fn with_scans(&self, text: &str) -> String {
        let named = self.scans.iter().enumerate();
        named.fold(text.to_owned(), |text, (index, scan)| {
            text.replace(&format!("scan{}", index + 1), scan)
        })
    }

    fn name_scan(&mut self, id: &[u8]) -> String {
        self.scans.push(id.iter().map(|byte| format!("{byte:02x}")).collect());
        format!("scan{}", self.scans.len())
    }
}

/// The frame that the first word and the fields of a line describe. Stores have extras without
/// flags and expiry unless it says otherwise. Sizes of sections may be said to be others than they
/// are.
pub(super) fn frame_of(line: &Line<'_>, names: &KnownNames) -> Vec<u8> {
    let opcode = opcode(line.word(0));
    let mut request = frame(opcode);
    if matches!(opcode, 0x01..=0x03 | 0x11..=0x13) {
        request = request.extras(&set(b"", b"").extras);
    }
    let mut sizes = Vec::new();
    for (name, text) in &line.fields {
        match *name {
            "magic" => request.magic = small(text),
            "datatype" => request.datatype = small(text),
            "vbucket" => request.vbucket = small(text),
            "opaque" => request.opaque = small(text),
            "cas" => request.cas = names.cas.number(text),
            "framing" => request = request.framing(&bytes_of(text)),
            "extras" => request.extras = bytes_of(&names.with_scans(text)),
            "key" => request.key = bytes_of(text),
            "value" => request.value = bytes_of(text),
            _ => sizes.push((*name, number_of(text))),
        }
    }
    let mut bytes = request.bytes();
    for (name, size) in sizes {
        let (at, width) = match name {
            "key_size" => (2, 2),
            "extras_size" => (4, 1),
            "body_size" => (8, 4),
            _ => panic!("`{}`: there is no field `{name}`", line.text),
        };
        bytes[at..at + width].copy_from_slice(&size.to_be_bytes()[8 - width..]);
    }
    bytes
}

fn opcode(word: &str) -> u8 {
    let known = Opcode::ALL.iter().find(|opcode| opcode.name() == word);
    known.map_or_else(|| small(word), |opcode| opcode.byte())
}

fn small<T: TryFrom<u64, Error: std::fmt::Debug>>(text: &str) -> T {
    T::try_from(number_of(text)).unwrap()
}

/// What the server has sent, frame by frame; what is none is shown as bytes.
pub(super) fn shown_frames(mut bytes: &[u8], names: &mut KnownNames) -> Vec<String> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let Ok(Some(header)) = Header::parse(bytes, usize::MAX) else {
            frames.push(format!("bytes {}", shown(bytes)));
            break;
        };
        assert!(bytes.len() >= header.frame_size(), "half a frame was sent: {header:?}");
        frames.push(shown_frame(&header, bytes, names));
        bytes = &bytes[header.frame_size()..];
    }
    frames
}

fn shown_frame(header: &Header, bytes: &[u8], names: &mut KnownNames) -> String {
    let opcode =
        Opcode::from_byte(header.opcode).map_or_else(|| hex(header.opcode), |it| it.name().into());
    let mut text = match header.magic {
        Magic::ClientResponse | Magic::AltClientResponse => {
            let status = Status::from_code(header.vbucket_or_status);
            let code = || format!("{:#x}", header.vbucket_or_status);
            format!("{} {opcode}", status.map_or_else(code, |status| status.name().to_owned()))
        }
        Magic::ServerRequest => format!("server asks {}", hex(header.opcode)),
        Magic::ClientRequest => format!("asks {opcode} vbucket={}", header.vbucket_or_status),
        other => format!("{other:?} {opcode}"),
    };
    let mut field = |name, value: String| text += &format!(" {name}={value}");
    if header.opaque != 0 {
        field("opaque", header.opaque.to_string());
    }
    if header.cas != 0 {
        field("cas", names.cas.name(header.cas));
    }
    if header.datatype != 0 {
        field("datatype", header.datatype.to_string());
    }
    let sections = [
        ("framing", header.framing_extras()),
        ("extras", header.extras()),
        ("key", header.key()),
        ("value", header.value_offset()..header.frame_size()),
    ];
    for (name, range) in sections {
        let section = &bytes[range];
        if !section.is_empty() && matches!(name, "framing" | "extras") {
            field(name, section.iter().map(|byte| format!("{byte:02x}")).collect());
        } else if name == "value" && is_new_scan(header) {
            field(name, names.name_scan(section));
        } else if !section.is_empty() {
            field(name, shown(section));
        }
    }
    text
}

fn is_new_scan(header: &Header) -> bool {
    header.opcode == Opcode::RangeScanCreate.byte() && header.vbucket_or_status == 0
}

fn hex(number: u8) -> String {
    format!("{number:#04x}")
}
