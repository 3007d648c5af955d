//! What a line of the text protocol asks for. Source: memcached's protocol.txt.

use document::limits::{KEY_SIZE_MAX, VALUE_SIZE_MAX};

use super::exptime::Exptime;
use super::line::{Words, signed, unsigned};
use super::meta::{Meta, MetaVerb};

/// Bytes of a data block that a line may announce: memcached counts them in 31 bits, its end
/// included.
const BLOCK_SIZE_MAX: i64 = (1 << 31) - 3;
const NOREPLY: &[u8] = b"noreply";

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// One key of `get`, `gets`, `gat` or `gats`.
    Get(&'a [u8], Retrieval),
    /// The end of a line of those.
    EndOfKeys,
    /// `set`, `add`, `replace`, `append`, `prepend`, `cas`.
    Store(StoreLine<'a>),
    /// `delete`.
    Delete(&'a [u8], Reply),
    /// `incr`, `decr`.
    Count(Count<'a>),
    /// `touch`.
    Touch(&'a [u8], Exptime, Reply),
    /// `mg`, `ms`, `md`, `ma`, `me`.
    Meta(Meta<'a>),
    /// `mn`.
    Noop,
    /// `stats`: a group, perhaps with an argument behind a blank.
    Stats(&'a [u8]),
    /// `version`.
    Version,
    /// `verbosity`.
    Verbosity(Reply),
    /// `flush_all`, and when.
    Flush(Exptime, Reply),
    /// `quit`.
    Quit,
}

impl Request<'_> {
    /// Whether the client wants to hear how it went.
    pub fn reply(&self) -> Reply {
        match self {
            Self::Store(store) => store.reply,
            Self::Count(count) => count.reply,
            Self::Delete(_, reply)
            | Self::Touch(_, _, reply)
            | Self::Verbosity(reply)
            | Self::Flush(_, reply) => *reply,
            _ => Reply::Wanted,
        }
    }
}

/// Whether a client wants to hear of the usual outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It does.
    Wanted,
    /// It said `noreply`.
    Unwanted,
}

/// How keys are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retrieval {
    /// The answers tell the version.
    pub with_cas: bool,
    /// What is found gets this expiration time.
    pub touch: Option<Exptime>,
}

/// What a store does with its data block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreVerb {
    /// It is the document from now on.
    Set,
    /// It is the document if there is none.
    Add,
    /// It is the document if there is one.
    Replace,
    /// It goes behind what is there.
    Append,
    /// It goes in front of what is there.
    Prepend,
}

/// A store, but for its data block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreLine<'a> {
    /// What is done.
    pub verb: StoreVerb,
    /// Its key.
    pub key: &'a [u8],
    /// The client's own. Ignored where something is added to a document.
    pub flags: u32,
    /// When it is over. Ignored where something is added to a document.
    pub exptime: Exptime,
    /// The version that it may replace; `None` for any.
    pub cas: Option<u64>,
    /// Whether it is answered.
    pub reply: Reply,
}

/// A change of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// Up, wrapping at 2^64, or down, stopping at 0.
    pub is_increment: bool,
    /// By how much.
    pub delta: u64,
    /// Whether it is answered.
    pub reply: Reply,
}

/// Why there is no request to carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextError {
    /// There is no such command, or it lacks words.
    UnknownCommand,
    /// A key is too long, or a word is not what belongs there.
    BadFormat,
    /// `delete` takes no time.
    BadDelete,
    /// A delta is no number of 64 bits.
    BadDelta,
    /// An expiration time is no number.
    BadExptime,
    /// A data block does not end where it should.
    BadChunk,
    /// A data block is larger than a document may be.
    TooLarge,
    /// A line does not end.
    LineTooLong,
    /// A key is not base64, or too long.
    BadEncoding,
    /// A flag of a meta command that it does not have.
    InvalidFlag,
    /// A flag of a meta command that memcached has and this server does not.
    UnsupportedFlag,
    /// A flag of a meta command that came already.
    DuplicateFlag,
    /// What follows a flag is no number.
    BadToken,
    /// What is to be given back is longer than 32 bytes.
    OpaqueTooLong,
    /// A mode that a command does not have.
    InvalidMode,
}

