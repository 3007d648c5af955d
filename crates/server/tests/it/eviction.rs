//! Documents that have left memory, as clients see them; and memory that is changed meanwhile.

use std::collections::BTreeMap;

use bucket::{BucketConfig, EvictionConfig, EvictionPolicy};

use crate::support::{Client, Port, bucket_config, frame, get, set};

const EINVAL: u16 = 0x04;
const MIB: u64 = 1 << 20;

fn port(policy: EvictionPolicy) -> Port {
    let eviction = EvictionConfig { policy, ..EvictionConfig::default() };
    Port::with_config(BucketConfig { eviction, ..bucket_config() })
}

fn statistics(client: &mut Client, group: &str) -> BTreeMap<String, String> {
    client.statistics(group).unwrap().into_iter().collect()
}

/// Stores a document and has it leave memory.
fn evict(client: &mut Client, key: &[u8], value: &[u8]) {
    let stored = client.ask(set(key, value));
    assert_eq!(stored.status, 0);
    let seqno = stored.mutation_seqno().to_be_bytes();
    assert_eq!(client.ask(frame(0xb7).extras(&seqno)).status, 0);
    assert_eq!(client.ask(frame(0x93).key(key)).status, 0);
}

/// The one attribute of `k`.
fn attribute(client: &mut Client) -> Vec<u8> {
    client.ask(frame(0xc5).key(b"k").extras(&[0, 1, 4]).value(b"a")).value
}

#[test]
fn stores_keep_the_attributes_of_documents_that_have_left_memory() {
    for policy in [EvictionPolicy::ValueOnly, EvictionPolicy::Full] {
        let port = port(policy);
        let mut client = port.client(&[0x04, 0x06, 0x07]);
        evict(&mut client, b"k", b"v");
        let added = frame(0xc8).key(b"k").extras(&[0, 1, 4]).value(b"a7");
        assert_eq!(client.ask(added).status, 0, "{policy:?}");
        for size in [10, 40_000, 1_000_000] {
            // Large values go straight to their place and have no frame to be executed again.
            evict(&mut client, b"k", b"v");
            let value = vec![b'n'; size];
            assert_eq!(client.ask(set(b"k", &value)).status, 0, "{policy:?} {size}");
            assert_eq!(client.ask(get(b"k")).value, value, "{policy:?} {size}");
            assert_eq!(attribute(&mut client), b"7", "{policy:?} {size}");
        }
        evict(&mut client, b"k", b"v");
        assert_eq!(client.ask(frame(0x0e).key(b"k").value(b"w")).status, 0);
        assert_eq!(client.ask(get(b"k")).value, b"vw");
        evict(&mut client, b"k", b"v");
        assert_eq!(attribute(&mut client), b"7", "{policy:?}");
    }
}

#[test]
fn reads_and_writes_of_evicted_documents_wait_and_are_answered() {
    for policy in [EvictionPolicy::ValueOnly, EvictionPolicy::Full] {
        let port = port(policy);
        let mut client = port.client(&[0x04, 0x07]);
        // Large values go straight to their place and have no frame to be executed again.
        for size in [10, 40_000, 1_000_000] {
            let (old, new) = (vec![b'o'; size], vec![b'n'; size]);
            evict(&mut client, b"k", &old);
            assert_eq!(client.ask(get(b"k")).value, old, "{policy:?} {size}");
            evict(&mut client, b"k", &old);
            assert_eq!(client.ask(set(b"k", &new)).status, 0, "{policy:?} {size}");
            assert_eq!(client.ask(get(b"k")).value, new, "{policy:?} {size}");
        }
        evict(&mut client, b"k", b"v");
        let metadata = client.ask(frame(0xa0).key(b"k"));
        assert_eq!((metadata.status, &metadata.extras[..4]), (0, &[0; 4][..]));
        let deleted = client.ask(frame(0x04).key(b"k"));
        let seqno = deleted.mutation_seqno().to_be_bytes();
        assert_eq!(client.ask(frame(0xb7).extras(&seqno)).status, 0);
        let metadata = client.ask(frame(0xa0).key(b"k"));
        assert_eq!((metadata.status, metadata.cas), (0, deleted.cas), "{policy:?}");
        assert_eq!(metadata.extras[..4], [0, 0, 0, 1], "a tombstone from the file");
        let all = statistics(&mut client, "");
        assert_eq!(all["curr_items"], "0", "{policy:?}");
        assert_ne!(all["ep_bg_meta_fetched"], "0");
        assert_ne!(all["ep_num_value_ejects"], "0");
        let name = statistics(&mut client, "config")["ep_item_eviction_policy"].clone();
        assert_eq!(name, policy.name());
    }
}

