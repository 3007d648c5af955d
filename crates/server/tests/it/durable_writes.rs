//! Durable writes, as a client of one node sees them. With other nodes: acceptance/cluster.

use bucket::{BucketConfig, DurabilityConfig, DurabilityMinLevel, FullPolicy, Named};

use crate::support::{Client, Port, RawFrame, bucket_config, frame, get, set};

const FEATURES: [u16; 5] = [0x04, 0x07, 0x0b, 0x10, 0x11];
const KEY_ENOENT: u16 = 0x01;
const KEY_EEXISTS: u16 = 0x02;
const NOT_SUPPORTED: u16 = 0x83;
const ETMPFAIL: u16 = 0x86;
const INVALID_LEVEL: u16 = 0xa0;
const IMPOSSIBLE: u16 = 0xa1;
const IN_PROGRESS: u16 = 0xa2;
const AMBIGUOUS: u16 = 0xa3;

const ALONE: &str = r#"[["a"]]"#;
/// The other node will never say anything.
const WITH_REPLICA: &str = r#"[["a","b"]]"#;

/// The level alone: the server's timeout of 30 s counts.
fn durable(request: RawFrame, level: u8) -> RawFrame {
    request.framing(&[0x11, level])
}

/// Ambiguous after so many milliseconds.
fn durable_for(request: RawFrame, level: u8, timeout_ms: u16) -> RawFrame {
    let [high, low] = timeout_ms.to_be_bytes();
    request.framing(&[0x13, level, high, low])
}

fn delete(key: &[u8]) -> RawFrame {
    frame(0x04).key(key)
}

fn increment(key: &[u8]) -> RawFrame {
    let numbers = [1_u64.to_be_bytes(), 41_u64.to_be_bytes()].concat();
    frame(0x05).key(key).extras(&[&numbers[..], &[0; 4]].concat())
}

/// Waits until this many durable writes of vBucket 0 wait.
fn wait_for_prepares(client: &mut Client, count: &str) {
    let is_so = |(name, value): &(String, String)| {
        name == "vb_0:num_prepared_sync_writes" && value == count
    };
    while !client.statistics("vbucket-details 0").unwrap().iter().any(is_so) {}
}

