//! A node with two buckets over the REST port.

use std::sync::Arc;

use cluster::PendingVbucket;
use serde_json::json;

use crate::fake_node::{COLD, FakeBucket};
use crate::rest_port::RestPort;
use crate::streaming::open;

/// A node with the buckets `default` and `other`.
fn start() -> (RestPort, Arc<FakeBucket>) {
    let port = RestPort::start();
    let other = Arc::new(FakeBucket::named("other"));
    port.node.buckets.lock().unwrap().push(Arc::clone(&other));
    (port, other)
}

#[test]
fn every_bucket_is_listed_and_found_by_its_name() {
    let (port, other) = start();
    let list = port.ask("GET", "/pools/default/buckets").json();
    let names: Vec<&str> =
        list.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["default", "other"]);
    for (name, uuid) in [("default", port.bucket.bucket_uuid), ("other", other.bucket_uuid)] {
        for target in ["b", "buckets"] {
            let target = format!("/pools/default/{target}/{name}");
            let bucket = port.ask("GET", &target).json();
            assert_eq!(
                (&bucket["name"], &bucket["uuid"]),
                (&json!(name), &json!(uuid.to_string()))
            );
            assert_eq!(port.ask("GET", &format!("{target}?bucket_uuid={uuid}")).status, 200);
        }
    }
    let swapped = format!("/pools/default/b/default?bucket_uuid={}", other.bucket_uuid);
    assert_eq!(port.ask("GET", &swapped).status, 404);
    assert_eq!(port.ask("GET", "/pools/default/b/third").status, 404);
    let pool = port.ask("GET", "/pools/default").json();
    assert_eq!(pool["bucketNames"][1]["bucketName"], "other");
    assert_eq!(pool["maxBucketCount"], 30);
    assert_eq!(pool["memoryQuota"], 1024, "what the node has for all");
    assert_eq!(pool["storageTotals"]["ram"]["quotaUsed"], 512 << 20, "of both");
}

#[test]
fn a_bucket_of_any_name_is_where_the_answers_say() {
    let port = RestPort::start();
    // The second one is where the first one would be without being escaped.
    for name in ["50%25", "50%"] {
        port.node.buckets.lock().unwrap().push(Arc::new(FakeBucket::named(name)));
    }
    for bucket in port.ask("GET", "/pools/default/buckets").json().as_array().unwrap() {
        let text = |pointer| bucket.pointer(pointer).and_then(|it| it.as_str()).unwrap();
        let found = port.ask("GET", text("/uri")).json();
        assert_eq!((&found["name"], &found["uuid"]), (&bucket["name"], &bucket["uuid"]));
        assert_eq!(port.ask("GET", text("/stats/uri")).status, 200, "{bucket}");
        let nodes = port.ask("GET", text("/stats/nodeStatsListURI")).json();
        let of_node = nodes["servers"][0]["stats"]["uri"].as_str().unwrap();
        assert_eq!(port.ask("GET", of_node).status, 200, "{of_node}");
        for pointer in ["/controllers/compactAll", "/controllers/flush"] {
            assert_eq!(port.ask("POST", text(pointer)).status, 200, "{pointer}: {bucket}");
        }
        let opened = open(&port, text("/streamingUri"));
        drop(opened);
    }
    for bucket in &*port.node.buckets.lock().unwrap() {
        let done = (*bucket.compactions.lock().unwrap(), *bucket.flushes.lock().unwrap());
        assert_eq!(done, (1, 1), "each was meant once");
    }
}

#[test]
fn what_is_done_to_one_bucket_is_not_done_to_the_other() {
    let (port, other) = start();
    let target = |what: &str| format!("/pools/default/buckets/other{what}");
    assert_eq!(port.ask("POST", &target("/controller/doFlush")).status, 200);
    assert_eq!(port.ask("POST", &target("/controller/compactBucket")).status, 200);
    assert_eq!(port.ask_with("POST", &target(""), "ramQuotaMB=300").status, 200);
    let done = |bucket: &FakeBucket| {
        let counts = (*bucket.flushes.lock().unwrap(), *bucket.compactions.lock().unwrap());
        (counts, *bucket.quota_bytes.lock().unwrap())
    };
    assert_eq!(done(&port.bucket), ((0, 0), 256 << 20));
    assert_eq!(done(&other), ((1, 1), 300 << 20));
}

#[test]
fn what_is_left_of_a_plan_and_damage_have_names() {
    let (port, other) = start();
    let left = |vbid| PendingVbucket { vbid, wanted: "active", reason: "why".to_owned() };
    port.bucket.pending.lock().unwrap().push(left(5));
    other.pending.lock().unwrap().push(left(6));
    let shown = port.ask("GET", "/settee/clusterMap").json();
    let entry = |bucket: &str, vbid: u16| {
        let (wanted, reason) = ("active", "why");
        json!({"bucket": bucket, "vbucket": vbid, "wanted": wanted, "reason": reason})
    };
    assert_eq!(shown["pending"], json!([entry("default", 5), entry("other", 6)]));
    assert_eq!(shown["incomplete"], json!({"default": [3], "other": [3]}));
    let damaged = port.ask("GET", "/settee/vbuckets/damaged").json();
    assert_eq!(damaged["damaged"][0]["bucket"], "default");
    assert_eq!(damaged["damaged"][1]["bucket"], "other");
}

#[test]
fn a_vbucket_begins_anew_in_the_bucket_that_is_named() {
    let (port, other) = start();
    let reset = |query: &str| {
        port.ask("POST", &format!("/settee/vbuckets/3/reset?confirm=lose{query}")).status
    };
    assert_eq!(reset(""), 400, "which bucket?");
    assert_eq!(reset("&bucket=third"), 404);
    assert_eq!(reset("&bucket=other"), 200);
    assert!(port.bucket.resets.lock().unwrap().is_empty());
    assert_eq!(*other.resets.lock().unwrap(), [3]);
}

#[test]
fn a_backup_is_one_of_its_bucket() {
    let (port, _other) = start();
    let (_held, line) = open(&port, "/pools/default/buckets/other/backup");
    let begun: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(begun["bucket"]["name"], "other");
    let name = begun["backup"].as_str().unwrap();
    let of = |bucket: &str| format!("/pools/default/buckets/{bucket}/backup/{name}/3");
    assert_eq!(port.ask("GET", &of("default")).status, 404);
    assert_eq!(open(&port, &of("other")).1, "three");
}

#[test]
fn a_node_warms_up_as_long_as_one_of_its_buckets_does() {
    let (port, other) = start();
    *other.warmup.lock().unwrap() = COLD;
    let health = port.ask("GET", "/healthz");
    assert_eq!((health.status, &health.json()["warmup"]["items_loaded"]), (503, &json!(50)));
    let tasks = port.ask("GET", "/pools/default/tasks").json();
    assert_eq!((tasks[1]["bucket"].as_str(), tasks.as_array().unwrap().len()), (Some("other"), 2));
}
