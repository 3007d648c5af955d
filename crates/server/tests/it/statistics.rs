//! STAT: every group has something to say, and the counters count.

use std::collections::BTreeMap;

use bucket::{BucketConfig, FullPolicy, Persistence};
use document::{ManifestEdit, Vbid};
use server::ServerLimits;

use crate::support::{Client, Port, bucket_config, frame, get, set};

const XERROR: u16 = 0x07;
const JSON: u16 = 0x0b;
const KEY_ENOENT: u16 = 1;
const EINVAL: u16 = 4;
const NOT_MY_VBUCKET: u16 = 7;
const NO_BUCKET: u16 = 8;
const EACCESS: u16 = 0x24;
const UNKNOWN_COLLECTION: u16 = 0x88;

/// Groups that tell of one thing alone.
const NEED_ARGUMENT: [&str; 7] =
    ["collections-byid", "dcp-vbtakeover", "key", "key-byid", "scopes-byid", "vkey", "vkey-byid"];

/// The groups that the server itself names.
fn groups(client: &mut Client) -> Vec<String> {
    let refused = client.statistics("no-such-group").unwrap_err();
    assert_eq!(refused.status, KEY_ENOENT);
    let text = String::from_utf8(refused.value).unwrap();
    let (_, names) = text.split_once("there are:").unwrap();
    let (names, _) = names.split_once('"').unwrap();
    names.split(' ').map(str::to_owned).collect()
}

/// A server that has done a bit of everything.
fn busy() -> (Port, Client) {
    let port = Port::open();
    let mut client = port.client(&[XERROR, JSON, 0x04]);
    let seqno = client.ask(set(b"k", b"value")).mutation_seqno();
    assert_eq!(client.ask(frame(0xb7).extras(&seqno.to_be_bytes())).status, 0);
    while client.ask(frame(0x93).key(b"k")).status != 0 {}
    assert_eq!(client.ask(get(b"k")).value, b"value");
    (port, client)
}

#[test]
fn vbuckets_are_counted_by_their_state_and_streams_by_their_kind() {
    let (_port, mut client) = busy();
    let told: BTreeMap<String, String> = client.statistics("").unwrap().into_iter().collect();
    for (name, value) in [
        ("vb_active_num", "4"),
        ("vb_active_curr_items", "1"),
        ("vb_active_ops_create", "1"),
        ("vb_active_queue_size", "0"),
        ("vb_active_queue_fill", "1"),
        ("vb_active_queue_drain", "1"),
        ("vb_active_eject", "1"),
        ("vb_active_dm_num_tracked", "0"),
        ("ep_diskqueue_fill", "1"),
        ("ep_diskqueue_drain", "1"),
        ("ep_vb_total", "4"),
        ("vb_active_perc_mem_resident", "100"),
        ("vb_replica_num", "0"),
        ("vb_replica_curr_items", "0"),
        ("vb_pending_ops_create", "0"),
        ("vb_dead_num", "0"),
        ("ep_storage_age", "0"),
    ] {
        assert_eq!(told.get(name).map(String::as_str), Some(value), "{name}");
    }
    let told: BTreeMap<String, String> = client.statistics("dcpagg").unwrap().into_iter().collect();
    for kind in ["replication", ":total"] {
        for name in ["count", "producer_count", "items_sent", "items_remaining", "total_bytes"] {
            assert_eq!(told[&format!("{kind}:{name}")], "0", "{kind} {name}");
        }
    }
}