/// Says who must hold durable writes of vBucket 0.
fn place(client: &mut Client, topology: &str) {
    let json = format!(r#"{{"topology":{topology}}}"#);
    let request = frame(0x3d).extras(&[1]).value(json.as_bytes()).datatype(1);
    assert_eq!(client.ask(request).status, 0, "{topology}");
}

#[test]
fn whether_a_durable_write_is_possible_depends_on_where_copies_are_placed() {
    let port = Port::open();
    let mut client = port.client(&FEATURES);
    client.ask(set(b"k", b"before"));
    let writes = || [set(b"k", b"after"), set(b"new", b"value"), delete(b"k"), increment(b"n")];
    for (topology, status) in [
        (None, ETMPFAIL),
        (Some(r#"[["a",null]]"#), IMPOSSIBLE),
        (Some(r#"[["a"],["a",null]]"#), IMPOSSIBLE),
        (Some(r#"[["a","b","c","d"]]"#), IMPOSSIBLE),
    ] {
        if let Some(topology) = topology {
            place(&mut client, topology);
        }
        for level in 1..=3 {
            for write in writes() {
                let reply = client.ask(durable(write, level));
                let text = String::from_utf8(reply.value).unwrap();
                assert_eq!(reply.status, status, "{topology:?}, level {level}: {text}");
                assert!(text.contains("context"), "{text}");
            }
        }
    }
    assert_eq!(client.ask(get(b"k")).value, b"before");
    assert_eq!(client.ask(get(b"new")).status, KEY_ENOENT);
}

#[test]
fn a_node_that_is_alone_commits_at_every_level() {
    let port = Port::open();
    let mut client = port.client(&FEATURES);
    place(&mut client, ALONE);
    for level in 1..=3 {
        let first = client.ask(durable(set(b"k", b"one"), level));
        assert_eq!(first.status, 0, "level {level}");
        let read = client.ask(get(b"k"));
        assert_eq!((read.value, read.cas), (b"one".to_vec(), first.cas), "level {level}");
        let large = vec![b'x'; 1 << 20];
        let second = client.ask(durable(set(b"k", &large), level).cas(first.cas));
        assert_eq!(second.status, 0, "level {level}");
        assert!(second.mutation_seqno() > first.mutation_seqno(), "the commit's seqno");
        assert_eq!(client.ask(get(b"k")).value, large);
        let stale = durable(set(b"k", b"stale"), level).cas(first.cas);
        assert_eq!(client.ask(stale).status, KEY_EEXISTS);
        for number in [41_u64, 42] {
            let counted = client.ask(durable(increment(b"n"), level));
            assert_eq!(counted.value, number.to_be_bytes(), "level {level}");
        }
        assert_eq!(client.ask(durable(frame(0x0e).key(b"n").value(b"0"), level)).status, 0);
        assert_eq!(client.ask(get(b"n")).value, b"420");
        for key in [b"k", b"n"] {
            assert_eq!(client.ask(durable(delete(key), level)).status, 0);
            assert_eq!(client.ask(get(key)).status, KEY_ENOENT);
        }
        assert_eq!(client.ask(durable(delete(b"k"), level)).status, KEY_ENOENT);
        let touch = frame(0x1c).key(b"k").extras(&[0; 4]);
        assert_eq!(client.ask(durable(touch, level)).status, NOT_SUPPORTED);
    }
}

#[test]
fn while_a_durable_write_waits_its_document_is_as_it_was_and_nobody_else_writes_it() {
    let port = Port::open();
    let [mut writer, mut other] = [port.client(&FEATURES), port.client(&FEATURES)];
    place(&mut writer, WITH_REPLICA);
    other.ask(set(b"k", b"before"));
    writer.send(&durable_for(set(b"k", b"after"), 1, 65_000).bytes());
    wait_for_prepares(&mut other, "1");
    assert_eq!(other.ask(get(b"k")).value, b"before");
    let locked = frame(0x94).key(b"k").extras(&[0, 0, 0, 9]);
    for write in [set(b"k", b"x"), durable(set(b"k", b"x"), 1), delete(b"k"), locked] {
        let reply = other.ask(write);
        assert_eq!(reply.status, IN_PROGRESS, "{}", String::from_utf8_lossy(&reply.value));
    }
    assert_eq!(other.ask(set(b"free", b"v")).status, 0);
    // The replica is given up: one node is enough again.
    place(&mut other, ALONE);
    assert_eq!(writer.receive().status, 0);
    assert_eq!(other.ask(get(b"k")).value, b"after");
}

#[test]
fn a_durable_write_whose_time_is_over_is_ambiguous_and_does_not_happen_here() {
    let port = Port::open();
    let mut client = port.client(&FEATURES);
    place(&mut client, WITH_REPLICA);
    client.ask(set(b"k", b"before"));
    for write in [set(b"k", b"after"), delete(b"k"), set(b"new", b"value")] {
        let reply = client.ask(durable_for(write, 3, 20));
        assert_eq!(reply.status, AMBIGUOUS, "{}", String::from_utf8_lossy(&reply.value));
    }
    assert_eq!(client.ask(get(b"k")).value, b"before");
    assert_eq!(client.ask(get(b"new")).status, KEY_ENOENT);
    assert_eq!(client.ask(set(b"k", b"later")).status, 0, "nothing is in its way");
    client.send(&durable_for(set(b"k", b"after"), 1, 65_000).bytes());
    let mut other = port.client(&FEATURES);
    wait_for_prepares(&mut other, "1");
    assert_eq!(other.ask(frame(0x3d).extras(&[4])).status, 0);
    assert_eq!(client.receive().status, AMBIGUOUS, "whoever comes after may have committed it");
}

#[test]
fn a_bucket_can_demand_that_every_write_is_durable() {
    let level_min = DurabilityMinLevel::by_name("majority").unwrap();
    let durability = DurabilityConfig { level_min, ..DurabilityConfig::default() };
    let port = Port::with_config(BucketConfig { durability, ..bucket_config() });
    let mut client = port.client(&FEATURES);
    assert_eq!(client.ask(set(b"k", b"v")).status, ETMPFAIL);
    place(&mut client, ALONE);
    assert_eq!(client.ask(set(b"k", b"v")).status, 0);
    let accepted = client.statistics("vbucket-details 0").unwrap();
    let count = accepted.iter().find(|(name, _)| name == "vb_0:sync_write_committed_count");
    assert_eq!(count.map(|(_, value)| value.as_str()), Some("1"));
}

#[test]
fn a_deletion_that_was_made_durable_has_no_cas_for_classic_clients_either() {
    let level_min = DurabilityMinLevel::by_name("majority").unwrap();
    let durability = DurabilityConfig { level_min, ..DurabilityConfig::default() };
    let port = Port::with_config(BucketConfig { durability, ..bucket_config() });
    let (mut modern, mut classic) = (port.client(&FEATURES), port.classic_client());
    place(&mut modern, ALONE);
    for (client, has_cas) in [(&mut modern, true), (&mut classic, false)] {
        let stored = client.ask(set(b"k", b"v"));
        let deleted = client.ask(frame(0x04).key(b"k"));
        assert_eq!((stored.status, deleted.status), (0, 0));
        assert_eq!((stored.cas != 0, deleted.cas != 0), (true, has_cas));
    }
}

#[test]
fn an_ephemeral_bucket_has_a_majority_in_memory_only() {
    let port = Port::ephemeral(FullPolicy::FailNewData, 64 << 20);
    let mut client = port.client(&FEATURES);
    place(&mut client, ALONE);
    for (level, status) in [(1, 0), (2, INVALID_LEVEL), (3, INVALID_LEVEL)] {
        assert_eq!(client.ask(durable(set(b"k", b"v"), level)).status, status, "level {level}");
    }
}

#[test]
fn an_emptied_bucket_takes_durable_writes_as_before() {
    let port = Port::with_flush();
    let mut client = port.client(&FEATURES);
    place(&mut client, ALONE);
    assert_eq!(client.ask(durable(set(b"k", b"v"), 1)).status, 0);
    assert_eq!(client.ask(frame(0x08)).status, 0);
    assert_eq!(client.ask(get(b"k")).status, KEY_ENOENT);
    assert_eq!(client.ask(durable(set(b"k", b"v"), 1)).status, 0);
}
