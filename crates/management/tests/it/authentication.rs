//! Nothing but the health is told to strangers.

use std::time::Duration;

use auth::password_checker::QUEUE_LENGTH_MAX;
use management::Limits;

use crate::http_client::{Answer, HttpClient, basic};
use crate::rest_port::{PASSWORD, RestPort, USER};

const TARGETS: [&str; 5] =
    ["/", "/pools/default/b/default", "/pools/default/bs/default", "/metrics", "/no/such/thing"];

fn get(port: &RestPort, target: &str, login: &str) -> Answer {
    let mut client = port.connect();
    client.send(&format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{login}\r\n"));
    client.read_answer().unwrap()
}

#[test]
fn strangers_are_asked_who_they_are() {
    let port = RestPort::start();
    let wrong_password = basic(USER, "wrong");
    let unknown = basic("nobody", PASSWORD);
    let malformed = "Authorization: Basic *\r\n";
    for login in ["", &wrong_password, &unknown, malformed] {
        for target in TARGETS {
            let answer = get(&port, target, login);
            assert_eq!(answer.status, 401, "{target} {login}");
            let challenge = answer.header("www-authenticate");
            assert_eq!(challenge, Some("Basic realm=\"Couchbase Server Admin / REST\""));
            assert_eq!(answer.body, "");
        }
    }
    assert_eq!(get(&port, "/", &basic(USER, PASSWORD)).status, 200);
}

#[test]
fn the_health_is_told_to_everybody() {
    let port = RestPort::start();
    assert_eq!(get(&port, "/healthz", "").status, 200);
}

#[test]
fn a_wrong_password_after_a_right_one_is_still_wrong() {
    let port = RestPort::start();
    assert_eq!(port.ask("GET", "/whoami").status, 200);
    assert_eq!(get(&port, "/whoami", &basic(USER, "wrong")).status, 401);
    assert_eq!(port.ask("GET", "/whoami").status, 200);
}

#[test]
fn wrong_passwords_are_counted() {
    let port = RestPort::start();
    for _ in 0..3 {
        assert_eq!(get(&port, "/whoami", &basic(USER, "wrong")).status, 401);
    }
    let metrics = port.ask("GET", "/metrics").body;
    assert!(metrics.contains("\ncm_auth_errors_total 3\n"), "{metrics}");
}

#[test]
fn one_login_too_many_is_told_to_try_again_and_who_was_known_before_is_served() {
    // Long enough each that whoever asks at once waits.
    let port = RestPort::start_hashing(Limits::default(), 200_000);
    assert_eq!(port.ask("GET", "/pools").status, 200);
    let begin = |number: usize| {
        let mut client = port.connect();
        let credentials = basic(USER, &format!("wrong-{number}"));
        client.send(&format!("GET /pools HTTP/1.1\r\nHost: x\r\n{credentials}\r\n"));
        client.set_patience(Duration::from_millis(50));
        client
    };
    let mut waiting: Vec<HttpClient> = (0..QUEUE_LENGTH_MAX).map(begin).collect();
    let refused = (0..4 * QUEUE_LENGTH_MAX).find_map(|number| {
        let mut client = begin(QUEUE_LENGTH_MAX + number);
        let answer = if client.is_silent() { None } else { client.read_answer() };
        waiting.push(client);
        answer
    });
    let refused = refused.expect("the queue is full");
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
    assert!(refused.body.contains("try again"), "{}", refused.body);
    assert_eq!(port.ask("GET", "/pools").status, 200, "who was known before does not wait");
    // Who has left costs nothing: somebody new is let in.
    drop(waiting);
    let mut client = port.connect();
    client.set_patience(Duration::from_secs(60));
    client.send(&format!("GET /pools HTTP/1.1\r\nHost: x\r\n{}\r\n", basic(USER, "wrong")));
    assert_eq!(client.read_answer().unwrap().status, 401);
}
