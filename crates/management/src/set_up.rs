//! A node that is still to be set up: who may say what it is to be, without a login.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, header};

use crate::node_view::NodeView;

/// How often an operator is reminded of a node that anybody may set up.
const REMINDER_INTERVAL: Duration = Duration::from_secs(60);
/// What proxies add: their clients are somewhere else.
const FORWARDING_HEADERS: [&str; 11] = [
    "via",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-proto",
    "x-real-ip",
    "x-client-ip",
    "client-ip",
    "true-client-ip",
    "cf-connecting-ip",
];

/// Who may set a node up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetUp {
    /// The administrator as whom they act, and who has no password that anybody knows.
    pub administrator: String,
    /// Whether they may come from other machines.
    pub from_anywhere: bool,
}

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);

impl SetUp {
    /// Whether a request may act as the administrator.
    pub(crate) fn lets_in(&self, request: &Request) -> bool {
        self.from_anywhere || is_from_here(request)
    }
}

/// Whether a program on this machine asks, and not somebody through it: a proxy's client, or a page
/// that a browser here has loaded from a name which means this machine now.
fn is_from_here(request: &Request) -> bool {
    let peer = request.extensions().get::<Peer>();
    let headers = request.headers();
    peer.is_some_and(|peer| peer.0.to_canonical().is_loopback())
        && !FORWARDING_HEADERS.iter().any(|name| headers.contains_key(*name))
        && names_this_machine(headers)
}

/// An address cannot be made to mean another machine; a name can, but for the one that is reserved.
/// Source: RFC 6761, section 6.3.
fn names_this_machine(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST) else { return true };
    let Ok(authority) = host.to_str().unwrap_or_default().parse::<Authority>() else {
        return false;
    };
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok()
}

/// Says so in the log, again and again, while anybody may set the node up.
pub(crate) async fn remind(view: Arc<dyn NodeView>) {
    while let Some(set_up) = view.set_up() {
        let from = if set_up.from_anywhere { "anywhere" } else { "this machine" };
        tracing::warn!(
            administrator = set_up.administrator,
            from,
            "requests to the management port need no login until POST /settings/web or \
             /clusterInit gives the administrator a password (--setup)"
        );
        tokio::time::sleep(REMINDER_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn who_sets_a_node_up_is_on_its_machine_unless_anybody_may() {
        let here = "127.0.0.1";
        type Case = (&'static str, &'static [(&'static str, &'static str)], bool);
        let cases: [Case; 14] = [
            (here, &[], true),
            ("::1", &[("host", "[::1]:8091")], true),
            ("::ffff:127.0.0.1", &[("host", "127.0.0.1:8091")], true),
            (here, &[("host", "localhost:8091")], true),
            (here, &[("host", "LOCALHOST")], true),
            (here, &[("host", "rebound.example:8091")], false),
            (here, &[("host", "localhost.example")], false),
            (here, &[("host", "a b")], false),
            (here, &[("host", "localhost"), ("x-forwarded-for", "10.0.0.1")], false),
            (here, &[("host", "localhost"), ("forwarded", "for=10.0.0.1")], false),
            (here, &[("host", "localhost"), ("via", "1.1 proxy")], false),
            (here, &[("host", "localhost"), ("x-forwarded-host", "db.example")], false),
            ("10.0.0.1", &[("host", "10.0.0.2:8091")], false),
            ("fe80::1", &[("host", "localhost")], false),
        ];
        let administrator = "Administrator".to_owned();
        let mut set_up = SetUp { administrator, from_anywhere: false };
        for (peer, headers, is_from_here) in cases {
            let mut request = Request::new(Body::empty());
            request.extensions_mut().insert(Peer(peer.parse().unwrap()));
            for (name, value) in headers {
                request.headers_mut().insert(*name, value.parse().unwrap());
            }
            set_up.from_anywhere = false;
            assert_eq!(set_up.lets_in(&request), is_from_here, "{peer} {headers:?}");
            set_up.from_anywhere = true;
            assert!(set_up.lets_in(&request), "{peer} {headers:?}");
        }
        set_up.from_anywhere = false;
        assert!(!set_up.lets_in(&Request::new(Body::empty())), "nobody knows where it is from");
    }
}