#[test]
fn every_group_has_statistics_and_an_end() {
    let (_port, mut client) = busy();
    let groups = groups(&mut client);
    assert_eq!(groups.len(), 51, "as COMPAT.md says: {groups:?}");
    for group in &groups {
        match client.statistics(group) {
            Ok(statistics) => {
                // Nothing need have been slow.
                if group != "slow-operations" {
                    assert_eq!(statistics.is_empty(), group == "reset", "{group}");
                }
                let is_whole = |(name, value): &(String, String)| {
                    !name.is_empty() && !value.is_empty() && !value.contains('\0')
                };
                assert!(statistics.iter().all(is_whole), "{group}: {statistics:?}");
                let names: BTreeMap<_, _> = statistics.iter().cloned().collect();
                assert_eq!(names.len(), statistics.len(), "{group}: a name twice");
            }
            Err(refused) => {
                assert!(NEED_ARGUMENT.contains(&group.as_str()), "{group}");
                assert_eq!(refused.status, EINVAL, "{group}");
            }
        }
        assert_eq!(client.ask(frame(0x0a)).status, 0, "{group}");
    }
}

#[test]
fn the_journal_says_how_full_it_is_and_what_the_files_lack() {
    let port =
        Port::with_config(BucketConfig { persistence: Persistence::default(), ..bucket_config() });
    let mut client = port.client(&[XERROR, JSON, 0x04]);
    let seqno = client.ask(set(b"k", b"value")).mutation_seqno();
    assert_eq!(client.ask(frame(0xb7).extras(&seqno.to_be_bytes())).status, 0);
    let journal: BTreeMap<_, _> = client.statistics("journal").unwrap().into_iter().collect();
    for (name, value) in [("enabled", "true"), ("failures", "0"), ("unapplied_items", "1")] {
        assert_eq!(journal[name], value, "{name}");
    }
    assert!(journal["written_bytes"].parse::<u64>().unwrap() >= 4096);
    let seqnos: BTreeMap<_, _> =
        client.statistics("vbucket-seqno 0").unwrap().into_iter().collect();
    assert_eq!(seqnos["vb_0:last_persisted_seqno"], "1");
    assert_eq!(seqnos["vb_0:last_applied_seqno"], "0");

    let (_port, mut client) = busy();
    let without = client.statistics("journal").unwrap();
    assert_eq!(without, [("enabled".to_owned(), "false".to_owned())]);
}

#[test]
fn the_map_that_counts_is_told_with_what_is_left_of_it() {
    let (_port, mut client) = busy();
    let told: BTreeMap<_, _> = client.statistics("clustermap").unwrap().into_iter().collect();
    assert_eq!((told["epoch"].as_str(), told["pending_vbuckets"].as_str()), ("1", "0"));
}

#[test]
fn groups_of_vbuckets_take_one() {
    let (_port, mut client) = busy();
    for group in [
        "vbucket",
        "prev-vbucket",
        "vbucket-details",
        "vbucket-seqno",
        "failovers",
        "checkpoint",
        "hash",
    ] {
        let all = client.statistics(group).unwrap();
        let one = client.statistics(&format!("{group} 2")).unwrap();
        assert_eq!(all.len(), one.len() * 4, "{group}");
        assert!(one.iter().all(|(name, _)| name.starts_with("vb_2")), "{group}: {one:?}");
        let status = client.statistics(&format!("{group} 4")).unwrap_err().status;
        assert_eq!(status, NOT_MY_VBUCKET, "{group}");
        let status = client.statistics(&format!("{group} x")).unwrap_err().status;
        assert_eq!(status, EINVAL, "{group}");
    }
}

#[test]
fn a_key_has_statistics() {
    let (_port, mut client) = busy();
    let statistics: BTreeMap<_, _> = client.statistics("key k 0").unwrap().into_iter().collect();
    for (name, value) in
        [("key_is_dirty", "false"), ("key_exptime", "0"), ("key_vb_state", "active")]
    {
        assert_eq!(statistics[name], value, "{name}");
    }
    assert_eq!(client.statistics("key absent 0").unwrap_err().status, KEY_ENOENT);
    assert_eq!(client.statistics("key k").unwrap_err().status, EINVAL);
    assert_eq!(client.statistics("key k 9").unwrap_err().status, NOT_MY_VBUCKET);
}

