//! Damaged vBuckets over the REST port.

use management::ResetError;

use crate::rest_port::RestPort;

const RESET: &str = "/settee/vbuckets/3/reset";

#[test]
fn damaged_vbuckets_are_listed_with_the_reason() {
    let port = RestPort::start();
    let answer = port.ask("GET", "/settee/vbuckets/damaged");
    let listed = r#"{"damaged":[{"kind":"out of service","reason":"a header","vbucket":3}]}"#;
    assert_eq!((answer.status, answer.body.as_str()), (200, listed));
}

#[test]
fn a_vbucket_begins_anew_only_for_who_confirms_the_loss() {
    let port = RestPort::start();
    for (target, body) in [
        (RESET.to_owned(), ""),
        (RESET.to_owned(), "confirm=yes"),
        (format!("{RESET}?confirm=LOSE"), ""),
    ] {
        let answer = port.ask_with("POST", &target, body);
        assert_eq!(answer.status, 400, "{target} {body}");
        let said = "vBucket 3 would lose all. To do it: confirm=lose";
        assert_eq!(answer.json()["_"], said, "{target} {body}");
    }
    assert!(port.bucket.resets.lock().unwrap().is_empty());
    assert_eq!(port.ask("POST", &format!("{RESET}?confirm=lose")).status, 200);
    assert_eq!(*port.bucket.resets.lock().unwrap(), [3]);
    let status = port.ask("GET", RESET).status;
    assert!((400..500).contains(&status), "asking changes nothing: {status}");
    assert_eq!(*port.bucket.resets.lock().unwrap(), [3]);
}

#[test]
fn a_vbucket_that_does_not_begin_anew_says_why() {
    let port = RestPort::start();
    let reason = || "why".to_owned();
    for (error, status) in [
        (ResetError::NotHere(reason()), 404),
        (ResetError::Refused(reason()), 400),
        (ResetError::Failed(reason()), 503),
    ] {
        *port.bucket.reset_error.lock().unwrap() = Some(error);
        for target in [RESET.to_owned(), format!("{RESET}?confirm=lose")] {
            let answer = port.ask("POST", &target);
            assert_eq!((answer.status, answer.json()["_"].as_str()), (status, Some("why")));
        }
    }
    for number in ["x", "70000", "-1"] {
        let answer = port.ask("POST", &format!("/settee/vbuckets/{number}/reset"));
        assert_eq!(answer.status, 404, "{number}");
        assert_eq!(answer.json()["_"], format!("There is no vBucket {number}"));
    }
}
