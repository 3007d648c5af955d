//! What users may do: each command needs its privilege, where the table says so, and nothing else.

use std::sync::{Arc, Barrier, Mutex, Weak};

use auth::{Editor, Group, Noted, Privilege, PrivilegeSet, Role, UsersEdit};
use bucket::BucketConfig;
use document::ManifestEdit;
use protocol::shape::{CasRule, Presence};
use protocol::{Class, Opcode};
use server::{
    BucketAdministrator, BucketRefusal, BucketWords, Followers, Need, NeededIn, needed_for,
};

use crate::support::{Client, Port, RawFrame, bucket_config, frame, get, set};
use crate::text::TextClient;

const COLLECTIONS: u16 = 0x12;
const XERROR: u16 = 0x07;
const JSON: u16 = 0x0b;
const XATTR: u16 = 0x06;
const NO_BUCKET: u16 = 0x08;
const KEY_ENOENT: u16 = 0x01;
const EINVAL: u16 = 0x04;
const EACCESS: u16 = 0x24;
const RANGE_SCAN_COMPLETE: u16 = 0xa7;
const UNKNOWN_COLLECTION: u16 = 0x88;
const UNKNOWN_SCOPE: u16 = 0x8c;
const NOOP: u8 = 0x0a;
const DROP_PRIVILEGE: u8 = 0xfb;
/// Of the request that shows that the one before it is over.
const WITNESS: u32 = 0x7fff_ffff;

/// Runs `test` with one front-end worker, and with several.
fn with_ports(test: impl Fn(&Port)) {
    for workers in [1, 4] {
        let other = BucketConfig { name: "other".to_owned(), ..bucket_config() };
        test(&Port::with_buckets(vec![bucket_config(), other], workers));
    }
}

/// Has the connection do without all these.
fn give_up(client: &mut Client, privileges: PrivilegeSet) {
    let drop = |privilege: Privilege| frame(DROP_PRIVILEGE).key(privilege.name().as_bytes());
    let requests: Vec<u8> = privileges.iter().flat_map(|it| drop(it).bytes()).collect();
    client.send(&requests);
    for privilege in privileges.iter() {
        assert_eq!(client.receive().status, 0, "{privilege:?}");
    }
}

/// A request that has the form of its command.
fn well_formed(opcode: Opcode) -> RawFrame {
    let shape = opcode.info().shape;
    let size = shape.extras_sizes.and_then(|sizes| sizes.first()).copied().unwrap_or(0);
    let mut extras = vec![0; usize::from(size)];
    if opcode == Opcode::DcpOpen {
        // Flags: who opens it receives.
        extras[7] = 1;
    }
    let key: &[u8] = if shape.key == Presence::Required { b"key" } else { b"" };
    let value: &[u8] = if shape.value == Presence::Required { b"{}" } else { b"" };
    let cas = u64::from(shape.cas == CasRule::NonZero);
    frame(opcode.byte()).extras(&extras).key(key).value(value).cas(cas)
}

/// The status of the answer; `None` when there is none, as to a quiet request that succeeds.
fn status_of(client: &mut Client, request: &RawFrame) -> Option<u16> {
    client.send(&[request.bytes(), frame(NOOP).opaque(WITNESS).bytes()].concat());
    client.try_receive().filter(|reply| reply.opaque != WITNESS).map(|reply| reply.status)
}

/// What is enough for a command.
fn enough_for(need: &Need) -> PrivilegeSet {
    let one = need.one.iter().next().map(|privilege| PrivilegeSet::of(&[privilege]));
    need.all | one.unwrap_or_default()
}

/// Commands that need something.
fn needy() -> impl Iterator<Item = (Opcode, &'static Need)> {
    let all = Opcode::ALL.iter().filter(|opcode| opcode.info().class != Class::Retired);
    let needs = all.map(|opcode| (*opcode, needed_for(*opcode)));
    needs.filter(|(_, need)| !(need.all | need.one).is_empty())
}

#[test]
fn without_the_privilege_that_it_needs_each_command_is_refused() {
    with_ports(|port| {
        for (opcode, need) in needy() {
            let mut lacking: Vec<PrivilegeSet> =
                need.all.iter().map(|privilege| PrivilegeSet::of(&[privilege])).collect();
            if !need.one.is_empty() {
                lacking.push(need.one);
            }
            for missing in lacking {
                let mut client = port.client(&[XERROR]);
                give_up(&mut client, missing);
                let status = status_of(&mut client, &well_formed(opcode));
                assert_eq!(status, Some(EACCESS), "{opcode:?} without {missing:?}");
            }
        }
    });
}

