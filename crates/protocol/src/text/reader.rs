//! From the bytes of a connection to requests, one step after the other.

use document::limits::KEY_SIZE_MAX;

use super::exptime::Exptime;
use super::line::whole_line;
use super::request::{self, Line, Reply, Request, Retrieval, TextError, Wrong};

/// Bytes of a line, its end included, unless it is a retrieval of several keys.
const LINE_SIZE_MAX: usize = 2048;
/// What a data block ends with.
const BLOCK_END: &[u8] = b"\r\n";

/// Where in what its client says a connection is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextPlace {
    /// At the start of a line.
    #[default]
    Line,
    /// Behind a key of a retrieval.
    Keys(Retrieval),
    /// In a line of which nothing more is carried out.
    RestOfLine,
}

/// What the next bytes are.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// Nothing that could be told yet.
    Incomplete,
    /// Nothing that anybody wants to know.
    Skipped(Taken),
    /// A request, with its data block if it has one.
    Request {
        /// What is asked for.
        request: Request<'a>,
        /// Empty for a request without one.
        block: &'a [u8],
        /// The line of the request, its end included; of a retrieval, what it began with.
        line_size: usize,
        /// What it takes.
        taken: Taken,
    },
    /// A request whose data block has not come whole. What has come of it follows the line.
    Begun {
        /// What is asked for.
        request: Request<'a>,
        /// Bytes of the line, its end included.
        line_size: usize,
        /// Bytes of the data block, without its end.
        block_size: usize,
    },
    /// Something that is answered with an error.
    Wrong {
        /// The error.
        error: TextError,
        /// Whether it is answered.
        reply: Reply,
        /// What it takes.
        taken: Taken,
        /// Bytes behind that, which may not have come yet, that are a data block of no use.
        swallowed: usize,
    },
}

/// What a step takes off the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// So many bytes.
    pub size: usize,
    /// Where that leads.
    pub next: TextPlace,
}

/// Reads the start of `bytes`.
pub fn read(place: TextPlace, bytes: &[u8]) -> Step<'_> {
    match place {
        TextPlace::Line => at_line(bytes),
        TextPlace::Keys(retrieval) => at_key(retrieval, bytes),
        TextPlace::RestOfLine => in_rest(bytes),
    }
}

/// Reads a line that was kept without its data block.
pub fn read_line(line: &[u8]) -> Option<Request<'_>> {
    let (line, _) = whole_line(line, line.len())?;
    request::parse(line).ok().map(|line| line.request)
}

/// How a data block ends that was received apart from its line, which says whether it is answered.
pub fn read_block_end(bytes: &[u8], reply: Reply) -> Step<'_> {
    match bytes.split_at_checked(BLOCK_END.len()) {
        None if BLOCK_END.starts_with(bytes) => Step::Incomplete,
        Some((BLOCK_END, _)) => skipped(BLOCK_END.len(), TextPlace::Line),
        _ => bad_chunk(0, reply),
    }
}

fn at_line(bytes: &[u8]) -> Step<'_> {
    if let Some(step) = begin_keys(bytes) {
        return step;
    }
    let Some((line, line_size)) = whole_line(bytes, LINE_SIZE_MAX) else {
        let is_too_long = bytes.len() >= LINE_SIZE_MAX;
        return if is_too_long { wrong_line(TextError::LineTooLong, 0) } else { Step::Incomplete };
    };
    match request::parse(line) {
        Ok(Line { request, block_size: None }) => {
            let taken = Taken { size: line_size, next: TextPlace::Line };
            Step::Request { request, block: &[], line_size, taken }
        }
        Ok(Line { request, block_size: Some(size) }) => with_block(request, bytes, line_size, size),
        Err(Wrong { error, block_size, reply }) => Step::Wrong {
            error,
            reply,
            taken: Taken { size: line_size, next: TextPlace::Line },
            swallowed: block_size.map_or(0, |size| size.saturating_add(BLOCK_END.len())),
        },
    }
}

fn with_block<'a>(
    request: Request<'a>,
    bytes: &'a [u8],
    line_size: usize,
    block_size: usize,
) -> Step<'a> {
    let block_end = line_size.saturating_add(block_size);
    let Some(block) = bytes.get(line_size..block_end) else {
        return Step::Begun { request, line_size, block_size };
    };
    let Some(end) = bytes.get(block_end..) else { return Step::Incomplete };
    match read_block_end(end, request.reply()) {
        Step::Incomplete => Step::Begun { request, line_size, block_size },
        Step::Skipped(Taken { size, next }) => {
            let taken = Taken { size: block_end.saturating_add(size), next };
            Step::Request { request, block, line_size, taken }
        }
        _ => bad_chunk(block_end, request.reply()),
    }
}

/// What a data block that is longer than it said leads to: the rest of it is passed over up to the
/// end of its line.
fn bad_chunk(size: usize, reply: Reply) -> Step<'static> {
    let taken = Taken { size, next: TextPlace::RestOfLine };
    Step::Wrong { error: TextError::BadChunk, reply, taken, swallowed: 0 }
}

