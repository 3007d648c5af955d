//! What is fuzzed, and the well-formed inputs that mutation begins with.

use std::fs;
use std::path::Path;

use document::key::encode_collection;
use document::manifest_event::EventCollection;
use document::{CollectionId, ManifestEvent, ScopeId};

use crate::rest;

/// A reader of foreign bytes.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// Must not panic, whatever the bytes.
    pub(crate) read: fn(&[u8]),
    pub(crate) corpus: fn() -> Vec<Vec<u8>>,
}

/// All targets; `xtask/src/fuzz.rs` lists the same names.
pub(crate) const TARGETS: &[Target] = &[
    Target { name: "frame", read: protocol::fuzzing::frame, corpus: frames },
    Target { name: "range_scan", read: protocol::fuzzing::range_scan, corpus: range_scans },
    Target { name: "text", read: protocol::fuzzing::text, corpus: text_streams },
    Target {
        name: "couchstore_file",
        read: storage::fuzzing::read_couchstore_file,
        corpus: couchstore_files,
    },
    Target {
        name: "journal_segment",
        read: storage::fuzzing::read_journal_segment,
        corpus: journal_segments,
    },
    Target { name: "scram", read: auth::fuzzing::scram, corpus: scram_messages },
    Target { name: "user_texts", read: auth::fuzzing::user_texts, corpus: user_texts },
    Target { name: "rest", read: rest::request, corpus: rest::corpus },
    Target { name: "cluster_plan", read: cluster::fuzzing::cluster_plan, corpus: cluster_plans },
    Target {
        name: "subdocument_path",
        read: subdocument::fuzzing::path_command,
        corpus: path_commands,
    },
    Target {
        name: "subdocument_request",
        read: subdocument::fuzzing::multi_request,
        corpus: multi_requests,
    },
    Target { name: "collection_id", read: document::fuzzing::collection_id, corpus: keys },
    Target { name: "attributes", read: document::fuzzing::attributes, corpus: attributed_values },
];

/// A request of every opcode with extras of the usual sizes.
fn frames() -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for opcode in 0..=u8::MAX {
        for extras in [0, 3, 4, 8, 20, 24] {
            frames.push(request(opcode, &vec![0; extras], b"\x00key", b"{\"value\":1}"));
        }
        frames.push(request(opcode, &[], b"", b""));
    }
    frames
}

/// The header of a request: magic, opcode, key length u16, extras length u8, datatype u8, vBucket
/// u16, body length u32, opaque u32, CAS u64; then extras, key and value.
fn request(opcode: u8, extras: &[u8], key: &[u8], value: &[u8]) -> Vec<u8> {
    let key_size = u16::try_from(key.len()).expect("keys here are short");
    let extras_size = u8::try_from(extras.len()).expect("extras here are short");
    let body_size = u32::try_from(extras.len() + key.len() + value.len()).expect("so are bodies");
    let mut bytes = vec![0x80, opcode];
    bytes.extend_from_slice(&key_size.to_be_bytes());
    bytes.extend_from_slice(&[extras_size, 0, 0, 7]);
    bytes.extend_from_slice(&body_size.to_be_bytes());
    bytes.extend_from_slice(&[0; 12]);
    for part in [extras, key, value] {
        bytes.extend_from_slice(part);
    }
    bytes
}

/// Values of RANGE_SCAN_CREATE as clients send them, and extras of RANGE_SCAN_CONTINUE.
fn range_scans() -> Vec<Vec<u8>> {
    let mut inputs = [
        r#"{"range":{"start":"AA==","end":"/w=="},"key_only":true}"#,
        r#"{"collection":"1f","range":{"excl_start":"YWJj","excl_end":"YWJk9I+/vw=="}}"#,
        r#"{"sampling":{"samples":10,"seed":42},"include_xattrs":true,"name":"a name"}"#,
        r#"{"range":{"start":"","end":"eg=="},"snapshot_requirements":{"vb_uuid":"12345678901",
            "seqno":7,"seqno_exists":true,"timeout_ms":10000}}"#,
    ]
    .map(|value| value.as_bytes().to_vec())
    .to_vec();
    inputs.push([&[7; 16][..], &[0, 0, 0, 50], &[0; 4], &[0, 0, 0x3a, 0x98]].concat());
    inputs
}