#[test]
fn a_key_that_is_on_disk_alone_has_statistics_and_its_waiter_is_nobody_elses() {
    let port = port(EvictionPolicy::Full);
    let mut client = port.client(&[0x04, 0x07]);
    let stored = client.ask(set(b"gone", b"v"));
    let deleted = client.ask(frame(0x04).key(b"gone"));
    assert!(deleted.mutation_seqno() > stored.mutation_seqno());
    for _ in 0..20 {
        evict(&mut client, b"k", b"value");
        let key = statistics(&mut client, "key k 0");
        assert_eq!((&*key["key_vb_state"], &*key["key_is_dirty"]), ("active", "false"));
        // What waits next is executed once, with its own value.
        evict(&mut client, b"k", b"value");
        assert_eq!(client.ask(frame(0x0e).key(b"k").value(b"s")).status, 0);
        assert_eq!(client.ask(get(b"k")).value, b"values");
    }
    assert_eq!(client.statistics("key gone 0").unwrap_err().status, 1, "a tombstone is no key");
    assert_eq!(client.statistics("key never 0").unwrap_err().status, 1);
    // A replica says that it is one.
    let seqno = client.ask(set(b"r", b"v")).mutation_seqno().to_be_bytes();
    assert_eq!(client.ask(frame(0xb7).extras(&seqno)).status, 0);
    assert_eq!(client.ask(frame(0x3d).extras(&[2])).status, 0);
    assert_eq!(statistics(&mut client, "key r 0")["key_vb_state"], "replica");
}

#[test]
fn quota_and_watermarks_are_set_while_the_bucket_serves() {
    let port = port(EvictionPolicy::ValueOnly);
    let mut client = port.client(&[0x07]);
    let mut set_parameter = |name: &str, value: &str| {
        let request = frame(0x82).extras(&[0, 0, 0, 1]).key(name.as_bytes());
        client.ask(request.value(value.as_bytes())).status
    };
    assert_eq!(set_parameter("max_size", &(100 * MIB).to_string()), 0);
    assert_eq!(set_parameter("mem_low_wat_percent", "0.5"), 0);
    assert_eq!(set_parameter("mem_high_wat_percent", "0.6"), 0);
    for (name, value) in [
        ("max_size", "1"),
        ("max_size", "much"),
        ("mem_low_wat_percent", "0.7"),
        ("mem_high_wat_percent", "-1"),
    ] {
        assert_eq!(set_parameter(name, value), EINVAL, "{name} {value}");
    }
    let all = statistics(&mut client, "");
    assert_eq!(all["ep_max_size"], (100 * MIB).to_string());
    assert_eq!(all["ep_mem_low_wat"], (50 * MIB).to_string());
    assert_eq!(all["ep_mem_high_wat"], (60 * MIB).to_string());
    assert_eq!(all["ep_mutation_mem_limit"], (93 * MIB).to_string());
}

#[test]
fn a_request_counts_once_however_often_it_is_executed() {
    for policy in [EvictionPolicy::ValueOnly, EvictionPolicy::Full] {
        let port = port(policy);
        let mut client = port.client(&[0x04, 0x07]);
        let number = [1_u64.to_be_bytes(), 1_u64.to_be_bytes()].concat();
        let requests = [
            (frame(0x1c).key(b"k").extras(&[0; 4]), "cmd_touch"),
            (frame(0x0e).key(b"k").value(b"1"), "cmd_set"),
            (frame(0x05).key(b"k").extras(&[&number[..], &[0; 4]].concat()), "cmd_arithmetic"),
            (frame(0x04).key(b"k"), "cmd_delete"),
        ];
        for (request, counter) in requests {
            evict(&mut client, b"k", b"1");
            let read = || [port.counter(counter), port.counter("cmd_total")];
            let ([own, all], parked) = (read(), port.counter("parked_requests"));
            assert_eq!(client.ask(request).status, 0, "{policy:?} {counter}");
            assert_eq!(read(), [own + 1, all + 1], "{policy:?} {counter}");
            let has_waited = port.counter("parked_requests") > parked;
            assert!(has_waited || policy == EvictionPolicy::ValueOnly, "{counter} has waited");
        }
    }
}

#[test]
fn an_observe_of_more_deleted_documents_than_are_remembered_is_answered() {
    const SUCCESS_OR_LATER: [u16; 2] = [0, 0x86];
    let port = port(EvictionPolicy::Full);
    let mut client = port.client(&[0x04, 0x07]);
    let (mut asked, mut seqno) = (Vec::new(), [0; 8]);
    for number in 0..128 {
        let key = format!("k{number:03}");
        evict(&mut client, key.as_bytes(), b"v");
        seqno = client.ask(frame(0x04).key(key.as_bytes())).mutation_seqno().to_be_bytes();
        asked.extend_from_slice(&[0, 0, 0, 4]);
        asked.extend_from_slice(key.as_bytes());
    }
    assert_eq!(client.ask(frame(0xb7).extras(&seqno)).status, 0);
    let observed = client.ask(frame(0x92).value(&asked));
    assert!(SUCCESS_OR_LATER.contains(&observed.status), "{:#x}", observed.status);
    assert_eq!(client.ask(get(b"k000")).status, 1, "the connection goes on");
}
