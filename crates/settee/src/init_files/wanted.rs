//! What the files ask for, in the words of the REST API.

use std::collections::BTreeMap;

use auth::{Editor, Group, PasswordPolicy, Role, UserLimits, UsersEdit, UsersEditError};
use document::{Manifest, ManifestEdit};
use management::{BucketOrder, new_bucket_order};
use node::is_bucket_name;
use serde::Deserialize;

use super::InitTarget;

/// One thing that the node is to have.
pub(super) enum Wanted {
    Bucket(WantedBucket),
    Group(WantedGroup),
    User(WantedUser),
}

/// A bucket: the fields of `POST /pools/default/buckets`, and what `GET .../scopes` tells.
#[derive(Deserialize)]
pub(super) struct WantedBucket {
    pub(super) name: String,
    #[serde(default)]
    scopes: Vec<WantedScope>,
    #[serde(flatten)]
    settings: BTreeMap<String, serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WantedScope {
    name: String,
    #[serde(default)]
    collections: Vec<WantedCollection>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WantedCollection {
    name: String,
    /// Seconds; 0: as the bucket's, -1: without a limit.
    #[serde(default, rename = "maxTTL")]
    max_ttl_seconds: i64,
    #[serde(default)]
    history: bool,
}

/// A group of users.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WantedGroup {
    name: String,
    #[serde(default)]
    description: String,
    /// With commas between them.
    #[serde(default)]
    roles: String,
}

/// A user.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct WantedUser {
    name: String,
    password: String,
    #[serde(default)]
    full_name: String,
    /// With commas between them.
    #[serde(default)]
    roles: String,
    #[serde(default)]
    groups: Vec<String>,
}

impl Wanted {
    /// Refuses what can be on no node.
    pub(super) fn check(&self) -> Result<(), String> {
        match self {
            Self::Bucket(bucket) => bucket.check(),
            Self::Group(group) => roles_of(&group.roles).map(drop),
            Self::User(user) => {
                roles_of(&user.roles)?;
                PasswordPolicy::default().check(&user.password)
            }
        }
    }
}

impl WantedBucket {
    fn check(&self) -> Result<(), String> {
        if !is_bucket_name(&self.name) {
            let why = "a bucket's name has 1 to 100 letters, digits, and . _ % -, and does not \
                       begin with a point";
            return Err(format!("{:?}: {why}", self.name));
        }
        self.order()?;
        let mut manifest = Manifest::default();
        for edit in self.missing(&Manifest::default()) {
            manifest = manifest.edited(edit).map_err(|error| error.to_string())?;
        }
        let all = self.scopes.iter().flat_map(|scope| &scope.collections);
        match all.map(|it| it.max_ttl_seconds).find(|seconds| ttl_of(*seconds).is_none()) {
            None => Ok(()),
            Some(seconds) => Err(format!("maxTTL {seconds}: give seconds, 0, or -1 for no limit")),
        }
    }

    /// What is said of it.
    ///
    /// # Errors
    /// What is wrong with that.
    pub(super) fn order(&self) -> Result<BucketOrder, String> {
        let text = |(name, value): (&String, &serde_json::Value)| match value {
            serde_json::Value::String(text) => Ok((name.clone(), text.clone())),
            serde_json::Value::Number(number) => Ok((name.clone(), number.to_string())),
            serde_json::Value::Bool(is_so) => Ok((name.clone(), u8::from(*is_so).to_string())),
            _ => Err(format!("{name}: give a text, a number, true or false")),
        };
        let fields = self.settings.iter().map(text).collect::<Result<_, _>>()?;
        new_bucket_order(fields).map_err(|errors| {
            let all: Vec<String> =
                errors.iter().map(|(field, why)| format!("{field}: {why}")).collect();
            all.join("; ")
        })
    }

    /// What makes the scopes and collections that `manifest` lacks, in order.
    pub(super) fn missing<'a>(&'a self, manifest: &Manifest) -> Vec<ManifestEdit<'a>> {
        let mut edits = Vec::new();
        for WantedScope { name: scope, collections } in &self.scopes {
            let known = manifest.scope(scope);
            if known.is_none() {
                edits.push(ManifestEdit::CreateScope { scope });
            }
            let known = known.map(|known| known.collections.as_slice()).unwrap_or_default();
            let missing =
                |wanted: &&WantedCollection| known.iter().all(|it| it.name != wanted.name);
            edits.extend(collections.iter().filter(missing).map(|wanted| {
                ManifestEdit::CreateCollection {
                    scope,
                    collection: &wanted.name,
                    max_ttl: ttl_of(wanted.max_ttl_seconds).flatten(),
                    history: wanted.history,
                }
            }));
        }
        edits
    }
}

