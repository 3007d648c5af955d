//! The port described for programs: an OpenAPI document (3.1) of all requests in the table.

use serde_json::{Map, Value, json};

use crate::route_table::{NeededAt, REST_ROUTES, RestRoute};

/// What is answered to everybody, and has no row in the table of what is needed: the method, the
/// path, and what it is for.
const FOR_EVERYBODY: [(&str, &str, &str); 5] = [
    ("GET", "/healthz", "Whether the node serves, 503 while it warms up; no login is needed"),
    ("GET", "/ui/", "The console; what it shows needs a login"),
    ("GET", "/ui/{file}", "A file of the console"),
    ("POST", "/uilogin", "Sign in at the console: the answer has a cookie"),
    ("POST", "/uilogout", "Sign out"),
];

/// The document, of a server of this version.
pub(crate) fn document(version: &str) -> Value {
    let mut paths = Map::new();
    for route in REST_ROUTES {
        add(&mut paths, route.path, route.method, operation(route));
    }
    for (method, path, summary) in FOR_EVERYBODY {
        let operation = json!({
            "summary": summary,
            "parameters": parameters_json(path),
            "security": [],
            "responses": {"200": said("It is so, or is done")},
        });
        add(&mut paths, path, method, operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Settee",
            "version": version,
            "description": "Bodies of POST, PUT and PATCH are forms, answers are JSON.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"basic": []}],
        "components": {"securitySchemes": {"basic": {"type": "http", "scheme": "basic"}}},
        "paths": paths,
    })
}

fn add(paths: &mut Map<String, Value>, path: &str, method: &str, operation: Value) {
    let path = paths.entry(path).or_insert_with(|| json!({}));
    if let Some(operations) = path.as_object_mut() {
        operations.insert(method.to_ascii_lowercase(), operation);
    }
}

/// One request: what it is for, what is in its path, and who may make it.
fn operation(route: &RestRoute) -> Value {
    let parameters = parameters_json(route.path);
    let mut responses = json!({
        "default": said("See the summary; 400 says by field what is wrong"),
        "401": said("No login, or a wrong one"),
    });
    if let (Some(responses), Some(_)) = (responses.as_object_mut(), route.need) {
        responses.insert("403".to_owned(), said("The permission that the user needs"));
    }
    let mut operation =
        json!({"summary": route.summary, "parameters": parameters, "responses": responses});
    let (Some(fields), Some((place, privilege))) = (operation.as_object_mut(), route.need) else {
        return operation;
    };
    let needed_in = match place {
        NeededAt::Node => "cluster",
        NeededAt::Bucket => "bucket",
        NeededAt::BucketOrPart => "bucket or a part of it",
        NeededAt::Scope => "scope",
    };
    fields.insert("x-settee-privilege".to_owned(), json!(privilege.name()));
    fields.insert("x-settee-permission".to_owned(), json!(privilege.permission()));
    fields.insert("x-settee-needed-in".to_owned(), json!(needed_in));
    operation
}

fn said(description: &str) -> Value {
    json!({"description": description})
}

fn parameters_json(path: &str) -> Value {
    let parameter =
        |name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}});
    parameters_of(path).map(parameter).collect()
}

/// The names that stand in braces.
fn parameters_of(path: &str) -> impl Iterator<Item = &str> {
    path.split('{').skip(1).filter_map(|rest| rest.split('}').next())
}
