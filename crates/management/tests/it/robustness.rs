//! Whatever a client sends or fails to send, the port goes on serving the others.

use std::time::Duration;

use management::Limits;

use crate::http_client::{HttpClient, basic};
use crate::rest_port::{PASSWORD, RestPort, USER};

const SHORT: Duration = Duration::from_millis(100);
const HOURS: Duration = Duration::from_secs(10_000);

#[test]
fn malformed_requests_are_refused_and_harm_nobody() {
    let port = RestPort::start();
    let long_header = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(100_000));
    let many_headers = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(1000));
    for request in [
        "\r\n\r\n\r\nnonsense\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "GET / HTTP/1.1\r\nno colon\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "\u{0}\u{1}\u{2}\u{3}\u{4}\r\n\r\n",
        "\u{80}\u{0}\u{0}\u{3}\r\n\r\n",
        &long_header,
        &many_headers,
    ] {
        let mut client = port.connect();
        client.send(request);
        if let Some(answer) = client.read_answer() {
            assert!((400..=431).contains(&answer.status), "{request:.40?}: {answer:?}");
        }
        assert!(client.is_closed(), "{request:.40?}");
    }
    assert_eq!(port.ask("GET", "/").status, 200);
}

#[test]
fn random_bytes_never_stop_the_port() {
    let port = RestPort::start();
    for seed in platform::seeds::seeds(50) {
        let mut random = platform::Random::from_seed(seed);
        let length = 1 + random.below(200);
        let bytes: String = (0..length).map(|_| char::from(random.below(128) as u8)).collect();
        let mut client = port.connect();
        client.send(&format!("{bytes}\r\n\r\n"));
        assert_eq!(port.ask("GET", "/healthz").status, 200, "seed {seed}");
    }
}

#[test]
fn a_body_is_limited_in_size_and_in_time() {
    let limits = Limits { body_bytes_max: 100, body_time_max: SHORT, ..Limits::default() };
    let port = RestPort::start_with(limits);
    let login = basic(USER, PASSWORD);
    let head = format!("POST /pools/default/buckets HTTP/1.1\r\nHost: x\r\n{login}");
    let chunked = "Transfer-Encoding: chunked\r\n\r\n";
    let big_chunk = format!("{head}{chunked}c8\r\n{}\r\n0\r\n\r\n", "x".repeat(200));
    for (request, status) in [
        (format!("{head}Content-Length: 101\r\n\r\n{}", "x".repeat(101)), 413),
        (format!("{head}Content-Length: 99999999999999999999\r\n\r\n"), 400),
        (big_chunk, 400),
        (format!("{head}Content-Length: 50\r\n\r\nname="), 408),
    ] {
        let mut client = port.connect();
        client.send(&request);
        assert_eq!(client.read_answer().unwrap().status, status, "{request:.200}");
    }
}

#[test]
fn bodies_have_a_limit_together_and_those_of_nodes_one_of_their_own() {
    let limits = Limits {
        body_bytes_max: 100,
        bodies_bytes_max: 100,
        body_time_max: HOURS,
        ..Limits::default()
    };
    let port = RestPort::start_with(limits);
    let login = basic(USER, PASSWORD);
    let head = |size: usize| {
        let to = "POST /pools/default/buckets/default/controller/doFlush HTTP/1.1\r\nHost: x\r\n";
        format!("{to}{login}Content-Length: {size}\r\n\r\n")
    };
    let mut slow = port.connect();
    slow.send(&head(60));
    while !port.ask("GET", "/metrics").body.contains("cm_http_body_bytes 60\n") {
        std::thread::yield_now();
    }
    let mut next = port.connect();
    next.send(&(head(60) + &"x".repeat(60)));
    next.set_patience(SHORT);
    assert!(next.is_silent(), "there is no room for it");
    assert_eq!(port.ask_with("PUT", "/settee/clusterMap", "{}").status, 200);
    slow.send(&"x".repeat(60));
    next.set_patience(HOURS);
    for client in [&mut slow, &mut next] {
        assert_eq!(client.read_answer().unwrap().status, 200);
    }
    assert!(port.ask("GET", "/metrics").body.contains("cm_http_body_bytes 0\n"));
}

#[test]
fn a_form_that_is_none_is_refused() {
    let port = RestPort::start();
    for body in ["%zz=%", "name=default&name=other", "\u{ff}=1"] {
        let answer = port.connect().ask("POST", "/pools/default/buckets", body);
        assert_eq!(answer.status, 400, "{body}");
    }
}

#[test]
fn a_client_that_says_nothing_is_let_go() {
    let port = RestPort::start_with(Limits { header_time_max: SHORT, ..Limits::default() });
    let mut silent = port.connect();
    let mut slow = port.connect();
    slow.send("GET / HTTP/1.1\r\nHost");
    for client in [&mut silent, &mut slow] {
        if let Some(answer) = client.read_answer() {
            assert_eq!(answer.status, 408);
        }
        assert!(client.is_closed());
    }
}

#[test]
fn connections_beyond_the_limit_are_closed_and_counted() {
    let port = RestPort::start_with(Limits { connections_max: 2, ..Limits::default() });
    let mut held: Vec<_> = (0..2).map(|_| port.connect()).collect();
    for client in &mut held {
        assert_eq!(client.ask("GET", "/", "").status, 200);
    }
    assert!(port.connect().is_closed());
    let metrics = held[0].ask("GET", "/metrics", "").body;
    assert!(metrics.contains("cm_http_connections_refused_total 1\n"), "{metrics}");
    // A connection that ends makes room again; the server notices it within moments.
    held.pop();
    let answered = (0..1000).any(|_| {
        let mut client = port.connect();
        client.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
        client.read_answer().is_some()
    });
    assert!(answered);
}

