//! A data port with several buckets, which have nothing in common but the port.

use std::collections::BTreeMap;

use bucket::{BucketConfig, DurabilityConfig, EvictionConfig, EvictionPolicy};
use cluster::{PendingVbucket, Revision};
use server::ClusterView;

use crate::cluster_map::notification;
use crate::dcp::{COLLECTIONS, stream_with};
use crate::support::{Client, Port, bucket_config, frame, get, set};
use crate::text::TextClient;

const NAMES: [&str; 2] = ["default", "other"];
const MUTATION_SEQNO: u16 = 0x04;
const XERROR: u16 = 0x07;
const JSON: u16 = 0x0b;
const DUPLEX: u16 = 0x0c;
const MAP_CHANGES: u16 = 0x0d;
const UNORDERED_EXECUTION: u16 = 0x0e;
const ALT_REQUEST: u16 = 0x10;
const SYNC_REPLICATION: u16 = 0x11;
const KEY_ENOENT: u16 = 0x01;
const KEY_EEXISTS: u16 = 0x02;
const NOT_MY_VBUCKET: u16 = 0x07;
const NO_BUCKET: u16 = 0x08;
const EACCESS: u16 = 0x24;
const AMBIGUOUS: u16 = 0xa3;

/// Runs `test` with one front-end worker, and with several.
fn with_ports(test: impl Fn(&Port)) {
    for workers in [1, 4] {
        test(&Port::with_buckets(configs(), workers));
    }
}

/// The second bucket has twice as many vBuckets, and durable writes that give up at once.
fn configs() -> Vec<BucketConfig> {
    let timeout_default = std::time::Duration::from_millis(50);
    let durability = DurabilityConfig { timeout_default, ..bucket_config().durability };
    let eviction = EvictionConfig { policy: EvictionPolicy::Full, ..EvictionConfig::default() };
    let first = BucketConfig { eviction, ..bucket_config() };
    let other = BucketConfig { vbucket_count: 8, durability, ..first.clone() };
    vec![first, BucketConfig { name: NAMES[1].to_owned(), ..other }]
}

fn select(client: &mut Client, name: &str) -> u16 {
    client.ask(frame(0x89).key(name.as_bytes())).status
}

fn statistics(client: &mut Client, group: &str) -> BTreeMap<String, String> {
    client.statistics(group).unwrap().into_iter().collect()
}

#[test]
fn documents_and_versions_of_two_buckets_do_not_mix() {
    with_ports(|port| {
        let mut clients = NAMES.map(|name| port.client_of(name, &[XERROR]));
        let versions = [b"one", b"two"].map(|value| {
            let number = usize::from(value == b"two");
            clients[number].ask(set(b"k", value)).cas
        });
        assert_ne!(versions[0], versions[1]);
        assert_eq!(clients[0].ask(get(b"k")).value, b"one");
        assert_eq!(clients[1].ask(get(b"k")).value, b"two");
        let foreign = set(b"k", b"three").cas(versions[0]);
        assert_eq!(clients[1].ask(foreign).status, KEY_EEXISTS, "the version of another bucket");
        assert_eq!(clients[1].ask(frame(0x04).key(b"k")).status, 0);
        assert_eq!(clients[1].ask(get(b"k")).status, KEY_ENOENT);
        assert_eq!(clients[0].ask(get(b"k")).value, b"one");
        assert_eq!(clients[0].ask(set(b"v", b"").vbucket(7)).status, NOT_MY_VBUCKET);
        assert_eq!(clients[1].ask(set(b"v", b"").vbucket(7)).status, 0, "it has eight vBuckets");
    });
}

#[test]
fn a_connection_has_the_bucket_that_it_has_selected_last() {
    with_ports(|port| {
        let mut client = port.client(&[XERROR]);
        assert_eq!(client.ask(set(b"k", b"one")).status, 0);
        assert_eq!(select(&mut client, "other"), 0);
        assert_eq!(client.ask(get(b"k")).status, KEY_ENOENT);
        assert_eq!(client.ask(set(b"k", b"two")).status, 0);
        assert_eq!(select(&mut client, "third"), EACCESS);
        assert_eq!(client.ask(get(b"k")).value, b"two", "it stays where it was");
        assert_eq!(select(&mut client, "@no bucket@"), 0);
        for request in [get(b"k"), frame(0x10), frame(0x08), parameter(b"x", b"1")] {
            assert_eq!(client.ask(request).status, NO_BUCKET);
        }
        assert_eq!(select(&mut client, "default"), 0);
        assert_eq!(client.ask(get(b"k")).value, b"one");
        assert_eq!(client.ask(frame(0x87)).value, b"default other");
        let mut classic = port.connect();
        let password = frame(0x21).key(b"PLAIN").value(b"\0user\0password");
        assert_eq!(classic.ask(password).status, 0);
        assert_eq!(classic.ask(get(b"k")).value, b"one", "the first bucket is the default one");
    });
}

