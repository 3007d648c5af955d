//! `settee group`: groups of a running node's users, which have their roles.

use std::process::ExitCode;

use document::uri::escaped;
use serde_json::Value;

use crate::node_arguments::NodeArguments;
use crate::table::Table;
use crate::user::role;

const GROUPS: &str = "/settings/rbac/groups";

/// List, set and delete the groups of a running node's users
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP, mut_args = |argument| argument.global(true))]
pub struct GroupArguments {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    node: NodeArguments,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Action {
    /// Show all groups with their roles
    List,
    /// Make a group, or change one: what is not said stays as it is
    Set {
        /// The group's name
        name: String,
        #[command(flatten)]
        said: Said,
    },
    /// Delete a group; its users lose its roles
    Delete {
        /// The group's name
        name: String,
    },
}

/// What can be said of a group; what is said takes the place of all that was.
#[derive(Clone, Debug, Default, clap::Args)]
struct Said {
    /// All its roles, as of `settee user`, with commas between them; '' for none
    #[arg(long)]
    roles: Option<String>,
    /// What it is for
    #[arg(long)]
    description: Option<String>,
    /// The group of a directory that it stands for, kept for programs that manage it: a node asks
    /// no directory
    #[arg(long)]
    ldap_group_ref: Option<String>,
}

const HELP: &str = "\
Who belongs to a group is said of the user: settee user set NAME --groups.

Examples:
  settee group list --password secret
  settee group set shop --roles 'data_reader[orders],data_writer[orders]' --password secret
  settee group set shop --description 'the web shop' --password secret
  settee group delete shop --password secret";

/// Runs the tool.
pub fn run(arguments: &GroupArguments) -> anyhow::Result<ExitCode> {
    let node = &arguments.node;
    let (port, _) = node.find()?;
    let answer = match &arguments.action {
        Action::List => {
            node.show(&port, GROUPS, table)?;
            return Ok(ExitCode::SUCCESS);
        }
        Action::Set { name, said } => {
            let path = path_of(name);
            // A PUT says all of a group.
            let known = port.get_if_any(&path)?.unwrap_or_default();
            let form = said.form(&known);
            let fields: Vec<_> =
                form.iter().map(|(field, value)| (*field, value.as_str())).collect();
            port.put(&path, &fields)?
        }
        Action::Delete { name } => port.delete(&path_of(name))?,
    };
    node.accept(&port, answer)?;
    Ok(ExitCode::SUCCESS)
}

impl Said {
    /// The fields of a group, as they are said here or else `known`.
    fn form(&self, known: &Value) -> [(&'static str, String); 3] {
        let or_else = |said: &Option<String>, known: String| said.clone().unwrap_or(known);
        [
            ("roles", or_else(&self.roles, roles(known).join(","))),
            ("description", or_else(&self.description, text(known, "description"))),
            ("ldap_group_ref", or_else(&self.ldap_group_ref, text(known, "ldap_group_ref"))),
        ]
    }
}

fn roles(group: &Value) -> Vec<String> {
    group.get("roles").and_then(Value::as_array).into_iter().flatten().map(role).collect()
}

fn text(group: &Value, field: &str) -> String {
    group.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// All groups.
fn table(groups: &Value) -> Table {
    let mut table = Table::new(&["NAME", "ROLES", "DESCRIPTION"]);
    groups.as_array().into_iter().flatten().for_each(|group| table.push(row(group)));
    table
}

fn row(group: &Value) -> Vec<String> {
    let or_none = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    let cells = [text(group, "id"), roles(group).join(","), text(group, "description")];
    cells.map(or_none).into()
}

fn path_of(name: &str) -> String {
    format!("{GROUPS}/{}", escaped(name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_said_of_a_group_stays_as_it_is() {
        let known = json!({
            "id": "shop",
            "description": "the web shop",
            "ldap_group_ref": "cn=shop",
            "roles": [{"role": "data_reader", "bucket_name": "b", "scope_name": "s",
                       "collection_name": "*"}, {"role": "ro_admin"}],
        });
        let form = |said: Said, known: &Value| said.form(known).map(|(_, value)| value);
        let as_it_was = ["data_reader[b:s],ro_admin", "the web shop", "cn=shop"];
        assert_eq!(form(Said::default(), &known), as_it_was);
        assert_eq!(row(&known)[1..], as_it_was[..2]);
        let said = Said { roles: Some(String::new()), ..Said::default() };
        assert_eq!(form(said, &known), ["", "the web shop", "cn=shop"]);
        let said = Said { description: Some("d".to_owned()), ..Said::default() };
        assert_eq!(form(said, &Value::Null), ["", "d", ""], "of a new group");
        assert_eq!(row(&json!({"id": "shop", "roles": []})), ["shop", "-", "-"]);
    }
}