/// How long documents live, as manifests have it; `None` if the number says nothing.
fn ttl_of(seconds: i64) -> Option<Option<u32>> {
    match seconds {
        0 => Some(None),
        -1 => Some(Some(0)),
        _ => u32::try_from(seconds).ok().map(Some),
    }
}

impl WantedGroup {
    pub(super) fn make(&self, target: &InitTarget<'_>) -> Result<bool, String> {
        if target.users.registry().groups.contains_key(&self.name) {
            return Ok(false);
        }
        let (description, roles) = (self.description.clone(), roles_on(target, &self.roles)?);
        let group = Group { description, roles, ..Group::default() };
        edit(target, &UsersEdit::PutGroup(self.name.clone(), group))
    }
}

impl WantedUser {
    pub(super) fn make(&self, target: &InitTarget<'_>) -> Result<bool, String> {
        if target.users.registry().accounts.contains_key(&self.name) {
            return Ok(false);
        }
        let put = UsersEdit::PutUser {
            user: self.name.clone(),
            password: Some(target.users.hash(self.password.as_bytes(), target.now_seconds)),
            full_name: self.full_name.clone(),
            roles: roles_on(target, &self.roles)?,
            groups: self.groups.clone(),
            limits: UserLimits::default(),
        };
        edit(target, &put)
    }
}

fn edit(target: &InitTarget<'_>, edit: &UsersEdit) -> Result<bool, String> {
    match target.node.edit_users(edit, Editor::Admin) {
        Ok(_) => Ok(true),
        Err(UsersEditError::Invalid(field, why)) => Err(format!("{field}: {why}")),
        Err(UsersEditError::Failed(why)) => Err(why),
        Err(error @ (UsersEditError::NoUser | UsersEditError::NoGroup)) => {
            Err(format!("it went away ({error:?})"))
        }
        Err(UsersEditError::NotAllowed) => Err("an administrator is not to be made".to_owned()),
    }
}

fn roles_of(text: &str) -> Result<Vec<Role>, String> {
    Role::parse_all(text).map_err(|unknown| {
        let unknown = unknown.join(",");
        format!("roles: there is no {unknown}; GET /settings/rbac/roles lists those that there are")
    })
}

/// The roles, in buckets that the node has.
fn roles_on(target: &InitTarget<'_>, text: &str) -> Result<Vec<Role>, String> {
    let roles = roles_of(text)?;
    let buckets = roles.iter().filter_map(|role| role.bucket.as_ref());
    match buckets.into_iter().find(|name| target.node.bucket(name).is_none()) {
        None => Ok(roles),
        Some(missing) => {
            Err(format!("roles: there is no bucket {missing}; say it under \"buckets\""))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_there_is_made() {
        let wanted: WantedBucket = serde_json::from_str(
            r#"{"name": "b", "ramQuotaMB": 100, "flushEnabled": true, "scopes": [
                {"name": "_default", "collections": [{"name": "more", "maxTTL": -1}]},
                {"name": "shop", "collections": [{"name": "orders", "history": true}]}]}"#,
        )
        .unwrap();
        let order = wanted.order().unwrap();
        let quota = (100 << 20).to_string();
        assert_eq!(
            order,
            [("flush_enabled", "true"), ("max_size", &quota)]
                .map(|(word, value)| (word.to_owned(), value.to_owned()))
        );
        let mut manifest = Manifest::default();
        let more = ManifestEdit::CreateCollection {
            scope: "_default",
            collection: "more",
            max_ttl: Some(0),
            history: false,
        };
        let shop = ManifestEdit::CreateScope { scope: "shop" };
        let orders = ManifestEdit::CreateCollection {
            scope: "shop",
            collection: "orders",
            max_ttl: None,
            history: true,
        };
        for left in [vec![more, shop, orders], vec![shop, orders], vec![orders], vec![]] {
            assert_eq!(wanted.missing(&manifest), left);
            if let Some(next) = left.first() {
                manifest = manifest.edited(*next).unwrap();
            }
        }
    }
}