fn wrong_line(error: TextError, size: usize) -> Step<'static> {
    let taken = Taken { size, next: TextPlace::RestOfLine };
    Step::Wrong { error, reply: Reply::Wanted, taken, swallowed: 0 }
}

fn skipped(size: usize, next: TextPlace) -> Step<'static> {
    Step::Skipped(Taken { size, next })
}

fn in_rest(bytes: &[u8]) -> Step<'_> {
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) => skipped(end.saturating_add(1), TextPlace::Line),
        None if bytes.is_empty() => Step::Incomplete,
        None => skipped(bytes.len(), TextPlace::RestOfLine),
    }
}

/// What stands at some point of a retrieval's line.
enum Next<'a> {
    /// That cannot be told yet.
    Unknown,
    /// A word, and where it ends.
    Word(&'a [u8], usize),
    /// The end of the line, and where that ends.
    End(usize),
}

/// The first key of a retrieval, if `bytes` begin with one.
fn begin_keys(bytes: &[u8]) -> Option<Step<'_>> {
    let Next::Word(verb, mut at) = next_word(bytes, 0) else { return None };
    let (with_cas, touches) = match verb {
        b"get" => (false, false),
        b"gets" => (true, false),
        b"gat" => (false, true),
        b"gats" => (true, true),
        _ => return None,
    };
    let mut retrieval = Retrieval { with_cas, touch: None };
    if touches {
        match next_word(bytes, at) {
            Next::Word(word, end) => match Exptime::parse(word) {
                Some(exptime) => (retrieval.touch, at) = (Some(exptime), end),
                None => return Some(wrong_line(TextError::BadExptime, end)),
            },
            Next::End(end) => return Some(without_keys(end)),
            Next::Unknown => return Some(unknown(bytes)),
        }
    }
    Some(match next_word(bytes, at) {
        Next::Word(key, end) => one_key(retrieval, key, end),
        Next::End(end) if touches => end_of_keys(end),
        Next::End(end) => without_keys(end),
        Next::Unknown => unknown(bytes),
    })
}

fn without_keys(size: usize) -> Step<'static> {
    let taken = Taken { size, next: TextPlace::Line };
    let error = TextError::UnknownCommand;
    Step::Wrong { error, reply: Reply::Wanted, taken, swallowed: 0 }
}

/// The start of a retrieval that has no key yet.
fn unknown(bytes: &[u8]) -> Step<'_> {
    if bytes.len() < LINE_SIZE_MAX {
        return Step::Incomplete;
    }
    wrong_line(TextError::LineTooLong, bytes.len())
}

fn at_key(retrieval: Retrieval, bytes: &[u8]) -> Step<'_> {
    match next_word(bytes, 0) {
        Next::Word(key, end) => one_key(retrieval, key, end),
        Next::End(size) => end_of_keys(size),
        Next::Unknown => {
            // Blanks are taken off at once: of a line of nothing else all would be kept.
            let blanks = bytes.iter().take_while(|byte| **byte == b' ').count();
            match (blanks, bytes.len().saturating_sub(blanks)) {
                (_, size) if size > KEY_SIZE_MAX.saturating_add(1) => {
                    wrong_line(TextError::BadFormat, bytes.len())
                }
                (0, _) => Step::Incomplete,
                _ => skipped(blanks, TextPlace::Keys(retrieval)),
            }
        }
    }
}

fn end_of_keys(size: usize) -> Step<'static> {
    let taken = Taken { size, next: TextPlace::Line };
    Step::Request { request: Request::EndOfKeys, block: &[], line_size: size, taken }
}

fn one_key(retrieval: Retrieval, key: &[u8], end: usize) -> Step<'_> {
    match request::key_of(key) {
        Ok(key) => Step::Request {
            request: Request::Get(key, retrieval),
            block: &[],
            line_size: end,
            taken: Taken { size: end, next: TextPlace::Keys(retrieval) },
        },
        Err(error) => wrong_line(error, end),
    }
}

fn next_word(bytes: &[u8], at: usize) -> Next<'_> {
    let Some(rest) = bytes.get(at..) else { return Next::Unknown };
    let blanks = rest.iter().take_while(|byte| **byte == b' ').count();
    let begin = at.saturating_add(blanks);
    let rest = bytes.get(begin..).unwrap_or_default();
    if rest.starts_with(b"\n") {
        return Next::End(begin.saturating_add(1));
    }
    if rest.starts_with(b"\r\n") {
        return Next::End(begin.saturating_add(2));
    }
    let Some(size) = rest.iter().position(|byte| b" \n".contains(byte)) else {
        return Next::Unknown;
    };
    let word = rest.get(..size).unwrap_or_default();
    // A carriage return belongs to the line's end in front of a newline alone, not to the key.
    let is_last = rest.get(size) == Some(&b'\n');
    let word = word.strip_suffix(b"\r").filter(|_| is_last).unwrap_or(word);
    Next::Word(word, begin.saturating_add(word.len()))
}