#[test]
fn with_the_privilege_that_it_needs_alone_no_command_is_refused() {
    with_ports(|port| {
        for (opcode, need) in needy() {
            let mut client = port.client(&[XERROR]);
            give_up(&mut client, PrivilegeSet::ALL.without(enough_for(need)));
            let status = status_of(&mut client, &well_formed(opcode));
            assert_ne!(status, Some(EACCESS), "{opcode:?}");
        }
    });
}

#[test]
fn without_a_bucket_a_command_that_needs_one_says_so_whoever_asks() {
    let port = Port::with_buckets(vec![bucket_config()], 1);
    let mut client = port.client(&[XERROR]);
    give_up(&mut client, PrivilegeSet::ALL);
    assert_eq!(client.ask(frame(0x89).key(b"@no bucket@")).status, 0);
    for opcode in [Opcode::Get, Opcode::Set, Opcode::GetRandomKey, Opcode::SetVbucket] {
        assert_ne!(needed_for(opcode).place, NeededIn::Node);
        let status = status_of(&mut client, &well_formed(opcode));
        assert_eq!(status, Some(NO_BUCKET), "{opcode:?}");
        assert_eq!(client.receive().opaque, WITNESS);
    }
}

/// A user with these roles, whose password is its name.
fn put_user(port: &Port, user: &str, roles: &str) {
    let edit = UsersEdit::PutUser {
        user: user.to_owned(),
        password: Some(port.users.hash(user.as_bytes(), 0)),
        full_name: String::new(),
        roles: Role::parse_all(roles).unwrap(),
        groups: Vec::new(),
        limits: auth::UserLimits::default(),
    };
    port.users.edit(&edit, Editor::Admin).unwrap();
}

fn log_in(port: &Port, user: &str, features: &[u16]) -> Client {
    let mut client = port.connect();
    client.hello(features);
    let login = format!("\0{user}\0{user}");
    assert_eq!(client.ask(frame(0x21).key(b"PLAIN").value(login.as_bytes())).status, 0);
    client
}

fn select(client: &mut Client, bucket: &str) -> u16 {
    client.ask(frame(0x89).key(bucket.as_bytes())).status
}

#[test]
fn a_bucket_in_which_one_may_do_nothing_looks_like_one_that_is_not_there() {
    with_ports(|port| {
        put_user(port, "reader", "data_reader[default]");
        let mut client = log_in(port, "reader", &[XERROR]);
        let statuses = ["default", "other", "none"].map(|bucket| select(&mut client, bucket));
        assert_eq!(statuses, [0, EACCESS, EACCESS]);
        assert_eq!(client.ask(frame(0x87)).value, b"default");
        put_user(port, "nobody", "");
        let mut nobody = log_in(port, "nobody", &[XERROR]);
        assert_eq!(select(&mut nobody, "default"), EACCESS);
        assert_eq!(nobody.ask(frame(0xb5)).status, EACCESS, "nor is the cluster's map shown");
        assert_eq!(nobody.ask(get(b"k")).status, NO_BUCKET);
    });
}

#[test]
fn who_reads_does_not_write_and_who_writes_does_not_read() {
    with_ports(|port| {
        put_user(port, "reader", "data_reader[default]");
        put_user(port, "writer", "data_writer[default]");
        for (user, statuses) in
            [("reader", [EACCESS, KEY_ENOENT, EACCESS]), ("writer", [0, EACCESS, EACCESS])]
        {
            let mut client = log_in(port, user, &[XERROR]);
            assert_eq!(select(&mut client, "default"), 0);
            let large = vec![b'x'; 100_000];
            let store = if user == "writer" { set(b"k", b"v") } else { set(b"k", &large) };
            let found = [store, get(b"absent"), frame(0x05).extras(&[0; 20]).key(b"n")]
                .map(|request| client.ask(request).status);
            assert_eq!(found, statuses, "{user}");
            assert!(client.statistics("vbucket").is_ok());
            assert_eq!(client.statistics("settings").unwrap_err().status, EACCESS);
        }
    });
}