#[test]
fn groups_that_tell_of_the_node_need_no_bucket() {
    for workers in [1, 4] {
        let port = Port::with_workers(workers, ServerLimits::default());
        let mut client = port.client(&[XERROR, JSON]);
        let groups = groups(&mut client);
        let names = |told: Vec<(String, String)>| -> Vec<String> {
            told.into_iter().map(|(name, _)| name).collect()
        };
        let of_node = ["clocks", "connections", "settings", "tasks-all"];
        let with_bucket = of_node.map(|group| names(client.statistics(group).unwrap()));
        assert_eq!(client.ask(frame(0x89).key(b"@no bucket@")).status, 0);
        for group in groups.iter().filter(|group| !of_node.contains(&group.as_str())) {
            assert_eq!(client.statistics(group).unwrap_err().status, NO_BUCKET, "{group}");
        }
        let without = of_node.map(|group| names(client.statistics(group).unwrap()));
        assert_eq!(without, with_bucket);
        let settings: BTreeMap<_, _> = client.statistics("settings").unwrap().into_iter().collect();
        assert_eq!(settings["flush_enabled"], "no");
        // Some of them tell of everybody: not whoever has logged in hears that.
        let privilege = frame(0xfb).key(b"Stats");
        assert_eq!(client.ask(privilege).status, 0);
        let statuses = of_node.map(|group| client.statistics(group).err().map(|it| it.status));
        assert_eq!(statuses, [None, None, Some(EACCESS), Some(EACCESS)]);
    }
}

#[test]
fn a_document_is_held_against_its_file() {
    for workers in [1, 4] {
        let port = Port::with_workers(workers, ServerLimits::default());
        let mut client = port.client(&[XERROR, JSON, 0x04]);
        let seqno = client.ask(set(b"k k", b"value")).mutation_seqno();
        assert_eq!(client.ask(frame(0xb7).extras(&seqno.to_be_bytes())).status, 0);
        let checked = client.statistics("vkey k k 0").unwrap();
        let (valid, rest) = checked.split_last().unwrap();
        assert_eq!(*valid, ("key_valid".to_owned(), "valid".to_owned()));
        assert_eq!(client.statistics("key k k 0").unwrap(), rest);
        assert_eq!(client.statistics("vkey-byid k k 0 0x0").unwrap(), checked);
        assert_eq!(client.statistics("key-byid k k 0 0").unwrap(), rest);
        while client.ask(frame(0x93).key(b"k k")).status != 0 {}
        let evicted = client.statistics("vkey k k 0").unwrap();
        assert_eq!(evicted.last(), Some(valid), "the value is in the file alone");
        for (group, status) in [
            ("vkey absent 0", KEY_ENOENT),
            ("vkey k", EINVAL),
            ("vkey-byid k 0", EINVAL),
            ("vkey-byid k 0 0xq", EINVAL),
            ("key-byid k 0 +1", EINVAL),
            ("vkey k 9", NOT_MY_VBUCKET),
            ("vkey-byid k 0 0x9", UNKNOWN_COLLECTION),
            ("key-byid k 0 0x9", UNKNOWN_COLLECTION),
        ] {
            assert_eq!(client.statistics(group).unwrap_err().status, status, "{group}");
        }
    }
}

#[test]
fn what_the_file_does_not_have_yet_is_dirty_and_without_files_everything_is_valid() {
    // With a journal, files follow later.
    let config = BucketConfig { persistence: Persistence::default(), ..bucket_config() };
    let journalled = Port::with_config(config);
    let ephemeral = Port::ephemeral(FullPolicy::FailNewData, 100 << 20);
    for (port, expected) in [(&journalled, "dirty"), (&ephemeral, "valid")] {
        let mut client = port.client(&[XERROR, JSON]);
        assert_eq!(client.ask(set(b"k", b"value")).status, 0);
        let told: BTreeMap<_, _> = client.statistics("vkey k 0").unwrap().into_iter().collect();
        assert_eq!(told["key_valid"], expected);
    }
}