/// A line that is understood, with what follows it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) request: Request<'a>,
    /// Bytes of the data block behind it, if one follows.
    pub(super) block_size: Option<usize>,
}

/// A line that is not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) error: TextError,
    /// Bytes of the data block that follows all the same, if one was announced.
    pub(super) block_size: Option<usize>,
    pub(super) reply: Reply,
}

impl Wrong {
    /// A line with nothing behind it.
    fn alone(error: TextError, reply: Reply) -> Self {
        Self { error, block_size: None, reply }
    }
}

impl From<TextError> for Wrong {
    fn from(error: TextError) -> Self {
        Self::alone(error, Reply::Wanted)
    }
}

/// Reads a whole line that is no retrieval of several keys.
pub(super) fn parse(line: &[u8]) -> Result<Line<'_>, Wrong> {
    let mut words = Words::of(line);
    let verb = words.next().ok_or(TextError::UnknownCommand)?;
    let request = match verb {
        b"set" => return store(StoreVerb::Set, false, words),
        b"add" => return store(StoreVerb::Add, false, words),
        b"replace" => return store(StoreVerb::Replace, false, words),
        b"append" => return store(StoreVerb::Append, false, words),
        b"prepend" => return store(StoreVerb::Prepend, false, words),
        b"cas" => return store(StoreVerb::Set, true, words),
        b"ms" => return meta_store(words),
        b"mg" => Request::Meta(meta(MetaVerb::Get, words)?),
        b"md" => Request::Meta(meta(MetaVerb::Delete, words)?),
        b"ma" => Request::Meta(meta(MetaVerb::Count, words)?),
        b"me" => Request::Meta(meta(MetaVerb::Debug, words)?),
        b"mn" => Request::Noop,
        b"delete" => delete(words)?,
        b"incr" => count(true, words)?,
        b"decr" => count(false, words)?,
        b"touch" => touch(words)?,
        b"stats" => Request::Stats(words.rest()),
        b"version" => Request::Version,
        b"verbosity" => verbosity(words)?,
        b"flush_all" => flush(words)?,
        b"quit" if words.left() == 0 => Request::Quit,
        _ => return Err(TextError::UnknownCommand.into()),
    };
    Ok(Line { request, block_size: None })
}

/// A key that a line has as it is.
pub(super) fn key_of(word: &[u8]) -> Result<&[u8], TextError> {
    if word.len() > KEY_SIZE_MAX { Err(TextError::BadFormat) } else { Ok(word) }
}

fn reply(words: Words<'_>) -> Reply {
    if words.last() == Some(NOREPLY) { Reply::Unwanted } else { Reply::Wanted }
}

/// The next word, without which there is no such command.
fn needed<'a>(words: &mut Words<'a>) -> Result<&'a [u8], TextError> {
    words.next().ok_or(TextError::UnknownCommand)
}

fn store<'a>(verb: StoreVerb, has_cas: bool, mut words: Words<'a>) -> Result<Line<'a>, Wrong> {
    let needed_count = if has_cas { 5 } else { 4 };
    let optional_count = words.left().checked_sub(needed_count);
    if !matches!(optional_count, Some(0 | 1)) {
        return Err(TextError::UnknownCommand.into());
    }
    let reply = reply(words);
    let mut word = || words.next().unwrap_or_default();
    let (key, flags, exptime) = (word(), word(), word());
    let block_size = block_size_of(word()).map_err(|error| Wrong::alone(error, reply))?;
    let cas = has_cas.then(word);
    let store = || {
        Some(StoreLine {
            verb,
            key: key_of(key).ok()?,
            flags: unsigned(flags)?.try_into().ok()?,
            exptime: Exptime::parse(exptime)?,
            cas: match cas {
                Some(word) => Some(unsigned(word)?),
                None => None,
            },
            reply,
        })
    };
    let block = Some(block_size);
    let store = store().ok_or(Wrong { error: TextError::BadFormat, block_size: block, reply })?;
    with_block(Request::Store(store), block_size, reply)
}