/// What clients of the text protocol say: each command, several in a row, and what is wrong.
fn text_streams() -> Vec<Vec<u8>> {
    [
        "get a\r\nget a b c\r\ngets a\r\ngat 10 a b\r\ngats 0 a\r\n",
        "set a 0 0 5\r\nhello\r\nadd a 1 100 0\r\n\r\n",
        "replace a 4294967295 -1 2 noreply\r\n\r\n\r\n",
        "append a 0 0 1\r\nx\r\nprepend a 0 0 1\r\ny\r\ncas a 0 0 1 18446744073709551615\r\nz\r\n",
        "delete a\r\ndelete a 0 noreply\r\ntouch a 2592001\r\nincr a 5\r\ndecr a 7 noreply\r\n",
        "stats\r\nstats key a 0\r\nversion\r\nverbosity 1\r\nflush_all 10 noreply\r\nquit\r\n",
        "mg a v f c s t k O123 q\r\nmg YWJj b k N30 R10 T60 u P/x Lx\r\nme a\r\nmn\r\n",
        "ms a 5 c F7 T60 MS k O1\r\nhello\r\nms a 1 ME q\r\nx\r\nms a 2 MA C5 I N10\r\nhi\r\n",
        "md a C7 I T30 x k q\r\nma a N0 J13 D5 MD T60 v t c q\r\nmn\r\n",
        "set a 0 0 99999999\r\nabc\r\nset a 0 0 2\r\nabc\r\nbogus\r\n\r\nmg a E1\r\nmg a v v\r\n",
    ]
    .map(|stream| stream.as_bytes().to_vec())
    .to_vec()
}

/// The couchstore files that the tests of `storage` read, small ones, and an empty one.
fn couchstore_files() -> Vec<Vec<u8>> {
    fixtures("couchstore")
}

/// Segments, and what is in their first groups.
fn journal_segments() -> Vec<Vec<u8>> {
    const GROUP_AT: usize = 4096;
    let mut segments = fixtures("journal");
    let after_header = segments.iter().filter_map(|segment| segment.get(GROUP_AT + 64..));
    let payloads: Vec<_> = after_header.map(<[u8]>::to_vec).collect();
    segments.extend(payloads);
    segments
}

fn fixtures(directory: &str) -> Vec<Vec<u8>> {
    const SIZE_MAX: u64 = 256 << 10;
    let mut files = vec![Vec::new()];
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/storage/tests/fixtures");
    let root = fixtures.join(directory);
    let mut directories = vec![root];
    while let Some(directory) = directories.pop() {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        let mut entries: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        // The order decides what a seed means.
        entries.sort();
        for path in entries {
            let size = fs::metadata(&path).map_or(u64::MAX, |metadata| metadata.len());
            if path.is_dir() {
                directories.push(path);
            } else if size <= SIZE_MAX
                && let Ok(bytes) = fs::read(&path)
            {
                files.push(bytes);
            }
        }
    }
    files
}

/// Messages of the exchange of RFC 5802, section 5, and of PLAIN (RFC 4616).
fn scram_messages() -> Vec<Vec<u8>> {
    [
        &b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL"[..],
        b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
        b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
        b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
        b"\0user\0password",
    ]
    .map(<[u8]>::to_vec)
    .to_vec()
}

/// Roles, limits, and all users and groups.
fn user_texts() -> Vec<Vec<u8>> {
    const KEYS: &str =
        r#"{"salt":"AAAA","iterations":4096,"stored_key":"AAAA","server_key":"AAAA"}"#;
    let user = format!(
        r#"{{"sha1":{KEYS},"sha256":{KEYS},"sha512":{KEYS},"full_name":"","roles":["admin"],
            "groups":["g"],"limits":{{"num_ops_per_min":5}}}}"#
    );
    [
        "admin,ro_admin,bucket_admin[b],scope_admin[b:s],data_reader[b:s:c],data_writer[*]",
        r#"{"kv":{"num_connections":1,"num_ops_per_min":2,"ingress_mib_per_min":3}}"#,
        r#"{"version":2,"revision":7,"users":{},"groups":{"g":{"description":"d","roles":[]}}}"#,
        &format!(r#"{{"version":2,"revision":7,"users":{{"bob":{user}}},"groups":{{}}}}"#),
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

/// Maps of one bucket and of several.
fn cluster_plans() -> Vec<Vec<u8>> {
    const NODES: &str = r#""nodes":[{"name":"n_1@h","host":"h","kv":5,"mgmt":6},
        {"name":"n_0@h","host":"h","kv":1,"mgmt":2,"kvSSL":3,"mgmtSSL":4}]"#;
    const ID: &str = "0123456789abcdef0123456789abcdef";
    [
        format!(
            r#"{{"rev":[1,7],{NODES},"bucket":"default","replicas":1,
                "vbuckets":[[0,1],[1,0],[1,null],[null,0]]}}"#
        ),
        format!(
            r#"{{"rev":[1,7],"cluster_uuid":"{ID}",{NODES},"buckets":{{"a":{{"uuid":"{ID}",
                "replicas":0,"vbuckets":[[0]]}},"b":{{"replicas":1,"vbuckets":[[0,1],[1,0]]}}}}}}"#
        ),
    ]
    .map(String::into_bytes)
    .to_vec()
}

