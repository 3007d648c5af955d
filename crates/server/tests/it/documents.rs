//! Commands on documents beyond the plain ones: expiry, locks, old clients, where a document is.

use std::collections::BTreeMap;

use bucket::{BucketConfig, Persistence};

use crate::support::{Client, Port, RawFrame, Reply, frame, get, set};

const XERROR: u16 = 0x07;
const JSON: u16 = 0x0b;
const KEY_ENOENT: u16 = 1;
const KEY_EEXISTS: u16 = 2;
const EINVAL: u16 = 4;
const NOT_MY_VBUCKET: u16 = 7;
const LOCKED: u16 = 9;
const NOT_LOCKED: u16 = 0x0e;
const NOT_SUPPORTED: u16 = 0x83;
const ETMPFAIL: u16 = 0x86;

/// Far in the future, absolute, in seconds.
const EXPIRY: u32 = 4_000_000_000;

fn touch(key: &[u8], expiry: u32) -> RawFrame {
    frame(0x1c).key(key).extras(&expiry.to_be_bytes())
}

fn get_and_touch(key: &[u8], expiry: u32) -> RawFrame {
    frame(0x1d).key(key).extras(&expiry.to_be_bytes())
}

fn set_with_expiry(key: &[u8], expiry: u32) -> RawFrame {
    let extras = [&[0; 4][..], &expiry.to_be_bytes()].concat();
    frame(0x01).key(key).extras(&extras).value(b"value")
}

fn expiry_of(client: &mut Client, key: &[u8]) -> u32 {
    let meta = client.ask(frame(0xa0).key(key));
    assert_eq!(meta.status, 0);
    u32::from_be_bytes(meta.extras[8..12].try_into().unwrap())
}

#[test]
fn touch_changes_the_expiry_and_the_cas_and_nothing_else() {
    let port = Port::open();
    let mut client = port.client(&[XERROR]);
    let stored = client.ask(set(b"k", b"value"));
    let touched = client.ask(touch(b"k", EXPIRY));
    assert_eq!((touched.status, touched.value.len(), touched.extras.len()), (0, 0, 0));
    assert!(touched.cas > stored.cas);
    assert_eq!(expiry_of(&mut client, b"k"), EXPIRY);
    let found = client.ask(get(b"k"));
    assert_eq!((found.value.as_slice(), found.cas), (&b"value"[..], touched.cas));
    assert_eq!(client.ask(touch(b"k", EXPIRY)).cas, touched.cas, "nothing changes, so no write");
    assert_eq!(client.ask(touch(b"k", 0)).status, 0);
    assert_eq!(expiry_of(&mut client, b"k"), 0);
    assert_eq!(client.ask(touch(b"absent", EXPIRY)).status, KEY_ENOENT);
    assert_eq!(client.ask(frame(0x1c).key(b"k")).status, 4, "the expiry is missing");
}

#[test]
fn get_and_touch_answers_with_the_document() {
    let port = Port::open();
    let mut client = port.client(&[XERROR]);
    let stored = frame(0x01).extras(&[0xca, 0xfe, 0, 1, 0, 0, 0, 0]).key(b"k").value(b"value");
    client.ask(stored);
    let found = client.ask(get_and_touch(b"k", EXPIRY));
    assert_eq!((found.status, found.value.as_slice()), (0, &b"value"[..]));
    assert_eq!(found.extras, [0xca, 0xfe, 0, 1]);
    assert_eq!(found.cas, client.ask(get(b"k")).cas);
    assert_eq!(expiry_of(&mut client, b"k"), EXPIRY);
    assert_eq!(client.ask(get_and_touch(b"absent", EXPIRY)).status, KEY_ENOENT);
    assert_eq!(port.counter("cmd_touch"), 2);
}

#[test]
fn quiet_reads_are_silent_about_what_is_not_there() {
    let port = Port::open();
    let mut client = port.client(&[XERROR]);
    client.ask(set(b"k", b"value"));
    let gatq = |key: &[u8]| frame(0x1e).key(key).extras(&EXPIRY.to_be_bytes());
    let getq_meta = |key: &[u8]| frame(0xa1).key(key);
    let requests = [
        gatq(b"absent").opaque(1),
        gatq(b"k").opaque(2),
        getq_meta(b"absent").opaque(3),
        getq_meta(b"k").opaque(4),
        frame(0x0a).opaque(5),
    ];
    client.send(&requests.iter().flat_map(RawFrame::bytes).collect::<Vec<_>>());
    let replies: Vec<Reply> = (0..3).map(|_| client.receive()).collect();
    let opaques: Vec<u32> = replies.iter().map(|reply| reply.opaque).collect();
    assert_eq!(opaques, [2, 4, 5]);
    assert_eq!(replies[0].value, b"value");
    assert_eq!(replies[1].extras.len(), 20);
    assert_eq!(expiry_of(&mut client, b"k"), EXPIRY);
}

