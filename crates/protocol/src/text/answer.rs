//! Writing answers of the text protocol. Values are the caller's to send: a large one leaves from
//! where it lies, with [`LINE_END`] behind it.

use std::io::Write;

use super::key::Name;
use super::meta::{Meta, MetaVerb};
use super::request::TextError;

/// Ends lines and data blocks.
pub const LINE_END: &[u8] = b"\r\n";
/// Ends the answers to a retrieval and to `stats`.
pub const END: &str = "END";

/// What a command that answers with one word has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextOutcome {
    /// The document is stored.
    Stored,
    /// It is not, as the command wants it.
    NotStored,
    /// It is another version.
    Exists,
    /// There is no such document.
    NotFound,
    /// The document is gone.
    Deleted,
    /// The document has another expiry.
    Touched,
    /// Done.
    Ok,
    /// Statistics begin anew.
    Reset,
}

impl TextOutcome {
    /// The word of classic commands.
    pub fn word(self) -> &'static str {
        match self {
            Self::Stored => "STORED",
            Self::NotStored => "NOT_STORED",
            Self::Exists => "EXISTS",
            Self::NotFound => "NOT_FOUND",
            Self::Deleted => "DELETED",
            Self::Touched => "TOUCHED",
            Self::Ok => "OK",
            Self::Reset => "RESET",
        }
    }

    /// The code of meta commands.
    pub fn code(self) -> &'static str {
        match self {
            Self::NotStored => "NS",
            Self::Exists => "EX",
            Self::NotFound => "NF",
            Self::Stored | Self::Deleted | Self::Touched | Self::Ok | Self::Reset => "HD",
        }
    }
}

impl TextError {
    /// The line that says so.
    pub fn line(self) -> &'static str {
        match self {
            Self::UnknownCommand => "ERROR",
            Self::BadFormat => "CLIENT_ERROR bad command line format",
            Self::BadDelete => {
                "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]"
            }
            Self::BadDelta => "CLIENT_ERROR invalid numeric delta argument",
            Self::BadExptime => "CLIENT_ERROR invalid exptime argument",
            Self::BadChunk => "CLIENT_ERROR bad data chunk",
            Self::TooLarge => "SERVER_ERROR object too large for cache",
            Self::LineTooLong => "CLIENT_ERROR line too long",
            Self::BadEncoding => "CLIENT_ERROR error decoding key",
            Self::InvalidFlag => "CLIENT_ERROR invalid flag",
            Self::UnsupportedFlag => "CLIENT_ERROR unsupported flag",
            Self::DuplicateFlag => "CLIENT_ERROR duplicate flag",
            Self::BadToken => "CLIENT_ERROR bad token in command line format",
            Self::OpaqueTooLong => "CLIENT_ERROR opaque token too long",
            Self::InvalidMode => "CLIENT_ERROR invalid mode for M token",
        }
    }
}

/// Appends a line.
pub fn line(out: &mut Vec<u8>, line: &str) {
    out.extend_from_slice(line.as_bytes());
    out.extend_from_slice(LINE_END);
}

/// Appends a line of a number.
pub fn number(out: &mut Vec<u8>, number: u64) {
    append(out, format_args!("{number}\r\n"));
}

/// Appends the line in front of a value.
pub fn value_head(out: &mut Vec<u8>, key: &[u8], flags: u32, size: usize, cas: Option<u64>) {
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    append(out, format_args!(" {flags} {size}"));
    if let Some(cas) = cas {
        append(out, format_args!(" {cas}"));
    }
    out.extend_from_slice(LINE_END);
}

/// Appends a statistic. What would end its line early is left out.
pub fn statistic(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(b"STAT ");
    for text in [name, " ", value] {
        out.extend(text.bytes().filter(|byte| !b"\r\n".contains(byte)));
    }
    out.extend_from_slice(LINE_END);
}

/// What is known of the document that a meta command is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Its version.
    pub cas: u64,
    /// The client's own.
    pub flags: u32,
    /// Bytes of its value.
    pub size: usize,
    /// Seconds until it is over; `None` for never.
    pub ttl_seconds: Option<u32>,
}

/// What a client that reads a document is told about making it anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recaching {
    /// `W`: it is this client that is to do so.
    pub has_won: bool,
    /// `X`: what is there is stale.
    pub is_stale: bool,
    /// `Z`: another client does so.
    pub is_taken: bool,
}

/// How an answer to a meta command begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaHead {
    /// A code alone.
    Code(&'static str),
    /// A value of so many bytes follows.
    Value(usize),
}

/// Appends the line of an answer to a meta command: its flags are those that were asked for, in
/// their order, as far as there is something to say.
pub fn meta_line(
    out: &mut Vec<u8>,
    head: MetaHead,
    meta: &Meta<'_>,
    facts: Option<Facts>,
    recaching: Recaching,
) {
    match head {
        MetaHead::Code(code) => out.extend_from_slice(code.as_bytes()),
        MetaHead::Value(size) => append(out, format_args!("VA {size}")),
    }
    for (letter, token) in meta.flags() {
        match (letter, facts) {
            (b'k', _) => append_key(out, meta),
            (b'O', _) => append_flag(out, b'O', token),
            (b'c', Some(facts)) => append(out, format_args!(" c{}", facts.cas)),
            // "Meta Set": 0 where nothing was stored.
            (b'c', None) if meta.verb == MetaVerb::Store => append_flag(out, b'c', b"0"),
            (b'f', Some(facts)) => append(out, format_args!(" f{}", facts.flags)),
            (b's', Some(facts)) => append(out, format_args!(" s{}", facts.size)),
            (b't', Some(Facts { ttl_seconds: Some(seconds), .. })) => {
                append(out, format_args!(" t{seconds}"));
            }
            (b't', Some(_)) => append_flag(out, b't', b"-1"),
            _ => {}
        }
    }
    let Recaching { has_won, is_stale, is_taken } = recaching;
    for (is_so, letter) in [(is_taken, b'Z'), (is_stale, b'X'), (has_won, b'W')] {
        if is_so {
            append_flag(out, letter, b"");
        }
    }
    out.extend_from_slice(LINE_END);
}

/// Appends what is known of a document for people (`me`).
pub fn debug_line(out: &mut Vec<u8>, meta: &Meta<'_>, facts: Facts) {
    let Facts { cas, size, ttl_seconds, .. } = facts;
    out.extend_from_slice(b"ME ");
    out.extend_from_slice(meta.key);
    match ttl_seconds {
        Some(seconds) => append(out, format_args!(" exp={seconds}")),
        None => out.extend_from_slice(b" exp=-1"),
    }
    append(out, format_args!(" cas={cas} size={size}\r\n"));
}

/// The key as it was sent, and whether that is base64.
fn append_key(out: &mut Vec<u8>, meta: &Meta<'_>) {
    append_flag(out, b'k', meta.key);
    if matches!(meta.name, Name::Decoded(_)) {
        append_flag(out, b'b', b"");
    }
}

fn append_flag(out: &mut Vec<u8>, letter: u8, token: &[u8]) {
    out.extend_from_slice(&[b' ', letter]);
    out.extend_from_slice(token);
}

fn append(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a vector takes everything");
}