fn parameter(name: &[u8], value: &[u8]) -> crate::support::RawFrame {
    frame(0x82).extras(&[0, 0, 0, 1]).key(name).value(value)
}

#[test]
fn requests_that_wait_for_files_are_answered_in_every_bucket() {
    with_ports(|port| {
        let mut clients = NAMES.map(|name| port.client_of(name, &[MUTATION_SEQNO, XERROR]));
        for round in 0..20_u8 {
            for (client, name) in clients.iter_mut().zip(NAMES) {
                let value = [name.as_bytes(), &[round]].concat();
                let seqno = client.ask(set(b"k", &value)).mutation_seqno().to_be_bytes();
                assert_eq!(client.ask(frame(0xb7).extras(&seqno)).status, 0, "persisted");
                assert_eq!(client.ask(frame(0x93).key(b"k")).status, 0, "evicted");
            }
            // All wait for their files at a time.
            for client in &mut clients {
                client.send(&get(b"k").bytes());
            }
            for (client, name) in clients.iter_mut().zip(NAMES) {
                assert_eq!(client.receive().value, [name.as_bytes(), &[round]].concat());
            }
        }
    });
}

#[test]
fn durable_writes_take_the_timeout_of_their_own_bucket() {
    with_ports(|port| {
        let features = [MUTATION_SEQNO, XERROR, JSON, ALT_REQUEST, SYNC_REPLICATION];
        let mut clients = NAMES.map(|name| port.client_of(name, &features));
        for client in &mut clients {
            let json = br#"{"topology":[["a","b"]]}"#;
            let place = frame(0x3d).extras(&[1]).value(json).datatype(1);
            assert_eq!(client.ask(place).status, 0);
            client.send(&set(b"k", b"v").framing(&[0x11, 1]).bytes());
        }
        assert_eq!(clients[1].receive().status, AMBIGUOUS, "after 50 ms");
        // The other one takes 30 s, and goes on when the node is alone.
        let mut operator = port.client(&[JSON]);
        let json = br#"{"topology":[["a"]]}"#;
        let place = frame(0x3d).extras(&[1]).value(json).datatype(1);
        assert_eq!(operator.ask(place).status, 0);
        assert_eq!(clients[0].receive().status, 0);
    });
}

#[test]
fn each_bucket_has_a_configuration_of_its_own() {
    with_ports(|port| {
        let features = [XERROR, DUPLEX, MAP_CHANGES];
        let mut clients = NAMES.map(|name| port.client_of(name, &features));
        let mut nowhere = port.client(&features);
        assert_eq!(select(&mut nowhere, "@no bucket@"), 0);
        let maps = [&b"{\"rev\":1}"[..], b"{\"name\":\"other\",\"rev\":1}"];
        for (client, map) in clients.iter_mut().zip(maps) {
            assert_eq!(client.ask(frame(0xb5)).value, map);
            let wrong = client.ask(get(b"k").vbucket(99));
            assert_eq!((wrong.status, &*wrong.value), (NOT_MY_VBUCKET, map));
        }
        assert_eq!(nowhere.ask(frame(0xb5)).value, b"{\"global\":true}");
        port.server.publish(ClusterView {
            revision: Revision { epoch: 1, revision: 2 },
            global_config: "{\"global\":2}".to_owned(),
            bucket_configs: NAMES.map(|name| (name.to_owned(), format!("{name} 2"))).into(),
        });
        for (client, name) in clients.iter_mut().zip(NAMES) {
            let map = format!("{name} 2").into_bytes();
            assert_eq!(notification(client), (2, name.as_bytes().to_vec(), map.clone()));
            assert_eq!(client.ask(frame(0xb5)).value, map);
        }
        assert_eq!(notification(&mut nowhere), (2, vec![], b"{\"global\":2}".to_vec()));
        // Whoever selects another bucket knows nothing of its map yet.
        assert_eq!(select(&mut clients[0], "other"), 0);
        assert_eq!(clients[0].ask(frame(0xb5)).value, b"other 2");
    });
}