#[test]
fn a_store_keeps_the_expiry_only_when_asked_to() {
    let port = Port::open();
    let mut client = port.client(&[XERROR, 0x10, 0x14]);
    let preserve = |request: RawFrame| request.framing(&[0x50]);
    client.ask(set_with_expiry(b"k", EXPIRY));
    let counter_extras = [1_u64.to_be_bytes(), 0_u64.to_be_bytes()].concat();
    let counter_extras = [&counter_extras[..], &[0; 4]].concat();
    for (request, keeps) in [
        (preserve(set(b"k", b"1")), true),
        (preserve(frame(0x03).extras(&[0; 8]).key(b"k").value(b"2")), true),
        (preserve(frame(0x05).extras(&counter_extras).key(b"k")), true),
        (preserve(set_with_expiry(b"k", EXPIRY + 9)), true),
        (set(b"k", b"3"), false),
    ] {
        assert_eq!(client.ask(request.clone()).status, 0, "{request:?}");
        assert_eq!(expiry_of(&mut client, b"k"), if keeps { EXPIRY } else { 0 }, "{request:?}");
    }
    // A new document has no expiry to keep.
    assert_eq!(client.ask(preserve(set_with_expiry(b"new", EXPIRY))).status, 0);
    assert_eq!(expiry_of(&mut client, b"new"), EXPIRY);
    assert_eq!(client.ask(preserve(get(b"k"))).status, NOT_SUPPORTED, "a read has none to give");
}

#[test]
fn observe_tells_where_each_key_is() {
    let port = Port::open();
    let mut client = port.client(&[XERROR, 0x04]);
    let observed = |keys: &[&[u8]]| {
        let entry = |key: &&[u8]| [&[0, 0, 0, key.len() as u8][..], key].concat();
        frame(0x92).value(&keys.iter().flat_map(entry).collect::<Vec<_>>())
    };
    let stored = client.ask(set(b"k", b"value"));
    let persisted = frame(0xb7).extras(&stored.mutation_seqno().to_be_bytes());
    assert_eq!(client.ask(persisted).status, 0);
    let reply = client.ask(observed(&[b"k", b"absent"]));
    let expected = [
        &b"\0\0\0\x01k\x01"[..],
        &stored.cas.to_be_bytes(),
        b"\0\0\0\x06absent\x80",
        &0_u64.to_be_bytes(),
    ];
    assert_eq!((reply.status, reply.value), (0, expected.concat()));
    client.ask(frame(0x04).key(b"k"));
    let state = client.ask(observed(&[b"k"])).value[5];
    assert!([0x80, 0x81].contains(&state), "deleted, flushed or not: {state:#x}");
    for value in [&b"\0\0\0\x09k"[..], b"\0\0\0", b"\0\0\0\0"] {
        assert_eq!(client.ask(frame(0x92).value(value)).status, 4, "{value:x?}");
    }
    assert_eq!(client.ask(frame(0x92).value(b"\0\x09\0\x01k")).status, 7);
    assert_eq!(client.ask(observed(&[&b"k"[..]; 128])).status, 0);
    assert_eq!(client.ask(observed(&[&b"k"[..]; 129])).status, 3, "too many at a time");
}

#[test]
fn observe_tells_how_long_writes_take_to_be_durable() {
    let port = Port::open();
    let mut client = port.client(&[XERROR]);
    let asked = frame(0x92).value(b"\0\0\0\x01k");
    assert_eq!(client.ask(asked.clone()).cas, 0, "nothing has become durable");
    for took_us in [10_000, 30_000] {
        port.bucket.timings().storage_age.record(took_us);
    }
    assert_eq!(client.ask(asked).cas, 20 << 32, "milliseconds, on average; and none for replicas");
}

