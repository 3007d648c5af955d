//! Which scopes and collections a bucket has, and what may become of them. Source:
//! docs/specification/protocol.md, section 9.2.

use std::fmt;

use crate::ids::{CollectionId, ScopeId};
use crate::map::{Map, Set};
use crate::wanted_manifest::WantedManifest;

/// The name of the scope, and of the collection in it, that a bucket begins with.
pub const DEFAULT_NAME: &str = "_default";
/// Ids that are given out begin here.
const FIRST_ID: u32 = 8;
/// Manifests of others may have uids that say nothing of how many changes there were.
const ID_OF_CHANGES_MAX: u32 = 1 << 30;
/// Bytes of a name.
const NAME_SIZE_MAX: usize = 251;
/// Scopes of a bucket.
pub const SCOPES_MAX: usize = 1200;
/// Collections of a bucket.
pub const COLLECTIONS_MAX: usize = 1200;
/// The longest life that a collection may give its documents, in seconds.
pub const MAX_TTL_SECONDS_MAX: u32 = i32::MAX as u32;

/// The scopes and collections of a bucket as of one change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Rises with each change. 0 is that of a bucket that was never changed.
    pub uid: u64,
    /// In the order in which they came.
    pub scopes: Vec<ManifestScope>,
    /// No scope had this id or a higher one, as far as is known.
    pub next_scope: u32,
    /// No collection had this id or a higher one, as far as is known.
    pub next_collection: u32,
}

/// A named group of collections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestScope {
    /// Never that of another scope, before or after.
    pub id: ScopeId,
    /// Unique in the bucket.
    pub name: String,
    /// In the order in which they came.
    pub collections: Vec<ManifestCollection>,
}

/// A named part of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestCollection {
    /// Never that of another collection, before or after.
    pub id: CollectionId,
    /// Unique in its scope.
    pub name: String,
    /// The longest life of a document in seconds, if it is limited here; 0 for explicitly without a
    /// limit.
    pub max_ttl: Option<u32>,
    /// Whether older versions are to be kept. Remembered and reported; files here keep none.
    pub history: bool,
}

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManifestEdit<'a> {
    /// A scope comes.
    CreateScope {
        /// Its name.
        scope: &'a str,
    },
    /// A scope goes, with what is in it.
    DropScope {
        /// Its name.
        scope: &'a str,
    },
    /// A collection comes.
    CreateCollection {
        /// Its scope.
        scope: &'a str,
        /// Its name.
        collection: &'a str,
        /// See [`ManifestCollection::max_ttl`].
        max_ttl: Option<u32>,
        /// See [`ManifestCollection::history`].
        history: bool,
    },
    /// A collection gets other properties; those that are not said stay.
    ChangeCollection {
        /// Its scope.
        scope: &'a str,
        /// Its name.
        collection: &'a str,
        /// See [`ManifestCollection::max_ttl`].
        max_ttl: Option<Option<u32>>,
        /// See [`ManifestCollection::history`].
        history: Option<bool>,
    },
    /// A collection goes.
    DropCollection {
        /// Its scope.
        scope: &'a str,
        /// Its name.
        collection: &'a str,
    },
    /// All of them become what is wanted. The uid rises by as many as single changes would be.
    Replace {
        /// What there is to be.
        wanted: &'a WantedManifest,
    },
}

/// Why a manifest does not change. The first two are told by their words, which clients look for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManifestError {
    /// There is one of that name.
    Exists(String),
    /// There is none of that name.
    NotFound(String),
    /// The name, or another property, is none that there can be: which, and why.
    Invalid(&'static str, String),
    /// It does not follow the one that there is.
    NotNext(String),
}

impl fmt::Display for ManifestError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists(text)
            | Self::NotFound(text)
            | Self::Invalid(_, text)
            | Self::NotNext(text) => formatter.write_str(text),
        }
    }
}

impl std::error::Error for ManifestError {}

