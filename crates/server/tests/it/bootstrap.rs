//! What a client learns before its first document, and what COMPAT.md promises about it.

use std::collections::BTreeSet;

use crate::support::{Client, Port, frame, get, set};

const COMPATIBILITY: &str = include_str!("../../../../COMPAT.md");
const XERROR: u16 = 0x07;
const JSON: u16 = 0x0b;
const KEY_ENOENT: u16 = 1;
const EINVAL: u16 = 4;
const NOT_MY_VBUCKET: u16 = 7;
const UNKNOWN_COMMAND: u16 = 0x81;
const NOT_SUPPORTED: u16 = 0x83;

/// Cells of the rows of COMPAT.md whose first cell begins with a number of `digits` digits.
fn rows(digits: usize) -> Vec<Vec<&'static str>> {
    let cells = |line: &'static str| line.split('|').map(|cell| cell.trim_matches([' ', '`']));
    let is_number = |cell: &str| {
        let number = cell.strip_prefix("0x").map(|rest| rest.split([' ', ',']).next());
        number.flatten().is_some_and(|number| number.len() == digits)
    };
    let rows = COMPATIBILITY.lines().map(|line| cells(line).skip(1).collect::<Vec<_>>());
    rows.filter(|row| row.first().is_some_and(|cell| is_number(cell))).collect()
}

fn number(text: &str) -> u16 {
    u16::from_str_radix(text.trim().trim_start_matches("0x"), 16).unwrap()
}

/// From `0x0015, 0x0017 to 0x0019`.
fn codes(cell: &str) -> Vec<u16> {
    let range = |part: &str| match part.split_once(" to ") {
        Some((first, last)) => number(first)..=number(last),
        None => number(part)..=number(part),
    };
    cell.split(',').flat_map(range).collect()
}

#[test]
fn hello_grants_exactly_what_the_table_says() {
    let rows = rows(4);
    assert!(rows.len() >= 20, "{} rows", rows.len());
    let granted: BTreeSet<u16> =
        rows.iter().filter(|row| row[2].starts_with("yes")).flat_map(|row| codes(row[0])).collect();
    let port = Port::open();
    let everything: Vec<u16> = (0..=0x60).rev().chain([0x7fff, 0xffff]).collect();
    let reply = port.connect().hello(&everything);
    let codes = reply.chunks(2).map(|code| u16::from_be_bytes([code[0], code[1]]));
    assert_eq!(codes.collect::<Vec<_>>(), granted.into_iter().collect::<Vec<_>>());
}

/// The first answer to this opcode that does not complain about the request's form.
fn status_in_any_form(client: &mut Client, opcode: u8) -> Option<u16> {
    for extras_size in 0..=60 {
        for (key, value, cas) in [
            (&b""[..], &b""[..], 0),
            (b"\0k", b"", 0),
            (b"", b"{}", 0),
            (b"\0k", b"{}", 0),
            (b"\0k", b"{}", 7),
        ] {
            let request = frame(opcode).extras(&vec![0; extras_size]).key(key).value(value);
            let status = client.ask(request.cas(cas)).status;
            if status != EINVAL {
                return Some(status);
            }
        }
    }
    None
}

#[test]
fn every_command_that_the_table_does_not_have_is_refused() {
    let port = Port::open();
    let mut client = port.client(&[XERROR, 0x10, 0x12]);
    let rows = rows(2);
    let known: BTreeSet<u16> = rows.iter().map(|row| number(row[0])).collect();
    let refused = rows.iter().filter(|row| row[2] == "no").map(|row| (row[0], row[1]));
    let mut count = 0;
    for (opcode, name) in refused {
        let opcode = u8::try_from(number(opcode)).unwrap();
        assert_eq!(status_in_any_form(&mut client, opcode), Some(NOT_SUPPORTED), "{name}");
        count += 1;
    }
    assert!(count > 50, "{count} commands");
    for opcode in (0..=255).filter(|opcode| !known.contains(&u16::from(*opcode))) {
        assert_eq!(client.ask(frame(opcode)).status, UNKNOWN_COMMAND, "{opcode:#x}");
    }
}

#[test]
fn the_error_map_comes_in_the_version_that_the_client_knows() {
    let port = Port::open();
    // Clients ask before they say who they are.
    let mut client = port.connect();
    client.hello(&[XERROR, JSON]);
    for (version, status, answered) in
        [(0_u16, KEY_ENOENT, ""), (1, 0, "1"), (2, 0, "2"), (3, 0, "2")]
    {
        let reply = client.ask(frame(0xfe).value(&version.to_be_bytes()));
        assert_eq!(reply.status, status, "version {version}");
        if status == 0 {
            let json = String::from_utf8(reply.value).unwrap();
            assert!(json.contains(&format!("\"version\":{answered}")), "version {version}");
            assert!(json.contains("\"LOCKED\""), "version {version}");
        }
    }
    for value in [&b""[..], b"\x01", b"\0\0\x01"] {
        assert_eq!(client.ask(frame(0xfe).value(value)).status, EINVAL, "{value:x?}");
    }
}

#[test]
fn the_map_comes_only_when_it_is_newer_than_the_clients() {
    let port = Port::open();
    let mut client = port.client(&[XERROR, JSON, 0x1d]);
    let map = &b"{\"rev\":1}"[..];
    for (known, value) in [
        (None, map),
        (Some((1_i64, 0_i64)), map),
        (Some((0, 99)), map),
        (Some((-1, 5)), map),
        (Some((1, 1)), b""),
        (Some((1, 2)), b""),
        (Some((2, 0)), b""),
    ] {
        let extras = known.map_or(vec![], |(epoch, revision)| {
            [epoch.to_be_bytes(), revision.to_be_bytes()].concat()
        });
        let reply = client.ask(frame(0xb5).extras(&extras));
        assert_eq!((reply.status, reply.value.as_slice()), (0, value), "{known:?}");
    }
    assert_eq!(client.ask(frame(0xb5).extras(&[0; 8])).status, EINVAL);
    // Without a bucket it is the global one.
    assert_eq!(client.ask(frame(0x89).key(b"@no bucket@")).status, 0);
    assert_eq!(client.ask(frame(0xb5)).value, b"{\"global\":true}");
}

#[test]
fn the_map_is_not_sent_twice_to_who_remembers_it() {
    let port = Port::open();
    let wrong = || get(b"k").vbucket(99);
    let map = &b"{\"rev\":1}"[..];
    for (features, second) in [(vec![XERROR], map), (vec![XERROR, 0x1e], b"")] {
        let mut client = port.client(&features);
        for expected in [map, second, second] {
            let reply = client.ask(wrong());
            assert_eq!((reply.status, reply.value.as_slice()), (NOT_MY_VBUCKET, expected));
        }
    }
    let mut client = port.client(&[XERROR, 0x1e]);
    assert_eq!(client.ask(frame(0xb5)).value, map);
    assert_eq!(client.ask(wrong()).value, b"", "it came with the configuration");
}

#[test]
fn control_replies_are_never_compressed() {
    let port = Port::open();
    let mut client = port.client(&[XERROR, 0x0a, JSON, 0x12, 0x13, 0x1d]);
    for request in [
        frame(0xb5),
        frame(0xfe).value(b"\0\x02"),
        frame(0xba),
        get(b"\0k").vbucket(99),
        frame(0x10).key(b"no such group"),
    ] {
        let reply = client.ask(request.clone());
        assert_eq!(reply.datatype, 1, "{request:?}");
        assert_eq!(reply.value.first(), Some(&b'{'), "{request:?}");
    }
}

#[test]
fn what_there_is_is_listed() {
    let port = Port::open();
    let mut client = port.client(&[XERROR, 0x12]);
    assert_eq!(client.ask(frame(0x87)).value, b"default");
    let manifest = String::from_utf8(client.ask(frame(0xba)).value).unwrap();
    assert!(manifest.contains("\"uid\":\"0\"") && manifest.contains("\"_default\""), "{manifest}");
    for (path, status) in [
        (&b"_default"[..], 0),
        (b"_default.any", 0),
        (b"other", 0x8c),
        (b"other._default", 0x8c),
        (b"a.b.c", EINVAL),
    ] {
        let reply = client.ask(frame(0xbc).value(path));
        assert_eq!(reply.status, status, "{path:?}");
        if status == 0 {
            assert_eq!(reply.extras, [0; 12], "manifest 0, scope 0");
        }
    }
    assert_eq!(client.ask(frame(0x1b).extras(&[0; 4])).status, 0);
    assert_eq!(client.ask(frame(0x3e).vbucket(3)).value, 1_u32.to_be_bytes());
    assert_eq!(client.ask(frame(0x3e).vbucket(4)).status, NOT_MY_VBUCKET);
    assert_eq!(client.ask(frame(0x83).key(b"\0k")).status, NOT_MY_VBUCKET);
}

#[test]
fn the_seqnos_of_all_vbuckets_are_told_by_state() {
    let port = Port::open();
    let mut client = port.client(&[XERROR, 0x04, 0x12]);
    let seqno = client.ask(set(b"\0k", b"v").vbucket(2)).mutation_seqno();
    let entry = |vbid: u16, seqno: u64| [&vbid.to_be_bytes()[..], &seqno.to_be_bytes()].concat();
    let all = [entry(0, 0), entry(1, 0), entry(2, seqno), entry(3, 0)].concat();
    let [active, replica] = [1_u32, 2].map(u32::to_be_bytes);
    let collection = |id: u32| [active, id.to_be_bytes()].concat();
    for (extras, value) in [
        (vec![], &all[..]),
        (active.to_vec(), &all),
        (replica.to_vec(), b""),
        (collection(0), &all),
    ] {
        let reply = client.ask(frame(0x48).extras(&extras));
        assert_eq!((reply.status, reply.value.as_slice()), (0, value), "{extras:x?}");
    }
    assert_eq!(client.ask(frame(0x48).extras(&collection(8))).status, 0x88);
    assert_eq!(client.ask(frame(0x48).extras(&[0; 3])).status, EINVAL);
    let mut client = port.client(&[XERROR]);
    assert_eq!(client.ask(frame(0x48).extras(&collection(0))).status, EINVAL);
}
