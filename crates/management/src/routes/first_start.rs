//! What initialises a server: forms that say what the node is to be. What it is already is
//! accepted, what can change changes, and what cannot is refused before anything has.

use std::collections::BTreeMap;
use std::sync::Arc;

use auth::{Editor, Role, UserLimits, UsersEdit, UsersEditError};
use axum::Extension;
use axum::extract::rejection::FormRejection;
use axum::extract::{Form, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use cluster::ExternalAddress;
use serde_json::json;

use super::cluster::management_host;
use super::named_bucket::Fields;
use super::setup_form::{SetupForm, check_host};
use super::users_change::{carry_out, hashed};
use crate::answers;
use crate::authentication::{User, unauthorized};
use crate::context::Context;
use crate::node_view::{SetupChange, SetupError};
use crate::set_up::SetUp;

type FieldsForm = Result<Form<Fields>, FormRejection>;

/// POST /pools/default: the cluster's name, and quotas that the node has.
pub(super) async fn change_pool(State(context): State<Arc<Context>>, form: FieldsForm) -> Response {
    const QUOTAS_AND_NAME: &[&str] = &[
        "clusterName",
        "memoryQuota",
        "indexMemoryQuota",
        "ftsMemoryQuota",
        "cbasMemoryQuota",
        "eventingMemoryQuota",
        "queryMemoryQuota",
    ];
    set_up(&context, form, QUOTAS_AND_NAME, &[]).await
}

/// POST /node/controller/rename: the host name that clients are told.
pub(super) async fn rename(State(context): State<Arc<Context>>, form: FieldsForm) -> Response {
    set_up(&context, form, &["hostname"], &["hostname"]).await
}

/// POST /node/controller/setupServices: those that the node has.
pub(super) async fn services(State(context): State<Arc<Context>>, form: FieldsForm) -> Response {
    set_up(&context, form, &["services", "setDefaultMemQuotas"], &["services"]).await
}

/// POST /nodes/self/controller/settings: directories that are those of the node.
pub(super) async fn paths(State(context): State<Arc<Context>>, form: FieldsForm) -> Response {
    const PATHS: &[&str] = &["path", "index_path", "cbas_path", "eventing_path", "java_home"];
    set_up(&context, form, PATHS, &[]).await
}

/// POST /nodeInit: the name and the directories at once.
pub(super) async fn node_init(State(context): State<Arc<Context>>, form: FieldsForm) -> Response {
    const NAMES_AND_PATHS: &[&str] = &[
        "hostname",
        "dataPath",
        "indexPath",
        "eventingPath",
        "analyticsPath",
        "javaHome",
        "afamily",
        "afamilyOnly",
        "nodeEncryption",
    ];
    set_up(&context, form, NAMES_AND_PATHS, &[]).await
}

/// POST /settings/stats: nothing is ever sent to anybody, whatever is said.
pub(super) async fn stats(State(context): State<Arc<Context>>, form: FieldsForm) -> Response {
    set_up(&context, form, &["sendStats"], &["sendStats"]).await
}

/// POST /settings/autoFailover: it stays off.
pub(super) async fn auto_failover(
    State(context): State<Arc<Context>>,
    form: FieldsForm,
) -> Response {
    set_up(&context, form, &["enabled", "timeout", "maxCount"], &["enabled"]).await
}

/// POST /settings/indexes
pub(super) async fn indexes() -> Response {
    answers::refused("_", "This node has no index service")
}

/// POST /settings/web: the name, and a new password, of the administrator who asks.
pub(super) async fn administrator(
    State(context): State<Arc<Context>>,
    Extension(user): Extension<User>,
    form: FieldsForm,
) -> Response {
    let account = &["username", "password", "port"];
    initialise(&context, &user, form, account).await
}

/// POST /clusterInit: everything at once.
pub(super) async fn cluster_init(
    State(context): State<Arc<Context>>,
    Extension(user): Extension<User>,
    form: FieldsForm,
) -> Response {
    const ALL: &[&str] = &[
        "hostname",
        "username",
        "password",
        "port",
        "services",
        "clusterName",
        "memoryQuota",
        "indexMemoryQuota",
        "ftsMemoryQuota",
        "cbasMemoryQuota",
        "eventingMemoryQuota",
        "queryMemoryQuota",
        "setDefaultMemQuotas",
        "indexerStorageMode",
        "sendStats",
        "dataPath",
        "indexPath",
        "eventingPath",
        "analyticsPath",
        "javaHome",
        "afamily",
        "afamilyOnly",
        "nodeEncryption",
    ];
    initialise(&context, &user, form, ALL).await
}

/// PUT /node/controller/setupAlternateAddresses/external: where the node is reached from elsewhere.
/// Ports of services that it does not have are nobody's, and left out.
pub(super) async fn set_external(
    State(context): State<Arc<Context>>,
    form: FieldsForm,
) -> Response {
    let Ok(Form(mut fields)) = form else { return no_form() };
    let Some(hostname) = fields.remove("hostname").filter(|name| !name.is_empty()) else {
        return answers::refused("hostname", "The value must be supplied");
    };
    if let Err(why) = check_host(&hostname) {
        return answers::refused("hostname", &why);
    }
    let has_tls = context.view.cluster_map().this_address.tls.is_some();
    let mut external = ExternalAddress { hostname, ports: BTreeMap::new() };
    for (service, port) in fields {
        if !EXTERNAL_SERVICES.contains(&service.as_str()) {
            return answers::refused(&service, "No such port");
        }
        let Some(port) = port.parse::<u16>().ok().filter(|port| *port > 0) else {
            return answers::refused(&service, "The port must be a number from 1 to 65535");
        };
        let is_here = match service.as_str() {
            "kv" | "mgmt" => true,
            "kvSSL" | "mgmtSSL" => has_tls,
            _ => false,
        };
        if is_here {
            external.ports.insert(service, port);
        }
    }
    change(&context, vec![SetupChange::External(Some(external))]).await
}

/// DELETE /node/controller/setupAlternateAddresses/external
pub(super) async fn remove_external(State(context): State<Arc<Context>>) -> Response {
    change(&context, vec![SetupChange::External(None)]).await
}

/// The names under which the original's services have ports.
const EXTERNAL_SERVICES: &[&str] = &[
    "kv",
    "kvSSL",
    "mgmt",
    "mgmtSSL",
    "capi",
    "capiSSL",
    "n1ql",
    "n1qlSSL",
    "fts",
    "ftsSSL",
    "ftsGRPC",
    "ftsGRPCSSL",
    "cbas",
    "cbasSSL",
    "eventingAdminPort",
    "eventingSSL",
    "indexAdmin",
    "indexScan",
    "indexHttp",
    "indexHttps",
    "projector",
    "backupAPI",
    "backupAPIHTTPS",
];

/// Carries out a form that may have these fields, and must have some of them.
async fn set_up(
    context: &Arc<Context>,
    form: FieldsForm,
    allowed: &[&str],
    needed: &[&str],
) -> Response {
    let Ok(Form(fields)) = form else { return no_form() };
    let form = SetupForm::read(&*context.view, fields, allowed, needed);
    if !form.errors.is_empty() {
        return refused(&form.errors);
    }
    change(context, form.changes).await
}

/// The same with an administrator. The password is last: until then whoever began may go on.
async fn initialise(
    context: &Arc<Context>,
    user: &User,
    form: FieldsForm,
    allowed: &[&str],
) -> Response {
    let Ok(Form(mut fields)) = form else { return no_form() };
    let (name, password) = (fields.remove("username"), fields.remove("password"));
    let mut form = SetupForm::read(&*context.view, fields, allowed, &[]);
    check_administrator(user, name.as_deref(), &mut form);
    if password.is_none() {
        form.refuse("password", "Username and password are required");
    }
    let (Some(name), Some(password), true) = (name, password, form.errors.is_empty()) else {
        return refused(&form.errors);
    };
    let _one_at_a_time = context.initialising.lock().await;
    if user.is_setting_up && context.view.set_up().is_none() {
        // Somebody else was first.
        return unauthorized();
    }
    let edit = match administrator_edit(context, user, name, password).await {
        Ok(edit) => edit,
        Err(refused) => return refused,
    };
    let changed = change(context, form.changes).await;
    if changed.status() != StatusCode::OK {
        return changed;
    }
    if let Some(edit) = edit {
        let answer = carry_out(context, user, edit).await;
        if answer.status() != StatusCode::OK {
            return answer;
        }
    }
    let is_the_administrators = |set_up: &SetUp| set_up.administrator == user.name;
    if context.view.set_up().as_ref().is_some_and(is_the_administrators) {
        context.view.end_set_up();
    }
    let host = management_host(&context.view.cluster_map().this_address);
    answers::ok(&json!({"newBaseUri": format!("http://{host}/")}))
}

/// Whoever has logged in changes its own password alone; whoever sets the node up names the
/// administrator.
fn check_administrator(user: &User, name: Option<&str>, form: &mut SetupForm) {
    match name {
        None => form.refuse("username", "Username and password are required"),
        Some(name) if *name != user.name && !user.is_setting_up => {
            let why = format!(
                "{} asks, and can change its own password alone; other users are made with PUT \
                 /settings/rbac/users/local/{{user}}",
                user.name
            );
            form.refuse("username", &why);
        }
        Some(_) => {}
    }
}

/// What gives the administrator of that name the password; nothing, if that one has just logged in
/// with it.
///
/// # Errors
/// What is wrong with either, as it is answered.
async fn administrator_edit(
    context: &Arc<Context>,
    user: &User,
    name: String,
    password: String,
) -> Result<Option<UsersEdit>, Response> {
    if name == user.name && context.users.is_verified(&name, password.as_bytes()) {
        return Ok(None);
    }
    let password = hashed(context, password).await?;
    let edit = if name == user.name {
        UsersEdit::SetPassword(name, password)
    } else {
        UsersEdit::PutUser {
            user: name,
            password: Some(password),
            full_name: String::new(),
            roles: Role::parse_all("admin").unwrap_or_default(),
            groups: Vec::new(),
            limits: UserLimits::default(),
        }
    };
    match context.users.registry().edited(&edit, Editor::Admin) {
        Err(UsersEditError::Invalid(field, why)) => Err(answers::refused(field, &why)),
        // What else there may be is found when it is carried out.
        Ok(_) | Err(_) => Ok(Some(edit)),
    }
}

/// Makes changes on a thread that may wait for a disk.
async fn change(context: &Arc<Context>, changes: Vec<SetupChange>) -> Response {
    let view = Arc::clone(&context.view);
    // The work is lost only when the runtime shuts down.
    let lost = || Err(SetupError::Failed("The node is shutting down".to_owned()));
    let made = tokio::task::spawn_blocking(move || {
        changes.iter().try_for_each(|change| view.change_setup(change))
    });
    match made.await.unwrap_or_else(|_| lost()) {
        Ok(()) => StatusCode::OK.into_response(),
        Err(SetupError::Invalid(why)) => answers::refused("_", &why),
        Err(SetupError::Failed(why)) => {
            let body = json!({"errors": {"_": why}}).to_string();
            answers::json_text(StatusCode::SERVICE_UNAVAILABLE, body)
        }
    }
}

/// What is not understood is not taken for a form that says nothing.
fn no_form() -> Response {
    answers::refused("_", "The body is a form")
}

fn refused(errors: &Fields) -> Response {
    answers::json_text(StatusCode::BAD_REQUEST, json!({"errors": errors}).to_string())
}
