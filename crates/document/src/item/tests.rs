//! Items answer what was put in.

mod round_trips;

use platform::allocator::shared_block_size;

use super::*;
use crate::durability::DurabilityLevel;
use crate::key::KeyBuf;

fn key(name: &str) -> KeyBuf {
    KeyBuf::in_default_collection(name.as_bytes()).unwrap()
}

#[test]
fn every_step_of_a_durable_write_keeps_what_it_carries() {
    let levels = (1..=3).filter_map(DurabilityLevel::from_byte);
    let prepare = Seqno(U48_MAX);
    let ends = [Operation::Commit { prepare }, Operation::Abort { prepare }];
    for operation in levels.map(Operation::Prepare).chain(ends) {
        for deletion in [None, Some(Deletion::Explicit), Some(Deletion::Expired)] {
            for (expiry, revision) in [(0, 1), (7, 1), (7, U48_MAX), (0, U48_MAX)] {
                let meta = ItemMeta { expiry, deletion, ..ItemMeta::default() };
                let item = ItemBuilder::new(key("name").as_key(), meta, b"value")
                    .with_operation(operation)
                    .finish(Cas(3), Seqno(4), RevSeqno(revision));
                assert_eq!((item.operation(), item.meta()), (operation, meta));
                assert_eq!(item.is_deleted(), deletion.is_some());
                assert_eq!((item.key().name(), item.value()), (&b"name"[..], &b"value"[..]));
                assert_eq!(item.revision(), RevSeqno(revision));
            }
        }
    }
}

#[test]
fn what_an_item_becomes_counts_for_the_same_account() {
    let account = platform::accounts::Account::open();
    let item = ItemBuilder::new(key("k").as_key(), ItemMeta::default(), &[1; 100])
        .charged_to(account.id())
        .with_heat(9)
        .finish(Cas(1), Seqno(1), RevSeqno(U48_MAX));
    let whole = account.bytes();
    assert_eq!((item.heat(), item.ejected().heat()), (9, 0));
    let ejected = item.ejected();
    assert!(whole > 100 && account.bytes() > whole);
    drop((item, ejected));
    assert_eq!(account.bytes(), 0);
}

#[test]
fn an_item_from_elsewhere_is_charged_in_place_or_copied() {
    let account = platform::accounts::Account::open();
    let make = || {
        ItemBuilder::new(key("k").as_key(), ItemMeta::default(), b"v").finish(
            Cas(1),
            Seqno(1),
            RevSeqno(1),
        )
    };
    let alone = make().charged_to(account.id());
    let size = account.bytes();
    let shared = make();
    let copy = shared.clone().charged_to(account.id());
    assert_eq!((copy.value(), copy.account()), (shared.value(), account.id()));
    assert_eq!(account.bytes(), 2 * size);
    drop((alone, copy));
    assert_eq!(account.bytes(), 0);
}

#[test]
fn a_value_can_be_filled_in_place() {
    let meta = ItemMeta { expiry: 9, ..ItemMeta::default() };
    let mut builder = ItemBuilder::with_room(key("k").as_key(), meta, Operation::Mutation, 3);
    builder.value_mut().copy_from_slice(b"abc");
    builder.set_datatype(Datatype::JSON);
    let item = builder.finish(Cas(1), Seqno(1), RevSeqno(1));
    assert_eq!(item.value(), b"abc");
    assert_eq!(item.expiry(), 9);
    assert_eq!(item.datatype(), Datatype::JSON);
}

#[test]
fn ejection_keeps_everything_but_the_value() {
    let meta = ItemMeta { expiry: 5, ..ItemMeta::default() };
    let whole = ItemBuilder::new(key("k").as_key(), meta, b"abc").finish(
        Cas(1),
        Seqno(2),
        RevSeqno(U48_MAX),
    );
    let ejected = whole.ejected();
    assert!(ejected.is_ejected());
    assert!(!whole.is_ejected());
    assert_eq!(ejected.value(), b"");
    assert_eq!(ejected.meta(), whole.meta());
    assert_eq!(ejected.revision(), whole.revision());
    assert_eq!(ejected.key(), whole.key());
}

#[test]
fn a_small_document_fits_seventy_two_bytes() {
    for flags in [[0; 4], [2, 0, 0, 6], [1, 2, 3, 4]] {
        let meta = ItemMeta { flags, ..ItemMeta::default() };
        let builder = ItemBuilder::new(key("0123456789abcdef").as_key(), meta, &[0; 32]);
        let item = builder.finish(Cas(1), Seqno(0xffff_ffff), RevSeqno(0xff));
        let expected = if flags == [0; 4] { 72 } else { 80 };
        assert_eq!(shared_block_size(item.allocation_size()), expected, "{flags:?}");
    }
}

#[test]
fn a_prepare_becomes_the_document_with_its_cas_and_revision_or_nothing() {
    let account = platform::accounts::Account::open();
    let meta = ItemMeta { flags: [1, 2, 3, 4], expiry: 9, ..ItemMeta::default() };
    let prepare = ItemBuilder::new(key("k").as_key(), meta, b"value")
        .with_operation(Operation::Prepare(DurabilityLevel::PersistToMajority))
        .charged_to(account.id())
        .finish(Cas(3), Seqno(4), RevSeqno(5));
    let committed = prepare.committed(Seqno(8));
    assert_eq!(committed.operation(), Operation::Commit { prepare: Seqno(4) });
    assert_eq!((committed.meta(), committed.value()), (meta, &b"value"[..]));
    let aborted = prepare.aborted(Seqno(9), 77);
    assert_eq!(aborted.operation(), Operation::Abort { prepare: Seqno(4) });
    assert!(aborted.is_deleted() && aborted.value().is_empty() && aborted.expiry() == 77);
    for (end, seqno) in [(committed, 8), (aborted, 9)] {
        assert_eq!((end.cas(), end.revision()), (Cas(3), RevSeqno(5)));
        assert_eq!((end.seqno(), end.key()), (Seqno(seqno), key("k").as_key()));
        assert_eq!(end.account(), account.id());
    }
}

