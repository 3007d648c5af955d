//! Configurations that stay open.

use std::time::Duration;

use crate::http_client::{HttpClient, basic};
use crate::rest_port::{PASSWORD, RestPort, USER};

const SILENCE: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn open(port: &RestPort, target: &str) -> (HttpClient, String) {
    open_as(port, target, &basic(USER, PASSWORD))
}

fn open_as(port: &RestPort, target: &str, login: &str) -> (HttpClient, String) {
    let mut client = port.connect();
    client.send(&format!("GET {target} HTTP/1.1\r\nHost: x\r\n{login}\r\n"));
    let head = client.read_head().unwrap();
    assert_eq!(head.status, 200, "{target}");
    assert_eq!(head.header("transfer-encoding"), Some("chunked"), "{target}");
    let chunk = client.read_chunk().unwrap();
    (client, chunk)
}

#[test]
fn a_stream_is_a_config_and_four_newlines_and_goes_on_when_the_map_changes() {
    let port = RestPort::start();
    for (stream, once) in [
        ("/pools/default/bs/default", "/pools/default/b/default"),
        ("/pools/default/bucketsStreaming/default", "/pools/default/b/default"),
        ("/pools/default/nodeServicesStreaming", "/pools/default/nodeServices"),
    ] {
        let (mut client, chunk) = open(&port, stream);
        let document = chunk.strip_suffix("\n\n\n\n").expect("four newlines end a document");
        assert_eq!(document, port.ask("GET", once).body, "{stream}");
        client.set_patience(SILENCE);
        assert!(client.is_silent(), "{stream}");
        client.set_patience(PATIENCE);
        assert_eq!(port.ask_with("PUT", "/settee/clusterMap", "{}").status, 200);
        let next = client.read_chunk().unwrap();
        assert_ne!(next, chunk, "{stream}");
        assert_eq!(next.strip_suffix("\n\n\n\n").unwrap(), port.ask("GET", once).body);
    }
}

#[test]
fn a_stream_ends_with_the_roles_the_password_and_the_user() {
    let port = RestPort::start();
    let user = "/settings/rbac/users/local/bob";
    let role = "roles=data_reader%5Bdefault%5D";
    let give = || {
        let given = port.ask_with("PUT", user, &format!("password=password&{role}"));
        assert_eq!(given.status, 200, "{}", given.body);
    };
    let change_map = || assert_eq!(port.ask_with("PUT", "/settee/clusterMap", "{}").status, 200);
    for (method, form) in
        [("PUT", "roles="), ("PUT", &*format!("password=another&{role}")), ("DELETE", "")]
    {
        give();
        let login = basic("bob", "password");
        let bucket = "/pools/default/bucketsStreaming/default";
        let (mut client, _) = open_as(&port, bucket, &login);
        change_map();
        assert!(client.read_chunk().is_some(), "it goes on");
        assert_eq!(port.ask_with(method, user, form).status, 200);
        change_map();
        assert!(client.read_chunk().is_none(), "{method} {form}");
    }
}
