//! All scopes and collections that a bucket is to have, and the changes that lead there.

use crate::manifest::{DEFAULT_NAME, Manifest, ManifestEdit, ManifestError, ManifestScope};
use crate::map::Set;

/// What somebody wants a bucket to have. Scopes of the system, whose names begin with `_`, stay
/// whether they are in it or not, but for the default scope, which has to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedManifest {
    /// The uid of the manifest that it was made from, if it is only meant for that one.
    pub valid_on_uid: Option<u64>,
    /// The scopes.
    pub scopes: Vec<WantedScope>,
}

/// A scope of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedScope {
    /// Its name.
    pub name: String,
    /// Its collections.
    pub collections: Vec<WantedCollection>,
}

/// A collection of it. What is not said stays, and is as at first where the collection is new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedCollection {
    /// Its name.
    pub name: String,
    /// See [`ManifestCollection::max_ttl`](crate::ManifestCollection::max_ttl).
    pub max_ttl: Option<Option<u32>>,
    /// See [`ManifestCollection::history`](crate::ManifestCollection::history).
    pub history: Option<bool>,
}

impl WantedManifest {
    /// Whether it can be put into the place of `current`, as far as single changes do not say it.
    pub(crate) fn check(&self, current: &Manifest) -> Result<(), ManifestError> {
        let invalid = |field, why: String| Err(ManifestError::Invalid(field, why));
        if let Some(uid) = self.valid_on_uid
            && uid != current.uid
        {
            let why = format!("The manifest has the uid {:x} by now", current.uid);
            return invalid("validOnUid", why);
        }
        let mut scopes = Set::default();
        for scope in &self.scopes {
            if !scopes.insert(&scope.name) {
                return invalid("scopes", format!("Scope \"{}\" is there twice", scope.name));
            }
            let mut collections = Set::default();
            for collection in &scope.collections {
                if !collections.insert(&collection.name) {
                    let why = format!(
                        "Collection \"{}\" in scope \"{}\" is there twice",
                        collection.name, scope.name
                    );
                    return invalid("scopes", why);
                }
            }
        }
        if self.scopes.iter().all(|scope| scope.name != DEFAULT_NAME) {
            return invalid("_", format!("Deleting {DEFAULT_NAME} scope is not allowed"));
        }
        Ok(())
    }

    /// The changes from `current` to this. What goes goes first: there may not be room for both.
    pub(crate) fn edits_of<'a>(&'a self, current: &'a Manifest) -> Vec<ManifestEdit<'a>> {
        let mut edits = Vec::new();
        for before in &current.scopes {
            match self.scopes.iter().find(|scope| scope.name == before.name) {
                Some(wanted) => edits.extend(wanted.drops(before)),
                None if before.name.starts_with('_') => {}
                None => edits.push(ManifestEdit::DropScope { scope: &before.name }),
            }
        }
        for wanted in &self.scopes {
            let before = current.scope(&wanted.name);
            if before.is_none() {
                edits.push(ManifestEdit::CreateScope { scope: &wanted.name });
            }
            let each = wanted.collections.iter();
            edits.extend(each.filter_map(|collection| collection.edit(wanted, before)));
        }
        edits
    }
}

impl WantedScope {
    fn drops<'a>(&'a self, before: &'a ManifestScope) -> impl Iterator<Item = ManifestEdit<'a>> {
        let is_wanted = |name: &str| self.collections.iter().any(|wanted| wanted.name == name);
        let gone = before.collections.iter().filter(move |known| !is_wanted(&known.name));
        let scope = before.name.as_str();
        gone.map(move |known| ManifestEdit::DropCollection { scope, collection: &known.name })
    }
}