impl Default for Manifest {
    /// That of a bucket that was never changed.
    fn default() -> Self {
        let collection = ManifestCollection {
            id: CollectionId::DEFAULT,
            name: DEFAULT_NAME.to_owned(),
            max_ttl: None,
            history: false,
        };
        let scope = ManifestScope {
            id: ScopeId::DEFAULT,
            name: DEFAULT_NAME.to_owned(),
            collections: vec![collection],
        };
        Self { uid: 0, scopes: vec![scope], next_scope: FIRST_ID, next_collection: FIRST_ID }
    }
}

impl Manifest {
    /// The scope of that name.
    pub fn scope(&self, name: &str) -> Option<&ManifestScope> {
        self.scopes.iter().find(|scope| scope.name == name)
    }

    /// All collections with their scopes.
    pub fn collections(&self) -> impl Iterator<Item = (&ManifestScope, &ManifestCollection)> {
        self.scopes
            .iter()
            .flat_map(|scope| scope.collections.iter().map(move |collection| (scope, collection)))
    }

    /// The collection with that id.
    pub fn collection_of_id(
        &self,
        id: CollectionId,
    ) -> Option<(&ManifestScope, &ManifestCollection)> {
        self.collections().find(|(_, collection)| collection.id == id)
    }

    /// What the manifest `next`, which follows this one, has no more: the names of whole scopes,
    /// and of collections with those of their scopes. What is there again by its name is another
    /// one.
    pub fn dropped_by<'a>(
        &'a self,
        next: &'a Self,
    ) -> impl Iterator<Item = (&'a str, Option<&'a str>)> {
        let has_scope = |scope: &ManifestScope| next.scopes.iter().any(|it| it.id == scope.id);
        let scopes = self.scopes.iter().filter(move |scope| !has_scope(scope));
        let collections = self.collections().filter(move |(scope, collection)| {
            has_scope(scope) && next.collection_of_id(collection.id).is_none()
        });
        let collections = collections.map(|(scope, it)| (scope.name.as_str(), Some(&*it.name)));
        scopes.map(|scope| (scope.name.as_str(), None)).chain(collections)
    }

    /// The manifest that follows by one change: this one where nothing changes.
    ///
    /// # Errors
    /// [`ManifestError`], but for [`ManifestError::NotNext`].
    pub fn edited(&self, edit: ManifestEdit<'_>) -> Result<Self, ManifestError> {
        let mut next = self.clone();
        match edit {
            ManifestEdit::Replace { wanted } => {
                wanted.check(self)?;
                wanted.edits_of(self).into_iter().try_for_each(|edit| next.apply(edit))?;
            }
            edit => next.apply(edit)?,
        }
        next.check()?;
        Ok(next)
    }

    /// Makes one change, which is not [`ManifestEdit::Replace`].
    fn apply(&mut self, edit: ManifestEdit<'_>) -> Result<(), ManifestError> {
        match edit {
            ManifestEdit::CreateScope { scope } => self.create_scope(scope)?,
            ManifestEdit::DropScope { scope } => {
                let index = self.index_of(scope)?;
                if scope.starts_with('_') {
                    let why = format!("Deleting {scope} scope is not allowed");
                    return Err(ManifestError::Invalid("_", why));
                }
                self.scopes.remove(index);
            }
            ManifestEdit::CreateCollection { scope, collection, max_ttl, history } => {
                self.create_collection(scope, collection, max_ttl, history)?;
            }
            ManifestEdit::ChangeCollection { scope, collection, max_ttl, history } => {
                check_max_ttl(max_ttl.flatten())?;
                let found = self.collection_mut(scope, collection)?;
                if found.id == CollectionId::DEFAULT {
                    let why = "The default collection has no properties of its own".to_owned();
                    return Err(ManifestError::Invalid("_", why));
                }
                found.max_ttl = max_ttl.unwrap_or(found.max_ttl);
                found.history = history.unwrap_or(found.history);
            }
            ManifestEdit::DropCollection { scope, collection } => {
                let index = self.index_of(scope)?;
                let id = self.collection_mut(scope, collection)?.id;
                if id == CollectionId::DEFAULT {
                    let why = "Deleting the default collection is not supported".to_owned();
                    return Err(ManifestError::Invalid("_", why));
                }
                self.scopes[index].collections.retain(|collection| collection.id != id);
            }
            ManifestEdit::Replace { .. } => unreachable!("a replacement is made of single changes"),
        }
        let used_up = || ManifestError::Invalid("_", "All uids are used up".to_owned());
        self.uid = self.uid.checked_add(1).ok_or_else(used_up)?;
        Ok(())
    }

    fn create_scope(&mut self, name: &str) -> Result<(), ManifestError> {
        check_new_name(name)?;
        if self.scope(name).is_some() {
            return Err(ManifestError::Exists(format!(
                "Scope with name \"{name}\" already exists"
            )));
        }
        if self.scopes.len() >= SCOPES_MAX {
            let why = format!("Maximum number of scopes has been reached ({SCOPES_MAX})");
            return Err(ManifestError::Invalid("_", why));
        }
        let id = self.free_id(self.next_scope)?;
        self.next_scope = id + 1;
        let id = ScopeId(id);
        let collections = Vec::new();
        self.scopes.push(ManifestScope { id, name: name.to_owned(), collections });
        Ok(())
    }

    fn create_collection(
        &mut self,
        scope: &str,
        name: &str,
        max_ttl: Option<u32>,
        history: bool,
    ) -> Result<(), ManifestError> {
        let index = self.index_of(scope)?;
        check_new_name(name)?;
        check_max_ttl(max_ttl)?;
        if self.scopes[index].collections.iter().any(|collection| collection.name == name) {
            return Err(ManifestError::Exists(format!(
                "Collection with name \"{name}\" in scope \"{scope}\" already exists"
            )));
        }
        if self.collections().count() >= COLLECTIONS_MAX {
            let why = format!("Maximum number of collections has been reached ({COLLECTIONS_MAX})");
            return Err(ManifestError::Invalid("_", why));
        }
        let id = self.free_id(self.next_collection)?;
        self.next_collection = id + 1;
        let id = CollectionId(id);
        let collection = ManifestCollection { id, name: name.to_owned(), max_ttl, history };
        self.scopes[index].collections.push(collection);
        Ok(())
    }

    /// An id that was never given out: one that is known to be free, and that no change has given
    /// out of which only the uid is known. A change gives out one at most.
    fn free_id(&self, next: u32) -> Result<u32, ManifestError> {
        let of_changes = u32::try_from(self.uid).ok().and_then(|uid| uid.checked_add(FIRST_ID));
        let of_changes = of_changes.filter(|id| *id <= ID_OF_CHANGES_MAX).unwrap_or(FIRST_ID);
        let id = next.max(of_changes);
        let used_up = || ManifestError::Invalid("_", "All ids are used up".to_owned());
        if id < u32::MAX { Ok(id) } else { Err(used_up()) }
    }

    fn index_of(&self, scope: &str) -> Result<usize, ManifestError> {
        let found = self.scopes.iter().position(|known| known.name == scope);
        found.ok_or_else(|| {
            ManifestError::NotFound(format!("Scope with name \"{scope}\" is not found"))
        })
    }

    fn collection_mut(
        &mut self,
        scope: &str,
        name: &str,
    ) -> Result<&mut ManifestCollection, ManifestError> {
        let index = self.index_of(scope)?;
        let found = self.scopes[index].collections.iter_mut().find(|known| known.name == name);
        found.ok_or_else(|| {
            ManifestError::NotFound(format!(
                "Collection with name \"{name}\" in scope \"{scope}\" is not found"
            ))
        })
    }

    /// Checks a manifest that somebody else has made.
    ///
    /// # Errors
    /// [`ManifestError::Invalid`].
    pub fn check(&self) -> Result<(), ManifestError> {
        let wrong = |text: &str| Err(ManifestError::Invalid("_", text.to_owned()));
        let is_default = |scope: &ManifestScope| {
            let default = |collection: &ManifestCollection| {
                collection.id == CollectionId::DEFAULT && collection.name == DEFAULT_NAME
            };
            scope.id == ScopeId::DEFAULT
                && scope.name == DEFAULT_NAME
                && scope.collections.iter().any(default)
        };
        if !self.scopes.iter().any(is_default) {
            return wrong("The default scope and its default collection are missing");
        }
        if self.scopes.len() > SCOPES_MAX || self.collections().count() > COLLECTIONS_MAX {
            return wrong("There are too many scopes or collections");
        }
        let (mut scope_ids, mut scope_names) = (Set::default(), Set::default());
        let mut collection_ids = Set::default();
        for scope in &self.scopes {
            if !is_known_id(scope.id.0) || !is_name(&scope.name) {
                return wrong("The id or the name of a scope is malformed");
            }
            if !scope_ids.insert(scope.id) || !scope_names.insert(&scope.name) {
                return wrong("Two scopes have one id or one name");
            }
            let mut names = Set::default();
            for collection in &scope.collections {
                if !is_known_id(collection.id.0) || !is_name(&collection.name) {
                    return wrong("The id or the name of a collection is malformed");
                }
                if !collection_ids.insert(collection.id) || !names.insert(&collection.name) {
                    return wrong("Two collections have one id, or one name in one scope");
                }
                check_max_ttl(collection.max_ttl)?;
            }
        }
        if self.uid == 0 && *self != Self::default() {
            return wrong("The uid 0 is that of the first manifest alone");
        }
        Ok(())
    }

    /// Ids that were ever given out are not given out again: those of this manifest, and those that
    /// the one `before` knows of.
    #[must_use]
    pub fn continuing(mut self, before: &Self) -> Self {
        let scopes = self.scopes.iter().map(|scope| scope.id.0.saturating_add(1));
        let collections = self.collections().map(|(_, it)| it.id.0.saturating_add(1));
        let next_scope = scopes.max().unwrap_or(0);
        let next_collection = collections.max().unwrap_or(0);
        self.next_scope = self.next_scope.max(next_scope).max(before.next_scope);
        self.next_collection =
            self.next_collection.max(next_collection).max(before.next_collection);
        self
    }

    /// Whether `next` may follow: `Ok(false)` if it is the same.
    ///
    /// # Errors
    /// [`ManifestError::NotNext`].
    pub fn check_next(&self, next: &Self) -> Result<bool, ManifestError> {
        let refuse = |why: String| Err(ManifestError::NotNext(why));
        if next.uid == self.uid {
            return match next.scopes == self.scopes {
                true => Ok(false),
                false => refuse(format!("another manifest has the uid {:x}", self.uid)),
            };
        }
        if next.uid < self.uid {
            return refuse(format!("the manifest that there is has the uid {:x}", self.uid));
        }
        let known: Map<_, _> =
            self.collections().map(|(scope, it)| (it.id, (scope.id, &it.name))).collect();
        for (scope, collection) in next.collections() {
            let before = known.get(&collection.id);
            if before.is_some_and(|before| *before != (scope.id, &collection.name)) {
                return refuse(format!(
                    "the collection {:x} has another name or another scope",
                    collection.id.0
                ));
            }
            if before.is_none() && collection.id.0 < self.next_collection && collection.id.0 != 0 {
                return refuse(format!("the collection id {:x} was in use", collection.id.0));
            }
        }
        for scope in &next.scopes {
            let before = self.scopes.iter().find(|known| known.id == scope.id);
            if before.is_some_and(|before| before.name != scope.name) {
                return refuse(format!("the scope {:x} has another name", scope.id.0));
            }
            if before.is_none() && scope.id.0 < self.next_scope {
                return refuse(format!("the scope id {:x} was in use", scope.id.0));
            }
        }
        Ok(true)
    }
}

