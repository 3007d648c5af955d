//! Buckets that are made, changed and deleted over the REST port.

use std::sync::Arc;
use std::time::Duration;

use management::{AuditLog, BucketOrderError};
use platform::Clock;
use platform::files::RealFiles;
use serde_json::{Value, json};

use crate::rest_port::{PASSWORD, RestPort, USER};
use crate::streaming::open;

const ALL: &str = "/pools/default/buckets";

/// What a form comes to, in the words of the engine.
const FORMS: &[(&str, &[(&str, &str)])] = &[
    ("ramQuotaMB=100", &[("max_size", "104857600")]),
    (
        "&ramQuota=100&bucketType=couchbase",
        &[("bucket_type", "persistent"), ("max_size", "104857600")],
    ),
    (
        "bucketType=ephemeral&ramQuotaMB=100",
        &[
            ("bucket_type", "ephemeral"),
            ("ephemeral_full_policy", "fail_new_data"),
            ("max_size", "104857600"),
        ],
    ),
    (
        "bucketType=ephemeral&evictionPolicy=nruEviction&ramQuotaMB=100",
        &[
            ("bucket_type", "ephemeral"),
            ("ephemeral_full_policy", "auto_delete"),
            ("max_size", "104857600"),
        ],
    ),
    (
        "bucketType=ephemeral&evictionPolicy=noEviction&ramQuotaMB=100&replicaNumber=2\
         &flushEnabled=1&compressionMode=active&conflictResolutionType=lww\
         &durabilityMinLevel=majority&maxTTL=0&numVBuckets=64&replicaIndex=0&threadsNumber=3",
        &[
            ("bucket_type", "ephemeral"),
            ("compression_mode", "active"),
            ("conflict_resolution_type", "lww"),
            ("durability_min_level", "majority"),
            ("ephemeral_full_policy", "fail_new_data"),
            ("flush_enabled", "true"),
            ("max_ttl", "0"),
            ("max_vbuckets", "64"),
            ("max_size", "104857600"),
            ("num_replicas", "2"),
        ],
    ),
    (
        "bucketType=membase&evictionPolicy=fullEviction&noRestart=true\
      &durabilityMinLevel=majorityAndPersistActive&storageBackend=couchstore&ramQuotaMB=200\
      &historyRetentionBytes=0",
        &[
            ("bucket_type", "persistent"),
            ("durability_min_level", "majority_and_persist_on_master"),
            ("item_eviction_policy", "full_eviction"),
            ("max_size", "209715200"),
        ],
    ),
];

/// What is refused before anybody is asked, by the field that says so.
const WRONG: &[(&str, &str)] = &[
    ("", "ramQuota"),
    ("ramQuotaMB=99", "ramQuota"),
    ("ramQuotaMB=much", "ramQuotaMB"),
    ("ramQuotaMB=17592186044416", "ramQuotaMB"),
    ("ramQuotaMB=100&bucketType=memcached", "bucketType"),
    ("ramQuotaMB=100&evictionPolicy=all", "evictionPolicy"),
    ("ramQuotaMB=100&evictionPolicy=noEviction", "evictionPolicy"),
    ("ramQuotaMB=100&bucketType=ephemeral&evictionPolicy=valueOnly", "evictionPolicy"),
    ("ramQuotaMB=100&noRestart=maybe", "noRestart"),
    ("ramQuotaMB=100&durabilityMinLevel=most", "durabilityMinLevel"),
    (
        "ramQuotaMB=100&bucketType=ephemeral&durabilityMinLevel=persistToMajority",
        "durabilityMinLevel",
    ),
    ("ramQuotaMB=100&replicaNumber=4", "replicaNumber"),
    ("ramQuotaMB=100&compressionMode=on", "compressionMode"),
    ("ramQuotaMB=100&flushEnabled=2", "flushEnabled"),
    ("ramQuotaMB=100&maxTTL=-1", "maxTTL"),
    ("ramQuotaMB=100&storageBackend=magma", "storageBackend"),
    ("ramQuotaMB=100&conflictResolutionType=custom", "conflictResolutionType"),
    ("ramQuotaMB=100&historyRetentionBytes=5", "historyRetentionBytes"),
    ("ramQuotaMB=100&what=x", "what"),
];

#[test]
fn a_form_is_read_into_the_words_of_the_engine() {
    let port = RestPort::start();
    for (number, (form, words)) in FORMS.iter().enumerate() {
        let answer = port.ask_with("POST", ALL, &format!("name=b{number}&{form}"));
        assert_eq!((answer.status, answer.body.as_str()), (202, ""), "{form}");
        let (name, order) = port.node.orders.lock().unwrap().pop().unwrap();
        let mut order: Vec<_> =
            order.iter().map(|(word, value)| (word.as_str(), value.as_str())).collect();
        let mut words = words.to_vec();
        order.sort_unstable();
        words.sort_unstable();
        assert_eq!((name, order), (format!("b{number}"), words), "{form}");
    }
    let list = port.ask("GET", ALL).json();
    assert_eq!(list.as_array().unwrap().len(), FORMS.len() + 1);
}

