//! A map that changes: who is told at once, and what the others meet.

use std::io::Read;

use cluster::Revision;
use server::ClusterView;

use crate::support::{Client, Port, frame, get};

const XERROR: u16 = 0x07;
const DUPLEX: u16 = 0x0c;
const FULL: u16 = 0x0d;
const BRIEF: u16 = 0x1f;
const KNOWN_VERSION: u16 = 0x1d;

fn view(revision: i64) -> ClusterView {
    ClusterView {
        revision: Revision { epoch: 1, revision },
        global_config: format!("{{\"global\":{revision}}}"),
        bucket_configs: [("default".to_owned(), format!("{{\"rev\":{revision}}}"))].into(),
    }
}

/// A notification: revision, bucket and map.
pub(crate) fn notification(client: &mut Client) -> (i64, Vec<u8>, Vec<u8>) {
    let mut header = [0; 24];
    client.stream.read_exact(&mut header).unwrap();
    assert_eq!((header[0], header[1], header[4]), (0x82, 0x01, 16));
    let key_size = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let body_size = u32::from_be_bytes(header[8..12].try_into().unwrap());
    let mut body = vec![0; body_size as usize];
    client.stream.read_exact(&mut body).unwrap();
    let (version, rest) = body.split_at(16);
    assert_eq!(version[..8], 1_i64.to_be_bytes());
    let revision = i64::from_be_bytes(version[8..].try_into().unwrap());
    (revision, rest[..key_size].to_vec(), rest[key_size..].to_vec())
}

#[test]
fn a_new_map_is_pushed_to_those_who_asked_for_it_and_met_by_the_others() {
    let port = Port::open();
    let mut full = port.client(&[XERROR, DUPLEX, FULL]);
    let mut brief = port.client(&[XERROR, DUPLEX, FULL, BRIEF]);
    let mut global = port.client(&[XERROR, DUPLEX, FULL]);
    assert_eq!(global.ask(frame(0x89).key(b"@no bucket@")).status, 0);
    let mut silent = port.client(&[XERROR, DUPLEX, KNOWN_VERSION]);
    for revision in [2, 3] {
        port.server.publish(view(revision));
        let map = format!("{{\"rev\":{revision}}}").into_bytes();
        assert_eq!(notification(&mut full), (revision, b"default".to_vec(), map.clone()));
        assert_eq!(notification(&mut brief), (revision, b"default".to_vec(), vec![]));
        let whole = format!("{{\"global\":{revision}}}").into_bytes();
        assert_eq!(notification(&mut global), (revision, vec![], whole));
        assert_eq!(silent.ask(get(b"k").vbucket(99)).value, map, "not my vBucket");
        let known = [1_i64.to_be_bytes(), (revision - 1).to_be_bytes()].concat();
        assert_eq!(silent.ask(frame(0xb5).extras(&known)).value, map);
    }
}

#[test]
fn who_selects_no_bucket_any_more_is_told_the_global_map() {
    let port = Port::open();
    let mut client = port.client(&[XERROR, DUPLEX, FULL]);
    port.server.publish(view(2));
    assert_eq!(notification(&mut client), (2, b"default".to_vec(), b"{\"rev\":2}".to_vec()));
    assert_eq!(client.ask(frame(0x89).key(b"@no bucket@")).status, 0);
    port.server.publish(view(2));
    assert_eq!(notification(&mut client), (2, vec![], b"{\"global\":2}".to_vec()));
}

#[test]
fn nobody_is_told_what_they_have() {
    let port = Port::open();
    let mut client = port.client(&[XERROR, DUPLEX, FULL]);
    // A worker may look at a map before the next one is there, or only once both are: one that
    // is not known already would be told or not.
    assert_eq!(client.ask(frame(0xb5)).value, b"{\"rev\":1}");
    port.server.publish(view(1));
    assert_eq!(client.ask(get(b"k")).status, 1, "the first is no news");
    port.server.publish(view(2));
    assert_eq!(notification(&mut client).0, 2);
    port.server.publish(view(2));
    client.send(&[0x83, 0x01].iter().copied().chain([0; 22]).collect::<Vec<u8>>());
    assert_eq!(client.ask(get(b"k")).status, 1, "an answer to a notification is ignored");
}
