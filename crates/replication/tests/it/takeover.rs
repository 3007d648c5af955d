//! vBuckets that go over to another node.

use document::{Seqno, VbucketState};
use protocol::dcp::{EndReason, StreamFlags, StreamRequest};
use replication::Answer;

use crate::consumer::Consumer;
use crate::support::{Machine, VBID};

#[test]
fn a_vbucket_is_dead_here_before_it_is_active_there() {
    let mut machine = Machine::new();
    for name in ["a", "b", "c"] {
        machine.set(name, b"v");
    }
    let mut consumer = Consumer::new(&machine);
    let (flags, end) = (StreamFlags::TAKEOVER, Seqno(u64::MAX));
    let request = StreamRequest { flags, end, ..StreamRequest::default() };
    assert!(matches!(consumer.request(&machine, VBID, request), Answer::Value(_)));
    consumer.take(&machine, usize::MAX, 1);
    assert_eq!(consumer.streams[&VBID].roles, []);
    // Clients write until the last moment.
    machine.set("d", b"v");
    while consumer.streams[&VBID].roles.is_empty() {
        assert!(consumer.take(&machine, usize::MAX, 1) > 0);
    }
    assert_eq!(consumer.streams[&VBID].roles, [VbucketState::Pending]);
    machine.set("e", b"v");
    consumer.take_all(&mut machine);
    let received = &consumer.streams[&VBID];
    assert_eq!(received.roles, [VbucketState::Pending, VbucketState::Active]);
    assert_eq!(received.end, Some(EndReason::Ok));
    assert_eq!((received.documents.len(), received.seqno), (5, Seqno(5)));
    let mut state = None;
    machine.bucket.with_vbucket(VBID, |vbucket| state = Some(vbucket.state()));
    assert_eq!(state, Some(VbucketState::Dead));
    assert!(machine.try_set("f", b"v").is_none());
}
