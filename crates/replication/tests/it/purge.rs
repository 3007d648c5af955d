//! Tombstones that are purged while a stream is behind them.

use bucket::CompactionOrder;
use document::{DurabilityLevel, VbucketState};
use protocol::dcp::EndReason;
use replication::Answer;
use vbucket::RecoveryStep;

use crate::consumer::Consumer;
use crate::support::{Machine, VBID};

#[test]
fn a_stream_that_lost_its_place_ends_where_tombstones_behind_it_were_purged() {
    for is_purged in [false, true] {
        let mut machine = Machine::new();
        let topology = Some(vec![vec![Some("n_0".to_owned())]]);
        machine.bucket.set_vbucket_state(VBID, VbucketState::Active, topology).unwrap();
        let mut consumer = Consumer::new(&machine);
        assert!(matches!(consumer.resume(&machine, VBID, u64::MAX), Answer::Value(_)));
        machine.set("deleted", b"value");
        machine.set("kept", b"value");
        consumer.take_all(&mut machine);
        assert_eq!(consumer.streams[&VBID].documents.len(), 2);
        machine.delete("deleted");
        // A commit does not meet in one checkpoint what it replaces.
        assert!(machine.set_durable("kept", b"value", DurabilityLevel::Majority));
        machine.run();
        machine.bucket.on_vbucket(VBID, |vbucket, now, effects| {
            let step = RecoveryStep::DropSlowCursors;
            assert_eq!(vbucket.recover_memory(step, now.monotonic, effects), 1);
        });
        if is_purged {
            let order = CompactionOrder { drop_deletes: true, ..CompactionOrder::default() };
            machine.bucket.compact(VBID, order, |_| {}).unwrap();
            machine.run();
        }
        // The first look begins a backfill.
        consumer.take_all(&mut machine);
        consumer.take_all(&mut machine);
        let received = &consumer.streams[&VBID];
        if is_purged {
            assert_eq!(received.end, Some(EndReason::StateChanged), "it would miss the deletion");
            let answer = consumer.resume(&machine, VBID, u64::MAX);
            assert!(matches!(answer, Answer::Rollback(_)), "{answer:?}");
        } else {
            assert_eq!((received.end, received.documents.len()), (None, 1));
        }
    }
}