/// Two scopes with two collections each; ids by name.
fn with_collections(port: &Port) -> impl Fn(&str, &str) -> u32 + '_ {
    for scope in ["s", "t"] {
        port.bucket.edit_manifest(ManifestEdit::CreateScope { scope }).unwrap();
        for collection in ["c", "d"] {
            let create =
                ManifestEdit::CreateCollection { scope, collection, max_ttl: None, history: false };
            port.bucket.edit_manifest(create).unwrap();
        }
    }
    |scope, collection| {
        let manifest = port.bucket.manifest();
        let scope = manifest.scope(scope).unwrap();
        scope.collections.iter().find(|it| it.name == collection).unwrap().id.0
    }
}

fn key_in(collection: u32) -> Vec<u8> {
    vec![u8::try_from(collection).unwrap(), b'k']
}

#[test]
fn a_user_of_one_collection_knows_of_no_other() {
    with_ports(|port| {
        let id = with_collections(port);
        put_user(port, "one", "data_reader[default:s:c],data_writer[default:s:c]");
        put_user(port, "scope", "data_reader[default:s]");
        let mut one = log_in(port, "one", &[XERROR, COLLECTIONS, JSON]);
        let mut scope = log_in(port, "scope", &[XERROR, COLLECTIONS, JSON]);
        for client in [&mut one, &mut scope] {
            assert_eq!(select(client, "default"), 0);
        }
        let (own, sibling, foreign) = (id("s", "c"), id("s", "d"), id("t", "c"));
        for _ in 0..2 {
            assert_eq!(one.ask(set(&key_in(own), b"v")).status, 0);
            assert_eq!(one.ask(get(&key_in(own))).value, b"v");
            for collection in [0, sibling, foreign, 99] {
                let reply = one.ask(get(&key_in(collection)));
                assert_eq!(reply.status, UNKNOWN_COLLECTION, "{collection}");
                assert!(!reply.value.is_empty(), "with the manifest's uid");
            }
        }
        assert_eq!(scope.ask(get(&key_in(sibling))).status, KEY_ENOENT);
        assert_eq!(scope.ask(set(&key_in(own), b"v")).status, EACCESS, "it knows of it");
        assert_eq!(scope.ask(get(&key_in(foreign))).status, UNKNOWN_COLLECTION);

        let id_of = |path: &str| frame(0xbb).value(path.as_bytes());
        let statuses = ["s.c", "s.d", "t.c", "_default._default"];
        let statuses = statuses.map(|path| one.ask(id_of(path)).status);
        assert_eq!(statuses, [0, UNKNOWN_COLLECTION, UNKNOWN_SCOPE, UNKNOWN_SCOPE]);
        let scopes = ["s", "t"].map(|name| one.ask(frame(0xbc).value(name.as_bytes())).status);
        assert_eq!(scopes, [0, UNKNOWN_SCOPE]);
        let manifest = String::from_utf8(one.ask(frame(0xba)).value).unwrap();
        assert!(manifest.contains("\"c\"") && !manifest.contains("\"d\""), "{manifest}");
        assert!(!manifest.contains("\"t\""), "{manifest}");
        let names = one.statistics("collections").unwrap();
        assert_eq!(names.iter().filter(|(name, _)| name.ends_with(":name")).count(), 1);
        let mut told = |group: String| one.statistics(&group).err().map(|refused| refused.status);
        for (collection, status) in
            [(own, None), (sibling, Some(KEY_ENOENT)), (foreign, Some(KEY_ENOENT))]
        {
            assert_eq!(told(format!("collections-byid 0x{collection:x}")), status);
            let status = status.map(|_| UNKNOWN_COLLECTION);
            for group in ["key-byid", "vkey-byid"] {
                assert_eq!(told(format!("{group} k 0 0x{collection:x}")), status, "{group}");
            }
        }
        assert_eq!(told("scopes-byid 0x0".to_owned()), Some(KEY_ENOENT));
        assert_eq!(told("vkey k 0".to_owned()), Some(UNKNOWN_COLLECTION));
        let random = |id: u32| frame(0xb6).extras(&id.to_be_bytes());
        assert_ne!(one.ask(random(own)).status, UNKNOWN_COLLECTION);
        assert_eq!(one.ask(random(sibling)).status, UNKNOWN_COLLECTION);
        assert_ne!(one.ask(frame(0x91).value(&[0; 8])).status, EACCESS, "seqnos of a vBucket");
    });
}

