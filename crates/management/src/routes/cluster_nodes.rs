//! The nodes of the cluster, as tools, operators and Prometheus list them.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use cluster::{NodeAddress, host_and_port};
use serde_json::{Map, Value, json};

use super::cluster::nodes_json;
use super::named_bucket::Fields;
use crate::answers;
use crate::context::Context;

/// GET /nodeStatuses
pub(super) async fn statuses(State(context): State<Arc<Context>>) -> Response {
    let nodes = nodes_json(&*context.view, &context.view.cluster_map());
    let mut statuses = Map::new();
    for node in nodes.as_array().into_iter().flatten() {
        let field = |name: &str| node.get(name).cloned().unwrap_or_default();
        let host = node.get("hostname").and_then(Value::as_str).unwrap_or_default();
        let status = json!({
            "status": field("status"),
            "otpNode": field("otpNode"),
            "gracefulFailoverPossible": false,
            "dataless": false,
            "replication": 1,
        });
        statuses.insert(host.to_owned(), status);
    }
    answers::ok(&Value::Object(statuses))
}

/// GET /pools/default/serverGroups: all nodes are in one.
pub(super) async fn groups(State(context): State<Arc<Context>>) -> Response {
    let map = context.view.cluster_map();
    answers::ok(&json!({
        "uri": format!("/pools/default/serverGroups?rev={}", map.revision.revision),
        "groups": [{
            "name": cluster::SERVER_GROUP,
            "uri": "/pools/default/serverGroups/0",
            "addNodeURI": "/pools/default/serverGroups/0/addNode",
            "nodes": nodes_json(&*context.view, &map),
        }],
    }))
}

/// GET /pools/default/rebalanceProgress: a map is carried out at once, or tried again.
pub(super) async fn rebalance_progress() -> Response {
    answers::ok(&json!({"status": "none"}))
}

/// GET /versions
pub(super) async fn versions(State(context): State<Arc<Context>>) -> Response {
    let version = context.view.node().version;
    answers::ok(&json!({
        "implementationVersion": version,
        "componentsVersion": {"ns_server": version},
    }))
}

/// GET /prometheus_sd_config: where Prometheus finds `/metrics` of every node. `type` is `json` or
/// `yaml`, `port` is `secure` or `insecure`, `network` is `default` or `external`.
pub(super) async fn prometheus_targets(
    State(context): State<Arc<Context>>,
    Query(query): Query<Fields>,
) -> Response {
    let said = |name: &str| query.get(name).map(String::as_str);
    let is_external = match said("network") {
        None | Some("default") => false,
        Some("external") => true,
        Some(_) => return wrong("network", "default, external"),
    };
    let is_secure = match said("port") {
        None | Some("secure") => true,
        Some("insecure") => false,
        Some(_) => return wrong("port", "secure, insecure"),
    };
    let map = context.view.cluster_map();
    let targets = map.nodes.iter().filter_map(|node| target(node, is_external, is_secure));
    let targets: Vec<String> = targets.collect();
    match said("type") {
        None | Some("json") => answers::ok(&json!([{"targets": targets}])),
        Some("yaml") => yaml(&targets),
        Some(_) => wrong("type", "json, yaml"),
    }
}

/// GET /prometheus_sd_config.yaml: as versions before 7.2 have it.
pub(super) async fn prometheus_targets_yaml(State(context): State<Arc<Context>>) -> Response {
    let map = context.view.cluster_map();
    let targets: Vec<String> =
        map.nodes.iter().filter_map(|node| target(node, false, false)).collect();
    yaml(&targets)
}

/// Where a node is reached, if it is reached that way. One without TLS is reached plainly.
fn target(node: &NodeAddress, is_external: bool, is_secure: bool) -> Option<String> {
    let tls_port = node.tls.map(|ports| ports.management).filter(|_| is_secure);
    if !is_external {
        return Some(node.at(tls_port.unwrap_or(node.management_port)));
    }
    let external = node.external.as_ref()?;
    let service = if tls_port.is_some() { "mgmtSSL" } else { "mgmt" };
    let own_port = tls_port.unwrap_or(node.management_port);
    // Without any ports they are the node's own.
    let port = match external.ports.get(service) {
        Some(port) => *port,
        None if external.ports.is_empty() => own_port,
        None => return None,
    };
    Some(host_and_port(&external.hostname, port))
}

fn yaml(targets: &[String]) -> Response {
    let lines: String = targets.iter().map(|target| format!("    - '{target}'\n")).collect();
    let headers = [(header::CONTENT_TYPE, "text/yaml")];
    (StatusCode::OK, headers, format!("- targets:\n{lines}")).into_response()
}

fn wrong(parameter: &str, allowed: &str) -> Response {
    answers::refused(parameter, &format!("The value must be one of: {allowed}"))
}
