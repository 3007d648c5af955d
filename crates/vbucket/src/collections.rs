//! The collections that a vBucket has, by its own history alone: its events say which come and go.

use std::collections::VecDeque;
use std::sync::Arc;

use document::{
    CollectionId, Item, Manifest, ManifestCollection, ManifestEvent, ManifestScope, Map, ScopeId,
    Seqno, manifest_event, manifest_event::EventCollection,
};
use platform::prefetch::prefetch;

use crate::by_collection::ByCollection;
use crate::collection_figures::{CollectionCells, NamedCollections};

/// What a vBucket knows of its collections. The default one is always there, and is not among
/// them: for its documents nothing is looked up here.
#[derive(Debug, Default)]
pub(crate) struct Collections {
    /// That of the last manifest that history follows.
    uid: u64,
    scopes: Map<ScopeId, Box<str>>,
    open: ByCollection<OpenCollection>,
    /// What is counted of them, for whoever looks without the lock.
    named: Arc<NamedCollections>,
    /// The last seqno of a version in the default collection.
    default_high_seqno: Seqno,
    /// Those that are dropped and whose documents may still be in memory or in the file.
    pub(crate) leaving: Vec<Leaving>,
    /// How many of those, from the first on, were there when their erasure began: what memory has
    /// of the others may lie behind it.
    erasing: usize,
    /// How many of those were looked for in all of memory since.
    searched: usize,
    /// The newest event of each key, where there is no file that has it.
    events: Option<KeptEvents>,
}

/// Events that no file has.
#[derive(Debug, Default)]
struct KeptEvents {
    /// The newest of each key.
    newest: Map<Box<[u8]>, Item>,
    /// The keys of those that say what is dropped, in the order in which they came: ids are not
    /// given out again, so nothing ever takes their places.
    dropped: VecDeque<Box<[u8]>>,
}

/// A named collection of a vBucket.
#[derive(Clone, Debug)]
pub struct OpenCollection {
    /// The scope that it is in.
    pub scope: ScopeId,
    /// Its name.
    pub name: Box<str>,
    /// The longest life of its documents in seconds, if it is limited here.
    pub max_ttl: Option<u32>,
    /// Whether older versions are to be kept.
    pub history: bool,
    /// Where it was made.
    pub start_seqno: Seqno,
    /// What is counted of it.
    cells: Arc<CollectionCells>,
    /// The last seqno of anything in it.
    pub high_seqno: Seqno,
}

impl OpenCollection {
    /// Documents alive.
    pub fn item_count(&self) -> u64 {
        self.cells.documents.get()
    }
}

/// There may be a thousand of them in each of a thousand vBuckets.
const _: () = assert!(size_of::<OpenCollection>() <= 64);

/// A manifest has an id for something else than a vBucket's history has it for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherMeaning {
    id: u32,
    here: String,
    there: String,
}

impl std::fmt::Display for OtherMeaning {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { id, here, there } = self;
        write!(formatter, "the id {id:x} is {here} in its history, and {there} in the manifest")
    }
}

impl std::error::Error for OtherMeaning {}

/// A collection that is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leaving {
    pub(crate) id: CollectionId,
    /// Where it was dropped.
    pub(crate) end_seqno: Seqno,
    /// Its documents that were not met in memory yet.
    pub(crate) item_count: u64,
}

impl Collections {
    /// None, and those that come are counted there.
    pub(crate) fn counted_in(named: Arc<NamedCollections>) -> Self {
        Self { named, ..Self::default() }
    }

    /// Those of a vBucket without a file, which has to remember its events itself.
    pub(crate) fn keeping_events(named: Arc<NamedCollections>) -> Self {
        Self { events: Some(KeptEvents::default()), ..Self::counted_in(named) }
    }

    /// The uid of the last manifest that history follows.
    pub(crate) fn uid(&self) -> u64 {
        self.uid
    }

    /// Whether documents of a named collection are there for anybody.
    pub(crate) fn is_open(&self, id: CollectionId) -> bool {
        self.open.contains(id)
    }

    /// The last seqno of a version in the default collection.
    pub(crate) fn default_high_seqno(&self) -> Seqno {
        self.default_high_seqno
    }

    /// Takes note of a version of a document in the default collection.
    #[inline]
    pub(crate) fn note_in_default(&mut self, seqno: Seqno) {
        self.default_high_seqno = self.default_high_seqno.max(seqno);
    }

    /// Has the collection that was asked for last fetched while the caller does something else.
    pub(crate) fn prefetch_last(&self) {
        self.open.prefetch_last();
    }

    /// The same of what is counted of a collection, which is touched itself.
    pub(crate) fn prefetch_counts(&self, id: CollectionId) {
        if let Some(collection) = self.open.get(id) {
            prefetch(&*collection.cells);
        }
    }

