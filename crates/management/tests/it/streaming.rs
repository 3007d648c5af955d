//! Configurations that stay open.

use std::time::Duration;

use crate::http_client::{HttpClient, basic};
use crate::rest_port::{PASSWORD, RestPort, USER};

const SILENCE: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn open(port: &RestPort, target: &str) -> (HttpClient, String) {
    let mut client = port.connect();
    let login = basic(USER, PASSWORD);
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