#[test]
fn old_clients_hear_of_locks_in_old_words() {
    let port = Port::open();
    for (features, locked, busy, not_locked) in
        [(&[XERROR][..], LOCKED, LOCKED, NOT_LOCKED), (&[], KEY_EEXISTS, ETMPFAIL, ETMPFAIL)]
    {
        let mut client = port.client(features);
        client.ask(set(b"k", b"7"));
        let cas = client.ask(frame(0x94).key(b"k")).cas;
        let counter = frame(0x05).key(b"k").extras(&[0; 20]);
        for write in [
            set(b"k", b"8"),
            set(b"k", b"8").cas(cas + 1),
            frame(0x04).key(b"k"),
            frame(0x0e).key(b"k").value(b"+"),
            counter,
            touch(b"k", EXPIRY),
        ] {
            assert_eq!(client.ask(write.clone()).status, locked, "{features:x?} {write:?}");
        }
        // An ADD of the document, and one of a field of a document that is to be made: flags 0x02.
        let add = frame(0x02).key(b"k").extras(&[0; 8]).value(b"8");
        let upsert = [&[0xc8, 0, 0, 1, 0, 0, 0, 1][..], b"a1"].concat();
        for add in [add, frame(0xd1).key(b"k").extras(&[2]).value(&upsert)] {
            assert_eq!(client.ask(add.clone()).status, KEY_EEXISTS, "{features:x?} {add:?}");
        }
        assert_eq!(client.ask(frame(0x94).key(b"k")).status, busy, "{features:x?}");
        let wrong = client.ask(frame(0x95).key(b"k").cas(cas + 1)).status;
        assert_eq!(wrong, busy, "{features:x?}");
        assert_eq!(client.ask(frame(0x95).key(b"k").cas(cas)).status, 0);
        assert_eq!(client.ask(frame(0x95).key(b"k").cas(cas)).status, not_locked);
    }
}

#[test]
fn a_lock_takes_no_duration_or_any_and_ends_by_itself() {
    let port = Port::open();
    let mut client = port.client(&[XERROR]);
    client.ask(set(b"k", b"value"));
    for seconds in [None, Some(0), Some(30), Some(31), Some(u32::MAX)] {
        let extras = seconds.map_or(vec![], |seconds: u32| seconds.to_be_bytes().to_vec());
        let locked = client.ask(frame(0x94).key(b"k").extras(&extras));
        assert_eq!((locked.status, locked.value.as_slice()), (0, &b"value"[..]), "{seconds:?}");
        assert_eq!(client.ask(set(b"k", b"refused")).status, LOCKED, "{seconds:?}");
        assert_eq!(client.ask(frame(0x95).key(b"k").cas(locked.cas)).status, 0, "{seconds:?}");
    }
    let locked = client.ask(frame(0x94).key(b"k").extras(&1_u32.to_be_bytes()));
    assert_eq!(locked.status, 0);
    while client.ask(set(b"k", b"let in")).status == LOCKED {
        std::thread::yield_now();
    }
    assert_eq!(client.ask(get(b"k")).value, b"let in");
    assert_eq!(client.ask(frame(0x94).key(b"absent")).status, KEY_ENOENT);
    assert_eq!(client.ask(frame(0x95).key(b"k")).status, 4, "no CAS, no lock");
}

#[test]
fn a_deletion_has_a_cas_for_all_but_classic_clients() {
    let port = Port::open();
    let (mut modern, mut classic) = (port.client(&[]), port.classic_client());
    modern.ask(set(b"a", b"value"));
    let stored = classic.ask(set(b"b", b"value"));
    assert_ne!(stored.cas, 0);
    let deleted = modern.ask(frame(0x04).key(b"a"));
    assert_eq!((deleted.status, deleted.cas > stored.cas), (0, true));
    let deleted = classic.ask(frame(0x04).key(b"b").cas(stored.cas));
    assert_eq!((deleted.status, deleted.cas), (0, 0));
    classic.ask(set(b"b", b"value"));
    let deleted = classic.ask(frame(0x04).key(b"b"));
    assert_eq!((deleted.status, deleted.cas), (0, 0));
}

#[test]
fn an_evicted_value_leaves_memory_and_comes_back() {
    let port = Port::open();
    let mut client = port.client(&[XERROR, 0x04]);
    let is_resident = |client: &mut Client| {
        let statistics = client.statistics("key k 0").unwrap();
        statistics.into_iter().find(|(name, _)| name == "key_is_resident").unwrap().1
    };
    let stored = client.ask(set(b"k", b"value"));
    let persisted = frame(0xb7).extras(&stored.mutation_seqno().to_be_bytes());
    assert_eq!(client.ask(persisted).status, 0);
    assert_eq!(is_resident(&mut client), "true");
    assert_eq!(client.ask(frame(0x93).key(b"k")).status, 0);
    assert_eq!(is_resident(&mut client), "false");
    let found = client.ask(get(b"k"));
    assert_eq!((found.value.as_slice(), found.cas), (&b"value"[..], stored.cas));
    assert_eq!(is_resident(&mut client), "true");
    assert_eq!(client.ask(frame(0x93).key(b"absent")).status, KEY_ENOENT);
}

