//! Requests and responses of each server, as bytes.

use document::Vbid;

/// How a server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The memcached binary protocol as it was.
    Memcached,
    /// The same as Couchbase's clients speak it: collections, tracing, vBuckets.
    Couchbase {
        /// vBuckets of the bucket.
        vbuckets: u16,
    },
    /// RESP version 2.
    Redis,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads a document.
    Get,
    /// Writes a document.
    Set,
    /// Deletes a document.
    Delete,
}

impl Operation {
    /// In a report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Set => "set",
            Self::Delete => "delete",
        }
    }
}

/// A response at the front of the bytes received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// Bytes of it.
    pub size: usize,
    /// Whether it says success, and for GET brings a value.
    pub is_success: bool,
}

const HEADER_SIZE: usize = 24;
/// The magic of a response with frame infos. Its key length is one byte; nobody here needs it.
const MAGICS: [u8; 2] = [0x81, 0x18];

impl Dialect {
    /// Appends a request.
    pub fn encode(self, operation: Operation, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Redis => encode_resp(operation, key, value, out),
            Self::Memcached => encode_binary(operation, 0, &[], key, value, out),
            Self::Couchbase { vbuckets } => {
                let vbucket = Vbid::of_name(key, vbuckets).0;
                // The default collection is number 0, as LEB128 in front of the key.
                encode_binary(operation, vbucket, &[0], key, value, out);
            }
        }
    }

    /// The first response. None while it is incomplete.
    pub fn parse(self, bytes: &[u8]) -> Option<Response> {
        match self {
            Self::Redis => parse_resp(bytes),
            Self::Memcached | Self::Couchbase { .. } => parse_binary(bytes),
        }
    }
}

fn encode_binary(
    operation: Operation,
    vbucket: u16,
    prefix: &[u8],
    key: &[u8],
    value: &[u8],
    out: &mut Vec<u8>,
) {
    // Flags and expiry, both 0.
    let (opcode, extras, value): (u8, &[u8], &[u8]) = match operation {
        Operation::Get => (0x00, &[], &[]),
        Operation::Set => (0x01, &[0; 8], value),
        Operation::Delete => (0x04, &[], &[]),
    };
    let key_size = (prefix.len() + key.len()) as u16;
    let body_size = u32::from(key_size) + (extras.len() + value.len()) as u32;
    out.extend_from_slice(&[0x80, opcode]);
    out.extend_from_slice(&key_size.to_be_bytes());
    out.extend_from_slice(&[extras.len() as u8, 0]);
    out.extend_from_slice(&vbucket.to_be_bytes());
    out.extend_from_slice(&body_size.to_be_bytes());
    out.extend_from_slice(&[0; 12]);
    for section in [extras, prefix, key, value] {
        out.extend_from_slice(section);
    }
}

fn parse_binary(bytes: &[u8]) -> Option<Response> {
    let header = bytes.get(..HEADER_SIZE)?;
    let body_size = u32::from_be_bytes(header.get(8..12)?.try_into().ok()?);
    let size = HEADER_SIZE + body_size as usize;
    let is_success = MAGICS.contains(&header[0]) && header[6..8] == [0, 0];
    (bytes.len() >= size).then_some(Response { size, is_success })
}

fn encode_resp(operation: Operation, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
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
fn parse_resp(bytes: &[u8]) -> Option<Response> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_what_the_specifications_say() {
        let encode = |dialect: Dialect, operation| {
            let mut out = Vec::new();
            dialect.encode(operation, b"key", b"value", &mut out);
            out
        };
        let set = encode(Dialect::Redis, Operation::Set);
        assert_eq!(set, b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue\r\n");
        let set = encode(Dialect::Memcached, Operation::Set);
        assert_eq!(set[..12], [0x80, 1, 0, 3, 8, 0, 0, 0, 0, 0, 0, 16]);
        assert!(set.ends_with(b"\0\0\0\0\0\0\0\0keyvalue"));
        let get = encode(Dialect::Couchbase { vbuckets: 1024 }, Operation::Get);
        let vbucket = Vbid::of_name(b"key", 1024).0.to_be_bytes();
        assert_eq!(get[..8], [0x80, 0, 0, 4, 0, 0, vbucket[0], vbucket[1]]);
        assert!(get.ends_with(b"\0key"));
    }

    #[test]
    fn a_response_is_complete_or_not_there() {
        let mut hit = vec![0x18, 0, 3, 0, 4, 0, 0, 0, 0, 0, 0, 9];
        hit.resize(24 + 9, 0);
        let mut miss = vec![0x81, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
        miss.resize(24, 0);
        let redis = Dialect::Redis;
        for (dialect, bytes, is_success) in [
            (Dialect::Memcached, &hit[..], true),
            (Dialect::Memcached, &miss, false),
            (redis, b"+OK\r\n", true),
            (redis, b"$3\r\nabc\r\n", true),
            (redis, b"$-1\r\n", false),
            (redis, b"-ERR no\r\n", false),
        ] {
            for size in 0..bytes.len() {
                assert_eq!(dialect.parse(&bytes[..size]), None, "{size} of {bytes:?}");
            }
            let response = Response { size: bytes.len(), is_success };
            assert_eq!(dialect.parse(bytes), Some(response));
            assert_eq!(dialect.parse(&[bytes, b"more"].concat()), Some(response));
        }
    }
}
