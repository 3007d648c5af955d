//! `settee user`: users of a running node, and their roles.

use std::process::ExitCode;

use anyhow::bail;
use platform::redaction::Secret;
use serde_json::Value;

use crate::node_port::NodePort;
use crate::output::print;
use crate::server_arguments::ServerArguments;

const USERS: &str = "/settings/rbac/users/local";

/// List, set and delete the users of a running node
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct UserArguments {
    #[command(subcommand)]
    action: Action,
    /// The node's REST port, as http://HOST:8091 [default: what the data port tells]
    #[arg(long, value_name = "URL", help_heading = "Server", global = true)]
    management: Option<String>,
    #[command(flatten)]
    server: ServerArguments,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Action {
    /// Show all users with their roles
    List {
        /// The JSON that the node answers
        #[arg(long)]
        json: bool,
    },
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

Who asks is said in front of the action: its options are the server's.

Examples:
  settee user --password secret list
  settee user --password secret set bob --new-password hunter22 --roles 'data_reader[travel]'
  settee user --password secret set bob --roles 'data_reader[travel:shop],data_writer[travel:shop]'
  settee user --password secret set bob --roles 'data_reader[*]' \
      --limits '{\"kv\": {\"num_ops_per_min\": 6000}}'
  settee user --password secret delete bob";

/// Runs the tool.
pub fn run(arguments: &UserArguments) -> anyhow::Result<ExitCode> {
    let (port, _) = NodePort::find(&arguments.server, arguments.management.as_deref())?;
    match &arguments.action {
        Action::List { json } => list(&port, *json)?,
        Action::Set { name, new_password, roles, groups, full_name, limits } => {
            let mut fields = vec![("name", full_name.as_str()), ("roles", roles.as_str())];
            fields.extend([("groups", groups.as_str()), ("limits", limits.as_str())]);
            fields.extend(new_password.as_deref().map(|password| ("password", password)));
            accept(&port, port.put(&path_of(name), &fields)?)?;
        }
        Action::Delete { name } => accept(&port, port.delete(&path_of(name))?)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(port: &NodePort, as_json: bool) -> anyhow::Result<()> {
    let text = port.get(USERS)?.read_to_string()?;
    if as_json {
        return print(&format!("{text}\n"));
    }
    let users: Value = serde_json::from_str(&text)?;
    print(&users.as_array().into_iter().flatten().map(line).collect::<String>())
}

/// A user's name and roles.
fn line(user: &Value) -> String {
    let name = user.get("id").and_then(Value::as_str).unwrap_or_default();
    let roles = user.get("roles").and_then(Value::as_array);
    let roles: Vec<String> = roles.into_iter().flatten().map(role).collect();
    format!("{name} {}\n", if roles.is_empty() { "-".to_owned() } else { roles.join(",") })
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

/// The user's path; a name may have any character in it.
fn path_of(name: &str) -> String {
    let encoded: String = name
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect();
    format!("{USERS}/{encoded}")
}

fn accept(port: &NodePort, (status, answer): (u16, Value)) -> anyhow::Result<()> {
    if status == 200 {
        return Ok(());
    }
    let url = &port.url;
    if let Some(permissions) = answer.get("permissions") {
        bail!("{url} refuses: the user needs {permissions}");
    }
    let errors = answer.get("errors").and_then(Value::as_object);
    let reasons = errors.into_iter().flat_map(|errors| errors.values()).filter_map(Value::as_str);
    let reasons: Vec<&str> = reasons.chain(answer.as_str()).collect();
    bail!("{url} refuses ({status}): {}", reasons.join("; "))
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
        let shown = "bob admin,bucket_admin[*],data_reader[b],data_writer[b:s:c]\n";
        assert_eq!(line(&user), shown);
        assert_eq!(line(&json!({"id": "eve", "roles": []})), "eve -\n");
    }

    #[test]
    fn any_name_has_a_path() {
        assert_eq!(path_of("bob.b-1"), format!("{USERS}/bob.b-1"));
        assert_eq!(path_of("a/b \u{fc}"), format!("{USERS}/a%2Fb%20%C3%BC"));
    }
}
