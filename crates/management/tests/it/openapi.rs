//! What the port tells programs of itself is what it does.

use std::collections::BTreeSet;

use management::{REST_ROUTES, RestRoute};
use serde_json::Value;

use crate::rest_port::RestPort;

#[test]
fn every_request_is_described_with_what_it_needs() {
    let document = RestPort::start().ask("GET", "/openapi.json").json();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["version"], "7.6.0-1-enterprise");
    let mut described = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        described.extend(operations.as_object().unwrap().keys().map(|method| (path, method)));
    }
    assert_eq!(described.len(), REST_ROUTES.len() + 5, "and what everybody may");
    for RestRoute { method, path, need, summary } in REST_ROUTES {
        let operation = &document["paths"][path][method.to_ascii_lowercase()];
        assert_eq!(operation["summary"], *summary, "{method} {path}");
        let permission = need.map(|(_, privilege)| privilege.permission());
        assert_eq!(operation["x-settee-permission"].as_str(), permission, "{method} {path}");
        let parameters = operation["parameters"].as_array().unwrap();
        let filled_in = parameters.iter().fold(path.to_string(), |path, parameter| {
            path.replace(&format!("{{{}}}", parameter["name"].as_str().unwrap()), "x")
        });
        assert!(!filled_in.contains(['{', '}']), "{method} {path}: {parameters:?}");
    }
    let anonymous = &document["paths"]["/healthz"]["get"]["security"];
    assert_eq!(*anonymous, Value::Array(Vec::new()), "it needs no login");
}
