//! The fields of requests.

use super::*;
use crate::client::Request;
use crate::frame::Parsed;
use crate::opcode::Opcode;

fn with_frame<T>(key: &[u8], value: &[u8], test: impl Fn(&Frame<'_>) -> T) -> T {
    let mut bytes = Vec::new();
    Request { key, value, ..Request::new(Opcode::Stat) }.encode(&mut bytes);
    match Frame::parse(&bytes, 1 << 20) {
        Parsed::Complete { frame, .. } => test(&frame),
        other => panic!("{other:?}"),
    }
}

#[test]
fn fields_stand_where_the_specification_says() {
    let store = StoreExtras { flags: *b"\x02\0\0\x01", expiry: 60 };
    assert_eq!(StoreExtras::parse(b"\x02\0\0\x01\0\0\0\x3c"), Some(store));
    let counter = [&7_u64.to_be_bytes()[..], &9_u64.to_be_bytes(), b"\0\0\0\x05"].concat();
    let expected = CounterExtras { delta: 7, initial: 9, create_expiry: Some(5) };
    assert_eq!(CounterExtras::parse(&counter), Some(expected));
    let only_existing = [&counter[..16], b"\xff\xff\xff\xff"].concat();
    assert_eq!(CounterExtras::parse(&only_existing).unwrap().create_expiry, None);
    assert_eq!(touch_expiry(b"\0\0\x01\0"), Some(256));
    assert_eq!(lock_seconds(b""), Some(0));
    assert_eq!(lock_seconds(b"\0\0\0\x1e"), Some(30));
    assert_eq!(verbosity(b"\0\0\0\x09"), Some(2));
    assert_eq!(awaited_seqno(&77_u64.to_be_bytes()), Some(77));
    assert_eq!(observed_uuid(&77_u64.to_be_bytes()), Some(VbUuid(77)));
    assert_eq!(error_map_version(b"\0\x02"), Some(2));
    let version = MapVersion { epoch: -1, revision: 3 };
    let bytes = [(-1_i64).to_be_bytes(), 3_i64.to_be_bytes()].concat();
    assert_eq!(known_map(&bytes), Some(Some(version)));
    assert_eq!(known_map(b""), Some(None));
    assert!(version < MapVersion { epoch: 1, revision: 1 });
}

#[test]
fn a_parameter_is_text_in_a_group() {
    let parse = |extras: &[u8], key: &[u8]| {
        let mut bytes = Vec::new();
        let request = Request { extras, key, value: b"4", ..Request::new(Opcode::SetParam) };
        request.encode(&mut bytes);
        let Parsed::Complete { frame, .. } = Frame::parse(&bytes, 1 << 20) else { panic!() };
        Parameter::parse(&frame).map(|parameter| (parameter.group, parameter.value.to_owned()))
    };
    assert_eq!(parse(&[0, 0, 0, 1], b"num_reader_threads"), Some((1, "4".to_owned())));
    assert_eq!(parse(&[0, 0, 0, 1], b"\xff"), None);
    assert_eq!(parse(&[0, 0, 1], b"num_reader_threads"), None);
}

#[test]
fn a_compaction_says_what_is_to_go() {
    let parse = |extras: &[u8]| {
        let mut bytes = Vec::new();
        Request { extras, ..Request::new(Opcode::CompactDb) }.encode(&mut bytes);
        let Parsed::Complete { frame, .. } = Frame::parse(&bytes, 1 << 20) else { panic!() };
        CompactDb::parse(&frame)
    };
    let mut extras = [0; 24];
    extras[7] = 5;
    extras[15] = 6;
    extras[16] = 1;
    let expected = CompactDb { purge_before_seconds: 5, purge_before_seqno: 6, drop_deletes: true };
    assert_eq!(parse(&extras), Some(expected));
    assert_eq!(parse(&extras[..23]), None);
    assert_eq!(parse(&[0; 25]), None);
}

#[test]
fn sections_of_the_wrong_size_are_refused() {
    for size in 0..40 {
        let bytes = vec![0; size];
        assert_eq!(StoreExtras::parse(&bytes).is_some(), size == 8);
        assert_eq!(CounterExtras::parse(&bytes).is_some(), size == 20);
        assert_eq!(touch_expiry(&bytes).is_some(), size == 4);
        assert_eq!(lock_seconds(&bytes).is_some(), [0, 4].contains(&size));
        assert_eq!(get_meta_wants_datatype(&bytes).is_some(), [0, 1].contains(&size));
        assert_eq!(awaited_seqno(&bytes).is_some(), size == 8);
        assert_eq!(observed_uuid(&bytes).is_some(), size == 8);
        assert_eq!(known_map(&bytes).is_some(), [0, 16].contains(&size));
        assert_eq!(AllVbSeqnos::parse(&bytes).is_some(), [0, 4, 8].contains(&size));
        assert_eq!(error_map_version(&bytes).is_some(), size == 2);
    }
}

#[test]
fn get_meta_knows_three_versions() {
    let wants: Vec<_> = (0..5).map(|version| get_meta_wants_datatype(&[version])).collect();
    assert_eq!(wants, [Some(false), Some(false), Some(true), None, None]);
}

#[test]
fn seqnos_are_asked_for_by_state_and_collection() {
    let all = AllVbSeqnos { state: 1, collection: Some(8) };
    assert_eq!(AllVbSeqnos::parse(b"\0\0\0\x01\0\0\0\x08"), Some(all));
    assert_eq!(AllVbSeqnos::parse(b"\0\0\0\x05"), None);
}

#[test]
fn observe_lists_keys_until_one_is_cut_off() {
    let value = b"\0\x01\0\x02ab\0\x02\0\x00\0\x03\0\x05abc";
    let keys: Vec<_> = observed_keys(value).collect();
    assert_eq!(keys, [Some((1, &b"ab"[..])), Some((2, b"")), None]);
    assert_eq!(observed_keys(b"").count(), 0);
}

#[test]
fn buckets_have_names_of_few_letters() {
    assert_eq!(BucketSelection::parse(b"a-B_9.%"), Some(BucketSelection::Bucket("a-B_9.%")));
    assert_eq!(BucketSelection::parse(b"@no bucket@"), Some(BucketSelection::None));
    for name in [&b""[..], b"a b", b"a/b", b"\xff", &[b'a'; 101]] {
        assert_eq!(BucketSelection::parse(name), None);
    }
    assert!(is_bucket_name(&[b'a'; 100]));
}

#[test]
fn a_path_stands_in_the_value_or_in_the_key() {
    let path =
        |key, value| with_frame(key, value, |frame| collection_path(frame).map(str::to_owned));
    assert_eq!(path(b"", b"s.c").as_deref(), Some("s.c"));
    assert_eq!(path(b"s.c", b"").as_deref(), Some("s.c"));
    assert_eq!(path(b"s.c", b"s.c"), None);
    assert_eq!(path(b"", b"\xff"), None);
}

#[test]
fn stat_splits_group_and_argument() {
    let stat = |key| {
        with_frame(key, b"", |frame| {
            Stat::parse(frame).map(|stat| (stat.group.to_owned(), stat.argument.to_owned()))
        })
    };
    let pair = |group: &str, argument: &str| Some((group.to_owned(), argument.to_owned()));
    assert_eq!(stat(b""), pair("", ""));
    assert_eq!(stat(b"vbucket"), pair("vbucket", ""));
    assert_eq!(stat(b"key  a b 7"), pair("key", "a b 7"));
    assert_eq!(stat(b"\xff"), None);
}

#[test]
fn keys_mean_what_was_negotiated() {
    let collections = FeatureSet::NONE.with(Feature::Collections);
    let encoded = |key, features| {
        DocumentKey::parse(key, features).map(|key| key.as_key().encoded().to_vec())
    };
    assert_eq!(encoded(b"\x08hi", collections), Ok(b"\x08hi".to_vec()));
    assert_eq!(encoded(b"hi", FeatureSet::NONE), Ok(b"\x00hi".to_vec()));
    assert_eq!(encoded(b"\x01hi", collections), Err(KeyError::ReservedCollection));
}
