//! Groups of users, and the roles that there are.

use std::sync::Arc;

use auth::{Group, RoleExtent, RoleKind, UsersEdit, all_roles};
use axum::Extension;
use axum::extract::rejection::FormRejection;
use axum::extract::{Form, Path, State};
use axum::response::Response;
use serde_json::{Value, json};

use super::named_bucket::Fields;
use super::users::role_json;
use super::users_change::{carry_out, roles as named_roles};
use crate::answers;
use crate::authentication::User;
use crate::context::Context;

/// GET /settings/rbac/roles
pub(super) async fn roles() -> Response {
    answers::ok(&all_roles().map(kind_json).collect())
}

fn kind_json(kind: &RoleKind) -> Value {
    let mut json = json!({"role": kind.name, "name": kind.title, "desc": kind.description});
    let extents = [
        (RoleExtent::Bucket, "bucket_name"),
        (RoleExtent::Scope, "scope_name"),
        (RoleExtent::Collection, "collection_name"),
    ];
    if let Some(fields) = json.as_object_mut() {
        for (_, name) in extents.iter().filter(|(extent, _)| kind.extent >= *extent) {
            fields.insert((*name).to_owned(), json!("*"));
        }
    }
    json
}

/// GET /settings/rbac/groups
pub(super) async fn list(State(context): State<Arc<Context>>) -> Response {
    let registry = context.users.registry();
    answers::ok(&registry.groups.iter().map(|(name, group)| group_json(name, group)).collect())
}

/// GET /settings/rbac/groups/{group}
pub(super) async fn one(State(context): State<Arc<Context>>, Path(name): Path<String>) -> Response {
    match context.users.registry().groups.get(&name) {
        Some(group) => answers::ok(&group_json(&name, group)),
        None => answers::not_found_text("Unknown group."),
    }
}

/// PUT /settings/rbac/groups/{group}: description, roles, and the group of a directory.
pub(super) async fn change(
    State(context): State<Arc<Context>>,
    Extension(user): Extension<User>,
    Path(name): Path<String>,
    form: Result<Form<Fields>, FormRejection>,
) -> Response {
    let Ok(Form(mut fields)) = form else {
        return answers::refused("_", "The body is a form");
    };
    let description = fields.remove("description").unwrap_or_default();
    let roles = fields.remove("roles").unwrap_or_default();
    let ldap_group_ref = fields.remove("ldap_group_ref").unwrap_or_default();
    if let Some(unknown) = fields.into_keys().next() {
        return answers::refused(&unknown, "Unsupported key");
    }
    let registry = context.users.registry();
    let held = registry.groups.get(&name).map_or(&[][..], |group| &group.roles);
    match named_roles(&context, &roles, held) {
        Ok(roles) => {
            let edit = UsersEdit::PutGroup(name, Group { description, roles, ldap_group_ref });
            carry_out(&context, &user, edit).await
        }
        Err(why) => answers::refused("roles", &why),
    }
}

/// DELETE /settings/rbac/groups/{group}
pub(super) async fn remove(
    State(context): State<Arc<Context>>,
    Extension(user): Extension<User>,
    Path(name): Path<String>,
) -> Response {
    carry_out(&context, &user, UsersEdit::RemoveGroup(name)).await
}

fn group_json(name: &str, group: &Group) -> Value {
    let roles: Vec<Value> = group.roles.iter().map(role_json).collect();
    let mut json = json!({"id": name, "description": group.description, "roles": roles});
    // Clients tell a reference that is empty from none.
    let reference = Some(&group.ldap_group_ref).filter(|reference| !reference.is_empty());
    if let (Some(fields), Some(reference)) = (json.as_object_mut(), reference) {
        fields.insert("ldap_group_ref".to_owned(), json!(reference));
    }
    json
}
