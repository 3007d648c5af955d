//! Figures of the last minutes, as dashboards and exporters ask for them, and who Prometheus asks.

use cluster::{ExternalAddress, NodeAddress, TlsPorts};
use serde_json::{Value, json};

use crate::fake_node::address;
use crate::http_client::{Answer, basic};
use crate::rest_port::{PASSWORD, RestPort, USER};

const RANGE: &str = "/pools/default/stats/range";

fn post_json(port: &RestPort, body: &str) -> Answer {
    let mut client = port.connect();
    let (login, size) = (basic(USER, PASSWORD), body.len());
    client.send(&format!(
        "POST {RANGE} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{login}\
         Content-Type: application/json\r\nContent-Length: {size}\r\n\r\n{body}"
    ));
    client.read_answer().unwrap()
}

#[test]
fn a_figure_is_told_over_time_with_its_labels_and_node() {
    let port = RestPort::start();
    for target in ["kv_curr_items", "kv_curr_items/max_over_time?bucket=default&start=-60&step=5"] {
        let told = port.ask("GET", &format!("{RANGE}/{target}")).json();
        let metric =
            json!({"name": "kv_curr_items", "bucket": "default", "nodes": ["127.0.0.1:12001"]});
        assert_eq!(told["data"][0]["metric"], metric, "{target}: {told}");
        let values = told["data"][0]["values"].as_array().unwrap();
        assert_eq!(values.last().unwrap()[1], "40", "{target}: {told}");
        assert_eq!(told["errors"], json!([]), "{target}");
        let start = told["startTimestamp"].as_u64().unwrap();
        assert_eq!(told["endTimestamp"].as_u64().unwrap() - start, 60, "{target}");
    }
    let counter = port.ask("GET", &format!("{RANGE}/kv_ops?op=get")).json();
    assert_eq!(counter["data"][0]["metric"]["name"], "kv_ops", "without its ending");
    let none = port.ask("GET", &format!("{RANGE}/kv_curr_items?bucket=other")).json();
    assert_eq!(none["data"], json!([]));
    for (target, parameter) in [
        ("kv_ops?start=x", "start"),
        ("kv_ops?step=0", "step"),
        ("kv_ops?start=10&end=5", "_"),
        ("kv_ops?start=-2592000&step=1", "_"),
        ("kv_ops/median", "function"),
    ] {
        let refused = port.ask("GET", &format!("{RANGE}/{target}"));
        assert_eq!(refused.status, 400, "{target}");
        assert!(refused.json()["errors"][parameter].is_string(), "{target}: {}", refused.body);
    }
}

#[test]
fn several_queries_are_answered_in_their_order() {
    let port = RestPort::start();
    let body = json!([
        {"metric": [{"label": "name", "value": "kv_ops"}, {"label": "op", "value": "get"}],
         "applyFunctions": ["max_over_time", "sum"], "step": 10, "start": -60},
        {"metric": [{"label": "name", "value": "no_such", "operator": "="}]},
    ]);
    let told = post_json(&port, &body.to_string()).json();
    let together = json!({"name": "kv_ops", "nodes": ["127.0.0.1:12001"]});
    assert_eq!(told[0]["data"][0]["metric"], together, "{told}");
    assert_eq!((&told[1]["data"], told.as_array().unwrap().len()), (&json!([]), 2));
    for (body, parameter) in [
        ("{}", "_"),
        ("[{\"metric\": []}]", "metric"),
        (
            "[{\"metric\": [{\"label\": \"name\", \"value\": \"a\", \"operator\": \"~\"}]}]",
            "metric",
        ),
        (
            "[{\"metric\": [{\"label\": \"name\", \"value\": \"(\", \"operator\": \"=~\"}]}]",
            "metric",
        ),
        ("[{\"metric\": [{\"label\": \"name\", \"value\": \"a\"}], \"what\": 1}]", "what"),
        (
            "[{\"metric\": [{\"label\": \"name\", \"value\": \"a\"}], \
              \"applyFunctions\": [\"p99\"]}]",
            "applyFunctions",
        ),
    ] {
        let refused = post_json(&port, body);
        assert_eq!(refused.status, 400, "{body}");
        assert!(refused.json()["errors"][parameter].is_string(), "{body}: {}", refused.body);
    }
}

#[test]
fn figures_are_chosen_by_operators_and_become_one() {
    let port = RestPort::start();
    let ask = |labels: Value, functions: Value| {
        let body = json!([{"metric": labels, "applyFunctions": functions}]);
        post_json(&port, &body.to_string()).json()[0]["data"].clone()
    };
    let name =
        |value: Value, operator| json!({"label": "name", "value": value, "operator": operator});
    let op = |value: Value, operator| json!({"label": "op", "value": value, "operator": operator});
    for (labels, expected) in [
        (json!([name(json!("kv_.*"), "=~")]), 2),
        (json!([name(json!(["kv_ops", "settee_groups"]), "any")]), 2),
        (json!([name(json!("kv_.*"), "=~"), op(json!("get"), "!=")]), 1),
        (json!([name(json!("kv_.*"), "=~"), op(json!("g.t"), "=~")]), 1),
        (json!([name(json!("kv_ops"), "="), op(json!(["get", "set"]), "not_any")]), 0),
        (json!([name(json!("kv_.*"), "!~")]), 1),
    ] {
        let data = ask(labels.clone(), json!([]));
        assert_eq!(data.as_array().map(Vec::len), Some(expected), "{labels}: {data}");
    }
    let data = ask(json!([name(json!("kv_.*"), "=~")]), json!(["sum"]));
    assert_eq!(data.as_array().map(Vec::len), Some(1), "{data}");
    assert_eq!(data[0]["metric"], json!({"nodes": ["127.0.0.1:12001"]}), "of several names");
    let last = data[0]["values"].as_array().and_then(|values| values.last()).unwrap();
    assert_eq!(last[1], "49", "40 documents and 9 operations");
    let data = ask(json!([name(json!("no_such"), "=")]), json!(["sum"]));
    assert_eq!(data, json!([]));
}

