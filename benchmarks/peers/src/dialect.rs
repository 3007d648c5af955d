//! Requests and responses of each server, as bytes.

mod binary;
mod resp;
mod text;

use binary::Form;
use document::Vbid;

use crate::couchbase::NAMED_COLLECTION;

/// How a server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The memcached binary protocol as it was.
    Memcached,
    /// The memcached text protocol.
    Text,
    /// The binary protocol as Couchbase's clients speak it: collections, tracing, vBuckets.
    Couchbase {
        /// vBuckets of the bucket.
        vbuckets: u16,
    },
    /// The same; a write is answered when a majority of its nodes has it on disk.
    CouchbaseDurable {
        /// vBuckets of the bucket.
        vbuckets: u16,
    },
    /// The same in a named collection, [`crate::couchbase::NAMED_COLLECTION`].
    CouchbaseNamed {
        /// vBuckets of the bucket.
        vbuckets: u16,
    },
    /// The same in the default one, but what is read and written is one path of a JSON document.
    SubDocument {
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

impl Dialect {
    /// Appends a request.
    pub fn encode(self, operation: Operation, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let in_collection = |form, collection: u8, vbuckets, out: &mut Vec<u8>| {
            let vbucket = Vbid::of_name(key, vbuckets).0;
            // The number as LEB128 in front of the key: one byte up to 127.
            binary::encode(form, operation, vbucket, &[&[collection], key].concat(), value, out);
        };
        // The default collection is number 0.
        let binary = |form, vbuckets, out: &mut Vec<u8>| in_collection(form, 0, vbuckets, out);
        match self {
            Self::Redis => resp::encode(operation, key, value, out),
            Self::Text => text::encode(operation, key, value, out),
            Self::Memcached => binary::encode(Form::Whole, operation, 0, key, value, out),
            Self::Couchbase { vbuckets } => binary(Form::Whole, vbuckets, out),
            Self::CouchbaseDurable { vbuckets } => binary(Form::Durable, vbuckets, out),
            Self::CouchbaseNamed { vbuckets } => {
                in_collection(Form::Whole, NAMED_COLLECTION, vbuckets, out);
            }
            Self::SubDocument { vbuckets } => binary(Form::Path, vbuckets, out),
        }
    }

    /// The first response. None while it is incomplete.
    pub fn parse(self, bytes: &[u8]) -> Option<Response> {
        match self {
            Self::Redis => resp::parse(bytes),
            Self::Text => text::parse(bytes),
            Self::Memcached
            | Self::Couchbase { .. }
            | Self::CouchbaseDurable { .. }
            | Self::CouchbaseNamed { .. }
            | Self::SubDocument { .. } => binary::parse(bytes),
        }
    }

    /// Whether a response that is no success says that the server does not know such requests.
    pub fn says_unknown(self, response: &[u8]) -> bool {
        match self {
            Self::Redis => response.starts_with(b"-ERR unknown"),
            Self::Text => text::says_unknown(response),
            Self::Memcached
            | Self::Couchbase { .. }
            | Self::CouchbaseDurable { .. }
            | Self::CouchbaseNamed { .. }
            | Self::SubDocument { .. } => binary::says_unknown(response),
        }
    }

    /// The status of a response, where it has one.
    pub fn status(self, response: &[u8]) -> Option<u16> {
        match self {
            Self::Redis | Self::Text => None,
            Self::Memcached
            | Self::Couchbase { .. }
            | Self::CouchbaseDurable { .. }
            | Self::CouchbaseNamed { .. }
            | Self::SubDocument { .. } => binary::status(response),
        }
    }

    /// A response that is no success, for people.
    pub fn shown(self, response: &[u8]) -> String {
        match self {
            Self::Redis | Self::Text => String::from_utf8_lossy(response).trim().to_owned(),
            Self::Memcached
            | Self::Couchbase { .. }
            | Self::CouchbaseDurable { .. }
            | Self::CouchbaseNamed { .. }
            | Self::SubDocument { .. } => match self.status(response) {
                Some(status) => format!("status {status:#x}"),
                None => "no status".to_owned(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUCHBASE: Dialect = Dialect::Couchbase { vbuckets: 1024 };

    fn encode(dialect: Dialect, operation: Operation) -> Vec<u8> {
        let mut out = Vec::new();
        dialect.encode(operation, b"key", b"value", &mut out);
        out
    }

    #[test]
    fn requests_are_what_the_specifications_say() {
        let set = encode(Dialect::Redis, Operation::Set);
        assert_eq!(set, b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue\r\n");
        assert_eq!(encode(Dialect::Text, Operation::Set), b"set key 0 0 5\r\nvalue\r\n");
        assert_eq!(encode(Dialect::Text, Operation::Get), b"get key\r\n");
        let set = encode(Dialect::Memcached, Operation::Set);
        assert_eq!(set[..12], [0x80, 1, 0, 3, 8, 0, 0, 0, 0, 0, 0, 16]);
        assert!(set.ends_with(b"\0\0\0\0\0\0\0\0keyvalue"));
        let get = encode(COUCHBASE, Operation::Get);
        let vbucket = Vbid::of_name(b"key", 1024).0.to_be_bytes();
        assert_eq!(get[..8], [0x80, 0, 0, 4, 0, 0, vbucket[0], vbucket[1]]);
        assert!(get.ends_with(b"\0key"));
        let named = encode(Dialect::CouchbaseNamed { vbuckets: 1024 }, Operation::Get);
        assert_eq!(named[..24], get[..24], "of the same vBucket");
        assert!(named.ends_with(b"\x08key"));
    }

    #[test]
    fn a_durable_write_names_its_level_and_a_read_does_not() {
        let durable = Dialect::CouchbaseDurable { vbuckets: 1024 };
        let set = encode(durable, Operation::Set);
        assert_eq!(set[..5], [0x08, 1, 2, 4, 8], "frame infos of 2 bytes, a key of 4");
        assert_eq!(set[8..12], [0, 0, 0, 2 + 8 + 4 + 5]);
        assert_eq!(set[24..26], [0x11, 3], "durability, one byte: persist to majority");
        assert!(set.ends_with(b"\0keyvalue"));
        assert_eq!(encode(durable, Operation::Get), encode(COUCHBASE, Operation::Get));
    }

    #[test]
    fn a_path_stands_between_key_and_value() {
        let sub_document = Dialect::SubDocument { vbuckets: 1024 };
        let get = encode(sub_document, Operation::Get);
        assert_eq!((get[1], get[4]), (0xc5, 3));
        assert_eq!(get[24..], *b"\0\x05\0\0keyfield");
        let set = encode(sub_document, Operation::Set);
        assert_eq!((set[1], set[4]), (0xc8, 4));
        assert!(set[24..].starts_with(b"\0\x05\x01\x01\0keyfield\""));
        assert!(set.ends_with(b"\"") && set.len() == 24 + 4 + 4 + 5 + 7);
        let string = &set[24 + 4 + 4 + 5 + 1..set.len() - 1];
        assert!(string.iter().all(u8::is_ascii_lowercase), "JSON: {}", string.escape_ascii());
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
            (Dialect::Text, b"STORED\r\n", true),
            (Dialect::Text, b"VALUE key 0 3\r\nabc\r\nEND\r\n", true),
            (Dialect::Text, b"END\r\n", false),
            (Dialect::Text, b"ERROR\r\n", false),
        ] {
            for size in 0..bytes.len() {
                assert_eq!(dialect.parse(&bytes[..size]), None, "{size} of {bytes:?}");
            }
            let response = Response { size: bytes.len(), is_success };
            assert_eq!(dialect.parse(bytes), Some(response));
            assert_eq!(dialect.parse(&[bytes, b"more"].concat()), Some(response));
        }
    }

    #[test]
    fn a_command_that_is_not_there_is_no_refusal() {
        let answer = |status| [0x81, 0xc5, 0, 0, 0, 0, 0, status];
        assert!(COUCHBASE.says_unknown(&answer(0x81)) && COUCHBASE.says_unknown(&answer(0x83)));
        assert!(!COUCHBASE.says_unknown(&answer(0x01)) && !COUCHBASE.says_unknown(&[0x81]));
        assert!(Dialect::Text.says_unknown(b"ERROR\r\n"));
        assert!(Dialect::Text.says_unknown(b"SERVER_ERROR the binary protocol only\r\n"));
        assert!(!Dialect::Text.says_unknown(b"SERVER_ERROR out of memory\r\n"));
        assert_eq!(COUCHBASE.shown(&answer(0x83)), "status 0x83");
        assert_eq!(
            (COUCHBASE.status(&answer(0x83)), Dialect::Text.status(b"END")),
            (Some(0x83), None)
        );
        assert_eq!(Dialect::Text.shown(b"ERROR\r\n"), "ERROR");
    }
}
