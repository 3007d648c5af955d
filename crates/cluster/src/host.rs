//! The host names that clients and nodes can be told.

use std::net::IpAddr;

/// Bytes of a name, as DNS has it.
pub(crate) const HOST_BYTES_MAX: usize = 253;
/// What a host is, for those who have said something else.
pub const HOST_RULE: &str =
    "an IP address, or a name of 1 to 253 letters, digits, - _ and ., without a port";

/// Whether others can connect to `text`: what people type instead has a port, or is a URL.
pub fn is_host(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_name = (1..=HOST_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_allowed);
    is_name || text.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_an_address_or_a_name_and_nothing_around_it() {
        let longest = "h".repeat(HOST_BYTES_MAX);
        for host in ["a", "10.0.0.1", "::1", "fe80::1", "db-1.example", "my_db", "x.", &longest] {
            assert!(is_host(host), "{host}");
        }
        let longer = format!("{longest}h");
        for other in [
            "",
            " ",
            "a b",
            "a:1",
            "10.0.0.1:8091",
            "[::1]",
            "[::1]:8091",
            "http://a",
            "a/b",
            "x@y",
            "$HOST",
            "a:b",
            "\"q\"",
            "\u{fc}",
            "a\n",
            &longer,
        ] {
            assert!(!is_host(other), "{other}");
        }
    }
}