#[test]
fn collections_and_scopes_are_told_of_by_id_and_by_vbucket() {
    let (port, mut client) = busy();
    port.bucket.edit_manifest(ManifestEdit::CreateScope { scope: "s" }).unwrap();
    let (scope, collection) = ("s", "c");
    let create =
        ManifestEdit::CreateCollection { scope, collection, max_ttl: None, history: false };
    port.bucket.edit_manifest(create).unwrap();
    let manifest = port.bucket.manifest();
    let scope = manifest.scope("s").unwrap();
    let (scope_id, id) = (scope.id.0, scope.collections[0].id.0);
    for (by_id, by_name) in [
        (format!("collections-byid 0x{id:x}"), "collections s.c"),
        (format!("collections-byid {id:x}"), "collections s.c"),
        (format!("scopes-byid 0x{scope_id:x}"), "scopes s"),
        ("collections-byid 0x0".to_owned(), "collections _default._default"),
        ("scopes-byid 0x0".to_owned(), "scopes _default"),
    ] {
        let expected = client.statistics(by_name).unwrap();
        assert_eq!(client.statistics(&by_id).unwrap(), expected, "{by_id}");
    }
    for group in ["collections-byid", "scopes-byid"] {
        for (argument, status) in [("0x99", KEY_ENOENT), ("s.c", EINVAL), ("", EINVAL)] {
            let refused = client.statistics(&format!("{group} {argument}")).unwrap_err();
            assert_eq!(refused.status, status, "{group} {argument}");
        }
    }
    let told: BTreeMap<_, _> = client.statistics("scopes-details 0").unwrap().into_iter().collect();
    let named = format!("vb_0:0x{scope_id:x}");
    for (name, value) in [
        ("vb_0:manifest:uid".to_owned(), "2"),
        ("vb_0:0x0:name".to_owned(), "_default"),
        ("vb_0:0x0:items".to_owned(), "1"),
        (format!("{named}:name"), "s"),
        (format!("{named}:collections"), "1"),
        (format!("{named}:items"), "0"),
    ] {
        assert_eq!(told[&name], value, "{name}");
    }
    assert_eq!(client.statistics("scopes-details").unwrap().len(), told.len() * 4);
    assert_eq!(client.statistics("scopes-details 9").unwrap_err().status, NOT_MY_VBUCKET);
}

/// The general group, as numbers.
fn general(client: &mut Client) -> BTreeMap<String, u64> {
    let statistics = client.statistics("").unwrap().into_iter();
    statistics.filter_map(|(name, value)| Some((name, value.parse().ok()?))).collect()
}

#[test]
fn every_wrong_request_is_counted_in_the_general_group() {
    let port = Port::open();
    let mut witness = port.client(&[XERROR]);
    let mut impossible = get(b"key").bytes();
    impossible[3] = 200;
    let cases: Vec<(&str, bool, Vec<u8>)> = vec![
        ("malformed_frames", true, impossible),
        ("unexpected_magics", true, get(b"k").magic(0x82).bytes()),
        ("unknown_commands", true, frame(0xe8).bytes()),
        ("unsupported_commands", true, frame(0x30).bytes()),
        ("unsupported_commands", true, frame(0x28).bytes()),
        ("invalid_requests", true, get(b"").bytes()),
        ("invalid_requests", true, get(b"k").extras(&[0; 4]).bytes()),
        ("unauthenticated_requests", false, get(b"k").bytes()),
        ("auth_errors", false, frame(0x21).key(b"PLAIN").value(b"\0user\0wrong").bytes()),
        ("cas_badval", true, set(b"there", b"v").cas(9).bytes()),
        ("get_misses", true, get(b"absent").bytes()),
    ];
    assert_eq!(witness.ask(set(b"there", b"value")).status, 0);
    for (counter, is_authenticated, bytes) in cases {
        let mut client = if is_authenticated { port.client(&[XERROR]) } else { port.connect() };
        let before = general(&mut witness)[counter];
        client.send(&bytes);
        client.try_receive();
        let after = general(&mut witness)[counter];
        assert_eq!(after, before + 1, "{counter}: {bytes:x?}");
    }
}

