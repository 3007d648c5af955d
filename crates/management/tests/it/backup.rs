//! Backups over the REST port.

use std::sync::Arc;
use std::time::Duration;

use management::BucketKind;

use crate::http_client::basic;
use crate::rest_port::{PASSWORD, RestPort, USER};
use crate::streaming::open;

const BACKUP: &str = "/pools/default/buckets/default/backup";

#[test]
fn a_backup_lives_as_long_as_its_answer_stays_open() {
    let port = RestPort::start();
    let (client, line) = open(&port, BACKUP);
    let catalogue: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(catalogue["vbuckets"][1]["vbid"], 4);
    assert_eq!(catalogue["bucket"]["vbuckets"], 16);
    assert_eq!(catalogue["deleted"], serde_json::json!([7]));
    assert_eq!(catalogue["empty"], serde_json::json!([0, 1]));
    assert_eq!(catalogue["elsewhere"], serde_json::json!([2, 5]));
    assert_eq!((&catalogue["revEpoch"], &catalogue["rev"]), (&1.into(), &7.into()));
    assert_eq!(catalogue["collections"]["uid"], "1f");
    assert_eq!(catalogue["settings"], serde_json::json!({"max_ttl": "60"}));
    let route = format!("{BACKUP}/{}", catalogue["backup"].as_str().unwrap());
    // Nobody else's name, no other vBucket.
    for target in [format!("{route}/5"), format!("{BACKUP}/0/3"), format!("{route}/x")] {
        assert!([400, 404].contains(&port.ask("GET", &target).status), "{target}");
    }
    let (mut reader, part) = open(&port, &format!("{route}/3"));
    assert_eq!((part.as_str(), reader.read_chunk()), ("three", None));
    reader.set_patience(Duration::from_millis(100));
    assert!(reader.is_silent(), "a whole file leaves the connection open");
    // How much arrives before the end is a matter of luck.
    let mut reader = port.connect();
    let login = basic(USER, PASSWORD);
    reader.send(&format!("GET {route}/4 HTTP/1.1\r\nHost: x\r\n{login}\r\n"));
    let _is_begun = reader.read_head().is_some() && reader.read_chunk().is_some();
    assert!(reader.is_closed(), "what is not whole breaks off");
    assert_eq!(Arc::strong_count(&port.bucket.backups), 2);
    drop(client);
    while Arc::strong_count(&port.bucket.backups) > 1 {
        std::thread::yield_now();
    }
    assert_eq!(port.ask("GET", &format!("{route}/3")).status, 404);
}

#[test]
fn a_backup_ends_with_its_bucket_and_holds_nothing_of_it() {
    let port = RestPort::start();
    let (mut client, line) = open(&port, BACKUP);
    let catalogue: serde_json::Value = serde_json::from_str(&line).unwrap();
    let route = format!("{BACKUP}/{}/6", catalogue["backup"].as_str().unwrap());
    // It reads no further, and does not end before its client does.
    let (mut reader, _) = open(&port, &route);
    // Another change of the map does not end it.
    assert_eq!(port.ask_with("PUT", "/settee/clusterMap", "{}").status, 200);
    client.set_patience(Duration::from_millis(100));
    assert!(client.is_silent());
    client.set_patience(Duration::from_secs(60));
    assert_eq!(port.ask("DELETE", "/pools/default/buckets/default").status, 200);
    assert!(!client.is_silent(), "the answer ends");
    assert_eq!(client.read_chunk(), None);
    while Arc::strong_count(&port.bucket.backups) > 1 {
        std::thread::yield_now();
    }
    while reader.read_chunk().is_some() {}
    assert!(reader.is_closed(), "what is not whole breaks off");
}

#[test]
fn backups_have_a_limit_and_need_files_and_a_user() {
    let port = RestPort::start();
    let held = [open(&port, BACKUP), open(&port, BACKUP)];
    assert_eq!(port.ask("GET", BACKUP).status, 503);
    drop(held);
    *port.bucket.kind.lock().unwrap() = BucketKind::FullEviction;
    while port.ask("GET", BACKUP).status == 503 {
        std::thread::yield_now();
    }
    let answer = port.ask("GET", BACKUP);
    let expected = (409, r#"{"_":"vBucket 5 is not active"}"#);
    assert_eq!((answer.status, answer.body.as_str()), expected);
    *port.bucket.kind.lock().unwrap() = BucketKind::EphemeralAutoDelete;
    while port.ask("GET", BACKUP).status == 503 {
        std::thread::yield_now();
    }
    let answer = port.ask("GET", BACKUP);
    assert_eq!((answer.status, answer.body.as_str()), (400, r#"{"_":"no files"}"#));
    assert_eq!(port.ask("GET", "/pools/default/buckets/other/backup").status, 404);
    for login in [basic(USER, "wrong"), basic("nobody", PASSWORD), String::new()] {
        let mut client = port.connect();
        client.send(&format!("GET {BACKUP} HTTP/1.1\r\nHost: x\r\n{login}\r\n"));
        assert_eq!(client.read_head().unwrap().status, 401, "{login}");
    }
}
