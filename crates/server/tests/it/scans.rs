//! Range scans of clients that take what is found, take it slowly, or leave.

use bucket::RangeScanStatistics;

use crate::support::{Client, Port, frame, set};

const CREATE: u8 = 0xda;
const CONTINUE: u8 = 0xdb;
const SUCCESS: u16 = 0x00;
const EBUSY: u16 = 0x85;
const CANCELLED: u16 = 0xa5;
const COMPLETE: u16 = 0xa7;
const JSON: u16 = 0x0b;
const XERROR: u16 = 0x07;
/// More than the sockets between a node and a client that does not read take, and the node's limit.
const BYTES: usize = 48 << 20;
const VALUE_BYTES: usize = 1 << 20;

fn create(client: &mut Client, key_only: bool) -> Vec<u8> {
    let value = format!(r#"{{"range":{{"start":"AA==","end":"/w=="}},"key_only":{key_only}}}"#);
    let reply = client.ask(frame(CREATE).value(value.as_bytes()));
    assert_eq!((reply.status, reply.value.len()), (SUCCESS, 16));
    reply.value
}

/// A port with documents that take so many bytes together, on the disk.
fn filled(count: usize, size: usize) -> Port {
    let port = Port::open();
    let mut client = port.client(&[XERROR]);
    for number in 0..count {
        let name = format!("k{number:05}");
        assert_eq!(client.ask(set(name.as_bytes(), &vec![b'v'; size])).status, 0);
    }
    let mut seqno = 0;
    port.bucket.with_vbucket(document::Vbid(0), |vbucket| seqno = vbucket.high_seqno().0);
    assert_eq!(client.ask(frame(0xb7).extras(&seqno.to_be_bytes())).status, 0);
    port
}

fn wait_until(port: &Port, what: &str, is_so: impl Fn(&RangeScanStatistics) -> bool) {
    port.wait_for(what, |_| is_so(&port.bucket.range_scan_statistics()));
}

#[test]
fn what_is_found_comes_in_several_responses_of_which_the_last_one_says_so() {
    let port = filled(3000, 10);
    let mut client = port.client(&[XERROR, JSON]);
    let scan = create(&mut client, true);
    let request = frame(CONTINUE).extras(&[&scan[..], &[0; 12]].concat()).opaque(7);
    client.send(&request.bytes());
    let (mut names, mut responses) = (Vec::new(), 0);
    loop {
        let reply = client.receive();
        assert_eq!((reply.opcode, reply.opaque, &reply.extras[..]), (CONTINUE, 7, &[0; 4][..]));
        let (named, rest) = reply.value.as_chunks::<7>();
        assert!(rest.is_empty(), "no result is torn");
        names.extend(named.iter().map(|name| String::from_utf8(name[1..].to_vec()).unwrap()));
        responses += 1;
        match reply.status {
            // 8 KiB and what went over that; less if reading takes long.
            SUCCESS => assert!(reply.value.len() < 9000),
            status => {
                assert_eq!(status, COMPLETE);
                break;
            }
        }
    }
    assert_eq!(names, (0..3000).map(|number| format!("k{number:05}")).collect::<Vec<_>>());
    assert!(responses >= 3);
    assert_eq!(client.ask(frame(0x0a)).status, 0, "nothing is left over");
}

#[test]
fn no_more_is_read_than_a_client_takes_and_a_client_that_leaves_ends_its_scan() {
    let port = filled(BYTES / VALUE_BYTES, VALUE_BYTES);
    let mut other = port.client(&[XERROR, JSON]);
    let mut client = port.client(&[XERROR, JSON]);
    let scan = create(&mut client, false);
    let request = frame(CONTINUE).extras(&[&scan[..], &[0; 12]].concat());
    client.send(&request.bytes());
    wait_until(&port, "results are read", |scans| scans.open[0].sent_items > 0);
    for _ in 0..100 {
        assert_eq!(other.ask(request.clone()).status, EBUSY);
    }
    let statistics = other.statistics("range-scans").unwrap();
    let value = |name: &str| {
        let found = statistics.iter().find(|(known, _)| known.ends_with(name));
        found.unwrap_or_else(|| panic!("{name}: {statistics:?}")).1.clone()
    };
    assert_eq!(
        (value("open"), value("created"), value(":continued")),
        ("1".into(), "1".into(), "true".into())
    );
    let sent: usize = value(":sent_bytes").parse().unwrap();
    assert!(sent < BYTES / 2, "{sent} bytes are read for a client that takes none");
    drop(client);
    wait_until(&port, "the scan ends", |scans| scans.open.is_empty() && scans.cancelled == 1);
}

#[test]
fn a_scan_that_is_cancelled_while_it_is_sent_says_so() {
    let port = filled(BYTES / VALUE_BYTES, VALUE_BYTES);
    let mut other = port.client(&[XERROR, JSON]);
    let mut client = port.client(&[XERROR, JSON]);
    let scan = create(&mut client, false);
    client.send(&frame(CONTINUE).extras(&[&scan[..], &[0; 12]].concat()).bytes());
    assert_eq!(client.receive().status, SUCCESS);
    assert_eq!(other.ask(frame(0xdc).extras(&scan)).status, SUCCESS);
    let end = loop {
        let reply = client.receive();
        if reply.status != SUCCESS {
            break reply.status;
        }
    };
    assert_eq!(end, CANCELLED);
    assert_eq!(client.ask(frame(0x0a)).status, 0, "the connection goes on");
}