#[test]
fn tasks_are_listed_with_what_they_do() {
    let (_port, mut client) = busy();
    let statistics: BTreeMap<_, _> = client.statistics("tasks").unwrap().into_iter().collect();
    let tasks = &statistics["ep_tasks:tasks:default"];
    for expected in ["FlusherTask", "\"type\":\"Writer\"", "\"state\":\"SNOOZED\"", "num_runs"] {
        assert!(tasks.contains(expected), "{expected}: {tasks}");
    }
    assert!(statistics["ep_tasks:cur_time:default"].parse::<u64>().unwrap() > 0);
}

#[test]
fn an_administrator_changes_numbers_of_threads() {
    let (_port, mut client) = busy();
    let set = |group: u8, name: &[u8], value: &[u8]| {
        frame(0x82).extras(&[0, 0, 0, group]).key(name).value(value)
    };
    for (value, threads) in [("7", "7"), ("1", "1"), ("balanced", "4")] {
        let answer = client.ask(set(1, b"num_writer_threads", value.as_bytes()));
        assert_eq!(answer.status, 0, "{value}");
        let workload: BTreeMap<_, _> = client.statistics("workload").unwrap().into_iter().collect();
        assert_eq!(workload["ep_workload:num_writers"], threads);
    }
    let refused: [(u8, &[u8], &[u8]); 4] = [
        (1, b"num_writer_threads", b"many"),
        (1, b"num_writer_threads", b"1000"),
        (1, b"max_size", b"1"),
        (7, b"num_writer_threads", b"4"),
    ];
    for (group, name, value) in refused {
        assert_eq!(client.ask(set(group, name, value)).status, EINVAL);
    }
}

#[test]
fn an_administrator_changes_the_compression_mode() {
    let (_port, mut client) = busy();
    let set =
        |value: &[u8]| frame(0x82).extras(&[0, 0, 0, 1]).key(b"compression_mode").value(value);
    for mode in ["off", "active", "passive"] {
        assert_eq!(client.ask(set(mode.as_bytes())).status, 0, "{mode}");
        let config: BTreeMap<_, _> = client.statistics("config").unwrap().into_iter().collect();
        assert_eq!(config["ep_compression_mode"], mode);
    }
    assert_eq!(client.ask(set(b"on")).status, EINVAL);
    for (value, status) in [("1.5", 0), ("-1", EINVAL), ("inf", EINVAL), ("much", EINVAL)] {
        let request = frame(0x82).extras(&[0, 0, 0, 1]).key(b"min_compression_ratio");
        assert_eq!(client.ask(request.value(value.as_bytes())).status, status, "{value}");
    }
    let config: BTreeMap<_, _> = client.statistics("config").unwrap().into_iter().collect();
    assert_eq!(config["ep_min_compression_ratio"], "1.5");
    let all: BTreeMap<_, _> = client.statistics("").unwrap().into_iter().collect();
    for name in [
        "ep_item_compressor_num_visited",
        "ep_item_compressor_num_compressed",
        "ep_active_datatype_snappy",
        "ep_active_datatype_snappy,json",
    ] {
        assert!(all[name].parse::<u64>().is_ok(), "{name}");
    }
}

#[test]
fn statistics_of_all_vbuckets_are_told_while_somebody_has_one_of_them() {
    let (port, mut client) = busy();
    for group in ["", "items", "slabs", "memory", "collections", "scopes", "dcpagg"] {
        let before = client.statistics(group).unwrap();
        let mut during = Vec::new();
        port.bucket.with_vbucket(Vbid(0), |_| during = client.statistics(group).unwrap());
        let names = |told: Vec<(String, String)>| {
            let names: Vec<String> = told.into_iter().map(|(name, _)| name).collect();
            names
        };
        assert_eq!(names(during), names(before), "{group}");
    }
}
