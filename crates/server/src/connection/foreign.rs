//! Clients that speak something else: they are told so in their own words, as far as those are
//! known, so that whoever has mixed ports up need not guess.

/// A protocol that the port does not speak, by the first bytes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ForeignProtocol {
    Http,
    Tls,
    Redis,
    MemcachedText,
    Unknown,
}

const REDIS_WORDS: [&str; 5] = ["PING", "AUTH", "INFO", "QUIT", "HELLO"];
const MEMCACHED_WORDS: [&str; 21] = [
    "get",
    "gets",
    "gat",
    "gats",
    "set",
    "add",
    "replace",
    "append",
    "prepend",
    "cas",
    "incr",
    "decr",
    "touch",
    "delete",
    "stats",
    "version",
    "quit",
    "verbosity",
    "flush_all",
    "mg",
    "ms",
];
/// A handshake record of TLS 1.x begins with these.
const TLS_HANDSHAKE: [u8; 2] = [0x16, 0x03];

/// Fatal: protocol_version.
const TLS_ALERT: [u8; 7] = [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x46];
const NO_LINES: &str = "SERVER_ERROR this port speaks memcached's binary protocol only; the text \
    protocol has a port of its own (--memcached-port)\r\n";
const NO_LINES_BEHIND_FRAMES: &str = "SERVER_ERROR this connection began with a frame of the \
    binary protocol; lines are for one that begins with a line\r\n";

/// The port at which a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PortKind {
    Data,
    /// Where lines are spoken, too, but not behind a frame.
    Memcached,
}

impl ForeignProtocol {
    /// Takes a guess. `bytes` are all that has come.
    pub(super) fn recognize(bytes: &[u8]) -> Self {
        let first = bytes.split(|byte| b" \r\n".contains(byte)).next().unwrap_or_default();
        // A word that nothing follows may be anything.
        let is_one_of = |words: &[&str]| {
            first.len() < bytes.len() && words.iter().any(|word| word.as_bytes() == first)
        };
        if bytes.starts_with(&TLS_HANDSHAKE) {
            Self::Tls
        } else if is_one_of(&MEMCACHED_WORDS) {
            Self::MemcachedText
        } else if is_one_of(&REDIS_WORDS) || matches!(bytes, [b'*', b'1'..=b'9', ..]) {
            Self::Redis
        } else if begins_http(bytes) {
            Self::Http
        } else {
            Self::Unknown
        }
    }

    /// What such a client understands. Nothing is said to strangers.
    pub(super) fn answer(self, port: PortKind) -> Vec<u8> {
        let name = match port {
            PortKind::Data => "data port",
            PortKind::Memcached => "memcached port",
        };
        match (self, port) {
            (Self::Http, _) => http_answer(name).into_bytes(),
            (Self::Tls, _) => TLS_ALERT.to_vec(),
            (Self::Redis, _) => format!(
                "-ERR this is the {name} of a Settee node; it does not speak this protocol\r\n"
            )
            .into_bytes(),
            (Self::MemcachedText, PortKind::Data) => NO_LINES.as_bytes().to_vec(),
            (Self::MemcachedText, PortKind::Memcached) => {
                NO_LINES_BEHIND_FRAMES.as_bytes().to_vec()
            }
            (Self::Unknown, _) => Vec::new(),
        }
    }

    /// For log lines.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Http => "HTTP",
            Self::Tls => "TLS",
            Self::Redis => "redis",
            Self::MemcachedText => "memcached's text protocol",
            Self::Unknown => "something unknown",
        }
    }
}

fn http_answer(port: &str) -> String {
    let body = format!(
        "This is the {port} of a Settee node; HTTP is spoken on its management port (8091)\n"
    );
    let size = body.len();
    format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {size}\r\n\
         Connection: close\r\n\r\n{body}"
    )
}

/// Whether the first line of `bytes`, of which the end may not have come, is that of a request of
/// HTTP: it ends with the version, or begins with a method in front of what that is for. Methods
/// are not listed: there may be any, and no other protocol here has verbs in capitals before a
/// path.
fn begins_http(bytes: &[u8]) -> bool {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(|byte| b" \r".contains(byte)).filter(|word| !word.is_empty());
    let (Some(method), Some(target)) = (words.next(), words.next()) else { return false };
    let is_method = method.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'-');
    let is_version = |word: &[u8]| word.starts_with(b"HTTP/");
    let is_target = method == b"CONNECT"
        || target == b"*"
        || target.starts_with(b"/")
        || is_version(target)
        || target.windows(3).any(|part| part == b"://");
    (is_method && is_target) || words.next_back().is_some_and(is_version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_known_by_its_first_bytes() {
        for (bytes, protocol) in [
            (&b"GET / HTTP/1.1\r\n"[..], ForeignProtocol::Http),
            (b"POST /pools HTTP/1.1\r\n", ForeignProtocol::Http),
            (b"POST /a-path-that-goes-on", ForeignProtocol::Http),
            (b"PATCH http://host/a-path-that-goes-on", ForeignProtocol::Http),
            (b"M-SEARCH * HTTP/1.1\r\n", ForeignProtocol::Http),
            (b"OPTIONS *", ForeignProtocol::Http),
            (b"DELETE HTTP/1.1\r\n", ForeignProtocol::Http),
            (b"md HTTP/1.1\r\n", ForeignProtocol::Unknown),
            (b"CONNECT host:443", ForeignProtocol::Http),
            (b"own-method /  HTTP/1.1\n", ForeignProtocol::Http),
            (b"GET key\r\nHost: / HTTP/1.1", ForeignProtocol::Unknown),
            (b"POST", ForeignProtocol::Unknown),
            (b"\x16\x03\x01\x02\x00", ForeignProtocol::Tls),
            (b"*1\r\n$4\r\nPING\r\n", ForeignProtocol::Redis),
            (b"PING\r\n", ForeignProtocol::Redis),
            (b"version\r\n", ForeignProtocol::MemcachedText),
            (b"get key\r\n", ForeignProtocol::MemcachedText),
            (b"getting on", ForeignProtocol::Unknown),
            (b"*", ForeignProtocol::Unknown),
            (b"", ForeignProtocol::Unknown),
            (b"\xff\x00", ForeignProtocol::Unknown),
        ] {
            assert_eq!(ForeignProtocol::recognize(bytes), protocol, "{bytes:?}");
        }
    }
}
