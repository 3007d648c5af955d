//! The console: its files, its sessions, and what its pages ask for.

use std::sync::atomic::Ordering;
use std::time::Duration;

use management::{DocumentError, ShownDocument};
use serde_json::json;

use crate::http_client::{Answer, HttpClient};
use crate::rest_port::{PASSWORD, RestPort, USER};

/// What the console says of itself.
const CONSOLE: &str = "ns-server-ui: yes\r\n";

/// A request without a login, but with these header lines.
fn ask(port: &RestPort, line: &str, headers: &str, body: &str) -> Answer {
    let mut client = port.connect();
    send(&mut client, line, headers, body);
    client.read_answer().unwrap()
}

fn send(client: &mut HttpClient, line: &str, headers: &str, body: &str) {
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let size = body.len();
    client.send(&format!(
        "{line} HTTP/1.1\r\nHost: node:8091\r\n{form}Content-Length: {size}\r\n{headers}\r\n{body}"
    ));
}

/// Signs in. Returns the header line of the session.
fn sign_in(port: &RestPort, user: &str, password: &str) -> String {
    let body = format!("user={user}&password={password}");
    let answer = ask(port, "POST /uilogin", CONSOLE, &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    let cookie = answer.header("set-cookie").unwrap();
    for part in ["settee-session-8091=", "; HttpOnly", "; SameSite=Strict", "; Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    format!("Cookie: {}\r\n", cookie.split(';').next().unwrap())
}

#[test]
fn the_files_need_no_login_and_come_with_their_rules() {
    let port = RestPort::start();
    for (path, media_type) in [
        ("/ui/", "text/html; charset=utf-8"),
        ("/ui/main.js", "text/javascript; charset=utf-8"),
        ("/ui/console.css", "text/css; charset=utf-8"),
        ("/ui/icon.svg", "image/svg+xml"),
    ] {
        let answer = ask(&port, &format!("GET {path}"), "", "");
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(media_type)));
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    }
    assert_eq!(ask(&port, "GET /ui/no-such.js", "", "").status, 404);
    assert_eq!(ask(&port, "GET /ui/..%2Flib.rs", "", "").status, 404);
}

#[test]
fn a_browser_is_sent_to_the_console_and_a_tool_is_not() {
    let port = RestPort::start();
    for (line, headers, location) in [
        ("GET /ui", "", Some("/ui/")),
        ("GET /", "Accept: text/html,*/*\r\n", Some("/ui/")),
        ("GET /", "Accept: */*\r\n", None),
        ("GET /pools", "Accept: text/html\r\n", None),
    ] {
        let answer = ask(&port, line, headers, "");
        assert_eq!(answer.status, if location.is_some() { 303 } else { 401 }, "{line} {headers}");
        assert_eq!(answer.header("location"), location);
    }
}

#[test]
fn a_session_is_its_users_until_it_is_signed_out() {
    let port = RestPort::start();
    let session = sign_in(&port, USER, PASSWORD);
    let who = ask(&port, "GET /whoami", &session, "");
    assert_eq!((who.status, &who.json()["id"]), (200, &json!(USER)));
    let gone = ask(&port, "POST /uilogout", &format!("{session}{CONSOLE}"), "");
    assert_eq!(gone.status, 200);
    assert!(gone.header("set-cookie").unwrap().ends_with("; Max-Age=0"), "{gone:?}");
    assert_eq!(ask(&port, "GET /whoami", &session, "").status, 401);
}

#[test]
fn nobody_signs_in_with_a_wrong_password_or_from_elsewhere() {
    let port = RestPort::start();
    let right = format!("user={USER}&password={PASSWORD}");
    let long = format!("user={}&password=x", "u".repeat(200));
    for (headers, body, status) in [
        (CONSOLE, "user=Administrator&password=wrong", 401),
        (CONSOLE, "user=nobody&password=wrong", 401),
        (CONSOLE, long.as_str(), 401),
        (CONSOLE, "user=Administrator", 400),
        (CONSOLE, "", 400),
        ("", right.as_str(), 403),
        ("ns-server-ui: yes\r\nSec-Fetch-Site: cross-site\r\n", right.as_str(), 403),
        ("ns-server-ui: yes\r\nOrigin: http://evil\r\n", right.as_str(), 403),
    ] {
        let answer = ask(&port, "POST /uilogin", headers, body);
        assert_eq!(answer.status, status, "{headers} {body}");
        assert_eq!(answer.header("set-cookie"), None);
        assert_eq!(answer.header("www-authenticate"), None, "a browser would ask by itself");
    }
    let metrics = port.ask("GET", "/metrics").body;
    assert!(metrics.contains("\ncm_auth_errors_total 2\n"), "{metrics}");
}