    pub(crate) fn get(&self, id: CollectionId) -> Option<&OpenCollection> {
        self.open.get(id)
    }

    pub(crate) fn has_scope(&self, id: ScopeId) -> bool {
        id == ScopeId::DEFAULT || self.scopes.contains_key(&id)
    }

    pub(crate) fn scopes(&self) -> impl Iterator<Item = (ScopeId, &str)> {
        self.scopes.iter().map(|(id, name)| (*id, &**name))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (CollectionId, &OpenCollection)> {
        self.open.iter()
    }

    /// The newest events, seqnos in no order; none where a file has them.
    pub(crate) fn events(&self) -> impl Iterator<Item = &Item> {
        self.events.iter().flat_map(|events| events.newest.values())
    }

    /// History follows this manifest from now on, whether or not it says anything new.
    pub(crate) fn follow(&mut self, uid: u64) {
        self.uid = self.uid.max(uid);
    }

    /// Takes note of a version of a document in an open collection. `was_alive` and `is_alive`:
    /// whether there was a document, and is one. Returns what is counted of the collection.
    pub(crate) fn note_version(
        &mut self,
        id: CollectionId,
        seqno: Seqno,
        was_alive: bool,
        is_alive: bool,
    ) -> Option<&CollectionCells> {
        let collection = self.open.get_mut(id)?;
        collection.high_seqno = collection.high_seqno.max(seqno);
        let documents = &collection.cells.documents;
        let count = documents.get() + u64::from(is_alive);
        documents.set(count.saturating_sub(u64::from(was_alive)));
        Some(&collection.cells)
    }

    /// A document of an open collection is read.
    pub(crate) fn note_read(&self, id: CollectionId) {
        if let Some(collection) = self.open.get(id) {
            collection.cells.reads.add(1);
        }
    }

    /// An open collection has so many documents.
    pub(crate) fn set_item_count(&mut self, id: CollectionId, item_count: u64) {
        if let Some(collection) = self.open.get_mut(id) {
            collection.cells.documents.set(item_count);
        }
    }

    /// The event at `seqno` has come about.
    pub(crate) fn apply(&mut self, event: &ManifestEvent<'_>, seqno: Seqno) {
        self.follow(event.uid());
        match event {
            ManifestEvent::CollectionCreated(it) => {
                let collection = OpenCollection {
                    scope: it.scope,
                    name: it.name.into(),
                    max_ttl: it.max_ttl,
                    history: it.history,
                    start_seqno: seqno,
                    cells: self.named.open(it.id),
                    high_seqno: seqno,
                };
                self.open.insert(it.id, collection);
            }
            ManifestEvent::CollectionChanged(it) => {
                if let Some(collection) = self.open.get_mut(it.id) {
                    collection.max_ttl = it.max_ttl;
                    collection.history = it.history;
                    collection.high_seqno = seqno;
                }
            }
            ManifestEvent::CollectionDropped { collection, .. } => {
                if let Some(dropped) = self.open.remove(*collection) {
                    let item_count = dropped.item_count();
                    self.named.close(&dropped.cells);
                    self.leaving.push(Leaving { id: *collection, end_seqno: seqno, item_count });
                }
            }
            ManifestEvent::ScopeCreated { scope, name, .. } => {
                self.scopes.insert(*scope, (*name).into());
            }
            ManifestEvent::ScopeDropped { scope, .. } => {
                self.scopes.remove(scope);
            }
        }
    }

    /// Keeps the item of an event, where no file does. Returns the one in whose place it is.
    pub(crate) fn keep(&mut self, item: &Item) -> Option<Item> {
        let events = self.events.as_mut()?;
        let key = item.key().encoded();
        if item.is_deleted() {
            events.dropped.push_back(key.into());
        }
        events.newest.insert(key.into(), item.clone())
    }

    /// Takes out the oldest event that says what is dropped, if `may_go` says so of it, with what
    /// else is kept of the same collection. Not while documents of that may be in memory: whoever
    /// is sent these has to hear that they are not wanted. `None` when there is nothing to take.
    pub(crate) fn take_dropped(&mut self, may_go: impl Fn(&Item) -> bool) -> Option<Vec<Item>> {
        let KeptEvents { newest, dropped } = self.events.as_mut()?;
        let key = dropped.front()?;
        // Something else may have come under the key; that stays.
        let Some(item) = newest.get(key).filter(|item| item.is_deleted()) else {
            dropped.pop_front();
            return Some(Vec::new());
        };
        let collection = manifest_event::collection_dropped_by(key);
        let is_leaving = self.leaving.iter().any(|leaving| Some(leaving.id) == collection);
        if is_leaving || !may_go(item) {
            return None;
        }
        let mut gone: Vec<Item> = newest.remove(key).into_iter().collect();
        let changes = collection.map(ManifestEvent::key_of_changes);
        gone.extend(changes.and_then(|key| newest.remove(&*key)));
        dropped.pop_front();
        Some(gone)
    }

    /// A document was found of a collection that is not there any more: it is to be erased.
    pub(crate) fn note_hidden(&mut self, id: CollectionId, seqno: Seqno) {
        self.searched = 0;
        match self.leaving.iter_mut().find(|leaving| leaving.id == id) {
            Some(leaving) => leaving.end_seqno = leaving.end_seqno.max(seqno),
            None => self.leaving.push(Leaving { id, end_seqno: seqno, item_count: 0 }),
        }
    }

    /// Memory is searched from its beginning on for documents of all that are leaving.
    pub(crate) fn begin_erasure(&mut self) {
        self.erasing = self.leaving.len();
    }

    /// Memory was searched to its end.
    pub(crate) fn note_searched(&mut self) {
        self.searched = self.erasing;
    }

    /// Whether memory has nothing more of those whose erasure has begun.
    pub(crate) fn is_searched(&self) -> bool {
        self.searched == self.erasing
    }

    /// Memory was searched: those whose documents are gone from it.
    pub(crate) fn finish_erasure(&mut self) -> impl Iterator<Item = Leaving> {
        self.searched = 0;
        self.leaving.drain(..std::mem::take(&mut self.erasing))
    }

    /// Whether an id that is known here means the same in `manifest`.
    pub(crate) fn check_meaning(&self, manifest: &Manifest) -> Result<(), OtherMeaning> {
        let other = |id: u32, here: &str, there: &str| {
            let (here, there) = (here.to_owned(), there.to_owned());
            Err(OtherMeaning { id, here, there })
        };
        for scope in &manifest.scopes {
            match self.scopes.get(&scope.id) {
                Some(known) if **known != *scope.name => {
                    return other(scope.id.0, known, &scope.name);
                }
                _ => {}
            }
        }
        for (scope, collection) in manifest.collections() {
            let ManifestCollection { id, name, .. } = collection;
            match self.open.get(*id) {
                Some(known) if (known.scope, &*known.name) != (scope.id, name) => {
                    let here = format!("{} of scope {:x}", known.name, known.scope.0);
                    return other(id.0, &here, &format!("{name} of scope {:x}", scope.id.0));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// What has to come about for the vBucket to have the collections of `manifest`. What goes
    /// goes first: names are free by then.
    pub(crate) fn events_towards<'m>(&self, manifest: &'m Manifest) -> Vec<ManifestEvent<'m>> {
        let uid = manifest.uid;
        let wanted: Map<CollectionId, ScopeId> =
            manifest.collections().map(|(scope, it)| (it.id, scope.id)).collect();
        let mut gone: Vec<_> =
            self.open.iter().filter(|(id, _)| !wanted.contains_key(id)).collect();
        gone.sort_unstable_by_key(|(id, _)| *id);
        let mut events: Vec<_> = gone
            .into_iter()
            .map(|(collection, it)| {
                let scope = it.scope;
                ManifestEvent::CollectionDropped { uid, scope, collection }
            })
            .collect();
        let is_wanted = |id: &ScopeId| manifest.scopes.iter().any(|scope| scope.id == *id);
        let mut scopes: Vec<_> = self.scopes.keys().filter(|id| !is_wanted(id)).collect();
        scopes.sort_unstable();
        let drop_scope = |scope: &ScopeId| ManifestEvent::ScopeDropped { uid, scope: *scope };
        events.extend(scopes.into_iter().map(drop_scope));
        let new_scopes = manifest.scopes.iter().filter(|scope| !self.has_scope(scope.id));
        events.extend(new_scopes.map(|ManifestScope { id, name, .. }| {
            ManifestEvent::ScopeCreated { uid, scope: *id, name }
        }));
        for (scope, collection) in manifest.collections() {
            let ManifestCollection { id, name, max_ttl, history } = collection;
            let said = EventCollection {
                uid,
                scope: scope.id,
                id: *id,
                name,
                max_ttl: *max_ttl,
                history: *history,
            };
            match self.open.get(*id) {
                _ if *id == CollectionId::DEFAULT => {}
                None => events.push(ManifestEvent::CollectionCreated(said)),
                Some(known) if (known.max_ttl, known.history) != (*max_ttl, *history) => {
                    events.push(ManifestEvent::CollectionChanged(said));
                }
                Some(_) => {}
            }
        }
        events
    }
}
