//! What a vBucket does with its collections.

use std::sync::Arc;

use document::{ManifestEdit, VbUuid, Vbid};
use platform::WallTime;

use super::*;
use crate::checkpoint::Tenure;
use crate::eviction::{EvictionOptions, EvictionPolicy};
use crate::hash_table::HashSeed;
use crate::memory_account::MemoryAccount;
use crate::operation::{StoreMode, WriteCondition};
use crate::persistence::PersistentState;
use crate::vbucket::receiving::{Received, ReceivedSnapshot};
use crate::vbucket::restore::Restored;
use crate::vbucket::role::RoleChange;

const FRUIT: CollectionId = CollectionId(8);

fn vbucket(state: VbucketState) -> Vbucket {
    Vbucket::new(Vbid(0), state, VbUuid(7), HashSeed::new(1), MemoryAccount::default())
}

fn now() -> Now {
    Now { wall: WallTime(1_000_000_000), ..Now::default() }
}

/// The manifest after these edits of the default scope: `+name` and `-name`.
fn manifest(edits: &[&str]) -> Manifest {
    edits.iter().fold(Manifest::default(), |manifest, edit| {
        let (sign, collection) = edit.split_at(1);
        let scope = "_default";
        let edit = match sign {
            "+" => {
                let (max_ttl, history) = (Some(60), false);
                ManifestEdit::CreateCollection { scope, collection, max_ttl, history }
            }
            _ => ManifestEdit::DropCollection { scope, collection },
        };
        manifest.edited(edit).unwrap()
    })
}

fn follow(vbucket: &mut Vbucket, edits: &[&str]) -> Vec<Effect> {
    let mut effects = Vec::new();
    vbucket.follow_manifest(&manifest(edits), now(), &mut effects).unwrap();
    effects
}

fn set(vbucket: &mut Vbucket, key: &[u8]) -> Result<Seqno, Refusal> {
    let key = Key::from_encoded(key).unwrap();
    let builder = ItemBuilder::new(key, ItemMeta::default(), b"v");
    let condition = WriteCondition::default();
    let stored = vbucket.store(StoreMode::Set, builder, condition, now(), &mut Vec::new());
    stored.map(|written| written.done().unwrap().seqno)
}

fn flush(vbucket: &mut Vbucket) -> Vec<Item> {
    let mut batch = vbucket.begin_flush().unwrap();
    let items = batch.take_items(usize::MAX).items;
    vbucket.flush_succeeded(&batch, now(), &mut Vec::new());
    vbucket.apply_succeeded(batch.high_seqno());
    items
}

fn count(vbucket: &Vbucket) -> Option<(u64, u64)> {
    vbucket.collection(FRUIT).map(|it| (it.item_count(), it.high_seqno.0))
}

#[test]
fn a_manifest_that_means_something_else_by_an_id_is_not_followed() {
    let mut vbucket = vbucket(VbucketState::Active);
    follow(&mut vbucket, &["+fruit", "+bread"]);
    set(&mut vbucket, b"\x08k").unwrap();
    let other_name = manifest(&["+orders", "+bread", "+users"]);
    let mut other_scope = manifest(&["+fruit", "+bread", "+users"]);
    let moved = other_scope.scopes[0].collections.remove(1);
    let (id, name) = (ScopeId(8), "s".to_owned());
    other_scope.scopes.push(document::ManifestScope { id, name, collections: vec![moved] });
    for other in [other_name, other_scope] {
        let refused = vbucket.follow_manifest(&other, now(), &mut Vec::new()).unwrap_err();
        assert!(refused.to_string().contains("fruit"), "{refused}");
        let (uid, count) = (vbucket.manifest_uid(), vbucket.collections().count());
        assert_eq!((uid, count), (2, 2), "nothing is dropped, nothing comes");
    }
    follow(&mut vbucket, &["+fruit", "+bread", "+users"]);
    assert_eq!(vbucket.collections().count(), 3);
    let scoped = |name: &str| Manifest {
        uid: 9,
        scopes: vec![
            Manifest::default().scopes.remove(0),
            document::ManifestScope {
                id: ScopeId(8),
                name: name.to_owned(),
                collections: Vec::new(),
            },
        ],
        ..Manifest::default()
    };
    vbucket.follow_manifest(&scoped("s"), now(), &mut Vec::new()).unwrap();
    let renamed = Manifest { uid: 10, ..scoped("t") };
    vbucket.follow_manifest(&renamed, now(), &mut Vec::new()).unwrap_err();
}

