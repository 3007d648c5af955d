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
    /// Make a user, or change one: all roles, groups and limits are those that are said here
    Set {
        /// The user's name
        name: String,
        /// A new password; an existing user keeps its own when this is left out
        #[arg(long, env = "SETTEE_NEW_PASSWORD", hide_env_values = true)]
        new_password: Option<Secret>,
        /// Roles with commas between them
        #[arg(long, default_value = "")]
        roles: String,
        /// Groups with commas between them
        #[arg(long, default_value = "")]
        groups: String,
        /// The name for people
        #[arg(long, default_value = "")]
        full_name: String,
        /// What the user may take of each node, as the original says it: num_connections,
        /// num_ops_per_min, ingress_mib_per_min, egress_mib_per_min; without it anything
        #[arg(long, value_name = "JSON", default_value = "")]
        limits: String,
    },
    /// Delete a user; its connections are closed
    Delete {
        /// The user's name
        name: String,
    },
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
  settee user set bob --roles 'data_reader[*]' --password secret \
      --limits '{\"kv\": {\"num_ops_per_min\": 6000}}'
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
        Action::Set { name, new_password, roles, groups, full_name, limits } => {
            let mut fields = vec![("name", full_name.as_str()), ("roles", roles.as_str())];
            fields.extend([("groups", groups.as_str()), ("limits", limits.as_str())]);
            fields.extend(new_password.as_deref().map(|password| ("password", password)));
            port.put(&path_of(name), &fields)?
        }
        Action::Delete { name } => port.delete(&path_of(name))?,
    };
    node.accept(&port, answer)?;
    Ok(ExitCode::SUCCESS)
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
fn role(role: &Value) -> String {
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
}
