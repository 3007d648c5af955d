//! Which privilege each request needs, and where.

use std::sync::Arc;

use auth::{Access, Privilege, PrivilegeSet};
use axum::extract::{FromRequestParts, MatchedPath, RawPathParams, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;

use crate::answers;
use crate::authentication::User;
use crate::context::Context;

/// Where a privilege is needed. Names are those of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeededAt {
    /// In the cluster.
    Node,
    /// In the bucket of the path.
    Bucket,
    /// In the bucket of the path, or a part of it.
    BucketOrPart,
    /// In the scope of the path.
    Scope,
}

/// A method, a path, and what they need; no privilege where everybody who has logged in may.
pub type RouteNeed = (&'static str, &'static str, Option<(NeededAt, Privilege)>);

const fn on_node(privilege: Privilege) -> Option<(NeededAt, Privilege)> {
    Some((NeededAt::Node, privilege))
}

const fn in_bucket(privilege: Privilege) -> Option<(NeededAt, Privilege)> {
    Some((NeededAt::Bucket, privilege))
}

const fn in_part(privilege: Privilege) -> Option<(NeededAt, Privilege)> {
    Some((NeededAt::BucketOrPart, privilege))
}

const fn in_scope(privilege: Privilege) -> Option<(NeededAt, Privilege)> {
    Some((NeededAt::Scope, privilege))
}

const BUCKET: &str = "/pools/default/buckets/{bucket}";
const SCOPES: &str = "/pools/default/buckets/{bucket}/scopes";
const SCOPE: &str = "/pools/default/buckets/{bucket}/scopes/{scope}";
const COLLECTIONS: &str = "/pools/default/buckets/{bucket}/scopes/{scope}/collections";
const COLLECTION: &str = "/pools/default/buckets/{bucket}/scopes/{scope}/collections/{collection}";

const EXTERNAL_ADDRESS: &str = "/node/controller/setupAlternateAddresses/external";

