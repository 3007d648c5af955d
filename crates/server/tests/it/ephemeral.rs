//! What commands answer on a bucket that has no disk.

use std::collections::BTreeMap;

use bucket::FullPolicy;

use crate::support::{Client, Port, frame, get, set};

const QUOTA_BYTES: u64 = 100_000;
const NOT_SUPPORTED: u16 = 0x83;
/// ETMPFAIL.
const TEMPORARY_FAILURE: u16 = 0x86;
const NO_MEMORY: u16 = 0x82;

fn statistics(client: &mut Client, group: &str) -> BTreeMap<String, String> {
    client.statistics(group).unwrap().into_iter().collect()
}

#[test]
fn nobody_waits_for_a_disk_that_is_not_there() {
    let port = Port::ephemeral(FullPolicy::AutoDelete, QUOTA_BYTES);
    let mut client = port.client(&[0x07, 0x04]);
    let stored = client.ask(set(b"k", b"v"));
    assert_eq!(client.ask(frame(0xb7).extras(&stored.extras[8..])).status, NOT_SUPPORTED);
    assert_eq!(client.ask(frame(0x93).key(b"k")).status, NOT_SUPPORTED);
    assert_eq!(client.ask(get(b"k")).value, b"v");
    // OBSERVE_SEQNO: persisted is 0, high is not.
    let observed = client.ask(frame(0x91).value(&stored.extras[..8])).value;
    assert_eq!((&observed[11..19], &observed[19..27]), (&[0; 8][..], &stored.extras[8..]));
    // OBSERVE: found, not persisted.
    let asked = [&[0, 0, 0, 1][..], b"k"].concat();
    let observed = client.ask(frame(0x92).value(&asked)).value;
    assert_eq!(observed[5], 0);
    client.ask(frame(0x04).key(b"k"));
    let observed = client.ask(frame(0x92).value(&asked)).value;
    assert_eq!(observed[5], 0x81, "deleted, and the deletion is in memory alone, too");
}

#[test]
fn statistics_and_parameters_are_those_of_an_ephemeral_bucket() {
    let port = Port::ephemeral(FullPolicy::AutoDelete, QUOTA_BYTES);
    let mut client = port.client(&[0x07]);
    let config = statistics(&mut client, "config");
    for (name, value) in [
        ("ep_bucket_type", "ephemeral"),
        ("ep_ephemeral_full_policy", "auto_delete"),
        ("ep_ephemeral_metadata_purge_age", "60"),
        ("ep_ephemeral_metadata_purge_interval", "60"),
        ("ep_exp_pager_stime", "600"),
    ] {
        assert_eq!(config[name], value, "{name}");
    }
    assert!(!config.contains_key("ep_item_eviction_policy"));
    let compaction = statistics(&mut client, "compaction");
    assert!(!compaction.contains_key("ep_compaction_min_file_size"), "there are no files");
    assert_eq!(statistics(&mut client, "warmup")["ep_warmup"], "disabled");
    assert!(statistics(&mut client, "vbucket-details 0").contains_key("vb_0:purge_seqno"));
    let parameter = |name: &str, value: &str| {
        frame(0x82).extras(&[0, 0, 0, 1]).key(name.as_bytes()).value(value.as_bytes())
    };
    let names = [
        ("ephemeral_full_policy", "fail_new_data"),
        ("ephemeral_metadata_purge_age", "5"),
        ("ephemeral_metadata_purge_interval", "7"),
    ];
    for (name, value) in names {
        assert_eq!(client.ask(parameter(name, value)).status, 0, "{name}");
        assert_eq!(statistics(&mut client, "config")[&format!("ep_{name}")], value);
        assert_eq!(client.ask(parameter(name, "-1")).status, 4, "{name}");
    }
    let with_disk = Port::open();
    let mut client = with_disk.client(&[0x07]);
    assert_eq!(client.ask(parameter("exp_pager_stime", "7")).status, 0);
    assert_eq!(statistics(&mut client, "config")["ep_exp_pager_stime"], "7");
    for (name, value) in names {
        assert_eq!(
            client.ask(parameter(name, value)).status,
            4,
            "{name} needs a bucket without a disk"
        );
    }
}

#[test]
fn a_full_bucket_that_may_not_delete_says_that_there_is_no_memory() {
    let port = Port::ephemeral(FullPolicy::FailNewData, QUOTA_BYTES);
    let mut client = port.client(&[0x07]);
    let mut refused = 0;
    // While the log is full, too, writes are told to come again.
    let stored = (0..).find(|number| {
        let store = || set(format!("k{number}").as_bytes(), &[b'x'; 1000]);
        refused = loop {
            match client.ask(store()).status {
                TEMPORARY_FAILURE => std::thread::yield_now(),
                status => break status,
            }
        };
        refused != 0
    });
    assert_eq!(refused, NO_MEMORY);
    assert!((50..100).contains(&stored.unwrap_or(0)), "{stored:?}");
    assert_eq!(client.ask(get(b"k0")).status, 0, "nothing was deleted");
    assert_eq!(client.ask(frame(0x04).key(b"k0")).status, 0, "deletions are let in");
}
