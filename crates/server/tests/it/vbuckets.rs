//! Which vBuckets there are, and what requests hear of them in each role. Source:
//! docs/specification/engine.md, section 6.1; docs/specification/protocol.md, section 18.1.

use document::Vbid;

use crate::support::{Client, Port, frame, get, set};

const NOT_MY_VBUCKET: u16 = 7;
const EINVAL: u16 = 4;
const ACTIVE: u8 = 1;
const REPLICA: u8 = 2;
const PENDING: u8 = 3;
const DEAD: u8 = 4;

fn set_state(client: &mut Client, vbucket: u16, state: u8) -> u16 {
    client.ask(frame(0x3d).vbucket(vbucket).extras(&[state])).status
}

fn state(client: &mut Client, vbucket: u16) -> Result<u32, u16> {
    let reply = client.ask(frame(0x3e).vbucket(vbucket));
    match reply.status {
        0 => Ok(u32::from_be_bytes(reply.value.try_into().unwrap())),
        status => Err(status),
    }
}

fn delete(client: &mut Client, vbucket: u16) -> u16 {
    client.ask(frame(0x3f).vbucket(vbucket)).status
}

fn get_replica(client: &mut Client, key: &[u8]) -> u16 {
    client.ask(frame(0x83).key(key)).status
}

fn observe(client: &mut Client) -> u16 {
    client.ask(frame(0x92).value(b"\0\0\0\x01k")).status
}

#[test]
fn requests_are_answered_by_the_role_of_their_vbucket() {
    let port = Port::open();
    let mut client = port.client(&[0x07]);
    assert_eq!(client.ask(set(b"k", b"v")).status, 0);
    assert_eq!(state(&mut client, 0), Ok(1));
    // GET, SET, GET_REPLICA, OBSERVE, OBSERVE_SEQNO of an unknown branch.
    for (role, statuses) in [
        (ACTIVE, [0, 0, NOT_MY_VBUCKET, 0, 1]),
        (REPLICA, [NOT_MY_VBUCKET, NOT_MY_VBUCKET, 0, 0, 1]),
        (DEAD, [NOT_MY_VBUCKET; 5]),
        (ACTIVE, [0, 0, NOT_MY_VBUCKET, 0, 1]),
    ] {
        assert_eq!(set_state(&mut client, 0, role), 0);
        assert_eq!(state(&mut client, 0), Ok(role.into()));
        let answers = [
            client.ask(get(b"k")).status,
            client.ask(set(b"k", b"v")).status,
            get_replica(&mut client, b"k"),
            observe(&mut client),
            client.ask(frame(0x91).value(&[9; 8])).status,
        ];
        assert_eq!(answers, statuses, "role {role}");
    }
    assert_eq!(client.ask(get(b"absent").vbucket(1)).status, 1, "others go on");
}

#[test]
fn requests_wait_while_their_vbucket_is_pending() {
    let port = Port::open();
    let (mut admin, mut client) = (port.client(&[0x07]), port.client(&[0x07]));
    for (role, status) in [(ACTIVE, 0), (DEAD, NOT_MY_VBUCKET)] {
        assert_eq!(set_state(&mut admin, 0, PENDING), 0);
        for large in [false, true] {
            // A large value is received in its place, and kept while its request waits.
            let size = if large { 1 << 20 } else { 10 };
            client.send(&set(b"k", &vec![b'v'; size]).bytes());
            let parked = |bucket: &bucket::Bucket| bucket.statistics().parked_count;
            while parked(&port.bucket) == 0 {
                std::thread::yield_now();
            }
            assert_eq!(admin.ask(get(b"absent").vbucket(1)).status, 1, "others do not wait");
            assert_eq!(set_state(&mut admin, 0, role), 0);
            assert_eq!(client.receive().status, status, "role {role}");
            assert_eq!(parked(&port.bucket), 0);
            if status == 0 {
                assert_eq!(client.ask(get(b"k")).value.len(), size);
            }
            assert_eq!(set_state(&mut admin, 0, PENDING), 0);
        }
        assert_eq!(set_state(&mut admin, 0, role), 0);
    }
}

