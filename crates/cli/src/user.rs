//! `settee user`: users of a running node, and their roles.

use std::process::ExitCode;

use document::uri::escaped;
use platform::redaction::Secret;
use serde_json::Value;

use crate::node_arguments::NodeArguments;
use crate::table::Table;

const USERS: &str = "/settings/rbac/users/local";

/// List, set and delete the users of a running node
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP, mut_args = |argument| argument.global(true))]
pub struct UserArguments {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    node: NodeArguments,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Action {
    /// Show all users with their roles
    List,
    /// Make a user, or change one: what is not said stays as it is
    Set {
        /// The user's name
        name: String,
        /// A new password; an existing user keeps its own when this is left out
        #[arg(long, env = "SETTEE_NEW_PASSWORD", hide_env_values = true)]
        new_password: Option<Secret>,
        #[command(flatten)]
        said: Said,
    },
    /// Delete a user; its connections are closed
    Delete {
        /// The user's name
        name: String,
    },
}

/// What can be said of a user beside the password; what is said takes the place of all that was.
#[derive(Clone, Debug, Default, clap::Args)]
struct Said {
    /// All its roles, with commas between them; '' for none
    #[arg(long)]
    roles: Option<String>,
    /// All its groups, with commas between them; '' for none
    #[arg(long)]
    groups: Option<String>,
    /// The name for people
    #[arg(long)]
    full_name: Option<String>,
    /// What the user may take of each node, as the original says it: num_connections,
    /// num_ops_per_min, ingress_mib_per_min, egress_mib_per_min; '' for anything
    #[arg(long, value_name = "JSON")]
    limits: Option<String>,
}

const HELP: &str = "\
Roles: admin, ro_admin, cluster_admin, security_admin, bucket_admin[BUCKET],
bucket_full_access[BUCKET], scope_admin[BUCKET:SCOPE], data_reader, data_writer, data_dcp_reader and
data_monitoring, each with [BUCKET], [BUCKET:SCOPE] or [BUCKET:SCOPE:COLLECTION], and others; * is
any bucket.

Examples:
  settee user list --password secret
  settee user set bob --new-password hunter22 --roles 'data_reader[travel]' --password secret
  settee user set bob --roles 'data_reader[travel:shop],data_writer[travel:shop]' -P secret
  settee user set bob --new-password hunter33 --password secret
  settee user set bob --limits '{\"kv\": {\"num_ops_per_min\": 6000}}' --password secret
  settee user delete bob --password secret";

/// Runs the tool.
pub fn run(arguments: &UserArguments) -> anyhow::Result<ExitCode> {
    let node = &arguments.node;
    let (port, _) = node.find()?;
    let answer = match &arguments.action {
        Action::List => {
            node.show(&port, USERS, table)?;
            return Ok(ExitCode::SUCCESS);
        }
        Action::Set { name, new_password, said } => {
            let path = path_of(name);
            // A PUT says all of a user.
            let known = port.get_if_any(&path)?.unwrap_or_default();
            let form = said.form(&known);
            let mut fields: Vec<_> =
                form.iter().map(|(field, value)| (*field, value.as_str())).collect();
            fields.extend(new_password.as_deref().map(|password| ("password", password)));
            port.put(&path, &fields)?
        }
        Action::Delete { name } => port.delete(&path_of(name))?,
    };
    node.accept(&port, answer)?;
    Ok(ExitCode::SUCCESS)
}

impl Said {
    /// The fields of a user, as they are said here or else `known`.
    fn form(&self, known: &Value) -> [(&'static str, String); 4] {
        let or_else = |said: &Option<String>, known: String| said.clone().unwrap_or(known);
        let full_name = known.get("name").and_then(Value::as_str).unwrap_or_default();
        let groups = known.get("groups").and_then(Value::as_array).into_iter().flatten();
        let groups: Vec<&str> = groups.filter_map(Value::as_str).collect();
        let limits = known.get("limits").map(Value::to_string).unwrap_or_default();
        [
            ("name", or_else(&self.full_name, full_name.to_owned())),
            ("roles", or_else(&self.roles, own_roles(known).join(","))),
            ("groups", or_else(&self.groups, groups.join(","))),
            ("limits", or_else(&self.limits, limits)),
        ]
    }
}

/// The roles that a user has other than by its groups.
fn own_roles(user: &Value) -> Vec<String> {
    let is_own = |shown: &&Value| {
        let origins = shown.get("origins").and_then(Value::as_array);
        origins.is_none_or(|origins| origins.iter().any(|origin| origin["type"] == "user"))
    };
    let roles = user.get("roles").and_then(Value::as_array);
    roles.into_iter().flatten().filter(is_own).map(role).collect()
}

/// All users.
fn table(users: &Value) -> Table {
    let mut table = Table::new(&["NAME", "ROLES"]);
    users.as_array().into_iter().flatten().for_each(|user| table.push(row(user)));
    table
}

/// A user's name and roles.
fn row(user: &Value) -> Vec<String> {
    let name = user.get("id").and_then(Value::as_str).unwrap_or_default();
    let roles = user.get("roles").and_then(Value::as_array);
    let roles: Vec<String> = roles.into_iter().flatten().map(role).collect();
    vec![name.to_owned(), if roles.is_empty() { "-".to_owned() } else { roles.join(",") }]
}

/// A role in the form in which it is said.
pub(crate) fn role(role: &Value) -> String {
    let field = |name: &str| role.get(name).and_then(Value::as_str);
    let mut names = vec!["bucket_name", "scope_name", "collection_name"];
    names.retain(|name| field(name).is_some());
    while names.len() > 1 && names.last().is_some_and(|name| field(name) == Some("*")) {
        names.pop();
    }
    let place: Vec<&str> = names.into_iter().filter_map(field).collect();
    let kind = field("role").unwrap_or_default();
    if place.is_empty() { kind.to_owned() } else { format!("{kind}[{}]", place.join(":")) }
}

fn path_of(name: &str) -> String {
    format!("{USERS}/{}", escaped(name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn users_are_shown_with_their_roles_as_these_are_said() {
        let roles = json!([
            {"role": "admin"},
            {"role": "bucket_admin", "bucket_name": "*"},
            {"role": "data_reader", "bucket_name": "b", "scope_name": "*", "collection_name": "*"},
            {"role": "data_writer", "bucket_name": "b", "scope_name": "s", "collection_name": "c"},
        ]);
        let user = json!({"id": "bob", "roles": roles});
        let shown = ["bob", "admin,bucket_admin[*],data_reader[b],data_writer[b:s:c]"];
        assert_eq!(row(&user), shown);
        assert_eq!(row(&json!({"id": "eve", "roles": []})), ["eve", "-"]);
    }

    #[test]
    fn what_is_not_said_of_a_user_stays_as_it_is() {
        let (own, of_group) = (json!({"type": "user"}), json!({"type": "group", "name": "g"}));
        let known = json!({
            "id": "bob",
            "name": "Bob B.",
            "groups": ["g", "h"],
            "roles": [
                {"role": "data_reader", "bucket_name": "b", "scope_name": "s",
                 "collection_name": "*", "origins": [own, of_group]},
                {"role": "ro_admin", "origins": [of_group]},
            ],
            "limits": {"kv": {"num_connections": 3}},
        });
        let form = |said: Said, known: &Value| said.form(known).map(|(_, value)| value);
        let limits = r#"{"kv":{"num_connections":3}}"#;
        assert_eq!(form(Said::default(), &known), ["Bob B.", "data_reader[b:s]", "g,h", limits]);
        let none = Some(String::new());
        let said = Said { roles: none.clone(), limits: none, ..Said::default() };
        assert_eq!(form(said, &known), ["Bob B.", "", "g,h", ""]);
        let said = Said { roles: Some("admin".to_owned()), ..Said::default() };
        assert_eq!(form(said, &Value::Null), ["", "admin", "", ""], "of a new user");
    }
}