#[test]
fn a_session_changes_nothing_unless_the_console_asks() {
    let port = RestPort::start();
    let session = sign_in(&port, USER, PASSWORD);
    let flush = "POST /pools/default/buckets/default/controller/doFlush";
    assert_eq!(ask(&port, flush, &session, "").status, 401);
    assert_eq!(*port.bucket.flushes.lock().unwrap(), 0);
    assert_eq!(ask(&port, flush, &format!("{session}{CONSOLE}"), "").status, 200);
    assert_eq!(*port.bucket.flushes.lock().unwrap(), 1);
}

#[test]
fn the_console_is_not_challenged_and_tools_are() {
    let port = RestPort::start();
    for (headers, is_challenged) in
        [("", true), (CONSOLE, false), ("invalid-auth-response: on\r\n", false)]
    {
        let answer = ask(&port, "GET /pools", headers, "");
        assert_eq!(answer.status, 401);
        assert_eq!(answer.header("www-authenticate").is_some(), is_challenged, "{headers}");
    }
}

#[test]
fn a_new_password_ends_sessions() {
    let port = RestPort::start();
    let session = sign_in(&port, USER, PASSWORD);
    port.node.users.set_password(USER, b"another");
    assert_eq!(ask(&port, "GET /whoami", &session, "").status, 401);
    sign_in(&port, USER, "another");
}

/// What an event of the stream says.
fn event_of(chunk: &str) -> serde_json::Value {
    let line = chunk.strip_prefix("data: ").and_then(|rest| rest.strip_suffix("\n\n"));
    serde_json::from_str(line.unwrap_or_else(|| panic!("{chunk}"))).unwrap()
}

#[test]
fn figures_come_every_second_until_the_session_ends() {
    let port = RestPort::start();
    let session = sign_in(&port, USER, PASSWORD);
    let mut client = port.connect();
    send(&mut client, "GET /settee/figuresStreaming", &session, "");
    let head = client.read_head().unwrap();
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    let first = event_of(&client.read_chunk().unwrap());
    let items = json!(["kv_curr_items", {"bucket": "default"}, 40.0]);
    let durations = json!(["kv_cmd_duration_seconds_count", {"opcode": "GET"}, 3.0]);
    let figures = first["figures"].as_array().unwrap();
    assert!(figures.contains(&items) && figures.contains(&durations), "{first}");
    let names = figures.iter().map(|figure| figure[0].as_str().unwrap());
    assert_eq!(names.filter(|name| name.starts_with("kv_collection")).count(), 0, "{first}");
    let second = event_of(&client.read_chunk().unwrap());
    assert!(second["time"].as_u64().unwrap() > first["time"].as_u64().unwrap());
    ask(&port, "POST /uilogout", &format!("{session}{CONSOLE}"), "");
    let later = std::iter::from_fn(|| client.read_chunk()).count();
    assert!(later <= 1, "what was on its way: {later}");
}

#[test]
fn configurations_end_with_the_session_that_they_were_asked_for_with_and_with_no_other() {
    let port = RestPort::start();
    let (session, other) = (sign_in(&port, USER, PASSWORD), sign_in(&port, USER, PASSWORD));
    let login = format!("{session}{}", crate::http_client::basic(USER, PASSWORD));
    let begin = |path: &str, headers: &str| {
        let mut client = port.connect();
        client.set_patience(Duration::from_secs(10));
        send(&mut client, &format!("GET {path}"), headers, "");
        assert_eq!(client.read_head().unwrap().status, 200, "{path}");
        assert!(client.read_chunk().is_some(), "{path}");
        client
    };
    let all = ["/pools/default/bs/default", "/poolsStreaming/default"];
    let ended = all.map(|path| begin(path, &session));
    let mut stay = [begin(all[0], &other), begin(all[0], &login)];
    ask(&port, "POST /uilogout", &format!("{session}{CONSOLE}"), "");
    for mut client in ended {
        assert!(client.read_chunk().is_none(), "no map has changed, and it ends");
    }
    for client in &mut stay {
        client.set_patience(Duration::from_millis(50));
        assert!(client.is_silent(), "another session's, or another login's");
    }
}

