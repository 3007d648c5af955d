//! The log, for people and for tools that look at the original's.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};

use super::cluster::node_name;
use crate::answers;
use crate::context::Context;
use crate::log_entry::LogEntry;

/// GET /settee/log: the last lines of the log, the oldest first.
pub(super) async fn lines(State(context): State<Arc<Context>>) -> Response {
    answers::ok(&json!({"lines": context.view.log_lines()}))
}

/// GET /logs: the same as the original lists events, of this node.
pub(super) async fn entries(State(context): State<Arc<Context>>) -> Response {
    let node = node_name(&context.view.cluster_map().this_address);
    let entry = |line: &String| -> Value {
        let LogEntry { time, unix_ms, kind, module, text } = LogEntry::of(line);
        json!({
            "node": node,
            "type": kind,
            "code": 0,
            "module": module,
            "tstamp": unix_ms,
            "shortText": "message",
            "text": text,
            "serverTime": time,
        })
    };
    answers::ok(&json!({"list": context.view.log_lines().iter().map(entry).collect::<Value>()}))
}