/// Each command with paths that lead somewhere and nowhere, in the form of
/// `subdocument::fuzzing::path_command`.
fn path_commands() -> Vec<Vec<u8>> {
    const DOCUMENT: &[u8] = br#"{"a": 1, "b":[10, {"c":"x\"]"}, [ ] ], "d":{"e.f":{"g":null}}}"#;
    const PATHS: [&[u8]; 7] = [b"a", b"b", b"b[1].c", b"b[-1]", b"d.`e.f`.g", b"x.y[0]", b""];
    const VALUES: [&[u8]; 4] = [b"1", b"[1,{\"k\":2}]", b"\"text\"", b"1,2"];
    let mut inputs = Vec::new();
    for opcode in 0xc5..=0xd2 {
        for path in PATHS {
            for value in VALUES {
                inputs.push([&[opcode, 1], path, &[0], value, &[0], DOCUMENT].concat());
            }
        }
    }
    inputs
}

/// Requests in the form of `subdocument::fuzzing::multi_request`.
fn multi_requests() -> Vec<Vec<u8>> {
    const STORED: &[u8] = b"\0\0\0\x0b\0\0\0\x07_s\0[7]\0{\"a\":{},\"b\":[1]}";
    const SPECS: [&[u8]; 4] = [
        b"\xc8\x05txn.a\x001\0\xc8\x14m\0\"${Mutation.CAS}\"\0\xd3\x04txn\0\0\xc9\x04txn\0\0",
        b"\xc8\x24bin\0\x01\x02\0\xcb\x04_s\x002\0\xc7\x00a.c\0null\0\xcf\x00b[0]\x005\0",
        b"\xc5\x04$document\0\0\xc5\x04_s[0]\0\0\xd2\x00b\0\0\x00\x00\0\0",
        b"\xc7\x04u\x001\0\x04\x00\0\0",
    ];
    let size = u8::try_from(STORED.len()).expect("it is short");
    let mut inputs = Vec::new();
    for specs in SPECS {
        for [shape, flags] in [[0, 0], [0, 1], [4, 1], [4, 2], [2, 4], [2, 0x14], [1, 0]] {
            inputs.push([&[shape, flags, 5, 0, size], STORED, specs].concat());
        }
    }
    inputs
}

/// Keys of documents with collections of one to five bytes, and events behind the sizes of their
/// keys.
fn keys() -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    for id in [0, 1, 7, 8, 127, 128, 300, 1 << 21, 1 << 28, u32::MAX] {
        inputs.push([&encode_collection(CollectionId(id)), &b"name"[..]].concat());
    }
    let (uid, scope, collection) = (7, ScopeId(8), CollectionId(9));
    let events = [
        ManifestEvent::ScopeCreated { uid, scope, name: "s" },
        ManifestEvent::ScopeDropped { uid, scope },
        ManifestEvent::CollectionDropped { uid, scope, collection },
        ManifestEvent::CollectionCreated(EventCollection {
            uid,
            scope,
            id: collection,
            name: "c",
            max_ttl: Some(60),
            history: false,
        }),
    ];
    for event in events {
        let key = event.key();
        let size = u8::try_from(key.len() + 1).expect("keys of events are short");
        inputs.push([&[size], &key[..], &event.encode()].concat());
    }
    inputs
}

/// Values with none, one and several attributes in front of their bodies.
fn attributed_values() -> Vec<Vec<u8>> {
    let entry = |key: &[u8], value: &[u8]| {
        let pair = [key, b"\0", value, b"\0"].concat();
        let size = u32::try_from(pair.len()).expect("attributes here are short");
        [&size.to_be_bytes()[..], &pair].concat()
    };
    let user = entry(b"user", br#"{"a":[1,null,"x"]}"#);
    let system = entry(b"_sync", br#"{"rev":"1-a"}"#);
    let sections = [vec![], user.clone(), system.clone(), [user, system].concat()];
    let value = |section: Vec<u8>| {
        let size = u32::try_from(section.len()).expect("sections here are short");
        [&size.to_be_bytes()[..], &section, br#"{"body":true}"#].concat()
    };
    sections.into_iter().map(value).collect()
}
