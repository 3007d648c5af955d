//! Versions that came about elsewhere, in a bucket with files.

use bucket::{
    BucketConfig, ConflictResolution, EvictionPolicy, ForeignKind, ForeignVersion, Incoming,
    OpenError, Refused,
};
use document::compression::deflate;
use document::{Cas, Datatype, Deletion, Key, RevSeqno};
use vbucket::Mutation;

use crate::support::{Machine, No, Unanswered, VBID, Waits, answered, config, key};

const KEEPS: ForeignKind = ForeignKind::Delete(Deletion::Explicit);

fn version<'a>(kind: ForeignKind, key: Key<'a>, value: &'a [u8], cas: u64) -> ForeignVersion<'a> {
    ForeignVersion {
        kind,
        vbid: VBID,
        key,
        flags: [1, 2, 3, 4],
        expiry: 0,
        cas: Cas(cas),
        revision: RevSeqno(cas),
        value: Incoming::plain(value),
        has_xattrs: false,
        replaces: Cas::ANY,
        always_wins: false,
        renames: false,
        placeholders: None,
    }
}

fn xattrs(entries: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut section = Vec::new();
    for (key, value) in entries {
        let pair = [key.as_bytes(), b"\0", value.as_bytes(), b"\0"].concat();
        section.extend(u32::try_from(pair.len()).unwrap().to_be_bytes());
        section.extend(pair);
    }
    [&u32::try_from(section.len()).unwrap().to_be_bytes()[..], &section, body].concat()
}

/// Stores a version, after what has to be read from the file.
fn bring(machine: &mut Machine, version: ForeignVersion<'_>) -> Result<Mutation, Unanswered> {
    let mut result = answered(machine.bucket.store_foreign(&mut machine.session, version));
    if result == Err(Waits) {
        machine.run();
        result = answered(machine.bucket.store_foreign(&mut machine.session, version));
    }
    result
}

/// Value, datatype and time of what is there, tombstones included.
fn seen(machine: &mut Machine) -> (Vec<u8>, Datatype, u32) {
    let mut seen = None;
    let name = key("k");
    for _ in 0..2 {
        let found = machine.bucket.get_metadata(&mut machine.session, VBID, name.as_key());
        if let Ok(found) = answered(found) {
            let item = found.item;
            seen = Some((item.value().to_vec(), item.datatype(), item.expiry()));
            break;
        }
        machine.run();
    }
    seen.unwrap()
}