#[test]
fn figures_end_with_the_password_that_they_were_asked_for_with() {
    let port = RestPort::start();
    let mut client = port.connect();
    let login = crate::http_client::basic(USER, PASSWORD);
    send(&mut client, "GET /settee/figuresStreaming", &login, "");
    assert_eq!(client.read_head().unwrap().status, 200);
    for _ in 0..2 {
        event_of(&client.read_chunk().unwrap());
    }
    port.node.users.set_password(USER, b"another");
    let later = std::iter::from_fn(|| client.read_chunk()).count();
    assert!(later <= 1, "what was on its way: {later}");
}

#[test]
fn figures_are_read_while_somebody_looks_and_not_otherwise() {
    let port = RestPort::start();
    let session = sign_in(&port, USER, PASSWORD);
    let reads = || port.node.high_reads.load(Ordering::Relaxed);
    assert_eq!(reads(), 0, "nobody has looked");
    let viewers: Vec<HttpClient> = (0..2)
        .map(|_| {
            let mut client = port.connect();
            send(&mut client, "GET /settee/figuresStreaming", &session, "");
            assert_eq!(client.read_head().unwrap().status, 200);
            event_of(&client.read_chunk().unwrap());
            client
        })
        .collect();
    assert!(reads() > 0, "somebody looks");
    drop(viewers);
    let is_still = || {
        let before = reads();
        platform::threads::pause(Duration::from_millis(1500));
        reads() == before
    };
    assert!((0..20).any(|_| is_still()), "nobody looks any more");
}

#[test]
fn the_stream_ends_with_the_server() {
    let port = RestPort::start();
    let mut client = port.connect();
    let login = crate::http_client::basic(USER, PASSWORD);
    send(&mut client, "GET /settee/figuresStreaming", &login, "");
    assert_eq!(client.read_head().unwrap().status, 200);
    client.read_chunk().unwrap();
    client.set_patience(Duration::from_secs(30));
    let RestPort { handle, .. } = port;
    handle.shutdown();
    while client.read_chunk().is_some() {}
}

#[test]
fn vbuckets_are_told_with_their_place_their_seqnos_and_what_is_wrong() {
    let port = RestPort::start();
    let told = port.ask("GET", "/settee/buckets/default/vbuckets").json();
    assert_eq!(told["nodes"], json!(["127.0.0.1:12001"]));
    assert_eq!(told["thisNode"], 0);
    assert_eq!(told["vbuckets"].as_array().unwrap().len(), 16);
    let third = &told["vbuckets"][3];
    assert_eq!(third["chain"], json!([0]));
    assert_eq!(third["isIncomplete"], true);
    assert_eq!(third["damage"], json!({"kind": "out of service", "reason": "a header"}));
    assert_eq!(third["here"]["highSeqno"], 9);
    assert_eq!(third["here"]["persistedSeqno"], 7);
    assert_eq!(third["here"]["replicationLag"], 4);
    assert_eq!(told["vbuckets"][4]["here"]["replicationLag"], json!(null));
    assert_eq!(told["vbuckets"][15].get("here"), None, "it is not loaded here");
    assert_eq!(told["vbuckets"][4]["damage"], json!(null));
}

#[test]
fn timings_are_nanoseconds_and_the_empty_ones_are_left_out() {
    let port = RestPort::start();
    let told = port.ask("GET", "/settee/buckets/default/timings").json();
    let names: Vec<&str> =
        told.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["get_cmd", "bg_wait"]);
    for (index, expected) in [(0, 100), (1, 100_000)] {
        assert_eq!(told[index]["max"], expected);
        assert_eq!(told[index]["unit"], "ns");
        assert_eq!(told[index]["quantiles"]["p99.9"], expected);
        assert_eq!(told[index]["buckets"][0][2], 1);
    }
}