/// All requests. What is not here is for full administrators.
pub const ROUTE_NEEDS: [RouteNeed; 76] = [
    ("GET", "/", None),
    ("GET", "/whoami", None),
    ("POST", "/controller/changePassword", None),
    ("POST", "/pools/default/checkPermissions", None),
    ("GET", "/pools", None),
    ("GET", "/pools/default", on_node(Privilege::SystemSettings)),
    ("POST", "/pools/default", on_node(Privilege::SettingsWrite)),
    ("GET", "/pools/nodes", on_node(Privilege::SystemSettings)),
    ("GET", "/pools/default/nodeServices", on_node(Privilege::SystemSettings)),
    ("GET", "/pools/default/nodeServicesStreaming", on_node(Privilege::SystemSettings)),
    ("GET", "/pools/default/tasks", on_node(Privilege::TasksRead)),
    ("GET", "/metrics", on_node(Privilege::SimpleStats)),
    ("GET", "/settee/clusterMap", on_node(Privilege::SettingsRead)),
    ("PUT", "/settee/clusterMap", on_node(Privilege::NodesWrite)),
    ("POST", "/settee/users", on_node(Privilege::NodesWrite)),
    ("GET", "/settee/vbuckets/damaged", on_node(Privilege::SettingsRead)),
    ("POST", "/settee/vbuckets/{vbid}/reset", on_node(Privilege::NodesWrite)),
    ("GET", "/pools/default/b/{bucket}", in_bucket(Privilege::BucketRead)),
    ("GET", "/pools/default/bs/{bucket}", in_bucket(Privilege::BucketRead)),
    ("GET", "/pools/default/bucketsStreaming/{bucket}", in_bucket(Privilege::BucketRead)),
    ("GET", "/pools/default/buckets", None),
    ("GET", "/pools/default/buckets/", None),
    ("POST", "/pools/default/buckets", on_node(Privilege::BucketCreate)),
    ("POST", "/pools/default/buckets/", on_node(Privilege::BucketCreate)),
    ("GET", BUCKET, in_bucket(Privilege::BucketRead)),
    ("POST", BUCKET, in_bucket(Privilege::BucketWrite)),
    ("DELETE", BUCKET, in_bucket(Privilege::BucketDelete)),
    (
        "POST",
        "/pools/default/buckets/{bucket}/controller/doFlush",
        in_bucket(Privilege::BucketFlush),
    ),
    (
        "POST",
        "/pools/default/buckets/{bucket}/controller/compactBucket",
        in_bucket(Privilege::BucketCompact),
    ),
    (
        "POST",
        "/pools/default/buckets/{bucket}/controller/cancelBucketCompaction",
        in_bucket(Privilege::BucketCompact),
    ),
    ("GET", "/pools/default/buckets/{bucket}/backup", in_bucket(Privilege::Backup)),
    ("GET", "/pools/default/buckets/{bucket}/backup/{backup}/{vbid}", in_bucket(Privilege::Backup)),
    ("GET", SCOPES, in_part(Privilege::CollectionRead)),
    ("POST", SCOPES, in_bucket(Privilege::CollectionWrite)),
    ("PUT", SCOPES, in_bucket(Privilege::CollectionWrite)),
    (
        "POST",
        "/pools/default/buckets/{bucket}/scopes/@ensureManifest/{uid}",
        in_part(Privilege::CollectionRead),
    ),
    ("DELETE", SCOPE, in_bucket(Privilege::CollectionWrite)),
    ("POST", COLLECTIONS, in_scope(Privilege::CollectionWrite)),
    ("PATCH", COLLECTION, in_scope(Privilege::CollectionWrite)),
    ("DELETE", COLLECTION, in_scope(Privilege::CollectionWrite)),
    ("GET", "/settings/rbac/users", on_node(Privilege::SecurityRead)),
    ("GET", "/settings/rbac/users/local", on_node(Privilege::SecurityRead)),
    ("GET", "/settings/rbac/users/local/{user}", on_node(Privilege::SecurityRead)),
    ("PUT", "/settings/rbac/users/local/{user}", on_node(Privilege::SecurityWrite)),
    ("DELETE", "/settings/rbac/users/local/{user}", on_node(Privilege::SecurityWrite)),
    ("GET", "/settings/rbac/roles", on_node(Privilege::SecurityRead)),
    ("GET", "/settings/rbac/groups", on_node(Privilege::SecurityRead)),
    ("GET", "/settings/rbac/groups/{group}", on_node(Privilege::SecurityRead)),
    ("PUT", "/settings/rbac/groups/{group}", on_node(Privilege::SecurityWrite)),
    ("DELETE", "/settings/rbac/groups/{group}", on_node(Privilege::SecurityWrite)),
    ("GET", "/pools/default/certificate", None),
    ("GET", "/pools/default/certificates", on_node(Privilege::SecurityRead)),
    ("GET", "/pools/default/trustedCAs", on_node(Privilege::SecurityRead)),
    ("GET", "/settings/clientCertAuth", on_node(Privilege::SecurityRead)),
    ("POST", "/settings/clientCertAuth", on_node(Privilege::SecurityWrite)),
    ("POST", "/node/controller/reloadCertificate", on_node(Privilege::NodesWrite)),
    ("POST", "/node/controller/loadTrustedCAs", on_node(Privilege::NodesWrite)),
    ("GET", "/settings/passwordPolicy", on_node(Privilege::SecurityRead)),
    ("POST", "/settings/passwordPolicy", on_node(Privilege::SecurityWrite)),
    ("POST", "/clusterInit", on_node(Privilege::NodesWrite)),
    ("POST", "/nodeInit", on_node(Privilege::NodesWrite)),
    ("GET", "/nodes/self", on_node(Privilege::SystemSettings)),
    ("POST", "/nodes/self/controller/settings", on_node(Privilege::NodesWrite)),
    ("POST", "/node/controller/rename", on_node(Privilege::NodesWrite)),
    ("POST", "/node/controller/setupServices", on_node(Privilege::NodesWrite)),
    ("PUT", EXTERNAL_ADDRESS, on_node(Privilege::NodesWrite)),
    ("DELETE", EXTERNAL_ADDRESS, on_node(Privilege::NodesWrite)),
    ("GET", "/internalSettings", on_node(Privilege::SettingsRead)),
    ("GET", "/settings/autoCompaction", on_node(Privilege::SettingsRead)),
    ("GET", "/settings/autoFailover", on_node(Privilege::SettingsRead)),
    ("POST", "/settings/autoFailover", on_node(Privilege::SettingsWrite)),
    ("POST", "/settings/indexes", on_node(Privilege::SettingsWrite)),
    ("GET", "/settings/stats", on_node(Privilege::SettingsRead)),
    ("POST", "/settings/stats", on_node(Privilege::SettingsWrite)),
    ("GET", "/settings/web", on_node(Privilege::SettingsRead)),
    ("POST", "/settings/web", on_node(Privilege::SettingsWrite)),
];