fn prepare(value: &[u8], revision: u64) -> Item {
    let meta = ItemMeta { flags: [1, 2, 3, 4], expiry: 9, ..ItemMeta::default() };
    let operation = Operation::Prepare(DurabilityLevel::Majority);
    ItemBuilder::step(key("k").as_key(), meta, operation, value).finish(
        Cas(3),
        Seqno(4),
        RevSeqno(revision),
    )
}

/// Everything but the value.
fn facts(item: &Item) -> (Operation, ItemMeta, Key<'_>, Seqno, Cas, RevSeqno) {
    (item.operation(), item.meta(), item.key(), item.seqno(), item.cas(), item.revision())
}

#[test]
fn a_commit_is_where_its_prepare_is() {
    for revision in [1, U48_MAX] {
        let account = platform::accounts::Account::open();
        let prepare = prepare(&[7; 1000], revision).charged_to(account.id());
        let (before, bytes) = (facts(&prepare), account.bytes());
        let commit = prepare.committed(Seqno(8));
        assert_eq!(commit.value().as_ptr(), prepare.value().as_ptr());
        assert_eq!((facts(&prepare), account.bytes()), (before, bytes));
        assert_eq!(commit.seqno(), Seqno(8));
        assert_eq!(commit.operation(), Operation::Commit { prepare: Seqno(4) });
        assert_eq!(commit.allocation_size(), prepare.allocation_size());
        drop(prepare);
        assert_eq!((commit.value(), account.bytes()), (&[7; 1000][..], bytes));
        drop(commit);
        assert_eq!(account.bytes(), 0);
    }
}

#[test]
fn what_a_commit_becomes_is_the_same_commit_in_memory_of_its_own() {
    for revision in [1, U48_MAX] {
        let account = platform::accounts::Account::open();
        let commit = prepare(b"value", revision).committed(Seqno(8));
        commit.set_heat(5);
        let moved = commit.moved();
        let charged = commit.clone().charged_to(account.id());
        let (ejected, other) = (commit.ejected(), commit.with_value(Datatype::JSON, b"other"));
        assert_eq!((moved.value(), charged.value()), (&b"value"[..], &b"value"[..]));
        assert_eq!((ejected.value(), other.value()), (&b""[..], &b"other"[..]));
        assert!(ejected.is_ejected() && !other.is_ejected());
        assert_eq!((moved.heat(), charged.heat(), other.heat()), (5, 5, 5));
        assert_eq!(charged.account(), account.id());
        for copy in [moved, charged, ejected] {
            assert_eq!(facts(&copy), facts(&commit));
            assert_ne!(copy.address(), commit.address());
        }
        let (operation, meta, key, seqno, cas, revision) = facts(&commit);
        let meta = ItemMeta { datatype: Datatype::JSON, ..meta };
        assert_eq!(facts(&other), (operation, meta, key, seqno, cas, revision));
    }
}

#[test]
fn a_prepare_that_is_committed_twice_is_two_commits() {
    let prepare = prepare(b"value", 1);
    let [first, again, second] = [8, 8, 9].map(|seqno| prepare.committed(Seqno(seqno)));
    assert_eq!((first.seqno(), again.seqno(), second.seqno()), (Seqno(8), Seqno(8), Seqno(9)));
    assert_eq!(first.address(), again.address());
    assert_ne!(first.address(), second.address());
    assert_eq!((first.operation(), first.value()), (second.operation(), second.value()));
    let copy = prepare.moved();
    let commit = copy.committed(Seqno(10));
    assert_eq!((commit.address(), commit.seqno()), (copy.address(), Seqno(10)), "room is kept");
}

#[test]
fn an_expiry_is_set_in_place_where_there_is_room() {
    let prepare = Seqno(7);
    let level = DurabilityLevel::PersistToMajority;
    let operations = [
        Operation::Mutation,
        Operation::Prepare(level),
        Operation::Commit { prepare },
        Operation::Abort { prepare },
    ];
    for operation in operations {
        for built_with in [0, 5] {
            let meta = ItemMeta { expiry: built_with, ..ItemMeta::default() };
            let builder = ItemBuilder::step(key("k").as_key(), meta, operation, b"value");
            let mut builder = builder.with_room_for_expiry();
            let place = builder.value().as_ptr();
            assert_eq!((builder.meta(), builder.operation()), (meta, operation));
            for expiry in [1, 0, u32::MAX] {
                builder.set_expiry(expiry);
                assert_eq!((builder.meta().expiry, builder.operation()), (expiry, operation));
            }
            assert_eq!((builder.value(), builder.value().as_ptr()), (&b"value"[..], place));
            let item = builder.finish(Cas(1), Seqno(9), RevSeqno(U48_MAX));
            assert_eq!((item.expiry(), item.key().name()), (u32::MAX, &b"k"[..]));
            assert_eq!((item.operation(), item.value()), (operation, &b"value"[..]));
        }
    }
}
