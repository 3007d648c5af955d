//! Which collections a stream carries, and of their events which.

use document::{CollectionId, Item, ManifestEvent, ScopeId, Set};

use crate::system_event::event_of;

/// What of a vBucket is for a stream. Changes with the events that it lets through.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    selection: Selection,
    /// Changes of properties are told, too: they have one form only.
    tells_changes: bool,
    /// What the stream was to carry is gone.
    is_empty: bool,
}

#[derive(Clone, Debug)]
enum Selection {
    Everything,
    /// Documents of the default collection, for those who know no other.
    Default,
    Collections(Set<CollectionId>),
    /// A scope, and what is in it now.
    Scope(ScopeId, Set<CollectionId>),
}

impl Filter {
    /// Everything, the events included.
    pub(super) fn everything(tells_changes: bool) -> Self {
        Self::of(Selection::Everything, tells_changes)
    }

    /// What a consumer gets that knows no collections.
    pub(super) fn default_collection() -> Self {
        Self::of(Selection::Default, false)
    }

    /// These collections.
    pub(super) fn collections(ids: &[CollectionId], tells_changes: bool) -> Self {
        Self::of(Selection::Collections(ids.iter().copied().collect()), tells_changes)
    }

    /// This scope, in which these collections are.
    pub(super) fn scope(
        scope: ScopeId,
        ids: impl Iterator<Item = CollectionId>,
        tells_changes: bool,
    ) -> Self {
        Self::of(Selection::Scope(scope, ids.collect()), tells_changes)
    }

    fn of(selection: Selection, tells_changes: bool) -> Self {
        Self { selection, tells_changes, is_empty: false }
    }

    /// Whether nothing more can come through.
    pub(super) fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Whether an item is for the stream. Called once for each, in the stream's order.
    pub(super) fn admits(&mut self, item: &Item) -> bool {
        let key = item.key();
        match &mut self.selection {
            Selection::Everything if !key.is_of_event() => true,
            Selection::Default => key.is_in_default_collection(),
            Selection::Collections(ids) | Selection::Scope(_, ids) if !key.is_of_event() => {
                ids.contains(&key.collection())
            }
            _ => event_of(item).is_some_and(|event| self.admits_event(&event)),
        }
    }

    fn admits_event(&mut self, event: &ManifestEvent<'_>) -> bool {
        let is_for_it = match &mut self.selection {
            Selection::Everything => true,
            Selection::Default => false,
            Selection::Collections(ids) => {
                // Before the collection is taken off: its end is for the stream, too.
                let is_for_it = event.collection().is_some_and(|id| ids.contains(&id));
                if let ManifestEvent::CollectionDropped { collection, .. } = event {
                    ids.remove(collection);
                    self.is_empty = ids.is_empty();
                }
                is_for_it
            }
            Selection::Scope(scope, ids) => {
                let is_for_it = event.scope() == *scope && !self.is_empty;
                match event {
                    ManifestEvent::CollectionCreated(it) if is_for_it => {
                        ids.insert(it.id);
                    }
                    ManifestEvent::CollectionDropped { collection, .. } => {
                        ids.remove(collection);
                    }
                    ManifestEvent::ScopeDropped { .. } if is_for_it => self.is_empty = true,
                    _ => {}
                }
                is_for_it
            }
        };
        let is_told = self.tells_changes || !matches!(event, ManifestEvent::CollectionChanged(_));
        is_for_it && is_told
    }
}

#[cfg(test)]
mod tests {
    use document::manifest_event::EventCollection;
    use document::{Cas, ItemBuilder, ItemMeta, Key, RevSeqno, Seqno};
    use vbucket::event_builder;

    use super::*;

    const SCOPE: ScopeId = ScopeId(8);

    fn item(key: &[u8]) -> Item {
        let builder = ItemBuilder::new(Key::from_trusted(key), ItemMeta::default(), b"v");
        builder.finish(Cas(1), Seqno(1), RevSeqno(1))
    }

    fn event(event: ManifestEvent<'_>) -> Item {
        event_builder(&event, 1).finish(Cas(1), Seqno(1), RevSeqno(1))
    }

    fn collection(id: u32) -> EventCollection<'static> {
        let (id, name, max_ttl) = (CollectionId(id), "c", None);
        EventCollection { uid: 1, scope: SCOPE, id, name, max_ttl, history: false }
    }

    /// What of a history comes through, and whether the stream is over then.
    fn admitted(mut filter: Filter) -> (String, bool) {
        let (uid, scope) = (2, SCOPE);
        let dropped =
            |id| ManifestEvent::CollectionDropped { uid, scope, collection: CollectionId(id) };
        let history = [
            ("S", event(ManifestEvent::ScopeCreated { uid, scope, name: "s" })),
            ("+8", event(ManifestEvent::CollectionCreated(collection(8)))),
            ("+9", event(ManifestEvent::CollectionCreated(collection(9)))),
            ("0", item(b"\x00k")),
            ("8", item(b"\x08k")),
            ("9", item(b"\x09k")),
            ("~8", event(ManifestEvent::CollectionChanged(collection(8)))),
            ("-8", event(dropped(8))),
            ("9", item(b"\x09k")),
            ("-9", event(dropped(9))),
            ("-S", event(ManifestEvent::ScopeDropped { uid, scope })),
        ];
        let mut shown = Vec::new();
        for (name, item) in history {
            if filter.admits(&item) {
                shown.push(name);
            }
        }
        (shown.join(" "), filter.is_empty())
    }

    #[test]
    fn each_filter_lets_through_what_its_consumer_asked_for() {
        let ids = |ids: &[u32]| ids.iter().copied().map(CollectionId).collect::<Vec<_>>();
        for (filter, expected) in [
            (Filter::everything(true), ("S +8 +9 0 8 9 ~8 -8 9 -9 -S", false)),
            (Filter::everything(false), ("S +8 +9 0 8 9 -8 9 -9 -S", false)),
            (Filter::default_collection(), ("0", false)),
            (Filter::collections(&ids(&[8]), true), ("+8 8 ~8 -8", true)),
            (Filter::collections(&ids(&[0, 9]), true), ("+9 0 9 9 -9", false)),
            (Filter::collections(&ids(&[8, 9]), false), ("+8 +9 8 9 -8 9 -9", true)),
            (Filter::scope(SCOPE, [].into_iter(), true), ("S +8 +9 8 9 ~8 -8 9 -9 -S", true)),
            (Filter::scope(ScopeId(0), ids(&[0]).into_iter(), true), ("0", false)),
        ] {
            let (shown, is_empty) = admitted(filter);
            assert_eq!((shown.as_str(), is_empty), expected);
        }
    }
}
