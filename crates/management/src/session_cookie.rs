//! The cookie in which a browser keeps the token of its session (RFC 6265).

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, header};

use crate::connection::Door;

/// What a page of the console says of itself with every request, and a page of another site cannot
/// make a browser say. The original's console has the same.
const CONSOLE_HEADER: (&str, &str) = ("ns-server-ui", "yes");

/// Whether the console asks.
pub(crate) fn is_from_console(headers: &HeaderMap) -> bool {
    let (name, value) = CONSOLE_HEADER;
    headers.get(name).is_some_and(|said| said == value)
}

/// The token that comes with a request.
pub(crate) fn token_in(headers: &HeaderMap) -> Option<&str> {
    let name = name_at(headers);
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut cookies = lines.flat_map(|line| line.split(';'));
    cookies.find_map(|cookie| cookie.trim().strip_prefix(&name)?.strip_prefix('='))
}

/// The header that has the browser keep a token, in answer to a request with these headers.
pub(crate) fn keeping(token: &str, headers: &HeaderMap, door: Door) -> Option<HeaderValue> {
    set(token, "", headers, door)
}

/// The header that has it forget.
pub(crate) fn forgetting(headers: &HeaderMap, door: Door) -> Option<HeaderValue> {
    set("", "; Max-Age=0", headers, door)
}

/// Scripts do not see the cookie, and other sites do not have it sent.
fn set(token: &str, ending: &str, headers: &HeaderMap, door: Door) -> Option<HeaderValue> {
    let name = name_at(headers);
    let secure = if door.is_tls { "; Secure" } else { "" };
    let cookie = format!("{name}={token}; Path=/; HttpOnly; SameSite=Strict{secure}{ending}");
    HeaderValue::from_str(&cookie).ok()
}

/// Browsers give the cookies of one port to all ports of a host, and several nodes may be on one:
/// the name has the port by which this one was asked.
fn name_at(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let authority = host.and_then(|host| host.parse::<Authority>().ok());
    let port = authority.and_then(|authority| authority.port_u16()).unwrap_or_default();
    format!("settee-session-{port}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_token_is_found_by_the_port_that_was_asked() {
        for (host, cookie, expected) in [
            ("node:8091", "settee-session-8091=abc", Some("abc")),
            ("node:8091", "a=b; settee-session-8091=abc; c=d", Some("abc")),
            ("node:9000", "settee-session-8091=abc", None),
            ("node", "settee-session-0=abc", Some("abc")),
            ("[::1]:8091", "settee-session-8091=abc", Some("abc")),
            ("node:8091", "settee-session-80911=abc", None),
            ("node:8091", "", None),
        ] {
            let headers = headers(&[("host", host), ("cookie", cookie)]);
            assert_eq!(token_in(&headers), expected, "{host} {cookie}");
        }
    }

    #[test]
    fn a_cookie_is_for_this_site_and_no_script_alone() {
        let headers = headers(&[("host", "node:8091")]);
        let set = |is_tls| keeping("abc", &headers, Door { is_tls }).unwrap();
        let plain = "settee-session-8091=abc; Path=/; HttpOnly; SameSite=Strict";
        assert_eq!(set(false), plain);
        assert_eq!(set(true), format!("{plain}; Secure"));
        let gone = forgetting(&headers, Door { is_tls: false }).unwrap();
        assert!(gone.to_str().unwrap().ends_with("; Max-Age=0"), "{gone:?}");
    }
}
