//! Replicas that go back while everything else goes on.

use std::collections::BTreeSet;
use std::time::Duration;

use document::{ItemBuilder, ItemMeta, KeyBuf, Seqno, Vbid, VbucketState};
use protocol::dcp::{EndReason, MarkerFlags, Message};
use protocol::{Opcode, Status};
use vbucket::{StoreMode, WriteCondition};

use super::super::Rollback;
use super::{Play, VBID, marker, mutation};

impl Play {
    /// What has to go back, as its owner takes it.
    fn take_rollback(&mut self) -> Rollback {
        let [rollback] = self.consumer.take_rollbacks()[..] else { panic!("one goes back") };
        self.rollbacks.begin_rollback(rollback.vbid);
        rollback
    }

    /// Carries it out and says so. Whether it was.
    fn finish_rollback(&mut self, rollback: Rollback) -> bool {
        let vbid = rollback.vbid;
        let has_succeeded = rollback.carry_out(&self.bucket, || true).is_ok();
        self.rollbacks.end_rollback(vbid);
        self.consumer.rolled_back(vbid, has_succeeded, self.now, &mut self.out);
        has_succeeded
    }

    pub(super) fn roll_back(&mut self) -> bool {
        let rollback = self.take_rollback();
        self.finish_rollback(rollback)
    }

    /// A stream of a vBucket that has two documents, of which the producer does not know.
    fn told_to_roll_back() -> Self {
        let mut play = Self::open();
        play.say(&[marker(1, 2, MarkerFlags::MEMORY), mutation(b"\0a", b"one", 1)]);
        play.say(&[mutation(b"\0a", b"two", 2), Message::StreamEnd(EndReason::StateChanged)]);
        play.pass(Duration::from_millis(60)).unwrap();
        let request = play.request();
        assert_eq!(request.stream_request(), (2, 2, 2, 7));
        play.answer(&request, Status::Rollback, &1_u64.to_be_bytes()).unwrap();
        play.opaque = request.header.opaque;
        assert!(play.sent().is_empty(), "it has to go back first");
        play
    }
}

#[test]
fn a_stream_goes_on_when_its_vbucket_has_gone_back_and_nothing_waits_for_it() {
    let mut play = Play::told_to_roll_back();
    let other = Vbid(1);
    play.bucket.set_vbucket_state(other, VbucketState::Replica, None).unwrap();
    play.consumer.follow(&BTreeSet::from([VBID, other]), play.now, &mut play.out);
    let asked = play.request();
    assert_eq!(asked.header.vbucket_or_status, 1, "the other one alone is asked for");
    let rollback = play.take_rollback();
    let from = rollback.from.map(|from| from.start);
    assert_eq!((rollback.vbid, rollback.seqno, from), (VBID, Seqno(1), Some(Seqno(2))));
    // However long it takes, it is asked for once, and what comes for it does not count.
    assert!(play.consumer.take_rollbacks().is_empty());
    for _ in 0..5 {
        play.pass(Duration::from_secs(1)).unwrap();
        play.say(&[Message::Noop, marker(3, 3, MarkerFlags::MEMORY), mutation(b"\0b", b"x", 3)]);
        let opcodes = play.opcodes();
        assert!(opcodes.contains(&Opcode::DcpNoop) && !opcodes.contains(&Opcode::DcpStreamReq));
    }
    assert_eq!(play.consumer.status()[0].state, "rolling-back");
    assert_eq!(play.high_seqno(), 2);
    assert!(play.finish_rollback(rollback));
    let again = play.request();
    assert_eq!(again.stream_request(), (0, 0, 0, 0), "nothing is on disk that it could go back to");
    assert_eq!(again.header.opaque, play.opaque);
}

#[test]
fn a_vbucket_that_has_another_history_by_now_does_not_go_back() {
    for state in [VbucketState::Replica, VbucketState::Active] {
        let mut play = Play::told_to_roll_back();
        let rollback = play.take_rollback();
        // It is active for a moment, and what is written then is nobody's to take away.
        play.bucket.set_vbucket_state(VBID, VbucketState::Active, None).unwrap();
        let key = KeyBuf::in_default_collection(b"mine").unwrap();
        let written = play.bucket.on_vbucket(VBID, |vbucket, now, effects| {
            let builder = ItemBuilder::new(key.as_key(), ItemMeta::default(), b"v");
            let condition = WriteCondition::default();
            vbucket.store(StoreMode::Set, builder, condition, now, effects).is_ok()
        });
        assert_eq!(written, Some(true));
        play.bucket.set_vbucket_state(VBID, state, None).unwrap();
        assert!(play.finish_rollback(rollback), "{state:?}: nothing is wrong");
        assert_eq!(play.high_seqno(), 3, "{state:?}");
        let asked = play.sent();
        if state == VbucketState::Replica {
            assert_eq!(asked[0].stream_request().0, 3, "the producer is asked anew");
        } else {
            assert!(asked.is_empty());
        }
    }
}

#[test]
fn nobody_asks_for_a_vbucket_that_goes_back_for_another_connection() {
    let mut play = Play::told_to_roll_back();
    let rollback = play.take_rollback();
    // The connection is lost, or the vBucket moves to another one, before the rollback is done.
    play.consumer.follow(&BTreeSet::new(), play.now, &mut play.out);
    assert!(play.sent().is_empty(), "there is no stream to be closed");
    play.follow();
    for _ in 0..3 {
        assert!(play.sent().is_empty(), "what it acknowledged would be gone");
        play.pass(Duration::from_secs(1)).unwrap();
    }
    assert!(play.finish_rollback(rollback));
    assert_eq!(play.request().stream_request(), (0, 0, 0, 0));
    // What is not followed any more is not asked for.
    let mut play = Play::told_to_roll_back();
    let rollback = play.take_rollback();
    play.consumer.follow(&BTreeSet::new(), play.now, &mut play.out);
    assert!(play.finish_rollback(rollback));
    play.pass(Duration::from_secs(1)).unwrap();
    assert!(play.sent().is_empty());
}

#[test]
fn a_rollback_that_fails_is_asked_for_again_a_little_later() {
    let mut play = Play::told_to_roll_back();
    let rollback = play.take_rollback();
    play.rollbacks.end_rollback(VBID);
    play.consumer.rolled_back(VBID, false, play.now, &mut play.out);
    assert!(play.sent().is_empty());
    assert_eq!(play.consumer.status()[0].state, "waiting");
    play.pass(Duration::from_secs(1)).unwrap();
    let request = play.request();
    play.answer(&request, Status::Rollback, &1_u64.to_be_bytes()).unwrap();
    assert_eq!(play.take_rollback(), rollback);
}