#[test]
fn documents_of_a_collection_are_there_as_long_as_it_is() {
    let mut vbucket = vbucket(VbucketState::Active);
    let key = Key::from_encoded(b"\x08k").unwrap();
    assert!(matches!(set(&mut vbucket, b"\x08k"), Err(Refusal::UnknownCollection)));
    follow(&mut vbucket, &["+fruit"]);
    assert_eq!(set(&mut vbucket, b"\x08k").unwrap(), Seqno(2), "the collection came at 1");
    set(&mut vbucket, b"\x00k").unwrap();
    assert!(vbucket.get(key, now(), &mut Vec::new()).is_ok());
    assert_eq!((count(&vbucket), vbucket.default_collection_count()), (Some((1, 2)), 1));
    let effects = follow(&mut vbucket, &["+fruit", "-fruit"]);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::EraseCollections)));
    let unknown = |refusal: Option<Refusal>| matches!(refusal, Some(Refusal::UnknownCollection));
    let effects = &mut Vec::new();
    assert!(unknown(vbucket.get(key, now(), effects).err()));
    assert!(unknown(vbucket.get_metadata(key, now()).err()));
    assert!(unknown(vbucket.observe(key, now()).err()));
    assert!(unknown(vbucket.prepare_write(key).err()));
    assert!(unknown(vbucket.unlock(key, document::Cas(1), now()).err()));
    assert!(unknown(vbucket.delete(key, WriteCondition::default(), now(), effects).err()));
    assert!(unknown(set(&mut vbucket, b"\x08new").err()));
    assert!(set(&mut vbucket, b"\x00new").is_ok(), "others are as they were");
}

#[test]
fn an_older_manifest_or_the_same_changes_nothing() {
    let mut vbucket = vbucket(VbucketState::Active);
    follow(&mut vbucket, &["+fruit", "+nuts"]);
    assert_eq!((vbucket.high_seqno(), vbucket.manifest_uid()), (Seqno(2), 2));
    for edits in [&["+fruit", "+nuts"][..], &["+fruit"], &[]] {
        assert!(follow(&mut vbucket, edits).is_empty());
    }
    assert_eq!(vbucket.collections().count(), 2);
    let mut replica = self::vbucket(VbucketState::Replica);
    assert!(follow(&mut replica, &["+fruit"]).is_empty(), "events tell a replica");
}

#[test]
fn what_is_dropped_while_another_collection_is_erased_is_erased_too() {
    let mut vbucket = vbucket(VbucketState::Active);
    follow(&mut vbucket, &["+fruit", "+nuts"]);
    for number in 0..200_u8 {
        set(&mut vbucket, &[8, b'k', number]).unwrap();
        set(&mut vbucket, &[9, b'k', number]).unwrap();
    }
    follow(&mut vbucket, &["+fruit", "+nuts", "-fruit"]);
    let mut end = vbucket.erase_dropped(VisitPosition::default(), 1, &mut Vec::new());
    assert!(matches!(end, Erasure::GoesOn(_)));
    follow(&mut vbucket, &["+fruit", "+nuts", "-fruit", "-nuts"]);
    flush(&mut vbucket);
    while let Erasure::GoesOn(next) = end {
        end = vbucket.erase_dropped(next, 1, &mut Vec::new());
    }
    assert_eq!((end, vbucket.document_count()), (Erasure::Done, 0));
}

#[test]
fn dropped_documents_are_erased_once_the_drop_is_durable() {
    for is_flushed_first in [true, false] {
        let mut vbucket = vbucket(VbucketState::Active);
        assert_eq!(
            vbucket.erase_dropped(VisitPosition::default(), 1, &mut Vec::new()),
            Erasure::Nothing
        );
        follow(&mut vbucket, &["+fruit"]);
        for number in 0..50_u8 {
            set(&mut vbucket, &[8, b'k', number]).unwrap();
            set(&mut vbucket, &[0, b'k', number]).unwrap();
        }
        if is_flushed_first {
            flush(&mut vbucket);
        }
        follow(&mut vbucket, &["+fruit", "-fruit"]);
        let mut from = VisitPosition::default();
        let end = loop {
            match vbucket.erase_dropped(from, 1, &mut Vec::new()) {
                Erasure::GoesOn(next) => from = next,
                end => break end,
            }
        };
        assert_eq!(end, Erasure::Waits(vbucket.high_seqno()));
        assert_eq!(vbucket.document_count_in_memory(), 50);
        flush(&mut vbucket);
        let erased = vbucket.erase_dropped(VisitPosition::default(), usize::MAX, &mut Vec::new());
        assert_eq!(erased, Erasure::Done);
        let erased = vbucket.erase_dropped(VisitPosition::default(), 1, &mut Vec::new());
        assert_eq!((erased, vbucket.document_count()), (Erasure::Nothing, 50));
    }
}

