//! First backfills in the order of keys.

use bucket::{BucketConfig, BucketType};
use document::Seqno;
use protocol::dcp::StreamRequest;
use replication::Answer;

use crate::consumer::Consumer;
use crate::support::{Machine, VBID, config};

/// Documents of which the log has nothing any more.
fn machine(config: BucketConfig) -> Machine {
    let mut machine = Machine::with(config);
    for number in 0..500_u32 {
        let name = format!("key{}", number.wrapping_mul(2_654_435_761) % 1_000);
        machine.set(&name, &[7; 1_000]);
    }
    machine.delete("key0");
    machine.run();
    machine
}

fn stream(machine: &Machine, control: &str, filter: &'static [u8]) -> Consumer {
    let mut consumer = Consumer::new(machine);
    consumer.control(machine, "enable_out_of_order_snapshots", control);
    let end = Seqno(u64::MAX);
    let request = StreamRequest { end, value: filter, ..StreamRequest::default() };
    assert!(matches!(consumer.request(machine, VBID, request), Answer::Value(_)));
    consumer
}

#[test]
fn a_first_backfill_comes_in_the_order_of_keys_when_that_was_agreed_on() {
    let ephemeral = BucketConfig { bucket_type: Some(BucketType::Ephemeral), ..config() };
    for (config, control, filter, is_by_key, advanced) in [
        (config(), "true", &b"{\"collections\":[\"0\"]}"[..], true, 0),
        (config(), "true_with_seqno_advanced", b"{\"collections\":[\"0\"]}", true, 0),
        (config(), "true", b"", false, 0),
        (config(), "false", b"{\"collections\":[\"0\"]}", false, 0),
        (ephemeral, "true", b"{\"collections\":[\"0\"]}", true, 0),
    ] {
        let mut machine = machine(config);
        let mut consumer = stream(&machine, control, filter);
        consumer.take_all(&mut machine);
        let received = &consumer.streams[&VBID];
        let documents = received.documents.clone();
        assert_eq!(received.by_key_count > 0, is_by_key, "{control}");
        assert_eq!(received.markers.is_empty(), is_by_key);
        assert_eq!(received.seqno, machine.high_seqno());
        assert_eq!(received.advanced, advanced);
        machine.set("key-new", b"v");
        consumer.take_all(&mut machine);
        let received = &consumer.streams[&VBID];
        assert!(received.is_whole() && !received.markers.is_empty());
        assert_eq!(received.documents.len(), documents.len() + 1);
        let mut plain = Consumer::open(&machine, "plain", 0x25, &[protocol::Feature::Collections]);
        plain.resume(&machine, VBID, u64::MAX);
        plain.take_all(&mut machine);
        assert_eq!(plain.streams[&VBID].documents, received.documents);
    }
}