#[test]
fn what_cannot_be_is_refused_by_its_field_and_nothing_happens() {
    let port = RestPort::start();
    for (form, field) in WRONG {
        let refused = port.ask_with("POST", ALL, &format!("name=other&{form}"));
        assert_eq!(refused.status, 400, "{form}");
        assert!(refused.json()["errors"].get(*field).is_some(), "{form}: {}", refused.body);
    }
    let unnamed = port.ask_with("POST", ALL, "ramQuotaMB=100");
    assert!(unnamed.json()["errors"]["name"].is_string(), "{}", unnamed.body);
    let trial = port.ask_with("POST", &format!("{ALL}?just_validate=1"), "name=b&ramQuotaMB=100");
    assert_eq!((trial.status, &trial.json()["errors"]), (200, &json!({})));
    assert_eq!(port.ask("GET", &format!("{ALL}/b")).status, 404, "it was tried");
    let why = |field: &str| BucketOrderError::Invalid(field.to_owned(), "why".to_owned());
    for (error, status, pointer) in [
        (BucketOrderError::Exists, 400, "/errors/name"),
        (why("max_size"), 400, "/errors/ramQuotaMB"),
        (why("_"), 400, "/errors/_"),
        (BucketOrderError::Failed("why".to_owned()), 503, "/_"),
    ] {
        *port.node.order_error.lock().unwrap() = Some(error.clone());
        let refused = port.ask_with("POST", ALL, "name=b&ramQuotaMB=100");
        assert_eq!(refused.status, status, "{error:?}");
        assert!(refused.json().pointer(pointer).is_some(), "{error:?}: {}", refused.body);
    }
}

#[test]
fn a_bucket_is_changed_and_deleted_by_its_name() {
    let port = RestPort::start();
    let bucket = &format!("{ALL}/default");
    assert_eq!(port.ask_with("POST", bucket, "&ramQuotaMB=512&name=default").status, 200);
    assert_eq!(port.ask("GET", bucket).json()["quota"]["ram"], 512 << 20);
    let refused = port.ask_with("POST", bucket, "ramQuotaMB=1");
    assert_eq!(
        (refused.status, &refused.json()["errors"]["ramQuotaMB"]),
        (400, &"too small".into())
    );
    let trial = format!("{bucket}?just_validate=1");
    assert_eq!(port.ask_with("POST", &trial, "ramQuotaMB=300").status, 200);
    assert_eq!(port.ask("GET", bucket).json()["quota"]["ram"], 512 << 20);
    assert_eq!(port.ask_with("POST", ALL, "name=slow&ramQuotaMB=100").status, 202);
    assert_eq!(port.ask("DELETE", &format!("{ALL}/slow?bucket_uuid=x")).status, 404);
    let slow = port.ask("DELETE", &format!("{ALL}/slow"));
    assert_eq!(slow.status, 500);
    assert!(slow.body.contains("not yet complete, but will continue"), "{}", slow.body);
    assert_eq!(port.ask("DELETE", bucket).status, 200);
    assert_eq!(port.ask("DELETE", bucket).body, "Requested resource not found.\r\n");
    assert_eq!(port.ask("GET", ALL).body, "[]");
    assert_eq!(port.ask("GET", "/pools/default").status, 200, "there is no bucket");
}

#[test]
fn buckets_that_take_long_to_go_keep_nobody_from_work() {
    let port = RestPort::start();
    let names = ["held-1", "held-2", "held-3"];
    for name in names {
        let form = format!("name={name}&ramQuotaMB=100");
        assert_eq!(port.ask_with("POST", ALL, &form).status, 202);
    }
    let port = &port;
    std::thread::scope(|threads| {
        let deletions = names
            .map(|name| threads.spawn(move || port.ask("DELETE", &format!("{ALL}/{name}")).status));
        while port.node.held_buckets.lock().unwrap().len() < names.len() {
            std::thread::yield_now();
        }
        assert_eq!(port.ask_with("POST", ALL, "name=next&ramQuotaMB=100").status, 202);
        assert!(deletions.iter().all(|deletion| !deletion.is_finished()));
        let held = std::mem::take(&mut *port.node.held_buckets.lock().unwrap());
        held.into_iter().for_each(|gone| gone());
        assert_eq!(deletions.map(|deletion| deletion.join().unwrap()), [200; 3]);
    });
}

fn wait_until(is_so: impl Fn() -> bool) {
    for _ in 0..2000 {
        if is_so() {
            return;
        }
        platform::threads::pause(Duration::from_millis(10));
    }
    panic!("it takes too long");
}

#[test]
fn a_change_whose_client_leaves_is_noted() {
    let port = RestPort::start();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    let log = AuditLog::start(Clock::real(), Arc::new(RealFiles), path.clone()).unwrap();
    assert!(port.node.audit_log.set(log).is_ok());
    assert_eq!(port.ask_with("POST", ALL, "name=held&ramQuotaMB=100").status, 202);
    let mut leaving = port.connect();
    let login = crate::http_client::basic(USER, PASSWORD);
    leaving.send(&format!("DELETE {ALL}/held HTTP/1.1\r\nHost: x\r\n{login}\r\n"));
    wait_until(|| !port.node.held_buckets.lock().unwrap().is_empty());
    drop(leaving);
    let lines = || -> Vec<Value> {
        let text = platform::files::read_text(&path).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    wait_until(|| lines().len() == 2);
    let line = &lines()[1];
    assert_eq!(line["request"], format!("DELETE <ud>{ALL}/held</ud>"));
    assert_eq!((&line["status"], &line["remote"]), (&json!(null), &json!("127.0.0.1")));
}

#[test]
fn the_stream_of_a_bucket_that_goes_ends() {
    let port = RestPort::start();
    let (mut stream, _) = open(&port, "/pools/default/bs/default");
    assert_eq!(port.ask("DELETE", &format!("{ALL}/default")).status, 200);
    assert_eq!(stream.read_chunk().unwrap_or_default(), "", "the body is at its end");
}