#[test]
fn json_is_what_is_json_whatever_the_client_says() {
    let port = Port::open();
    let mut client = port.client(&[JSON]);
    for (value, claimed, datatype) in [
        (&b"{\"a\":[1,2]}"[..], 0, 1),
        (b"{\"a\":[1,2]}", 1, 1),
        (b"17", 0, 1),
        (b"{\"a\":", 1, 0),
        (b"\xff", 1, 0),
    ] {
        assert_eq!(client.ask(set(b"k", value).datatype(claimed)).status, 0);
        assert_eq!(client.ask(get(b"k")).datatype, datatype, "{value:?}");
        assert_eq!(port.client(&[]).ask(get(b"k")).datatype, 0, "not negotiated");
    }
}

#[test]
fn a_vbucket_is_compacted_before_the_answer() {
    // With a journal the file may not be there yet.
    let persistence = Persistence::Files;
    let port = Port::with_config(BucketConfig { persistence, ..BucketConfig::named("default") });
    let mut client = port.classic_client();
    let number = |client: &mut Client, name: &str| -> u64 {
        let statistics = client.statistics("compaction").unwrap();
        statistics.iter().find(|(known, _)| known == name).unwrap().1.parse().unwrap()
    };
    for value in [&b"old"[..], b"new"] {
        assert_eq!(client.ask(set(b"k", value)).status, 0);
        let seqno = 1_u64.to_be_bytes();
        assert_eq!(client.ask(frame(0xb7).extras(&seqno)).status, 0, "persisted");
    }
    let compact = || frame(0xb3).extras(&[0; 24]);
    assert_eq!(client.ask(compact()).status, 0);
    assert_eq!(number(&mut client, "ep_compaction_done"), 1);
    assert_eq!(number(&mut client, "ep_pending_compactions"), 0);
    assert_eq!(client.ask(get(b"k")).value, b"new");
    assert_eq!(client.ask(compact().vbucket(3)).status, 0, "there is no file");
    assert_eq!(client.ask(compact().vbucket(4)).status, NOT_MY_VBUCKET);
    assert_eq!(client.ask(frame(0xb3).extras(&[0; 23])).status, EINVAL);
    let parameters = [
        ("compaction_fragmentation_percent", "40", 0),
        ("compaction_fragmentation_percent", "101", EINVAL),
        ("compaction_min_file_size", "4096", 0),
        ("compaction_bytes_per_second", "fast", EINVAL),
        ("compaction_bytes_per_second", "1000000", 0),
        ("persistent_metadata_purge_age", "60", 0),
    ];
    for (name, value, status) in parameters {
        let request = frame(0x82).extras(&[0, 0, 0, 1]).key(name.as_bytes());
        assert_eq!(client.ask(request.value(value.as_bytes())).status, status, "{name} {value}");
    }
    assert_eq!(number(&mut client, "ep_compaction_fragmentation_percent"), 40);
    assert_eq!(number(&mut client, "ep_persistent_metadata_purge_age"), 60);
}

#[test]
fn flush_empties_the_bucket_where_it_is_enabled() {
    let port = Port::with_flush();
    let mut client = port.classic_client();
    for extras in [&[][..], &[0; 4]] {
        for vbucket in 0..4 {
            assert_eq!(client.ask(set(b"k", b"value").vbucket(vbucket)).status, 0);
        }
        assert_eq!(client.ask(frame(0x08).extras(extras)).status, 0);
        for vbucket in 0..4 {
            assert_eq!(client.ask(get(b"k").vbucket(vbucket)).status, KEY_ENOENT);
        }
    }
    assert_eq!(client.ask(frame(0x08).extras(&[0, 9])).status, 4, "no time");
    client.ask(set(b"k", b"value"));
    // Quiet, and nothing behind it overtakes it.
    client.send(&[frame(0x18).opaque(1).bytes(), get(b"k").opaque(2).bytes()].concat());
    let reply = client.receive();
    assert_eq!((reply.opaque, reply.status), (2, KEY_ENOENT));
    assert_eq!(client.ask(set(b"k", b"value")).status, 0);
}

#[test]
fn a_flush_that_has_begun_is_answered_although_it_is_forbidden_meanwhile() {
    let port = Port::with_flush();
    let (mut client, mut other) = (port.classic_client(), port.classic_client());
    for round in 0..60 {
        port.server.enable_flush("default", true);
        assert_eq!(client.ask(set(b"k", b"value")).status, 0);
        client.send(&frame(0x08).opaque(7).bytes());
        // A while, another one in each round.
        (0..round % 12).for_each(|_| drop(other.ask(get(b"other"))));
        port.server.enable_flush("default", false);
        let reply = client.receive();
        // One that comes too late is not supported any more.
        assert!([0, 0x83].contains(&reply.status) && reply.opaque == 7, "{:x}", reply.status);
    }
}