#[test]
fn who_opens_many_connections_and_says_nothing_shuts_nobody_out() {
    let limits = Limits { connections_max: 4, header_time_max: HOURS, ..Limits::default() };
    let port = RestPort::start_with(limits);
    let mut known = port.connect();
    assert_eq!(known.ask("GET", "/", "").status, 200);
    let mut strangers: Vec<_> = (0..3).map(|_| port.connect()).collect();
    // One that asks without a login is no better.
    strangers[0].send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(strangers[0].read_answer().is_some());
    let mut administrator = port.connect();
    assert_eq!(administrator.ask("GET", "/", "").status, 200);
    assert!(strangers.remove(0).is_closed(), "the oldest gives way");
    for client in [&mut known, &mut administrator] {
        let metrics = client.ask("GET", "/metrics", "").body;
        assert!(metrics.contains("cm_http_connections_displaced_total 1\n"), "{metrics}");
        assert!(metrics.contains("cm_http_connections_refused_total 0\n"), "{metrics}");
    }
}

#[test]
fn a_user_with_many_connections_shuts_nobody_out() {
    const COUNT: usize = 20;
    let limits = Limits { connections_max: COUNT, header_time_max: HOURS, ..Limits::default() };
    let port = RestPort::start_with(limits);
    let form = "password=password&roles=";
    assert_eq!(port.ask_with("PUT", "/settings/rbac/users/local/bob", form).status, 200);
    let mut of_bob: Vec<HttpClient> = Vec::new();
    for _ in 0..COUNT {
        let mut client = port.connect();
        let login = basic("bob", "password");
        client.send(&format!("GET /whoami HTTP/1.1\r\nHost: x\r\n{login}\r\n"));
        // The connection of before may still be on its way out.
        if client.read_answer().is_some() {
            of_bob.push(client);
        }
    }
    assert!(of_bob.len() > COUNT - 2);
    for _ in 0..3 {
        let mut stranger = port.connect();
        stranger.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(stranger.read_answer().is_some());
        let mut administrator = port.connect();
        assert_eq!(administrator.ask("GET", "/whoami", "").status, 200);
    }
    assert!(of_bob.remove(0).is_closed(), "the oldest gives way");
}

#[test]
fn a_body_that_is_no_form_is_refused_wherever_a_form_is_read() {
    let port = RestPort::start();
    let bucket = "/pools/default/buckets/default";
    let collection = format!("{bucket}/scopes/_default/collections");
    for (method, path) in [
        ("POST", "/settings/passwordPolicy"),
        ("POST", "/settings/audit"),
        ("POST", "/settings/security"),
        ("POST", "/controller/changePassword"),
        ("POST", "/pools/default/buckets"),
        ("POST", bucket),
        ("POST", &format!("{bucket}/scopes")),
        ("POST", &collection),
        ("PATCH", &format!("{collection}/_default")),
        ("PUT", "/settings/rbac/users/local/u"),
        ("PUT", "/settings/rbac/groups/g"),
        ("POST", "/settee/logLevel"),
        ("POST", "/settee/hotKeys"),
        ("POST", "/settee/slowThresholds"),
    ] {
        for (kind, body) in [("application/json", "{\"minLength\":9}"), ("text/plain", "a=1")] {
            let mut client = port.connect();
            let (login, size) = (basic(USER, PASSWORD), body.len());
            client.send(&format!(
                "{method} {path} HTTP/1.1\r\nHost: x\r\n{login}Content-Type: {kind}\r\n\
                 Content-Length: {size}\r\n\r\n{body}"
            ));
            let answer = client.read_answer().unwrap();
            assert_eq!(answer.status, 400, "{method} {path} {kind}: {}", answer.body);
            assert!(answer.body.contains("The body is a form"), "{method} {path}: {}", answer.body);
        }
    }
}

#[test]
fn one_too_many_of_an_address_takes_the_place_of_the_oldest_without_a_login() {
    let port = RestPort::start_with(Limits { strangers_of_address_max: 2, ..Limits::default() });
    let mut known = port.connect();
    assert_eq!(known.ask("GET", "/whoami", "").status, 200);
    let mut strangers: Vec<_> = (0..2).map(|_| port.connect()).collect();
    assert_eq!(strangers[1].ask("GET", "/whoami", "").status, 200, "it is a stranger no more");
    strangers.push(port.connect());
    strangers.push(port.connect());
    assert!(strangers.remove(0).is_closed(), "the oldest gives way");
    assert_eq!(strangers[2].ask("GET", "/whoami", "").status, 200);
    let metrics = known.ask("GET", "/metrics", "").body;
    assert!(metrics.contains("cm_http_connections_displaced_total 1\n"), "{metrics}");
}

#[test]
fn a_page_of_another_site_changes_nothing() {
    let port = RestPort::start();
    let login = basic(USER, PASSWORD);
    for (origin, status) in [("http://x", 200), ("http://evil", 403)] {
        let mut client = port.connect();
        client.send(&format!(
            "POST /pools/default/buckets/default/controller/doFlush HTTP/1.1\r\nHost: x\r\n\
             Origin: {origin}\r\n{login}Content-Length: 0\r\n\r\n"
        ));
        assert_eq!(client.read_answer().unwrap().status, status, "{origin}");
    }
}