#[test]
fn what_is_only_in_the_file_does_not_count_once_it_is_erased() {
    let policy = EvictionPolicy::Full;
    let options = EvictionOptions { policy, ..EvictionOptions::default() };
    let mut vbucket = vbucket(VbucketState::Active).with_eviction(options);
    follow(&mut vbucket, &["+fruit"]);
    for key in [b"\x08a", b"\x08b", b"\x00a"] {
        // A write looks the key up first.
        if let Err(Refusal::Absent(lookup)) = set(&mut vbucket, key) {
            drop(vbucket.finish_lookup(&lookup, None));
            set(&mut vbucket, key).unwrap();
        }
    }
    flush(&mut vbucket);
    let key = Key::from_encoded(b"\x08a").unwrap();
    assert_eq!(vbucket.eject(key, now(), &mut Vec::new()), Some(true));
    assert_eq!((vbucket.document_count(), count(&vbucket).unwrap().0), (3, 2));
    follow(&mut vbucket, &["+fruit", "-fruit"]);
    flush(&mut vbucket);
    let erased = vbucket.erase_dropped(VisitPosition::default(), usize::MAX, &mut Vec::new());
    assert_eq!((erased, vbucket.document_count()), (Erasure::Done, 1));
}

#[test]
fn no_checkpoint_has_an_event_of_one_key_twice() {
    let mut vbucket = vbucket(VbucketState::Active);
    follow(&mut vbucket, &["+fruit"]);
    set(&mut vbucket, b"\x08k").unwrap();
    follow(&mut vbucket, &["+fruit", "-fruit"]);
    let cursor = vbucket.open_stream("stream", Seqno(0), Tenure::WhileMemoryLasts).unwrap().id;
    let range = vbucket.read_stream(cursor).unwrap();
    let seqnos: Vec<_> = range.items().iter().map(|item| item.seqno().0).collect();
    assert_eq!(seqnos, [1, 2, 3], "a stream has the creation before the document");
    let seqnos: Vec<_> = flush(&mut vbucket).iter().map(|item| item.seqno().0).collect();
    assert_eq!(seqnos, [2, 3], "the file has the newest of each key");
}

#[test]
fn a_replica_follows_events_and_hides_what_belongs_to_no_collection() {
    let mut active = vbucket(VbucketState::Active);
    let mut replica = vbucket(VbucketState::Replica);
    follow(&mut active, &["+fruit"]);
    set(&mut active, b"\x08k").unwrap();
    follow(&mut active, &["+fruit", "-fruit", "+nuts"]);
    let items = flush_all(&mut active);
    let end = active.high_seqno();
    let snapshot = ReceivedSnapshot {
        start: Seqno(1),
        end,
        is_disk: false,
        begins_checkpoint: true,
        max_visible: None,
        high_completed: None,
        high_prepared: None,
        purge_seqno: None,
    };
    replica.receive_snapshot(snapshot, &mut Vec::new()).unwrap();
    for item in items {
        receive(&mut replica, &item);
        assert_eq!(replica.high_seqno(), item.seqno());
        let expected = if item.seqno() < Seqno(3) { Some(item.seqno().0 - 1) } else { None };
        assert_eq!(count(&replica).map(|(items, _)| items), expected);
    }
    let names: Vec<_> = replica.collections().map(|(_, it)| it.name.to_string()).collect();
    assert_eq!((names, replica.manifest_uid()), (vec!["nuts".to_owned()], 3));
    let change = RoleChange {
        state: VbucketState::Active,
        topology: None,
        is_takeover: false,
        fresh_uuid: VbUuid(9),
    };
    replica.change_role(change, now(), &mut Vec::new());
    assert!(follow(&mut replica, &["+fruit", "-fruit", "+nuts"]).is_empty());
    assert!(set(&mut replica, b"\x0ak").is_ok());
}

/// Everything that the log has, superseded versions included.
fn flush_all(vbucket: &mut Vbucket) -> Vec<Item> {
    let cursor = vbucket.open_stream("all", Seqno(0), Tenure::WhileMemoryLasts).unwrap().id;
    let range = vbucket.read_stream(cursor).unwrap();
    range.items()
}

fn receive(replica: &mut Vbucket, item: &Item) {
    let meta = item.meta();
    let builder = ItemBuilder::new(item.key(), meta, item.value());
    let (seqno, effects) = (item.seqno(), &mut Vec::new());
    let received = if item.key().is_of_event() {
        replica.receive_event(ReceivedEvent { builder, seqno }, now(), effects)
    } else {
        let (cas, revision) = (item.cas(), item.revision());
        replica.receive(Received { builder, cas, seqno, revision }, now(), effects)
    };
    received.unwrap();
}

