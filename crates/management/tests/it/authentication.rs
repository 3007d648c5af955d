//! Nothing but the health is told to strangers.

use crate::http_client::{Answer, basic};
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