#[test]
fn a_vbucket_that_becomes_active_begins_a_branch() {
    let port = Port::open();
    let mut client = port.client(&[0x07]);
    let log = |client: &mut Client| client.ask(frame(0x96)).value;
    let first = log(&mut client);
    assert_eq!(client.ask(set(b"k", b"v")).status, 0);
    for role in [REPLICA, ACTIVE] {
        assert_eq!(set_state(&mut client, 0, role), 0);
    }
    let second = log(&mut client);
    assert_eq!((second.len(), &second[16..]), (32, &first[..]));
    assert_eq!(second[8..16], 1_u64.to_be_bytes());
}

#[test]
fn only_a_dead_vbucket_is_deleted_and_another_can_be_made() {
    let port = Port::open();
    let mut client = port.client(&[0x07]);
    assert_eq!(client.ask(set(b"k", b"v")).status, 0);
    assert_eq!(delete(&mut client, 0), EINVAL);
    assert_eq!(set_state(&mut client, 0, DEAD), 0);
    assert_eq!(client.ask(frame(0x3f).value(b"async=1")).status, EINVAL);
    assert_eq!(client.ask(frame(0x3f).value(b"async=0")).status, 0);
    assert_eq!(delete(&mut client, 0), NOT_MY_VBUCKET);
    assert_eq!(delete(&mut client, 4), NOT_MY_VBUCKET, "the bucket has four");
    assert_eq!(state(&mut client, 0), Err(NOT_MY_VBUCKET));
    for request in [get(b"k"), set(b"k", b"v"), frame(0x96), frame(0x91).value(&[9; 8])] {
        assert_eq!(client.ask(request).status, NOT_MY_VBUCKET);
    }
    assert_eq!(set_state(&mut client, 0, REPLICA), 0);
    assert_eq!(get_replica(&mut client, b"k"), 1);
    assert_eq!(set_state(&mut client, 0, ACTIVE), 0);
    assert_eq!(client.ask(get(b"k")).status, 1);
    assert_eq!(client.ask(set(b"k", b"v")).status, 0);
    let mut seqno = 0;
    port.bucket.with_vbucket(Vbid(0), |vbucket| seqno = vbucket.high_seqno().0);
    assert_eq!(seqno, 1, "its history is its own");
}

#[test]
fn what_is_no_role_is_refused() {
    let port = Port::open();
    let mut client = port.client(&[0x07, 0x0b]);
    assert_eq!(set_state(&mut client, 0, 0), EINVAL);
    assert_eq!(set_state(&mut client, 0, 5), EINVAL);
    assert_eq!(set_state(&mut client, 4, ACTIVE), 0x22);
    let mut with = |role: u8, json: &str| {
        let request = frame(0x3d).extras(&[role]).value(json.as_bytes()).datatype(1);
        client.ask(request).status
    };
    assert_eq!(with(ACTIVE, r#"{"topology":[["a",null]]}"#), 0);
    assert_eq!(with(REPLICA, r#"{"topology":[["a"]]}"#), EINVAL);
    assert_eq!(with(ACTIVE, r#"{"other":1}"#), EINVAL);
    assert_eq!(with(PENDING, r#"{"expected_next_state":"active"}"#), 0);
    assert_eq!(with(REPLICA, r#"{"use_snapshot":"fbr"}"#), 0x83);
    assert_eq!(state(&mut client, 0), Ok(3));
}

#[test]
fn statistics_count_vbuckets_and_documents_by_role() {
    let port = Port::open();
    let mut client = port.client(&[0x07]);
    for vbucket in 0..4 {
        assert_eq!(client.ask(set(b"k", b"v").vbucket(vbucket)).status, 0);
    }
    for (vbucket, role) in [(1, REPLICA), (2, PENDING), (3, DEAD)] {
        assert_eq!(set_state(&mut client, vbucket, role), 0);
    }
    let statistics = client.statistics("").unwrap();
    let value = |name: &str| {
        let found = statistics.iter().find(|(known, _)| known == name);
        found.unwrap_or_else(|| panic!("{name}")).1.clone()
    };
    for role in ["active", "replica", "pending", "dead"] {
        assert_eq!(value(&format!("vb_{role}_num")), "1");
    }
    assert_eq!((value("curr_items"), value("curr_items_tot")), ("1".into(), "4".into()));
    assert_eq!((value("ep_pending_ops"), value("ep_rollback_count")), ("0".into(), "0".into()));
}
