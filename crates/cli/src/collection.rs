//! `settee collection`: scopes and collections of a running node's bucket.

use std::process::ExitCode;

use anyhow::{Context, ensure};
use document::uri::escaped;
use serde_json::Value;

use crate::node_arguments::NodeArguments;
use crate::table::Table;

/// List, create and drop the scopes and collections of a running node's bucket
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP, mut_args = |argument| argument.global(true))]
pub struct CollectionArguments {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    node: NodeArguments,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Action {
    /// Show all collections of the bucket
    List,
    /// Make a scope
    CreateScope {
        /// The scope's name
        scope: String,
    },
    /// Drop a scope with all its collections
    DropScope {
        /// The scope's name
        scope: String,
        #[command(flatten)]
        loss: Loss,
    },
    /// Make a collection
    Create {
        /// Its scope and name, with a point between them
        #[arg(value_name = "SCOPE.COLLECTION")]
        path: CollectionPath,
        /// Seconds that its documents live at most; 0: as the bucket's, -1: without a limit
        #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
        max_ttl: Option<i64>,
        /// Whether older versions of its documents are wanted
        #[arg(long, value_name = "BOOL")]
        history: Option<bool>,
    },
    /// Drop a collection with everything in it
    Drop {
        /// Its scope and name, with a point between them
        #[arg(value_name = "SCOPE.COLLECTION")]
        path: CollectionPath,
        #[command(flatten)]
        loss: Loss,
    },
}

/// Whether what loses documents is meant.
#[derive(Clone, Copy, Debug, clap::Args)]
struct Loss {
    /// Do it; without this, nothing is changed
    #[arg(long)]
    confirm: bool,
}

impl Loss {
    /// Refuses it unless it is confirmed.
    fn check(self, what: &str) -> anyhow::Result<()> {
        ensure!(
            self.confirm,
            "nothing was changed: all documents of {what} would be gone for good; --confirm does it"
        );
        Ok(())
    }
}

/// A collection in its scope. Names have no points in them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CollectionPath {
    scope: String,
    collection: String,
}

impl std::str::FromStr for CollectionPath {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (scope, collection) = text.split_once('.').context("say SCOPE.COLLECTION")?;
        Ok(Self { scope: scope.to_owned(), collection: collection.to_owned() })
    }
}

const HELP: &str = "\
Examples:
  settee collection list --bucket travel --password secret
  settee collection create-scope shop --bucket travel --password secret
  settee collection create shop.orders --max-ttl 3600 --bucket travel --password secret
  settee collection drop shop.orders --confirm --bucket travel --password secret
  settee collection drop-scope shop --confirm --bucket travel --password secret";

/// Runs the tool.
pub fn run(arguments: &CollectionArguments) -> anyhow::Result<ExitCode> {
    let node = &arguments.node;
    let (port, bucket) = node.find()?;
    let scopes = format!("/pools/default/buckets/{}/scopes", escaped(&bucket));
    let answer = match &arguments.action {
        Action::List => {
            node.show(&port, &scopes, table)?;
            return Ok(ExitCode::SUCCESS);
        }
        Action::CreateScope { scope } => port.post(&scopes, &[("name", scope.as_str())])?,
        Action::DropScope { scope, loss } => {
            loss.check(&format!("the scope {scope} of the bucket {bucket}"))?;
            port.delete(&format!("{scopes}/{}", escaped(scope)))?
        }
        Action::Create { path, max_ttl, history } => {
            let collections = format!("{scopes}/{}/collections", escaped(&path.scope));
            let (max_ttl, history) =
                (max_ttl.map(|it| it.to_string()), history.map(|it| it.to_string()));
            let mut fields = vec![("name", path.collection.as_str())];
            fields.extend(max_ttl.as_deref().map(|seconds| ("maxTTL", seconds)));
            fields.extend(history.as_deref().map(|is_wanted| ("history", is_wanted)));
            port.post(&collections, &fields)?
        }
        Action::Drop { path, loss } => {
            let CollectionPath { scope, collection } = path;
            loss.check(&format!("the collection {scope}.{collection} of the bucket {bucket}"))?;
            let collections = format!("{scopes}/{}/collections", escaped(&path.scope));
            port.delete(&format!("{collections}/{}", escaped(&path.collection)))?
        }
    };
    node.accept(&port, answer)?;
    Ok(ExitCode::SUCCESS)
}

/// A row for each collection, and one for a scope that has none.
fn table(manifest: &Value) -> Table {
    let mut table = Table::new(&["COLLECTION", "UID", "MAX-TTL"]);
    rows(manifest).into_iter().for_each(|row| table.push(row));
    table
}

fn rows(manifest: &Value) -> Vec<Vec<String>> {
    let all = |value: &Value, name: &str| -> Vec<Value> {
        value.get(name).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let word = |value: &Value, name: &str| -> String {
        value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let none = || "-".to_owned();
    let mut rows = Vec::new();
    for scope in all(manifest, "scopes") {
        let (name, collections) = (word(&scope, "name"), all(&scope, "collections"));
        if collections.is_empty() {
            rows.push(vec![format!("{name}."), none(), none()]);
        }
        for collection in collections {
            let max_ttl = match collection.get("maxTTL").and_then(Value::as_i64) {
                None | Some(0) => none(),
                Some(seconds) => seconds.to_string(),
            };
            let path = format!("{name}.{}", word(&collection, "name"));
            rows.push(vec![path, word(&collection, "uid"), max_ttl]);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn collections_are_shown_as_they_are_said() {
        let collection =
            |name: &str, max_ttl: i64| json!({"name": name, "uid": "a", "maxTTL": max_ttl});
        let manifest = json!({"uid": "3", "scopes": [
            {"name": "_default", "uid": "0", "collections": [collection("_default", 0)]},
            {"name": "shop", "uid": "8", "collections": [collection("orders", -1)]},
            {"name": "empty", "uid": "9", "collections": []},
        ]});
        let shown =
            [["_default._default", "a", "-"], ["shop.orders", "a", "-1"], ["empty.", "-", "-"]];
        assert_eq!(rows(&manifest), shown);
        assert!(rows(&json!({})).is_empty());
    }

    #[test]
    fn a_collection_is_said_with_its_scope() {
        let path: CollectionPath = "shop.orders".parse().unwrap();
        assert_eq!((path.scope.as_str(), path.collection.as_str()), ("shop", "orders"));
        assert!("orders".parse::<CollectionPath>().is_err());
    }
}
