//! RESP version 2, Redis's protocol.

use super::{Operation, Response};

pub(super) fn encode(operation: Operation, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let words: &[&[u8]] = match operation {
        Operation::Get => &[b"GET", key],
        Operation::Set => &[b"SET", key, value],
        Operation::Delete => &[b"DEL", key],
    };
    push_number(b'*', words.len(), out);
    for word in words {
        push_number(b'$', word.len(), out);
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

fn push_number(mark: u8, number: usize, out: &mut Vec<u8>) {
    out.push(mark);
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
    out.extend_from_slice(b"\r\n");
}

/// `+OK`, `-ERR ...`, `:1`, or `$` with the size of a value, -1 for none.
pub(super) fn parse(bytes: &[u8]) -> Option<Response> {
    let end = bytes.iter().position(|&byte| byte == b'\r')?;
    let line_size = end + 2;
    if bytes.len() < line_size {
        return None;
    }
    if bytes[0] != b'$' {
        return Some(Response { size: line_size, is_success: matches!(bytes[0], b'+' | b':') });
    }
    let digits = std::str::from_utf8(&bytes[1..end]).ok();
    let Some(value_size) = digits.and_then(|digits| digits.parse::<usize>().ok()) else {
        return Some(Response { size: line_size, is_success: false });
    };
    let size = line_size + value_size + 2;
    (bytes.len() >= size).then_some(Response { size, is_success: true })
}