/// Lets a request through if its user may do what it asks for.
pub(crate) async fn require_privilege(
    State(context): State<Arc<Context>>,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let user = parts.extensions.get::<User>().cloned();
    let access = user.as_ref().map(|user| Arc::clone(&user.access)).unwrap_or_default();
    let params = RawPathParams::from_request_parts(&mut parts, &()).await;
    let path = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let find = |name: &str| {
        let mut all = params.as_ref().ok()?.iter();
        all.find(|(known, _)| *known == name).map(|(_, value)| value)
    };
    let is_allowed = check(&access, &parts.method, path, find);
    let is_noted = !parts.method.is_safe() && !UNNOTED.contains(&path);
    let (method, uri) = (parts.method.clone(), parts.uri.clone());
    let answer = match is_allowed {
        Ok(()) => next.run(Request::from_parts(parts, body)).await,
        Err(permission) => answers::forbidden(&permission),
    };
    if let (Some(log), Some(user)) = (context.view.audit_log(), user.filter(|_| is_noted)) {
        log.change(&user.name, method.as_str(), uri.path(), answer.status().as_u16());
    }
    answer
}

/// What changes nothing, and what nodes tell each other: it was noted where it was asked for.
const UNNOTED: [&str; 2] = ["/pools/default/checkPermissions", "/settee/users"];

/// Whether `access` allows a request; otherwise what would.
fn check<'a>(
    access: &Access,
    method: &Method,
    path: &str,
    param: impl Fn(&str) -> Option<&'a str>,
) -> Result<(), String> {
    let method = if method == Method::HEAD { "GET" } else { method.as_str() };
    let known = ROUTE_NEEDS.iter().find(|(verb, route, _)| *verb == method && *route == path);
    let need = known.map_or(on_node(Privilege::NodesWrite), |(_, _, need)| *need);
    let Some((place, privilege)) = need else { return Ok(()) };
    let bucket = param("bucket").unwrap_or_default();
    let scope = param("scope").unwrap_or_default();
    let (privileges, shown) = match place {
        NeededAt::Node => (access.on_node(), "."),
        NeededAt::Bucket => (access.in_bucket(bucket).everywhere, bucket),
        NeededAt::BucketOrPart => (access.in_bucket(bucket).anywhere(), bucket),
        NeededAt::Scope => (access.in_bucket(bucket).in_scope(scope), bucket),
    };
    if privileges.contains_all(PrivilegeSet::of(&[privilege])) {
        return Ok(());
    }
    Err(privilege.permission().replace("[]", &format!("[{shown}]")))
}

#[cfg(test)]
mod tests {
    use auth::Role;

    use super::*;

    #[test]
    fn a_request_is_allowed_where_the_role_was_given() {
        let access = Access::of(
            Role::parse_all("bucket_admin[b],scope_admin[c:s],data_reader[d:s:c]").unwrap().iter(),
        );
        let collections = COLLECTIONS;
        for (method, path, bucket, scope, is_allowed) in [
            ("GET", BUCKET, "b", "", true),
            ("HEAD", BUCKET, "b", "", true),
            ("GET", BUCKET, "d", "", true),
            ("GET", BUCKET, "other", "", false),
            ("POST", BUCKET, "b", "", true),
            ("POST", BUCKET, "c", "", false),
            ("POST", SCOPES, "c", "", false),
            ("POST", collections, "c", "s", true),
            ("POST", collections, "c", "t", false),
            ("POST", collections, "d", "s", false),
            ("GET", SCOPES, "d", "", true),
            ("GET", "/settings/rbac/users", "", "", false),
            ("PUT", "/what/is/new", "", "", false),
            ("GET", "/whoami", "", "", true),
        ] {
            let method_name = Method::from_bytes(method.as_bytes()).unwrap();
            let param = |name: &str| Some(if name == "bucket" { bucket } else { scope });
            let found = check(&access, &method_name, path, param);
            assert_eq!(found.is_ok(), is_allowed, "{method} {path} {bucket} {scope}");
        }
    }
}