#[test]
fn the_last_lines_of_the_log_are_told() {
    let port = RestPort::start();
    let told = port.ask("GET", "/settee/log").json();
    assert_eq!(told, json!({"lines": ["INFO one", "WARN <two>"]}));
}

#[test]
fn documents_are_counted_by_collection() {
    let port = RestPort::start();
    let scopes = "/pools/default/buckets/default/scopes";
    assert_eq!(port.ask_with("POST", scopes, "name=s").status, 200);
    assert_eq!(port.ask_with("POST", &format!("{scopes}/s/collections"), "name=c").status, 200);
    let told = port.ask("GET", "/settee/buckets/default/collections").json();
    let own = json!({"scope": "_default", "collection": "_default", "items": 40});
    let other = json!({"scope": "s", "collection": "c", "items": 0});
    let told = told.as_array().unwrap();
    assert!(told.contains(&own) && told.contains(&other), "{told:?}");
}

const DOCS: &str = "/pools/default/buckets/default/scopes/_default/collections/_default/docs";

#[test]
fn a_document_is_made_read_changed_and_deleted_by_its_version() {
    let port = RestPort::start();
    let document = format!("{DOCS}/a%2Fb%20c");
    for (method, query, body, status, words) in [
        ("GET", "", "", 404, "no document"),
        ("POST", "", "value=%7B%7D&new=true&flags=7", 200, "\"cas\":\"1\""),
        ("POST", "", "value=x&new=true", 409, "already"),
        ("GET", "", "", 200, "\"value\":\"{}\""),
        ("POST", "", "value=x&cas=1", 200, "\"cas\":\"2\""),
        ("POST", "", "value=y&cas=1", 409, "read it again"),
        ("DELETE", "?cas=1", "", 409, "read it again"),
        ("DELETE", "?cas=x", "", 400, "number"),
        ("DELETE", "?cas=2", "", 200, "{}"),
        ("DELETE", "", "", 404, "no document"),
        ("POST", "", "flags=1", 400, "must be supplied"),
        ("POST", "", "value=x&cas=-1", 400, "numbers"),
        ("POST", "", "value=x&other=1", 400, "Unexpected"),
    ] {
        let answer = port.ask_with(method, &format!("{document}{query}"), body);
        assert_eq!(answer.status, status, "{method} {query} {body}: {answer:?}");
        assert!(answer.body.contains(words), "{method} {query} {body}: {answer:?}");
    }
}

#[test]
fn a_value_that_is_no_text_or_long_is_told_by_its_size_alone() {
    let port = RestPort::start();
    let long = format!("value={}", "x".repeat(300 * 1024));
    assert_eq!(port.ask_with("POST", &format!("{DOCS}/long"), &long).status, 200);
    let bytes = ShownDocument {
        cas: u64::MAX,
        flags: 0,
        expiry_seconds: 5,
        is_json: false,
        value: vec![0xff],
    };
    port.bucket.documents.lock().unwrap().insert("bytes".to_owned(), bytes);
    for (name, size) in [("long", 300 * 1024), ("bytes", 1)] {
        let told = port.ask("GET", &format!("{DOCS}/{name}")).json();
        assert_eq!((&told["value"], &told["size"]), (&json!(null), &json!(size)), "{name}");
    }
    let told = port.ask("GET", &format!("{DOCS}/bytes")).json();
    assert_eq!(told["cas"], u64::MAX.to_string(), "more digits than a double has");
}