/// What is brought, whether with xattrs, and what is kept of it.
type Brought<'a> = (ForeignKind, &'a [u8], bool, (&'a [u8], Datatype));

#[test]
fn values_are_kept_with_their_xattrs_and_tombstones_without_a_body() {
    let name = key("k");
    let both = xattrs(&[("_s", "{\"a\":1}"), ("u", "true")], b"{\"body\":1}");
    let section = &both[..both.len() - b"{\"body\":1}".len()];
    let none = xattrs(&[], b"[1]");
    let json = Datatype::JSON;
    let cases: [Brought<'_>; 8] = [
        (ForeignKind::Set, b"[1]", false, (b"[1]", json)),
        (ForeignKind::Set, &both, true, (&both, json.with(Datatype::XATTR))),
        (ForeignKind::Set, &none, true, (b"[1]", json)),
        (ForeignKind::Set, b"", false, (b"", Datatype::RAW)),
        (KEEPS, &both, true, (section, Datatype::XATTR)),
        (KEEPS, b"body", false, (b"", Datatype::RAW)),
        (KEEPS, b"", false, (b"", Datatype::RAW)),
        (KEEPS, b"", true, (b"", Datatype::RAW)),
    ];
    for is_compressed in [false, true] {
        let mut machine = Machine::new();
        for (number, (kind, value, has_xattrs, expected)) in (1..).zip(cases) {
            if is_compressed && has_xattrs && value.is_empty() {
                continue;
            }
            let packed = deflate(value);
            let sent = if is_compressed { &packed } else { value };
            let value = Incoming { body: sent, is_compressed };
            let asked = version(kind, name.as_key(), sent, number);
            bring(&mut machine, ForeignVersion { value, has_xattrs, ..asked }).unwrap();
            let (value, datatype, time) = seen(&mut machine);
            assert_eq!((&value[..], datatype), expected, "{number} {is_compressed}");
            assert_eq!(time > 0, kind == KEEPS, "{number}: a tombstone knows when it was made");
        }
    }
}

#[test]
fn values_that_cannot_be_read_are_refused() {
    let name = key("k");
    let mut machine = Machine::new();
    let bad = xattrs(&[("_s", "{\"")], b"");
    for kind in [ForeignKind::Set, ForeignKind::Add, KEEPS] {
        let asked = version(kind, name.as_key(), &bad, 1);
        let result = bring(&mut machine, ForeignVersion { has_xattrs: true, ..asked });
        assert_eq!(result, Err(No(Refused::BadXattrs)), "{kind:?}");
        let value = Incoming { body: b"\xff\xff\xff\xff no snappy", is_compressed: true };
        let result = bring(&mut machine, ForeignVersion { value, ..asked });
        assert_eq!(result, Err(No(Refused::BadCompression)), "{kind:?}");
    }
    let large = vec![b'x'; (20 << 20) + 1];
    let result = bring(&mut machine, version(ForeignKind::Set, name.as_key(), &large, 1));
    assert_eq!(result, Err(No(Refused::TooLarge)));
    let value = format!("\"{}\"", "x".repeat(1 << 20));
    let system = xattrs(&[("_s", &value)], b"");
    let asked = version(KEEPS, name.as_key(), &system, 1);
    let result = bring(&mut machine, ForeignVersion { has_xattrs: true, ..asked });
    assert_eq!(
        result,
        Err(No(Refused::BadXattrs)),
        "attributes of the system have a room of 1 MiB"
    );
    let value = format!("\"{}\"", "x".repeat(20 << 20));
    let of_users = xattrs(&[("u", &value)], b"");
    let asked = version(KEEPS, name.as_key(), &of_users, 1);
    let result = bring(&mut machine, ForeignVersion { has_xattrs: true, ..asked });
    assert_eq!(result, Err(No(Refused::TooLarge)), "those of users share theirs with the body");
}

#[test]
fn what_is_in_the_file_alone_takes_part_after_a_start_too() {
    for policy in [EvictionPolicy::ValueOnly, EvictionPolicy::Full] {
        for is_deletion in [false, true] {
            let mut wanted = config();
            wanted.eviction.policy = policy;
            let mut machine = Machine::with(wanted);
            let name = key("k");
            let kind = if is_deletion { KEEPS } else { ForeignKind::Set };
            bring(&mut machine, version(kind, name.as_key(), b"", 50)).unwrap();
            machine.run();
            let mut machine = machine.stop_and_start();
            machine.run();
            if !is_deletion {
                machine.evict(VBID, "k").unwrap();
            }
            let case = format!("{policy:?} {is_deletion}");
            for cas in [49, 50] {
                let asked = version(ForeignKind::Set, name.as_key(), b"old", cas);
                assert_eq!(bring(&mut machine, asked), Err(No(Refused::NotNewer)), "{case}");
            }
            let newer = version(ForeignKind::Set, name.as_key(), b"new", 51);
            assert_eq!(bring(&mut machine, newer).unwrap().cas, Cas(51), "{case}");
            assert_eq!(machine.get(VBID, "k").unwrap(), b"new");
        }
    }
}

#[test]
fn the_resolution_is_decided_when_the_bucket_is_made() {
    let wanted = Some(ConflictResolution::Lww);
    let mut machine = Machine::with(BucketConfig { conflict_resolution: wanted, ..config() });
    machine.config.conflict_resolution = None;
    let mut machine = machine.stop_and_start();
    assert_eq!(machine.bucket.conflict_resolution(), ConflictResolution::Lww);
    machine.config.conflict_resolution = Some(ConflictResolution::Seqno);
    machine.bucket.shut_down().unwrap();
    match machine.try_restart() {
        Err(OpenError::BadDescription { what, .. }) => assert!(what.contains("`lww`"), "{what}"),
        other => panic!("{:?}", other.err()),
    }
    assert_eq!(Machine::new().bucket.conflict_resolution(), ConflictResolution::Seqno);
}
