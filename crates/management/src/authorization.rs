//! Which privilege each request needs, and where.

use std::net::IpAddr;
use std::sync::Arc;

use auth::{Access, Actor, Privilege, PrivilegeSet};
use axum::extract::{FromRequestParts, MatchedPath, RawPathParams, Request, State};
use axum::http::{Method, Uri};
use axum::middleware::Next;
use axum::response::Response;

use crate::answers;
use crate::authentication::User;
use crate::context::Context;
use crate::route_table::{NeededAt, REST_ROUTES};
use crate::set_up::Peer;

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
    let is_noted = is_noted(&parts.method, path);
    let mut change = user.filter(|_| is_noted).map(|user| AskedChange {
        context,
        user,
        address: parts.extensions.get::<Peer>().map(|Peer(address)| *address),
        method: parts.method.clone(),
        uri: parts.uri.clone(),
        status: None,
    });
    let answer = match is_allowed {
        Ok(()) => next.run(Request::from_parts(parts, body)).await,
        Err(permission) => answers::forbidden(&permission),
    };
    if let Some(change) = &mut change {
        change.status = Some(answer.status().as_u16());
    }
    answer
}

/// A change that somebody asks for. It is noted when this is dropped: what was begun goes on where
/// the client leaves before it is answered, and nothing else is called then.
struct AskedChange {
    context: Arc<Context>,
    user: User,
    address: Option<IpAddr>,
    method: Method,
    uri: Uri,
    /// Of the answer, once there is one.
    status: Option<u16>,
}

impl Drop for AskedChange {
    fn drop(&mut self) {
        if let Some(log) = self.context.view.audit_log() {
            let actor = Actor { user: &self.user.name, address: self.address };
            log.change(actor, self.method.as_str(), self.uri.path(), self.status);
        }
    }
}

/// What changes nothing, and what nodes tell each other: it was noted where it was asked for.
const UNNOTED: [&str; 3] =
    ["/pools/default/checkPermissions", "/pools/default/stats/range", "/settee/users"];

/// Whether the audit log has a line about a request of this form.
fn is_noted(method: &Method, path: &str) -> bool {
    !method.is_safe() && !UNNOTED.contains(&path)
}

/// Whether `access` allows a request; otherwise what would.
pub(crate) fn check<'a>(
    access: &Access,
    method: &Method,
    path: &str,
    param: impl Fn(&str) -> Option<&'a str>,
) -> Result<(), String> {
    let method = if method == Method::HEAD { "GET" } else { method.as_str() };
    let known = REST_ROUTES.iter().find(|route| route.method == method && route.path == path);
    let unlisted = Some((NeededAt::Node, Privilege::NodesWrite));
    let need = known.map_or(unlisted, |route| route.need);
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
    use crate::route_table::{BUCKET, COLLECTIONS, SCOPES};

    #[test]
    fn what_only_asks_is_not_noted_whatever_its_method() {
        for (method, path, expected) in [
            (Method::GET, BUCKET, false),
            (Method::POST, BUCKET, true),
            (Method::POST, "/pools/default/stats/range", false),
            (Method::POST, "/pools/default/checkPermissions", false),
        ] {
            assert_eq!(is_noted(&method, path), expected, "{method} {path}");
        }
        for path in UNNOTED {
            assert!(REST_ROUTES.iter().any(|route| route.path == path), "{path}");
        }
    }

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