#[test]
fn statistics_are_those_of_the_selected_bucket() {
    with_ports(|port| {
        let mut clients = NAMES.map(|name| port.client_of(name, &[XERROR]));
        for number in 0..3_u8 {
            assert_eq!(clients[1].ask(set(&[b'k', number], b"v")).status, 0);
        }
        let left = PendingVbucket { vbid: 3, wanted: "active", reason: "why".to_owned() };
        port.server.show_pending("other", vec![left]);
        let mut of = |group: &str, name: &str| {
            [0, 1].map(|number: usize| statistics(&mut clients[number], group)[name].clone())
        };
        assert_eq!(of("", "curr_items"), ["0", "3"]);
        assert_eq!(of("config", "ep_couch_bucket"), NAMES);
        assert_eq!(of("config", "ep_max_vbuckets"), ["4", "8"]);
        assert_eq!(of("clustermap", "pending_vbuckets"), ["0", "1"]);
        let [first, second] = of("uuid", "uuid");
        assert!(first.len() == 32 && second.len() == 32);
        for (client, name) in clients.iter_mut().zip(NAMES) {
            let own = client.statistics("tasks").unwrap();
            assert!(own.iter().all(|(key, _)| key.ends_with(&format!(":{name}"))));
            let all = client.statistics("tasks-all").unwrap();
            let shows = |name| all.iter().any(|(key, _)| key.ends_with(&format!(":{name}")));
            assert!([NAMES[0], NAMES[1], "data port"].into_iter().all(shows), "{all:?}");
        }
        let set = clients[1].ask(parameter(b"compression_mode", b"active"));
        assert_eq!(set.status, 0);
        let mut of = |group: &str, name: &str| {
            [0, 1].map(|number: usize| statistics(&mut clients[number], group)[name].clone())
        };
        assert_eq!(of("config", "ep_compression_mode"), ["passive", "active"]);
    });
}

#[test]
fn streams_are_those_of_the_bucket_that_their_connection_has_selected() {
    with_ports(|port| {
        let mut consumer = stream_with(port.client_of("other", &[COLLECTIONS]), b"consumer");
        let mut clients = NAMES.map(|name| port.client_of(name, &[XERROR]));
        assert_eq!(clients[0].ask(set(b"hidden", b"v")).status, 0);
        assert_eq!(clients[1].ask(set(b"shown", b"v")).status, 0);
        let shown = loop {
            let message = consumer.receive();
            if message.opcode != 0x56 {
                break message;
            }
        };
        assert_eq!((shown.opcode, &*shown.key), (0x57, &b"\0shown"[..]));
        // One of the same name in another bucket is another one.
        let mut second = stream_with(port.client_of("default", &[COLLECTIONS]), b"consumer");
        let of = |client: &mut Client| statistics(client, "dcp")["ep_dcp_producer_count"].clone();
        assert_eq!([of(&mut clients[0]), of(&mut clients[1])], ["1", "1"]);
        for consumer in [&mut consumer, &mut second] {
            consumer.send(&frame(0x5c).bytes());
            while consumer.receive().opcode != 0x5c {}
        }
    });
}

#[test]
fn one_bucket_is_emptied_and_the_other_stays() {
    with_ports(|port| {
        let mut clients = NAMES.map(|name| port.client_of(name, &[XERROR]));
        for delay in [&[][..], &[0, 0, 0, 1]] {
            for client in &mut clients {
                assert_eq!(client.ask(set(b"k", b"v")).status, 0);
            }
            assert_eq!(clients[1].ask(frame(0x08).extras(delay)).status, 0);
            while clients[1].ask(get(b"k")).status != KEY_ENOENT {
                assert!(!delay.is_empty(), "it is answered when the bucket is empty");
            }
            assert_eq!(clients[0].ask(get(b"k")).value, b"v");
        }
    });
}

