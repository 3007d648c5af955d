//! The memcached text protocol.

use super::{Operation, Response};

const LINE_END: &[u8] = b"\r\n";
/// What follows a value.
const VALUE_END: &[u8] = b"\r\nEND\r\n";

pub(super) fn encode(operation: Operation, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let set_arguments = format!(" 0 0 {}\r\n", value.len());
    let parts: &[&[u8]] = match operation {
        Operation::Get => &[b"get ", key, LINE_END],
        // Flags and expiry, both 0.
        Operation::Set => &[b"set ", key, set_arguments.as_bytes(), value, LINE_END],
        Operation::Delete => &[b"delete ", key, LINE_END],
    };
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

/// `VALUE <key> <flags> <size>` with the value and `END`, or one line.
pub(super) fn parse(bytes: &[u8]) -> Option<Response> {
    let end = bytes.windows(LINE_END.len()).position(|two| two == LINE_END)?;
    let line = &bytes[..end];
    let line_size = end + LINE_END.len();
    let is_success = [&b"STORED"[..], b"DELETED"].contains(&line);
    if !line.starts_with(b"VALUE ") {
        return Some(Response { size: line_size, is_success });
    }
    let digits = line.split(|&byte| byte == b' ').nth(3);
    let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
    let Some(value_size) = digits.and_then(|digits| digits.parse::<usize>().ok()) else {
        return Some(Response { size: line_size, is_success: false });
    };
    let size = line_size + value_size + VALUE_END.len();
    (bytes.len() >= size).then_some(Response { size, is_success: true })
}

/// A command that is not there, or a port that speaks the binary protocol alone.
pub(super) fn says_unknown(response: &[u8]) -> bool {
    let text = String::from_utf8_lossy(response);
    text.starts_with("ERROR") || text.contains("binary protocol only")
}