fn is_known_id(id: u32) -> bool {
    id == 0 || id >= FIRST_ID
}

/// Whether anything may be called so.
fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-%$".contains(&byte);
    (1..=NAME_SIZE_MAX).contains(&name.len())
        && name.bytes().all(is_allowed)
        && !name.starts_with('$')
}

/// Whether something new may be called so: names of the system begin with `_` or `%`.
fn check_new_name(name: &str) -> Result<(), ManifestError> {
    let why = match name {
        "" => "Value must not be empty",
        _ if name.len() > NAME_SIZE_MAX => "Value must be at most 251 characters long",
        _ if name.starts_with(['_', '%']) => "First character must not be _ or %",
        _ if is_name(name) => return Ok(()),
        _ => "Can only contain characters A-Z, a-z, 0-9 and the following symbols _ - %",
    };
    Err(ManifestError::Invalid("name", why.to_owned()))
}

fn check_max_ttl(max_ttl: Option<u32>) -> Result<(), ManifestError> {
    if max_ttl.is_none_or(|seconds| seconds <= MAX_TTL_SECONDS_MAX) {
        return Ok(());
    }
    let why = format!("The value must be in range from -1 to {MAX_TTL_SECONDS_MAX}");
    Err(ManifestError::Invalid("maxTTL", why))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create<'a>(scope: &'a str, collection: &'a str) -> ManifestEdit<'a> {
        ManifestEdit::CreateCollection { scope, collection, max_ttl: None, history: false }
    }

    fn edited(edits: &[ManifestEdit<'_>]) -> Result<Manifest, ManifestError> {
        let fold = |manifest: Manifest, edit: &ManifestEdit<'_>| manifest.edited(*edit);
        edits.iter().try_fold(Manifest::default(), fold)
    }

    #[test]
    fn each_change_has_a_uid_and_no_id_comes_twice() {
        let drop = ManifestEdit::DropCollection { scope: "s", collection: "c" };
        let scope = ManifestEdit::CreateScope { scope: "s" };
        let manifest = edited(&[scope, create("s", "c"), drop, create("s", "c")]).unwrap();
        let found = &manifest.scope("s").unwrap().collections[0];
        assert_eq!((manifest.uid, found.id), (4, CollectionId(11)));
        let gone = ManifestEdit::DropScope { scope: "s" };
        let manifest = manifest.edited(gone).unwrap().edited(scope).unwrap();
        assert_eq!(manifest.scope("s").unwrap().id, ScopeId(13));
        assert!(manifest.scope("s").unwrap().collections.is_empty());
    }

    #[test]
    fn what_is_dropped_has_a_name_and_an_id() {
        let scope = |scope| ManifestEdit::CreateScope { scope };
        let before = edited(&[scope("s"), scope("t"), create("s", "c"), create("t", "c")]).unwrap();
        let drop_scope = ManifestEdit::DropScope { scope: "t" };
        let drop_collection = ManifestEdit::DropCollection { scope: "s", collection: "c" };
        for (edits, dropped) in [
            (&[scope("u"), create("u", "c")][..], &[][..]),
            (&[drop_collection], &[("s", Some("c"))]),
            (&[drop_collection, create("s", "c")], &[("s", Some("c"))]),
            (&[drop_scope], &[("t", None)]),
            (&[drop_scope, scope("t"), create("t", "c")], &[("t", None)]),
            (&[drop_collection, drop_scope], &[("t", None), ("s", Some("c"))]),
        ] {
            let apply = |manifest: Manifest, edit: &ManifestEdit<'_>| manifest.edited(*edit);
            let after = edits.iter().try_fold(before.clone(), apply).unwrap();
            assert_eq!(before.dropped_by(&after).collect::<Vec<_>>(), dropped, "{edits:?}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_in_the_words_that_clients_look_for() {
        let scope = ManifestEdit::CreateScope { scope: "s" };
        let long = "x".repeat(252);
        for (edits, words) in [
            (&[scope, scope][..], "Scope with name \"s\" already exists"),
            (&[create("s", "c")], "Scope with name \"s\" is not found"),
            (
                &[scope, create("s", "c"), create("s", "c")],
                "Collection with name \"c\" in scope \"s\" already exists",
            ),
            (
                &[ManifestEdit::DropCollection { scope: "_default", collection: "c" }],
                "Collection with name \"c\" in scope \"_default\" is not found",
            ),
            (&[ManifestEdit::DropScope { scope: "t" }], "Scope with name \"t\" is not found"),
            (&[ManifestEdit::DropScope { scope: "_default" }], "is not allowed"),
            (
                &[ManifestEdit::DropCollection { scope: "_default", collection: "_default" }],
                "is not supported",
            ),
            (&[ManifestEdit::CreateScope { scope: "_s" }], "First character"),
            (&[ManifestEdit::CreateScope { scope: "a b" }], "Can only contain"),
            (&[ManifestEdit::CreateScope { scope: "" }], "must not be empty"),
            (&[ManifestEdit::CreateScope { scope: &long }], "at most 251"),
        ] {
            let error = edited(edits).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn nothing_follows_the_last_uid() {
        let last = Manifest { uid: u64::MAX, ..Manifest::default() };
        assert!(last.edited(ManifestEdit::CreateScope { scope: "s" }).is_err());
        assert!(last.edited(create("_default", "c")).is_err());
    }

    #[test]
    fn properties_that_are_not_said_stay() {
        let change = |max_ttl, history| ManifestEdit::ChangeCollection {
            scope: "_default",
            collection: "c",
            max_ttl,
            history,
        };
        let edits =
            [create("_default", "c"), change(Some(Some(5)), None), change(None, Some(true))];
        let manifest = edited(&edits).unwrap();
        let (_, found) = manifest.collection_of_id(CollectionId(8)).unwrap();
        assert_eq!((found.max_ttl, found.history), (Some(5), true));
        assert!(manifest.edited(change(Some(Some(u32::MAX)), None)).is_err());
        let unlimited = manifest.edited(change(Some(None), None)).unwrap();
        let (_, found) = unlimited.collection_of_id(CollectionId(8)).unwrap();
        assert_eq!((found.max_ttl, found.history), (None, true));
    }

    #[test]
    fn a_manifest_that_does_not_follow_is_refused() {
        let now = edited(&[create("_default", "c"), create("_default", "d")]).unwrap();
        assert_eq!(now.check_next(&now.clone()), Ok(false));
        let renamed = |manifest: &mut Manifest| manifest.scopes[0].collections[1].name.push('x');
        let again = |manifest: &mut Manifest| manifest.scopes[0].collections[1].id.0 = 99;
        let reused = |manifest: &mut Manifest| {
            manifest.scopes[0].collections.truncate(1);
        };
        for (uid, change, is_next) in [
            (3, None, true),
            (1, None, false),
            (2, Some(&renamed as &dyn Fn(&mut Manifest)), false),
            (3, Some(&renamed), false),
            (3, Some(&again), true),
            (3, Some(&reused), true),
        ] {
            let mut next = Manifest { uid, ..now.clone() };
            if let Some(change) = change {
                change(&mut next);
            }
            assert_eq!(now.check_next(&next).is_ok(), is_next, "{next:?}");
        }
        let mut dropped = Manifest { uid: 3, ..now.clone() };
        dropped.scopes[0].collections.truncate(1);
        let dropped = dropped.continuing(&now);
        assert!(dropped.check_next(&Manifest { uid: 4, ..now }).is_err(), "ids do not come again");
    }

    #[test]
    fn a_manifest_of_others_is_checked() {
        assert!(Manifest::default().check().is_ok());
        let changes: [&dyn Fn(&mut Manifest); 6] = [
            &|manifest| manifest.scopes.clear(),
            &|manifest| manifest.scopes[0].collections.clear(),
            &|manifest| manifest.scopes[1].id.0 = 5,
            &|manifest| manifest.scopes[1].name = "_default".to_owned(),
            &|manifest| manifest.scopes[1].collections[0].name = "a/b".to_owned(),
            &|manifest| manifest.scopes[1].collections[0].id.0 = 0,
        ];
        for change in changes {
            let scope = ManifestEdit::CreateScope { scope: "s" };
            let mut manifest = edited(&[scope, create("s", "c")]).unwrap();
            change(&mut manifest);
            assert!(manifest.check().is_err(), "{manifest:?}");
        }
    }
}