#[test]
fn commands_are_counted_for_the_bucket_that_the_connection_has_selected() {
    with_ports(|port| {
        let mut clients = NAMES.map(|name| [0; 4].map(|_| port.client_of(name, &[XERROR])));
        for client in &mut clients[0] {
            assert_eq!(client.ask(set(b"k", b"v")).status, 0);
            assert_eq!(client.ask(get(b"k")).status, 0);
        }
        for client in &mut clients[1] {
            assert_eq!(client.ask(get(b"k")).status, KEY_ENOENT);
        }
        // In one go: what follows the selection is the other bucket's.
        let mut turncoat = port.client_of(NAMES[0], &[XERROR]);
        let switch = frame(0x89).key(NAMES[1].as_bytes());
        turncoat.send(&[get(b"k").bytes(), switch.bytes(), get(b"k").bytes()].concat());
        let answers = [0; 3].map(|_| turncoat.receive().status);
        assert_eq!(answers, [0, 0, KEY_ENOENT]);
        let [first, second] = clients.each_mut().map(|those| statistics(&mut those[0], ""));
        for (name, of_first, of_second) in [
            ("cmd_set", "4", "0"),
            ("cmd_get", "5", "5"),
            ("get_hits", "5", "0"),
            ("get_misses", "0", "5"),
        ] {
            assert_eq!(
                (first[name].as_str(), second[name].as_str()),
                (of_first, of_second),
                "{name}"
            );
            let sum = [of_first, of_second].map(|count| count.parse::<u64>().unwrap());
            assert_eq!(port.counter(name), sum.iter().sum::<u64>(), "{name} of the node");
        }
        assert_eq!(first["curr_connections"], second["curr_connections"], "those are the node's");
        let times = statistics(&mut clients[1][0], "timings");
        assert!(times.keys().any(|name| name.starts_with("get_cmd")), "{times:?}");
        assert!(!times.keys().any(|name| name.starts_with("store_cmd")), "{times:?}");
    });
}

#[test]
fn a_client_of_lines_is_told_that_there_is_no_bucket() {
    with_ports(|port| {
        drop(port.server.remove_bucket("default").unwrap());
        for asked in [&b"version\r\n"[..], b"get k\r\n", b"set k 0 0 1\r\nx\r\n"] {
            let mut client = TextClient::connected_to(port);
            client.send(asked);
            let heard = client.line();
            assert!(heard.starts_with(b"SERVER_ERROR this port serves"), "{heard:?}");
            assert!(client.is_closed());
        }
    });
}

#[test]
fn who_does_not_read_hears_how_a_durable_write_has_ended_though_its_bucket_goes() {
    const OPAQUE: u32 = 77;
    with_ports(|port| {
        let features =
            [MUTATION_SEQNO, XERROR, JSON, UNORDERED_EXECUTION, ALT_REQUEST, SYNC_REPLICATION];
        let mut client = port.client(&features);
        assert_eq!(client.ask(set(b"large", &vec![b'x'; 15 << 20])).status, 0);
        let mut operator = port.client(&[XERROR, JSON]);
        let mut place = |json: &[u8]| {
            let place = frame(0x3d).extras(&[1]).value(json).datatype(1);
            assert_eq!(operator.ask(place).status, 0);
        };
        place(br#"{"topology":[["a","b"]]}"#);
        client.send(&set(b"k", b"v").framing(&[0x11, 1]).opaque(OPAQUE).bytes());
        port.wait_for("it waits", |_| port.counter("parked_requests") > 0);
        // Of one answer sockets take a part, and the rest is more than the server keeps.
        client.send(&get(b"large").bytes().repeat(4));
        let mut known = 0;
        port.wait_for("the output is full", |_| {
            platform::threads::pause(std::time::Duration::from_millis(100));
            let now = port.counter("cmd_get");
            let stands = now > 0 && now == known;
            known = now;
            stands
        });
        place(br#"{"topology":[["a"]]}"#);
        let details = statistics(&mut operator, "vbucket-details 0");
        assert_eq!(details["vb_0:sync_write_committed_count"], "1");
        drop(port.server.remove_bucket("default").unwrap());
        let ends: Vec<u16> = std::iter::from_fn(|| client.try_receive())
            .filter(|reply| reply.opaque == OPAQUE)
            .map(|reply| reply.status)
            .collect();
        assert_eq!(ends, [0], "it was committed");
    });
}