#[test]
fn flush_with_a_delay_empties_the_bucket_later_and_the_last_order_counts() {
    let port = Port::with_flush();
    let mut client = port.classic_client();
    let flush_after = |seconds: u32| frame(0x08).extras(&seconds.to_be_bytes());
    assert_eq!(client.ask(set(b"k", b"value")).status, 0);
    assert_eq!(client.ask(flush_after(1000)).status, 0);
    assert_eq!(client.ask(get(b"k")).value, b"value");
    assert_eq!(client.ask(flush_after(1)).status, 0);
    // What is written meanwhile goes, too.
    assert_eq!(client.ask(set(b"meanwhile", b"value")).status, 0);
    port.wait_for("it is empty", |_| client.ask(get(b"k")).status == KEY_ENOENT);
    assert_eq!(client.ask(get(b"meanwhile")).status, KEY_ENOENT);
    // Once: what comes behind it stays. A time in the past is now.
    assert_eq!(client.ask(set(b"k", b"value")).status, 0);
    assert_eq!(client.ask(get(b"k")).value, b"value");
    assert_eq!(client.ask(flush_after(1_000_000_000)).status, 0);
    assert_eq!(client.ask(get(b"k")).status, KEY_ENOENT);
}

#[test]
fn flush_without_a_delay_takes_the_place_of_one_that_waits() {
    let port = Port::with_flush();
    let mut client = port.classic_client();
    assert_eq!(client.ask(frame(0x08).extras(&1_u32.to_be_bytes())).status, 0);
    assert_eq!(client.ask(frame(0x08)).status, 0);
    assert_eq!(client.ask(set(b"k", b"value")).status, 0);
    let mut clock_ns = || -> u64 {
        let clocks: BTreeMap<_, _> = client.statistics("clocks").unwrap().into_iter().collect();
        clocks["clock.monotonic_ns"].parse().unwrap()
    };
    let began_ns = clock_ns();
    port.wait_for("the first order's time is over", |_| clock_ns() > began_ns + 2_000_000_000);
    assert_eq!(client.ask(get(b"k")).value, b"value");
}

#[test]
fn classic_clients_read_the_words_that_memcached_uses_and_are_counted_as_there() {
    let port = Port::open();
    let mut client = port.classic_client();
    let stored = client.ask(set(b"text", b"value"));
    let increment =
        |key: &[u8]| frame(0x05).extras(&[[0; 16].as_slice(), &[0xff; 4]].concat()).key(key);
    for (request, status, text) in [
        (get(b"absent"), 1, "Not found"),
        (frame(0x04).key(b"absent"), 1, "Not found"),
        (increment(b"absent"), 1, "Not found"),
        (frame(0x02).extras(&[0; 8]).key(b"text").value(b"again"), 2, "Data exists for key."),
        (set(b"text", b"other").cas(stored.cas + 1), 2, "Data exists for key."),
        (set(b"absent", b"other").cas(1), 1, "Not found"),
        (set(b"huge", &vec![0; 20 * 1024 * 1024 + 1]), 3, "Too large."),
        (frame(0x01).key(b"no extras"), 4, "Invalid arguments"),
        (frame(0x0e).key(b"absent").value(b"more"), 5, "Not stored."),
        (increment(b"text"), 6, "Non-numeric server-side value for incr or decr"),
        (frame(0xe8), 0x81, "Unknown command"),
    ] {
        let reply = client.ask(request);
        assert_eq!((reply.status, reply.value.as_slice()), (status, text.as_bytes()), "{text}");
    }
    assert_eq!(client.ask(set(b"text", b"other").cas(stored.cas)).status, 0);
    assert_eq!(client.ask(frame(0x04).key(b"text")).status, 0);
    let counted: BTreeMap<_, _> = client.statistics("").unwrap().into_iter().collect();
    for (name, number) in [
        ("delete_hits", "1"),
        ("delete_misses", "1"),
        ("incr_misses", "1"),
        ("cas_hits", "1"),
        ("cas_misses", "1"),
        ("cas_badval", "1"),
        ("get_misses", "1"),
        ("store_too_large", "1"),
        ("store_no_memory", "0"),
        ("accepting_conns", "1"),
        ("pointer_size", "64"),
    ] {
        assert_eq!(counted[name], number, "{name}");
    }
}