#[test]
fn a_damaged_event_is_refused() {
    let mut replica = vbucket(VbucketState::Replica);
    let snapshot = ReceivedSnapshot {
        start: Seqno(1),
        end: Seqno(1),
        is_disk: false,
        begins_checkpoint: true,
        max_visible: None,
        high_completed: None,
        high_prepared: None,
        purge_seqno: None,
    };
    replica.receive_snapshot(snapshot, &mut Vec::new()).unwrap();
    let key = Key::from_trusted(b"\x01\x00\x08_collection");
    let builder = ItemBuilder::new(key, ItemMeta::default(), b"?");
    let event = ReceivedEvent { builder, seqno: Seqno(1) };
    let received = replica.receive_event(event, now(), &mut Vec::new());
    assert_eq!(received, Err(ReceiveError::BadEvent));
    assert_eq!(replica.high_seqno(), Seqno(0));
}

#[test]
fn a_vbucket_comes_back_with_the_collections_of_its_file() {
    let mut before = vbucket(VbucketState::Active);
    follow(&mut before, &["+fruit", "+nuts"]);
    for key in [&b"\x08a"[..], b"\x09b", b"\x00c"] {
        set(&mut before, key).unwrap();
    }
    follow(&mut before, &["+fruit", "+nuts", "-nuts"]);
    let items = flush(&mut before);
    let mut state = PersistentState::new(VbucketState::Active);
    state.high_seqno = before.high_seqno();
    let (vbid, fresh_uuid) = (Vbid(0), VbUuid(8));
    let restored = Restored { vbid, state, document_count: 3, fresh_uuid, was_clean: true };
    let mut after = Vbucket::restore(restored, HashSeed::new(1), MemoryAccount::default());
    for item in items {
        match item.key().is_of_event() {
            true => after.restore_event(&item),
            false if after.hides(&item) => after.note_hidden(&item),
            false => drop(after.restore_document(item)),
        }
    }
    assert_eq!(count(&after), count(&before));
    assert_eq!((after.manifest_uid(), after.document_count()), (3, 2));
    let last = |vbucket: &Vbucket| {
        [CollectionId::DEFAULT, FRUIT, CollectionId(9)].map(|id| vbucket.collection_high_seqno(id))
    };
    assert_eq!(last(&before), [Some(Seqno(5)), Some(Seqno(3)), None]);
    assert_eq!(last(&after), last(&before));
    let erased = after.erase_dropped(VisitPosition::default(), usize::MAX, &mut Vec::new());
    assert_eq!(erased, Erasure::Done, "the file still has to be told");
    assert!(follow(&mut after, &["+fruit", "+nuts", "-nuts"]).is_empty());
}

#[test]
fn a_thousand_collections_cost_less_than_a_kibibyte_each() {
    assert!(size_of::<OpenCollection>() + size_of::<CollectionId>() + 32 < 256);
}

#[test]
fn what_is_counted_of_collections_is_read_without_the_vbucket() {
    let mut vbucket = vbucket(VbucketState::Active);
    let figures = Arc::clone(vbucket.figures());
    let of = |id: CollectionId| {
        let all = figures.collections();
        all.into_iter().find(|(known, _)| *known == id).map(|(_, figures)| figures)
    };
    let counted = |id| of(id).map(|it| (it.documents, it.reads, it.stores, it.deletions));
    assert_eq!((counted(FRUIT), counted(CollectionId::DEFAULT)), (None, Some((0, 0, 0, 0))));
    follow(&mut vbucket, &["+fruit"]);
    for key in [&b"\x08a"[..], b"\x08b", b"\x08b", b"\x00a"] {
        set(&mut vbucket, key).unwrap();
        assert!(vbucket.get(Key::from_encoded(key).unwrap(), now(), &mut Vec::new()).is_ok());
    }
    let key = Key::from_encoded(b"\x08a").unwrap();
    vbucket.delete(key, WriteCondition::default(), now(), &mut Vec::new()).unwrap();
    assert_eq!(counted(FRUIT), Some((1, 3, 3, 1)));
    assert_eq!(counted(CollectionId::DEFAULT), Some((1, 1, 1, 0)));
    let bytes = |id| of(id).map_or(0, |it| it.items_bytes);
    assert!(bytes(FRUIT) > bytes(CollectionId::DEFAULT), "a tombstone is in memory, too");
    assert_eq!(bytes(FRUIT) + bytes(CollectionId::DEFAULT), figures.items_bytes());
    follow(&mut vbucket, &["+fruit", "-fruit"]);
    assert_eq!(counted(CollectionId::DEFAULT), Some((1, 1, 1, 0)), "others are as they were");
    flush(&mut vbucket);
    let end = vbucket.erase_dropped(VisitPosition::default(), usize::MAX, &mut Vec::new());
    assert_eq!((end, of(FRUIT)), (Erasure::Done, None));
    assert_eq!(bytes(CollectionId::DEFAULT), figures.items_bytes());
    assert!(vbucket.is_published());
}