#[test]
fn an_answer_has_a_limit_over_all_queries_and_says_so() {
    let port = RestPort::start();
    // The value of now counts for a hundred years.
    let query = |step: u32| {
        json!({"metric": [{"label": "name", "value": "kv_curr_items"}],
               "start": 0, "end": 100_000_000_000_u64, "step": step, "timeWindow": u32::MAX})
    };
    let whole = port.ask(
        "GET",
        &format!(
            "{RANGE}/kv_curr_items?start=0&end=100000000000&step=3600&timeWindow={}",
            u32::MAX
        ),
    );
    let many = post_json(&port, &Value::from(vec![query(720_000); 100]).to_string());
    for refused in [whole, many] {
        assert_eq!(refused.status, 400, "{:.200}", refused.body);
        let why = &refused.json()["errors"]["_"];
        assert!(why.as_str().unwrap().contains("200000 values"), "{why}");
    }
    let some = post_json(&port, &Value::from(vec![query(720_000); 10]).to_string());
    assert_eq!(some.json().as_array().map(Vec::len), Some(10), "{:.200}", some.body);
}

#[test]
fn exporters_find_a_buckets_figures_by_their_old_names() {
    let port = RestPort::start();
    let bucket = port.ask("GET", "/pools/default/buckets/default").json();
    let uri = bucket["stats"]["uri"].as_str().unwrap();
    let nodes = port.ask("GET", bucket["stats"]["nodeStatsListURI"].as_str().unwrap()).json();
    let of_node = nodes["servers"][0]["stats"]["uri"].as_str().unwrap();
    for uri in [uri, of_node, &format!("{uri}?zoom=hour")] {
        let told = port.ask("GET", uri).json();
        let count = told["op"]["samplesCount"].as_u64().unwrap();
        assert!(count >= 1, "{uri}: {told}");
        for (name, last) in [("curr_items", 40.0), ("mem_used", 0.0), ("cmd_get", 0.0)] {
            let values = told["op"]["samples"][name].as_array().unwrap();
            assert_eq!(values.len() as u64, count, "{uri} {name}");
            assert_eq!(values.last().and_then(Value::as_f64), Some(last), "{uri} {name}");
        }
        let times = told["op"]["samples"]["timestamp"].as_array().unwrap();
        assert_eq!(times.last(), Some(&told["op"]["lastTStamp"]), "{uri}");
    }
    for uri in [uri, of_node] {
        let refused = port.ask("GET", &format!("{uri}?zoom=eon"));
        assert_eq!(refused.status, 400, "{uri}");
        assert!(refused.json()["errors"]["zoom"].is_string(), "{uri}: {}", refused.body);
    }
    *port.node.nodes.lock().unwrap() = vec![address(12_000), address(12_002)];
    let other = port.ask("GET", "/pools/default/buckets/default/nodes/127.0.0.1%3A12003/stats");
    assert_eq!(other.status, 400);
    assert!(other.body.contains("ask 127.0.0.1:12003"), "{}", other.body);
}

#[test]
fn prometheus_is_told_every_node_in_the_network_that_it_asks_about() {
    let port = RestPort::start();
    let outside = |ports: &[(&str, u16)]| ExternalAddress {
        hostname: "outside".to_owned(),
        ports: ports.iter().map(|(name, port)| ((*name).to_owned(), *port)).collect(),
    };
    let tls = Some(TlsPorts { data: 11_207, management: 18_091 });
    *port.node.nodes.lock().unwrap() = vec![
        NodeAddress { tls, external: Some(outside(&[("mgmt", 1), ("kv", 2)])), ..address(12_000) },
        NodeAddress { external: Some(outside(&[])), ..address(12_002) },
        address(12_004),
    ];
    for (query, targets) in [
        ("", json!(["127.0.0.1:18091", "127.0.0.1:12003", "127.0.0.1:12005"])),
        ("?port=insecure", json!(["127.0.0.1:12001", "127.0.0.1:12003", "127.0.0.1:12005"])),
        ("?network=external", json!(["outside:12003"])),
        ("?network=external&port=insecure", json!(["outside:1", "outside:12003"])),
    ] {
        let told = port.ask("GET", &format!("/prometheus_sd_config{query}")).json();
        assert_eq!(told, json!([{"targets": targets}]), "{query}");
    }
    let yaml =
        "- targets:\n    - '127.0.0.1:12001'\n    - '127.0.0.1:12003'\n    - '127.0.0.1:12005'\n";
    for target in ["/prometheus_sd_config.yaml", "/prometheus_sd_config?type=yaml&port=insecure"] {
        assert_eq!(port.ask("GET", target).body, yaml, "{target}");
    }
    for (query, parameter) in [("port=x", "port"), ("network=x", "network"), ("type=x", "type")] {
        let refused = port.ask("GET", &format!("/prometheus_sd_config?{query}"));
        assert!(refused.json()["errors"][parameter].is_string(), "{query}: {}", refused.body);
    }
}
