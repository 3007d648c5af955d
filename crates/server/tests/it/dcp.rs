//! Connections of replication on the data port.

use std::time::Duration;

use server::ServerLimits;

use crate::support::{Client, Port, frame, set};

pub(crate) const COLLECTIONS: u16 = 0x12;
const UNORDERED_EXECUTION: u16 = 0x0e;
const NOT_SUPPORTED: u16 = 0x83;
const EINVAL: u16 = 0x04;

fn open(client: &mut Client, name: &[u8], flags: u32) -> u16 {
    let extras = [[0; 4], flags.to_be_bytes()].concat();
    client.ask(frame(0x50).extras(&extras).key(name)).status
}

fn control(client: &mut Client, key: &[u8], value: &[u8]) -> u16 {
    client.ask(frame(0x5e).key(key).value(value)).status
}

/// Opens a connection that streams vBucket 0 from the beginning, with the opaque 7.
fn stream(port: &Port, name: &[u8]) -> Client {
    stream_with(port.client(&[COLLECTIONS]), name)
}

/// The same on a connection that there is, of the bucket that it has selected.
pub(crate) fn stream_with(mut client: Client, name: &[u8]) -> Client {
    assert_eq!(open(&mut client, name, 0x25), 0);
    assert_eq!(control(&mut client, b"enable_noop", b"true"), 0);
    let mut extras = vec![0; 16];
    extras.extend(u64::MAX.to_be_bytes());
    extras.extend([0; 24]);
    let reply = client.ask(frame(0x53).extras(&extras).opaque(7));
    assert_eq!((reply.status, reply.value.len()), (0, 16));
    client
}

#[test]
fn what_one_client_writes_another_gets() {
    let port = Port::open();
    let mut consumer = stream(&port, b"consumer");
    // One on each worker.
    for (number, mut writer) in [port.client(&[]), port.client(&[])].into_iter().enumerate() {
        let value = vec![b'v'; 10_000];
        assert_eq!(writer.ask(set(b"small", b"v")).status, 0);
        assert_eq!(writer.ask(set(b"large", &value)).status, 0);
        let mut seen = Vec::new();
        while seen.len() < 2 {
            let message = consumer.receive();
            assert_eq!((message.opaque, message.status), (7, 0));
            match message.opcode {
                0x56 => {}
                0x57 => seen.push((message.key, message.value)),
                other => panic!("{other:#x}"),
            }
        }
        let expected = [(b"\0small".to_vec(), b"v".to_vec()), (b"\0large".to_vec(), value)];
        assert_eq!(seen, expected, "writer {number}");
    }
    let statistics = consumer.statistics("dcp").unwrap();
    let of = |name: &str| statistics.iter().find(|(key, _)| key == name).unwrap().1.clone();
    assert_eq!(of("ep_dcp_producer_count"), "1");
    assert_eq!(of("eq_dcpq:consumer:items_sent"), "4");
    assert_eq!(of("eq_dcpq:consumer:stream_0_last_sent_seqno"), "4");
}

#[test]
fn a_slow_consumer_gets_everything_all_the_same() {
    let port = Port::open();
    let mut consumer = stream(&port, b"slow");
    let mut writer = port.client(&[]);
    let value = vec![b'v'; 100_000];
    for number in 0..100_u32 {
        assert_eq!(writer.ask(set(&number.to_be_bytes(), &value)).status, 0);
    }
    let mut count = 0;
    while count < 100 {
        let message = consumer.receive();
        if message.opcode == 0x57 {
            assert_eq!(message.value, value);
            count += 1;
        }
    }
}

#[test]
fn a_second_connection_of_a_name_closes_the_first() {
    let port = Port::open();
    let mut first = stream(&port, b"name");
    let mut second = stream(&port, b"name");
    assert!(first.is_closed());
    assert_eq!(second.ask(frame(0x5c)).status, 0);
}

