//! What of a value a consumer gets, by what it has agreed on.

use document::{Cas, ItemBuilder, ItemMeta, KeyBuf, RevSeqno, Seqno};
use protocol::FeatureSet;

use super::*;

/// A user's xattr `u` and the system's `_s`.
const XATTRS: &[u8] = b"\0\0\0\x11\0\0\0\x04u\x001\0\0\0\0\x05_s\x002\0";
const SYSTEM_XATTRS: &[u8] = b"\0\0\0\x09\0\0\0\x05_s\x002\0";

fn item(value: &[u8], datatype: Datatype, deletion: Option<Deletion>) -> Item {
    let key = KeyBuf::in_default_collection(b"key").unwrap();
    let meta = ItemMeta { datatype, deletion, expiry: 77, ..ItemMeta::default() };
    ItemBuilder::new(key.as_key(), meta, value).finish(Cas(1), Seqno(2), RevSeqno(3))
}

fn settings(flags: u32, has_snappy: bool) -> Settings {
    let features: FeatureSet = has_snappy.then_some(Feature::Snappy).into_iter().collect();
    Settings::new(OpenFlags(flags), features)
}

#[test]
fn values_are_what_the_connection_was_opened_for() {
    let body = br#"{"a":1}"#.repeat(20);
    let with_xattrs = [XATTRS, &body].concat();
    let small = compression::deflate(&body);
    let small_with_xattrs = compression::deflate(&with_xattrs);
    let (raw, json, xattr) = (Datatype::RAW, Datatype::JSON, Datatype::XATTR);
    let snappy = Datatype::SNAPPY;
    let both = json.with(xattr);
    let plain = (body.as_slice(), json);
    let rich = (with_xattrs.as_slice(), both);
    let packed = (small.as_slice(), json.with(snappy));
    let rich_packed = (small_with_xattrs.as_slice(), both.with(snappy));
    let nothing: (&[u8], Datatype) = (b"", raw);
    for (flags, has_snappy, stored, expected) in [
        (0x01, false, plain, plain),
        (0x01, false, packed, plain),
        (0x01, true, packed, packed),
        (0x01, true, plain, plain),
        (0x01, false, rich, plain),
        (0x01, true, rich_packed, plain),
        (0x05, false, rich, rich),
        (0x05, false, rich_packed, rich),
        (0x05, true, rich_packed, rich_packed),
        (0x09, false, plain, nothing),
        (0x0d, true, rich_packed, (XATTRS, xattr)),
        (0x0d, true, packed, nothing),
        (0x41, true, packed, (b"", json.with(snappy))),
        (0x41, false, packed, (b"", json)),
        (0x45, true, rich, (XATTRS, both)),
        (0x45, true, rich_packed, (XATTRS, both)),
    ] {
        let item = item(stored.0, stored.1, None);
        let content = content(&item, &settings(flags, has_snappy));
        assert_eq!((&*content.value, content.datatype), expected, "{flags:#x} {has_snappy}");
    }
}

#[test]
fn tombstones_have_xattrs_or_nothing() {
    let xattr = Datatype::XATTR;
    let packed = compression::deflate(XATTRS);
    for (flags, stored, expected) in [
        (0x01, (XATTRS, xattr), (&b""[..], Datatype::RAW)),
        (0x05, (XATTRS, xattr), (SYSTEM_XATTRS, xattr)),
        (0x105, (XATTRS, xattr), (XATTRS, xattr)),
        (0x105, (&packed, xattr.with(Datatype::SNAPPY)), (XATTRS, xattr)),
        (0x105, (b"", Datatype::RAW), (b"", Datatype::RAW)),
    ] {
        let item = item(stored.0, stored.1, Some(Deletion::Explicit));
        let content = content(&item, &settings(flags, true));
        assert_eq!((&*content.value, content.datatype), expected, "{flags:#x}");
    }
}

#[test]
fn compression_can_be_asked_for() {
    let body = br#"{"a":1}"#.repeat(20);
    let mut settings = settings(0x01, true);
    settings.compresses_values = true;
    let item = item(&body, Datatype::JSON, None);
    let content = content(&item, &settings);
    assert_eq!(content.datatype, Datatype::JSON.with(Datatype::SNAPPY));
    assert_eq!(compression::inflate(&content.value).unwrap(), body);
}

#[test]
fn deletions_have_the_form_that_was_negotiated() {
    let expired = item(b"", Datatype::RAW, Some(Deletion::Expired));
    let explicit = item(b"", Datatype::RAW, Some(Deletion::Explicit));
    for (flags, has_expirations, item, is_expiration, form) in [
        (0x01, false, &expired, false, DeletionForm::WithoutTime),
        (0x21, false, &expired, false, DeletionForm::WithTime(77)),
        (0x01, true, &expired, true, DeletionForm::WithTime(77)),
        (0x01, true, &explicit, false, DeletionForm::WithTime(77)),
        (0x21, true, &expired, true, DeletionForm::WithTime(77)),
        (0x21, true, &explicit, false, DeletionForm::WithTime(77)),
    ] {
        let mut settings = settings(flags, false);
        settings.has_expirations = has_expirations;
        let content = content(item, &settings);
        match message(item, &content, false, &settings) {
            Message::Expiration(deletion) => assert!(is_expiration && deletion.form == form),
            Message::Deletion(deletion) => assert!(!is_expiration && deletion.form == form),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_steps_of_a_durable_write_are_messages_of_their_own() {
    let key = KeyBuf::in_default_collection(b"key").unwrap();
    let step = |operation| {
        let builder = ItemBuilder::new(key.as_key(), ItemMeta::default(), b"v");
        builder.with_operation(operation).finish(Cas(1), Seqno(9), RevSeqno(3))
    };
    let commit = step(Operation::Commit { prepare: Seqno(8) });
    let mut settings = settings(0x01, false);
    for (has_sync_writes, is_from_disk, is_commit) in
        [(false, false, false), (true, true, false), (true, false, true)]
    {
        settings.has_sync_writes = has_sync_writes;
        let content = content(&commit, &settings);
        let message = message(&commit, &content, is_from_disk, &settings);
        let expected = Resolution { key: b"key", prepare: Seqno(8), seqno: Seqno(9) };
        match message {
            Message::Commit(resolution) => assert!(is_commit && resolution == expected),
            Message::Mutation(document) => assert!(!is_commit && document.value == b"v"),
            other => panic!("{other:?}"),
        }
    }
}