#[test]
fn keys_come_page_by_page() {
    let port = RestPort::start();
    for key in ["a1", "a2", "a3", "b1"] {
        assert_eq!(port.ask_with("POST", &format!("{DOCS}/{key}"), "value=x").status, 200);
    }
    let first = port.ask("GET", &format!("{DOCS}?prefix=a&limit=2")).json();
    assert_eq!(first["keys"], json!(["a1", "a2"]));
    assert_eq!(first["next"], json!({"vbucket": 0, "behind": "a2"}));
    assert_eq!(first["unreadable"], json!([3]));
    let rest = port.ask("GET", &format!("{DOCS}?prefix=a&limit=2&vbucket=0&behind=a2")).json();
    assert_eq!((&rest["keys"], &rest["next"]), (&json!(["a3"]), &json!(null)));
    for query in ["limit=x", "vbucket=-1", "limit=70000"] {
        assert_eq!(port.ask("GET", &format!("{DOCS}?{query}")).status, 400, "{query}");
    }
}

#[test]
fn documents_are_for_who_may_see_their_collection() {
    let port = RestPort::start();
    let put = |user: &str, roles: &str| {
        let target = format!("/settings/rbac/users/local/{user}");
        let form = format!("password=password&roles={roles}");
        assert_eq!(port.ask_with("PUT", &target, &form).status, 200);
        sign_in(&port, user, "password")
    };
    let there = format!("{DOCS}/k");
    port.ask_with("POST", &there, "value=x");
    let scopes = "/pools/default/buckets/default/scopes";
    assert_eq!(port.ask_with("POST", scopes, "name=other").status, 200);
    let collections = format!("{scopes}/other/collections");
    assert_eq!(port.ask_with("POST", &collections, "name=c").status, 200);
    let reader = put("reader", "data_reader[default:_default:_default]");
    let stranger = put("stranger", "data_reader[default:other:c]");
    for (session, method, status) in [
        (&reader, "GET", 200),
        (&reader, "DELETE", 403),
        (&reader, "POST", 403),
        (&stranger, "GET", 403),
    ] {
        let headers = format!("{session}{CONSOLE}");
        let answer = ask(&port, &format!("{method} {there}"), &headers, "value=y");
        assert_eq!(answer.status, status, "{method} {answer:?}");
    }
    let elsewhere = "/pools/default/buckets/default/scopes/s/collections/c/docs/k";
    assert_eq!(port.ask("GET", elsewhere).status, 404, "there is no such collection");
}

#[test]
fn every_reason_why_a_document_is_not_stored_has_its_status() {
    let port = RestPort::start();
    let why = || "why".to_owned();
    for (error, status) in [
        (DocumentError::NotHere(why()), 421),
        (DocumentError::Refused(why()), 400),
        (DocumentError::Failed(why()), 503),
    ] {
        *port.bucket.document_error.lock().unwrap() = Some(error);
        let answer = port.ask_with("POST", &format!("{DOCS}/k"), "value=x");
        assert_eq!((answer.status, &answer.json()["_"]), (status, &json!("why")));
    }
}

#[test]
fn slow_operations_and_hot_documents_are_told_and_sampled_on_demand() {
    let port = RestPort::start();
    let slow = port.ask("GET", "/settee/buckets/default/slowOperations").json();
    let spans = json!({"queue": 0, "fetch": 100_000});
    let expected = json!([{"endedAt": 1_700_000_000_000_u64, "command": "GET", "key": "<b>",
        "client": "127.0.0.1", "took": 120_000, "spans": spans}]);
    assert_eq!(slow, expected);
    let hot = port.ask("GET", "/settee/buckets/default/hotKeys").json();
    assert_eq!(hot["keys"][0], json!({"key": "hot", "count": 7}));
    assert_eq!((&hot["counted"], &hot["secondsLeft"]), (&json!(10), &json!(1.5)));
    let thresholds = port.ask("GET", "/settee/slowThresholds").json();
    assert_eq!(thresholds, json!({"GET": 100, "SET": 100}));
    for (path, body, status) in [
        ("/settee/slowThresholds", "command=GET&milliseconds=5", 200),
        ("/settee/slowThresholds", "command=NO&milliseconds=5", 400),
        ("/settee/slowThresholds", "command=GET&milliseconds=x", 400),
        ("/settee/slowThresholds", "command=GET", 400),
        ("/settee/hotKeys", "seconds=10", 200),
        ("/settee/hotKeys", "seconds=x", 400),
        ("/settee/hotKeys", "", 400),
    ] {
        assert_eq!(port.ask_with("POST", path, body).status, status, "{path} {body}");
    }
}
