//! Limits of users, and of addresses from which logins fail.

use auth::{Editor, Role, UserLimits, UsersEdit};
use bucket::BucketConfig;

use crate::support::{Client, Port, RawFrame, bucket_config, frame, get, set};

const XERROR: u16 = 0x07;
const INGRESS: u16 = 0x30;
const EGRESS: u16 = 0x31;
const CONNECTIONS: u16 = 0x32;
const COMMANDS: u16 = 0x33;
const MIB: usize = 1 << 20;
/// A minute may end between two requests, and what was taken in it is forgotten: but not twice.
const MINUTES: usize = 2;

fn with_ports(test: impl Fn(&Port)) {
    for workers in [1, 4] {
        test(&Port::with_buckets(vec![BucketConfig { ..bucket_config() }], workers));
    }
}

/// A user whose password is its name.
fn put_user(port: &Port, user: &str, limits: &str) {
    let edit = UsersEdit::PutUser {
        user: user.to_owned(),
        password: Some(port.users.hash(user.as_bytes(), 0)),
        full_name: String::new(),
        roles: Role::parse_all("data_reader[*],data_writer[*]").unwrap(),
        groups: Vec::new(),
        limits: UserLimits::from_json(&format!("{{\"kv\":{limits}}}")).unwrap(),
    };
    port.users.edit(&edit, Editor::Admin).unwrap();
}

fn log_in(port: &Port, user: &str) -> (Client, u16) {
    let mut client = port.connect();
    client.hello(&[XERROR]);
    let login = format!("\0{user}\0{user}");
    let status = client.ask(frame(0x21).key(b"PLAIN").value(login.as_bytes())).status;
    (client, status)
}

fn client_of(port: &Port, user: &str) -> Client {
    let (mut client, status) = log_in(port, user);
    assert_eq!(status, 0);
    assert_eq!(client.ask(frame(0x89).key(b"default")).status, 0);
    client
}

#[test]
fn a_user_is_refused_what_is_beyond_its_limit_on_all_connections_and_others_are_not() {
    with_ports(|port| {
        let large = vec![b'x'; MIB];
        client_of_admin(port, set(b"large", &large));
        let cases: [(&str, &str, RawFrame, usize, u16); 3] = [
            ("ops", r#"{"num_ops_per_min":5}"#, get(b"none"), 5, COMMANDS),
            ("in", r#"{"ingress_mib_per_min":3}"#, set(b"other", &large), 3, INGRESS),
            ("out", r#"{"egress_mib_per_min":3}"#, get(b"large"), 3, EGRESS),
        ];
        for (user, limits, request, count, status) in cases {
            put_user(port, user, limits);
            let mut both = [client_of(port, user), client_of(port, user)];
            let mut answers = (0..=MINUTES * (count + 1)).map(|turn| {
                both[turn % 2].send(&request.bytes());
                both[turn % 2].receive().status
            });
            assert!(answers.any(|answer| answer == status), "{user}: {limits}");
            let mut client = both.into_iter().next().unwrap();
            assert_eq!(client.ask(frame(0xb5)).status, 0, "the map is there for everybody");
            put_user(port, user, "{}");
            client.send(&request.bytes());
            assert_ne!(client.receive().status, status, "{user} has no limit any more");
        }
        assert!(port.counter("limited_requests") >= 3);
    });
}

/// One request of the administrator, who has no limits.
fn client_of_admin(port: &Port, request: RawFrame) {
    let mut client = port.client(&[XERROR]);
    assert_eq!(client.ask(request).status, 0);
}

#[test]
fn a_user_has_as_many_connections_as_it_may_and_another_one_when_one_of_them_goes() {
    with_ports(|port| {
        put_user(port, "bob", r#"{"num_connections":2}"#);
        let (first, second) = (log_in(port, "bob"), log_in(port, "bob"));
        assert_eq!((first.1, second.1), (0, 0));
        assert_eq!(log_in(port, "bob").1, CONNECTIONS);
        put_user(port, "eve", "{}");
        assert_eq!(log_in(port, "eve").1, 0);
        let before = port.counter("curr_connections");
        drop(first);
        port.wait_for("it has gone", |statistics| statistics.curr_connections < before);
        assert_eq!(log_in(port, "bob").1, 0);
    });
}
