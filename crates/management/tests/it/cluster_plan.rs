//! The plan of the cluster over REST.

use std::sync::atomic::Ordering;

use cluster::PendingVbucket;
use management::CarryOutError;
use serde_json::json;

use crate::rest_port::RestPort;

const TARGET: &str = "/settee/clusterMap";

#[test]
fn a_plan_is_handed_to_the_node_and_shown() {
    let port = RestPort::start();
    let shown = || port.ask("GET", TARGET).json();
    assert_eq!(shown(), json!({"pending": [], "incomplete": [3]}));
    let answer = port.ask_with("PUT", TARGET, r#"{"rev":[1,2]}"#);
    assert_eq!((answer.status, answer.json()), (200, json!({"pending": [], "unsettled": []})));
    assert_eq!(shown(), json!({"rev": [1, 2], "pending": [], "incomplete": [3]}));
}

#[test]
fn why_nobody_may_rest_on_a_plan_yet_is_said_to_who_hands_it_over() {
    let port = RestPort::start();
    port.node.unsettled.lock().unwrap().push("why");
    let answer = port.ask_with("PUT", TARGET, "{}");
    assert_eq!((answer.status, &answer.json()["unsettled"]), (200, &json!(["why"])));
    // Nodes of the version before read what is shown as a plan.
    assert_eq!(port.ask("GET", TARGET).json().get("unsettled"), None);
}

#[test]
fn a_plan_that_is_only_tried_changes_nothing() {
    let port = RestPort::start();
    let before = port.ask("GET", TARGET).json();
    let trial = format!("{TARGET}?just_validate=1");
    assert_eq!(port.ask_with("PUT", &trial, r#"{"rev":[1,2]}"#).status, 200);
    assert_eq!(port.ask("GET", TARGET).json(), before);
    *port.node.plan_error.lock().unwrap() = Some(CarryOutError::Invalid("why".to_owned()));
    let answer = port.ask_with("PUT", &trial, "{}");
    assert_eq!((answer.status, answer.json()["_"].as_str()), (400, Some("why")));
}

#[test]
fn what_is_left_of_a_plan_is_shown_and_no_failure() {
    let port = RestPort::start();
    let left = PendingVbucket { vbid: 5, wanted: "active", reason: "why".to_owned() };
    port.bucket.pending.lock().unwrap().push(left);
    let pending = json!([{"vbucket": 5, "wanted": "active", "reason": "why"}]);
    let answer = port.ask_with("PUT", TARGET, "{}");
    assert_eq!((answer.status, &answer.json()["pending"]), (200, &pending));
    assert_eq!(port.ask("GET", TARGET).json()["pending"], pending);
}

#[test]
fn a_plan_that_is_not_carried_out_is_answered_by_why() {
    let port = RestPort::start();
    let reason = || "why".to_owned();
    for (error, status) in [
        (CarryOutError::Invalid(reason()), 400),
        (CarryOutError::Older(reason()), 409),
        (CarryOutError::NotNow(reason()), 503),
    ] {
        *port.node.plan_error.lock().unwrap() = Some(error);
        let answer = port.ask_with("PUT", TARGET, "{}");
        assert_eq!((answer.status, answer.json()["_"].as_str()), (status, Some("why")));
    }
    assert_eq!(port.ask("GET", TARGET).json()["pending"], json!([]));
}

#[test]
fn whoever_gives_a_plan_and_asks_for_it_hears_when_deleted_buckets_are_gone() {
    let port = RestPort::start();
    let left = &port.node.looks_until_gone;
    left.store(3, Ordering::Relaxed);
    for query in ["", "?just_validate=1", "?just_validate=1&wait_for_deletions=1"] {
        assert_eq!(port.ask_with("PUT", &format!("{TARGET}{query}"), "{}").status, 200);
        assert_eq!(left.load(Ordering::Relaxed), 3, "nobody waits for them: {query}");
    }
    assert_eq!(port.ask_with("PUT", &format!("{TARGET}?wait_for_deletions=1"), "{}").status, 200);
    assert_eq!(left.load(Ordering::Relaxed), 0);
}

#[test]
fn a_plan_of_many_buckets_is_taken_whole() {
    let port = RestPort::start();
    let plan = format!("{{\"of\": \"{}\"}}", "b".repeat(10 << 20));
    assert_eq!(port.ask_with("PUT", "/settee/clusterMap", &plan).status, 200);
    assert_eq!(port.node.plan.lock().unwrap().len(), plan.len());
}