impl WantedCollection {
    /// The change that makes the collection of `scope`, which was `before`, what is wanted.
    fn edit<'a>(
        &'a self,
        scope: &'a WantedScope,
        before: Option<&ManifestScope>,
    ) -> Option<ManifestEdit<'a>> {
        let (scope, collection) = (scope.name.as_str(), self.name.as_str());
        let known = before
            .and_then(|before| before.collections.iter().find(|known| known.name == self.name));
        let Some(known) = known else {
            let max_ttl = self.max_ttl.flatten();
            let history = self.history.unwrap_or(false);
            return Some(ManifestEdit::CreateCollection { scope, collection, max_ttl, history });
        };
        let max_ttl = self.max_ttl.filter(|wanted| *wanted != known.max_ttl);
        let history = self.history.filter(|wanted| *wanted != known.history);
        let changes = max_ttl.is_some() || history.is_some();
        changes.then_some(ManifestEdit::ChangeCollection { scope, collection, max_ttl, history })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scopes as `name: collection collection`, collections as `name` or `name=maximum life`.
    fn wanted(text: &str) -> WantedManifest {
        let collection = |said: &str| {
            let (name, seconds) = said.split_once('=').unwrap_or((said, ""));
            let max_ttl = seconds.parse().ok().map(Some);
            WantedCollection { name: name.to_owned(), max_ttl, history: None }
        };
        let scope = |said: &str| {
            let (name, rest) = said.split_once(':').unwrap();
            let collections = rest.split_whitespace().map(collection).collect();
            WantedScope { name: name.trim().to_owned(), collections }
        };
        WantedManifest { valid_on_uid: None, scopes: text.split(';').map(scope).collect() }
    }

    fn said(manifest: &Manifest) -> String {
        let scopes = manifest.scopes.iter().map(|scope| {
            let named = scope.collections.iter().map(|it| match it.max_ttl {
                Some(seconds) => format!(" {}={seconds}", it.name),
                None => format!(" {}", it.name),
            });
            format!("{}:{}", scope.name, named.collect::<String>())
        });
        scopes.collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn what_is_wanted_is_what_there_is_and_the_rest_has_gone() {
        let mut manifest = Manifest::default();
        for (next, uid, expected) in [
            ("_default: _default; s: c d=5", 3, None),
            ("s: d=5 c; _default: _default", 3, Some("_default: _default; s: c d=5")),
            ("_default: _default e; s: c=7 d", 5, Some("_default: _default e; s: c=7 d=5")),
            ("_default: _default; t: c", 9, None),
            ("_default: _default", 10, None),
        ] {
            let before = manifest.clone();
            manifest = manifest.edited(ManifestEdit::Replace { wanted: &wanted(next) }).unwrap();
            assert_eq!(said(&manifest), expected.unwrap_or(next), "{next}");
            assert_eq!(manifest.uid, uid, "{next}");
            assert!(before.check_next(&manifest).is_ok(), "{next}");
        }
    }

    #[test]
    fn what_cannot_be_wanted_changes_nothing() {
        let there = wanted("_default: _default; s: c");
        let manifest =
            Manifest::default().edited(ManifestEdit::Replace { wanted: &there }).unwrap();
        let stale = WantedManifest { valid_on_uid: Some(1), ..there };
        for (wanted, words) in [
            (wanted("s: c"), "Deleting _default scope is not allowed"),
            (wanted("_default:"), "Deleting the default collection is not supported"),
            (wanted("_default: _default; s:; s:"), "\"s\" is there twice"),
            (wanted("_default: _default; s: c c"), "\"c\" in scope \"s\" is there twice"),
            (wanted("_default: _default; _s:"), "First character"),
            (wanted("_default: _default=5"), "no properties of its own"),
            (wanted("_default: _default; s: d=2147483648"), "in range"),
            (stale, "has the uid 2 by now"),
        ] {
            let error = manifest.edited(ManifestEdit::Replace { wanted: &wanted }).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        }
    }

    #[test]
    fn there_is_room_for_as_many_as_there_may_be() {
        let many = |prefix: &str| {
            let names = (0..1199).map(|number| format!(" {prefix}{number}"));
            wanted(&format!("_default: _default; s:{}", names.collect::<String>()))
        };
        let replaced = |manifest: &Manifest, wanted: &WantedManifest| {
            manifest.edited(ManifestEdit::Replace { wanted })
        };
        let full = replaced(&Manifest::default(), &many("c")).unwrap();
        assert_eq!(replaced(&full, &many("d")).unwrap().collections().count(), 1200);
        assert_eq!(replaced(&full, &many("c")), Ok(full));
    }
}