fn meta_store(mut words: Words<'_>) -> Result<Line<'_>, Wrong> {
    let key = needed(&mut words)?;
    let block_size = block_size_of(words.next().unwrap_or_default())?;
    let meta = Meta::parse(MetaVerb::Store, key, words).map_err(|error| Wrong {
        error,
        block_size: Some(block_size),
        reply: Reply::Wanted,
    })?;
    with_block(Request::Meta(meta), block_size, Reply::Wanted)
}

fn block_size_of(word: &[u8]) -> Result<usize, TextError> {
    let size = signed(word).filter(|size| (0..=BLOCK_SIZE_MAX).contains(size));
    size.and_then(|size| usize::try_from(size).ok()).ok_or(TextError::BadFormat)
}

fn with_block(request: Request<'_>, size: usize, reply: Reply) -> Result<Line<'_>, Wrong> {
    if size > VALUE_SIZE_MAX {
        return Err(Wrong { error: TextError::TooLarge, block_size: Some(size), reply });
    }
    Ok(Line { request, block_size: Some(size) })
}

fn meta(verb: MetaVerb, mut words: Words<'_>) -> Result<Meta<'_>, TextError> {
    let key = needed(&mut words)?;
    Meta::parse(verb, key, words)
}

/// A command has no more words than it knows.
fn at_most(count: usize, words: Words<'_>) -> Result<(), TextError> {
    if words.left() > count { Err(TextError::UnknownCommand) } else { Ok(()) }
}

fn delete(mut words: Words<'_>) -> Result<Request<'_>, Wrong> {
    at_most(3, words)?;
    let key = needed(&mut words)?;
    let reply = reply(words);
    let key = key_of(key).map_err(|error| Wrong::alone(error, reply))?;
    match (words.next(), words.next(), words.next()) {
        (None | Some(b"0" | NOREPLY), None, None) | (Some(b"0"), Some(NOREPLY), None) => {
            Ok(Request::Delete(key, reply))
        }
        _ => Err(Wrong::alone(TextError::BadDelete, reply)),
    }
}

fn count(is_increment: bool, words: Words<'_>) -> Result<Request<'_>, Wrong> {
    let (key, delta, reply) = changed(words)?;
    let delta = unsigned(delta).ok_or(Wrong::alone(TextError::BadDelta, reply))?;
    Ok(Request::Count(Count { key, is_increment, delta, reply }))
}

fn touch(words: Words<'_>) -> Result<Request<'_>, Wrong> {
    let (key, exptime, reply) = changed(words)?;
    let exptime = Exptime::parse(exptime).ok_or(Wrong::alone(TextError::BadExptime, reply))?;
    Ok(Request::Touch(key, exptime, reply))
}

/// A key, what it is changed by, and perhaps a word more.
fn changed(mut words: Words<'_>) -> Result<(&[u8], &[u8], Reply), Wrong> {
    at_most(3, words)?;
    let key = needed(&mut words)?;
    // Also where this stands in the place of what is lacking.
    let reply = reply(words);
    let by = needed(&mut words)?;
    Ok((key_of(key).map_err(|error| Wrong::alone(error, reply))?, by, reply))
}

fn verbosity(mut words: Words<'_>) -> Result<Request<'_>, Wrong> {
    at_most(2, words)?;
    let reply = reply(words);
    let level = needed(&mut words)?;
    let is_level = level == NOREPLY || unsigned(level).is_some();
    if is_level {
        Ok(Request::Verbosity(reply))
    } else {
        Err(Wrong::alone(TextError::BadFormat, reply))
    }
}

fn flush(mut words: Words<'_>) -> Result<Request<'_>, Wrong> {
    at_most(2, words)?;
    let reply = reply(words);
    let exptime = match words.next() {
        None | Some(NOREPLY) => Exptime(0),
        Some(word) => Exptime::parse(word).ok_or(Wrong::alone(TextError::BadExptime, reply))?,
    };
    Ok(Request::Flush(exptime, reply))
}
