//! A manager that relays between a producer of one node and a consumer of another: it passes bytes
//! on, and has added a stream before that.

use std::io::{self, ErrorKind};
use std::net::{Shutdown, TcpStream};
use std::thread::JoinHandle;

use crate::support::{Client, Port, RawFrame, bucket_config, frame, get, set};

const XATTR: u16 = 0x06;
const XERROR: u16 = 0x07;
const SNAPPY: u16 = 0x0a;
const JSON: u16 = 0x0b;
const ALT_REQUEST: u16 = 0x10;
const SYNC_REPLICATION: u16 = 0x11;
const COLLECTIONS: u16 = 0x12;
const PRODUCER_FLAGS: u32 = 0x125;
/// A value that does not come in one read.
const LARGE_BYTES: usize = 300_000;

/// The manager's two connections, and what passes bytes on in each direction.
struct Manager {
    ends: [TcpStream; 2],
    pumps: Vec<JoinHandle<()>>,
}

impl Manager {
    /// Has vBucket 0 of `target`, where the node is called `node`, receive from `source`.
    fn relay(source: &Port, target: &Port, node: &str) -> Self {
        let features = [COLLECTIONS, XATTR, SNAPPY, JSON, XERROR];
        let mut producer = source.client(&features);
        assert_eq!(producer.ask(open(PRODUCER_FLAGS)).status, 0);
        let mut consumer = target.client(&features);
        let name = format!("{{\"consumer_name\":\"{node}\"}}");
        let named = open(0).value(name.as_bytes()).datatype(1);
        consumer.send(&named.bytes());
        assert_eq!(consumer.receive().status, 0, "the answer comes before the first question");
        // It is carried out when all is agreed on.
        consumer.send(&frame(0x51).extras(&[0; 4]).opaque(5).bytes());
        let ends = [producer.stream, consumer.stream];
        ends.iter().for_each(|end| end.set_read_timeout(None).unwrap());
        let pump = |from: &TcpStream, to: &TcpStream| {
            let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            // The end of a connection ends it, in whatever way it comes.
            let pass_on = move || drop(io::copy(&mut from, &mut to));
            platform::threads::spawn("Pump", pass_on).unwrap()
        };
        let pumps = vec![pump(&ends[0], &ends[1]), pump(&ends[1], &ends[0])];
        Self { ends, pumps }
    }

    fn stop(self) {
        for end in &self.ends {
            if let Err(error) = end.shutdown(Shutdown::Both) {
                assert_eq!(error.kind(), ErrorKind::NotConnected, "the server has closed it");
            }
        }
        self.pumps.into_iter().for_each(|pump| pump.join().unwrap());
    }
}

fn open(flags: u32) -> RawFrame {
    frame(0x50).extras(&[[0; 4], flags.to_be_bytes()].concat()).key(b"relayed")
}

/// Waits until the replica has this document, or none.
fn wait_for(client: &mut Client, key: &[u8], value: Option<&[u8]>) {
    loop {
        let found = client.ask(frame(0x83).key(key));
        if (found.status == 0).then_some(&*found.value) == value {
            return;
        }
        std::thread::yield_now();
    }
}

#[test]
fn what_a_manager_relays_is_in_the_replica_and_counts_for_durable_writes() {
    for workers in [1, 4] {
        let [source, target] = [(); 2].map(|()| Port::with_buckets(vec![bucket_config()], workers));
        let mut writer = source.client(&[XERROR, ALT_REQUEST, SYNC_REPLICATION, JSON]);
        let mut reader = target.client(&[XERROR]);
        let large = vec![b'v'; LARGE_BYTES];
        assert_eq!(writer.ask(set(b"before", b"1")).status, 0);
        assert_eq!(writer.ask(set(b"gone", b"1")).status, 0);
        assert_eq!(reader.ask(frame(0x3d).extras(&[2])).status, 0, "a replica");
        let manager = Manager::relay(&source, &target, "n_1");
        wait_for(&mut reader, b"gone", Some(b"1"));
        assert_eq!(writer.ask(frame(0x04).key(b"gone")).status, 0);
        assert_eq!(writer.ask(set(b"large", &large)).status, 0);
        wait_for(&mut reader, b"before", Some(b"1"));
        wait_for(&mut reader, b"gone", None);
        wait_for(&mut reader, b"large", Some(&large));
        let topology = br#"{"topology":[["n_0","n_1"]]}"#;
        let active = frame(0x3d).extras(&[1]).value(topology).datatype(1);
        assert_eq!(writer.ask(active).status, 0);
        for level in 1..=3 {
            let durable = set(b"durable", &[b'0' + level]).framing(&[0x11, level]);
            assert_eq!(writer.ask(durable).status, 0, "level {level}");
            wait_for(&mut reader, b"durable", Some(&[b'0' + level]));
        }
        let statistics = reader.statistics("dcp").unwrap();
        let of = |name: &str| statistics.iter().find(|(key, _)| key == name).unwrap().1.clone();
        assert_eq!((of("ep_dcp_consumer_count"), of("ep_dcp_count")), ("1".into(), "1".into()));
        assert_eq!(of("eq_dcpq:relayed:type"), "consumer");
        manager.stop();
        assert_eq!(writer.ask(get(b"durable")).value, b"3");
    }
}