#[test]
fn who_takes_nothing_stays_until_another_takes_its_name() {
    let limits =
        ServerLimits { stalled_time_max: Duration::from_secs(2), ..ServerLimits::default() };
    let port = Port::with_limits(limits);
    let (_paused, _replaced) = (stream(&port, b"paused"), stream(&port, b"replaced"));
    let mut writer = port.client(&[]);
    // More than the buffers of both ends take.
    for number in 0..32_u32 {
        assert_eq!(writer.ask(set(&number.to_be_bytes(), &vec![b'v'; 1 << 20])).status, 0);
    }
    let _other = stream(&port, b"replaced");
    port.wait_for("its streams are ended", |statistics| statistics.stalled_writes == 1);
    let statistics = writer.statistics("dcp").unwrap();
    let producers = statistics.iter().find(|(key, _)| key == "ep_dcp_producer_count").unwrap();
    assert_eq!(producers.1, "2", "that which is paused, and the other one");
}

#[test]
fn a_connection_of_replication_stays_what_it_is() {
    let port = Port::open();
    let mut client = stream(&port, b"name");
    assert_eq!(client.ask(frame(0x89).key(b"default")).status, NOT_SUPPORTED);
    let password = frame(0x21).key(b"PLAIN").value(b"\0user\0password");
    assert_eq!(client.ask(password).status, NOT_SUPPORTED);
    let hello = frame(0x1f).key(b"again").value(&UNORDERED_EXECUTION.to_be_bytes());
    assert_eq!(client.ask(hello).status, NOT_SUPPORTED, "that would be refused by DCP_OPEN");
    assert_eq!(client.ask(frame(0x96)).value.len(), 16);
    assert_eq!(client.ask(frame(0x54)).value.len(), 16);
    assert_eq!(open(&mut client, b"name", 1), EINVAL);
}

#[test]
fn not_everything_can_be_opened() {
    let port = Port::open();
    let mut unordered = port.client(&[UNORDERED_EXECUTION]);
    assert_eq!(open(&mut unordered, b"name", 1), NOT_SUPPORTED);
    let mut client = port.client(&[]);
    assert_eq!(control(&mut client, b"enable_noop", b"true"), NOT_SUPPORTED);
    assert_eq!(open(&mut client, b"name", 0x02), EINVAL);
    assert_eq!(open(&mut client, &[b'n'; 201], 1), EINVAL);
    assert_eq!(open(&mut client, b"name", 1), 0);
    assert_eq!(control(&mut client, b"enable_noop", b"true"), 0);
}

#[test]
fn how_far_a_vbucket_has_gone_over_is_told() {
    let port = Port::open();
    let mut writer = port.client(&[]);
    for key in [b"a", b"b"] {
        assert_eq!(writer.ask(set(key, b"v")).status, 0);
    }
    let mut consumer = stream(&port, b"consumer");
    // One snapshot, or two if the first document had left the log for its file.
    let mut seen = Vec::new();
    while seen.len() < 2 {
        let message = consumer.receive();
        match message.opcode {
            0x56 => {}
            0x57 => seen.push(message.key),
            other => panic!("{other:#x}"),
        }
    }
    assert_eq!(seen, [b"\0a", b"\0b"]);
    for (argument, status, estimate) in [
        ("0", "does_not_exist", "2"),
        ("0 nobody", "connection_does_not_exist", "2"),
        ("1 consumer", "stream_does_not_exist", "0"),
        ("0 consumer", "in-memory", "0"),
        ("0 eq_dcpq:consumer", "in-memory", "0"),
    ] {
        let group = format!("dcp-vbtakeover {argument}");
        let statistics = writer.statistics(&group).unwrap();
        let of = |name: &str| &*statistics.iter().find(|(key, _)| key == name).unwrap().1;
        assert_eq!((of("status"), of("estimate")), (status, estimate), "{group}");
        let vb_items = if argument.starts_with('0') { "2" } else { "0" };
        assert_eq!((of("vb_items"), of("backfillRemaining")), (vb_items, "0"), "{group}");
        assert_eq!(of("takeover_backed_up"), "false");
    }
    let details = writer.statistics("vbucket-details 0").unwrap();
    assert!(details.contains(&("vb_0:takeover_backed_up".to_owned(), "false".to_owned())));
}
