//! The plan of the cluster over REST.

use management::CarryOutError;

use crate::rest_port::RestPort;

const TARGET: &str = "/settee/clusterMap";

#[test]
fn a_plan_is_handed_to_the_node_and_shown() {
    let port = RestPort::start();
    assert_eq!(port.ask("GET", TARGET).body, "{}");
    assert_eq!(port.ask_with("PUT", TARGET, r#"{"rev":[1,2]}"#).status, 200);
    assert_eq!(port.ask("GET", TARGET).body, r#"{"rev":[1,2]}"#);
}

#[test]
fn a_plan_that_is_not_carried_out_is_answered_by_why() {
    let port = RestPort::start();
    let reason = || "why".to_owned();
    for (error, status) in [
        (CarryOutError::Invalid(reason()), 400),
        (CarryOutError::Older(reason()), 409),
        (CarryOutError::Failed(reason()), 503),
    ] {
        *port.node.plan_error.lock().unwrap() = Some(error);
        let answer = port.ask_with("PUT", TARGET, "{}");
        assert_eq!((answer.status, answer.json()["_"].as_str()), (status, Some("why")));
    }
    assert_eq!(port.ask("GET", TARGET).body, "{}");
}