#[test]
fn what_waits_behind_a_request_is_carried_out_by_the_rights_of_then() {
    with_ports(|port| {
        let place = |client: &mut Client, topology: &str| {
            let json = format!(r#"{{"topology":{topology}}}"#);
            let request = frame(0x3d).extras(&[1]).value(json.as_bytes()).datatype(1);
            assert_eq!(client.ask(request).status, 0, "{topology}");
        };
        let mut admin = port.client(&[XERROR, JSON]);
        place(&mut admin, r#"[["a","b"]]"#);
        put_user(port, "bob", "data_reader[default],data_writer[default]");
        // With other framing and durable writes, in order.
        let mut bob = log_in(port, "bob", &[XERROR, 0x04, 0x10, 0x11]);
        assert_eq!(select(&mut bob, "default"), 0);
        let durable = set(b"first", b"v").framing(&[0x11, 1]);
        bob.send(&[durable.bytes(), set(b"second", b"v").bytes()].concat());
        port.wait_for("it waits", |_| port.counter("parked_requests") > 0);
        put_user(port, "bob", "data_reader[default]");
        place(&mut admin, r#"[["a"]]"#);
        let statuses = [bob.receive().status, bob.receive().status];
        assert_eq!(statuses, [0, EACCESS], "what was let in goes on, what was not does not");
        assert_eq!(admin.ask(get(b"second")).status, KEY_ENOENT);
    });
}

#[test]
fn a_scan_of_a_collection_is_for_who_may_scan_it() {
    with_ports(|port| {
        let id = with_collections(port);
        let (own, sibling) = (id("s", "c"), id("s", "d"));
        let mut owner = port.client(&[XERROR, COLLECTIONS, JSON]);
        assert_eq!(owner.ask(set(&key_in(sibling), b"v")).status, 0);
        let mut seqno = 0;
        port.bucket.with_vbucket(document::Vbid(0), |vbucket| seqno = vbucket.high_seqno().0);
        assert_eq!(owner.ask(frame(0xb7).extras(&seqno.to_be_bytes())).status, 0);
        let range = r#""range":{"start":"AA==","end":"/w=="}"#;
        let wanted = format!(r#"{{"collection":"{sibling:x}",{range},"key_only":true}}"#);
        let scan = owner.ask(frame(0xda).value(wanted.as_bytes()));
        assert_eq!(scan.status, 0);

        put_user(port, "one", "data_reader[default:s:c],data_writer[default:s:c]");
        let mut one = log_in(port, "one", &[XERROR, COLLECTIONS, JSON]);
        assert_eq!(select(&mut one, "default"), 0);
        assert_eq!(one.ask(set(&key_in(own), b"v")).status, 0);
        let go_on = frame(0xdb).extras(&[&scan.value[..], &[0; 12]].concat());
        assert_eq!(one.ask(go_on.clone()).status, UNKNOWN_COLLECTION);
        assert_eq!(one.ask(frame(0xdc).extras(&scan.value)).status, UNKNOWN_COLLECTION);
        let open = |client: &mut Client| {
            let statistics = client.statistics("range-scans").unwrap();
            statistics.iter().filter(|(name, _)| name.ends_with(":name")).count()
        };
        assert_eq!((open(&mut one), open(&mut owner)), (0, 1));

        let found = owner.ask(go_on);
        assert_eq!(found.status, RANGE_SCAN_COMPLETE);
        assert!(found.value.ends_with(b"k"), "nobody has taken it: {:?}", found.value);
    });
}

#[test]
fn system_attributes_have_privileges_of_their_own() {
    with_ports(|port| {
        let mut client = port.client(&[XERROR, XATTR]);
        assert_eq!(client.ask(set(b"k", b"{}")).status, 0);
        let value = |path: &str, value: &str| [path, value].concat().into_bytes();
        let attribute = |opcode: u8, path: &str, data: &str| {
            let path_size = u8::try_from(path.len()).unwrap();
            // The path's flags: an attribute, made with what leads to it.
            let flags = if opcode == 0xc5 { 0x04 } else { 0x05 };
            frame(opcode).extras(&[0, path_size, flags]).key(b"k").value(&value(path, data))
        };
        assert_eq!(client.ask(attribute(0xc8, "_sys", "1")).status, 0);
        assert_eq!(client.ask(attribute(0xc5, "_sys", "")).value, b"1");
        let system = [Privilege::SystemXattrRead, Privilege::SystemXattrWrite];
        give_up(&mut client, PrivilegeSet::of(&system));
        assert_eq!(client.ask(attribute(0xc8, "_sys", "2")).status, EACCESS);
        assert_eq!(client.ask(attribute(0xc5, "_sys", "")).status, EACCESS);
        assert_eq!(client.ask(attribute(0xc8, "own", "2")).status, 0);
    });
}

#[test]
fn who_loses_a_privilege_loses_it_on_connections_that_are_open() {
    with_ports(|port| {
        put_user(port, "bob", "data_reader[default],data_writer[default]");
        let mut client = log_in(port, "bob", &[XERROR]);
        assert_eq!(select(&mut client, "default"), 0);
        assert_eq!(client.ask(set(b"k", b"v")).status, 0);
        put_user(port, "bob", "data_reader[default]");
        assert_eq!(client.ask(set(b"k", b"v")).status, EACCESS);
        assert_eq!(client.ask(get(b"k")).value, b"v");
        let group =
            Group { roles: Role::parse_all("data_writer[default]").unwrap(), ..Group::default() };
        port.users.edit(&UsersEdit::PutGroup("g".to_owned(), group), Editor::Admin).unwrap();
        let edit = UsersEdit::PutUser {
            user: "bob".to_owned(),
            password: None,
            full_name: String::new(),
            roles: Vec::new(),
            groups: vec!["g".to_owned()],
            limits: auth::UserLimits::default(),
        };
        port.users.edit(&edit, Editor::Admin).unwrap();
        assert_eq!(client.ask(set(b"k", b"w")).status, 0, "what it gains, too");
        port.users.edit(&UsersEdit::RemoveGroup("g".to_owned()), Editor::Admin).unwrap();
        client.send(&get(b"k").bytes());
        assert!(client.is_closed(), "it may do nothing in its bucket any more");
    });
}

#[test]
fn a_user_that_was_removed_is_let_go_and_does_not_come_back() {
    with_ports(|port| {
        put_user(port, "bob", "admin");
        let mut clients = [0; 3].map(|_| log_in(port, "bob", &[XERROR]));
        assert_eq!(select(&mut clients[0], "default"), 0);
        port.users.edit(&UsersEdit::RemoveUser("bob".to_owned()), Editor::Admin).unwrap();
        for client in &mut clients {
            client.send(&frame(0x10).bytes());
            assert!(client.is_closed());
        }
        let mut client = port.connect();
        client.hello(&[XERROR]);
        let login = client.ask(frame(0x21).key(b"PLAIN").value(b"\0bob\0bob"));
        assert_eq!(login.status, 0x20);
    });
}

/// The same in the name of a user.
fn named(request: RawFrame, user: &str) -> RawFrame {
    let size = u8::try_from(user.len()).unwrap();
    request.framing(&[&[0x40 | size][..], user.as_bytes()].concat())
}

#[test]
fn whoever_may_acts_in_the_name_of_others_and_has_their_rights_then() {
    with_ports(|port| {
        put_user(port, "reader", "data_reader[default]");
        let mut admin = port.client(&[XERROR]);
        assert_eq!(admin.ask(set(b"k", b"v")).status, 0);
        assert_eq!(admin.ask(named(get(b"k"), "reader")).value, b"v");
        let large = vec![b'x'; 100_000];
        for value in [&b"w"[..], &large] {
            assert_eq!(admin.ask(named(set(b"k", value), "reader")).status, EACCESS);
        }
        assert_eq!(admin.ask(named(get(b"k"), "nobody")).status, EACCESS);
        assert_eq!(admin.ask(set(b"k", b"w")).status, 0, "its own rights are as before");
        let select = named(frame(0x89).key(b"other"), "reader");
        assert_eq!(admin.ask(select).status, 0x83);
        let mut reader = log_in(port, "reader", &[XERROR]);
        assert_eq!(reader.ask(frame(0x89).key(b"default")).status, 0);
        assert_eq!(reader.ask(named(get(b"k"), "user")).status, EACCESS);
    });
}

/// Makes no bucket before it is let to.
struct SlowAdministrator {
    begun: Barrier,
    released: Barrier,
}

impl BucketAdministrator for SlowAdministrator {
    fn create(&self, _: &str, _: &BucketWords) -> Result<(), BucketRefusal> {
        self.begun.wait();
        self.released.wait();
        Ok(())
    }

    fn delete(&self, _: &str, _: Box<dyn FnOnce() + Send>) -> Result<Vec<String>, BucketRefusal> {
        Err(BucketRefusal::NotFound)
    }

    fn followers(&self, _: &str) -> Followers {
        Followers::Followed
    }
}

#[test]
fn a_change_in_the_name_of_a_user_who_is_gone_at_its_end_is_told_as_it_ended() {
    with_ports(|port| {
        let barrier = || Barrier::new(2);
        let slow = Arc::new(SlowAdministrator { begun: barrier(), released: barrier() });
        let administrator: Weak<dyn BucketAdministrator> = Arc::downgrade(&slow) as _;
        port.server.administrate_with(administrator);
        put_user(port, "root", "admin");
        let mut client = port.client(&[XERROR]);
        let create = frame(0x85).key(b"orders").value(b"ep.so");
        client.send(&named(create, "root").bytes());
        slow.begun.wait();
        port.users.edit(&UsersEdit::RemoveUser("root".to_owned()), Editor::Admin).unwrap();
        slow.released.wait();
        assert_eq!(client.receive().status, 0);
        assert_eq!(client.ask(named(get(b"k"), "root")).status, EACCESS, "there is no such user");
    });
}

#[test]
fn a_stream_needs_the_right_to_all_that_it_selects() {
    with_ports(|port| {
        let id = with_collections(port);
        put_user(port, "streamer", "data_dcp_reader[default:s:c]");
        let open = || {
            let mut client = log_in(port, "streamer", &[XERROR, COLLECTIONS, JSON]);
            assert_eq!(select(&mut client, "default"), 0);
            let extras = [0, 0, 0, 0, 0, 0, 0, 1];
            assert_eq!(client.ask(frame(0x50).extras(&extras).key(b"c")).status, 0);
            let control = frame(0x5e).key(b"enable_noop").value(b"true");
            assert_eq!(client.ask(control).status, 0);
            client
        };
        let stream = |selection: &str| {
            let mut extras = [0; 48];
            extras[16..24].fill(0xff);
            frame(0x53).extras(&extras).value(selection.as_bytes())
        };
        let of = |id: u32| format!("{{\"collections\":[\"{id:x}\"]}}");
        for (selection, status) in [
            (String::new(), EACCESS),
            ("{\"scope\":\"8\"}".to_owned(), EACCESS),
            ("{\"scope\":\"9\"}".to_owned(), UNKNOWN_SCOPE),
            (of(id("s", "d")), UNKNOWN_COLLECTION),
            (of(id("s", "c")), 0),
        ] {
            assert_eq!(open().ask(stream(&selection)).status, status, "{selection}");
        }
        let mut client = open();
        put_user(port, "streamer", "data_reader[default:s:c]");
        client.send(&frame(0x5c).bytes());
        assert!(client.is_closed(), "who receives streams and may do less is let go");
    });
}

#[test]
fn who_receives_streams_is_no_node() {
    with_ports(|port| {
        put_user(port, "streamer", "data_dcp_reader[default]");
        let open =
            |name: &str| frame(0x50).extras(&[0, 0, 0, 0, 0, 0, 0, 0x25]).key(name.as_bytes());
        let opened = |mut client: Client| {
            assert_eq!(select(&mut client, "default"), 0);
            assert_eq!(client.ask(open("c")).status, 0);
            for key in ["enable_noop", "enable_sync_writes"] {
                let control = frame(0x5e).key(key.as_bytes()).value(b"true");
                assert_eq!(client.ask(control).status, 0, "{key}");
            }
            client
        };
        let stream = |flags: u8| {
            let mut extras = [0; 48];
            extras[3] = flags;
            extras[16..24].fill(0xff);
            frame(0x53).extras(&extras).opaque(7)
        };
        let name = || frame(0x5e).key(b"consumer_name").value(b"n_1");
        let acknowledged = || frame(0x61).extras(&1_u64.to_be_bytes()).opaque(7);
        let takeover = 1;

        let mut reader = opened(log_in(port, "streamer", &[XERROR, COLLECTIONS, JSON]));
        for request in [name(), stream(takeover), acknowledged()] {
            assert_eq!(reader.ask(request).status, EACCESS);
        }
        assert_eq!(reader.ask(stream(0)).status, 0, "streams of prepares are for everybody");

        let mut node = opened(port.client(&[XERROR, COLLECTIONS, JSON]));
        assert_eq!(node.ask(name()).status, 0);
        node.send(&acknowledged().bytes());
        assert_eq!(node.ask(stream(takeover)).status, 0);
        assert!(reader.is_closed(), "its name is a node's now");

        let mut reader = log_in(port, "streamer", &[XERROR, COLLECTIONS, JSON]);
        assert_eq!(select(&mut reader, "default"), 0);
        assert_eq!(reader.ask(open("c")).status, EACCESS, "nodes keep their names");
        assert_eq!(reader.ask(open("d")).status, 0);
    });
}

#[test]
fn users_are_read_again_when_an_administrator_asks_and_privileges_have_names() {
    with_ports(|port| {
        let mut client = port.client(&[XERROR]);
        for opcode in [0xf1, 0xf7] {
            assert_eq!(client.ask(frame(opcode)).status, 0);
        }
        assert_eq!(client.ask(frame(DROP_PRIVILEGE).key(b"read")).status, EINVAL);
    });
}

#[test]
fn an_order_in_lines_is_noted_where_it_is_carried_out() {
    for (port, expected) in [(Port::open(), None), (Port::with_flush(), Some("FLUSH default"))] {
        let noted = Arc::new(Mutex::new(None));
        let watching = noted.clone();
        port.users.watch_with(move |actor, noted| {
            let Noted::Ordered { command, bucket, .. } = noted else { return };
            assert_eq!(actor.user, "anonymous");
            *watching.lock().unwrap() = Some(format!("{command} {}", bucket.unwrap()));
        });
        let mut client = TextClient::connected_to(&port);
        client.send(b"flush_all\r\n");
        client.line();
        assert_eq!(noted.lock().unwrap().as_deref(), expected);
    }
}

#[test]
fn an_order_is_noted_with_who_gives_it_and_what_is_refused_is_not() {
    with_ports(|port| {
        let noted = Arc::new(Mutex::new(Vec::new()));
        let watching = noted.clone();
        port.users.watch_with(move |actor, noted| {
            let Noted::Ordered { command, key, bucket, in_name_of } = noted else { return };
            let key = String::from_utf8_lossy(key);
            let line = format!("{} {command} {key} {bucket:?} {in_name_of:?}", actor.user);
            assert!(actor.address.is_some_and(|address| address.is_loopback()));
            watching.lock().unwrap().push(line);
        });
        put_user(port, "root", "admin");
        put_user(port, "reader", "data_reader[default]");
        let mut client = port.client(&[]);
        let set_max_ttl = || frame(0x82).extras(&[0, 0, 0, 1]).key(b"max_ttl").value(b"0");
        // Nobody makes or deletes buckets of this server: it is noted what was asked for.
        for request in [
            frame(0x86).key(b"gone"),
            set_max_ttl(),
            named(set_max_ttl(), "root"),
            named(set_max_ttl(), "reader"),
            set(b"key", b"value"),
        ] {
            client.ask(request);
        }
        give_up(&mut client, PrivilegeSet::of(&[Privilege::NodeSupervisor]));
        assert_eq!(client.ask(well_formed(Opcode::CompactDb)).status, EACCESS);
        // Who has selected no bucket has no right to it.
        let mut guest = Client::connected_to(port.memcached_address);
        assert_eq!(select(&mut guest, "@no bucket@"), 0);
        assert_ne!(guest.ask(well_formed(Opcode::DelVbucket)).status, 0);
        let expected = [
            "user DELETE_BUCKET gone Some(\"default\") None",
            "user SET_PARAM max_ttl Some(\"default\") None",
            "user SET_PARAM max_ttl Some(\"default\") Some(\"root\")",
        ];
        assert_eq!(*noted.lock().unwrap(), expected);
    });
}
