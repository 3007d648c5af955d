//! Whether a copy that began empty, or that was no copy of another one before, has by now what the
//! others hold. Until it has, it is not to be promoted: what it lacks would be lost.

use document::{Seqno, VbucketState};

use super::Vbucket;
use crate::effect::Effect;
use crate::persistence::PersistentState;

/// Where a vBucket is whole from that is new in its role, or without any history: an active one
/// from its beginning, a copy of another one where that says that it is.
pub(super) fn of_new(state: VbucketState) -> Seqno {
    match state {
        VbucketState::Active | VbucketState::Dead => Seqno(0),
        VbucketState::Replica | VbucketState::Pending => PersistentState::WHOLE_FROM_UNKNOWN,
    }
}

impl Vbucket {
    /// Whether this copy has been consistent since it began to be one at all that the active copy
    /// held when a stream first came from that. Behind that, it lags as every replica does.
    pub fn is_whole(&self) -> bool {
        self.last_whole_seqno() >= self.whole_from_seqno
    }

    /// The active copy, whose stream this vBucket receives, was at `seqno` when that began, or
    /// later.
    pub fn note_whole_from(&mut self, seqno: Seqno, effects: &mut Vec<Effect>) {
        if !self.is_whole() {
            self.whole_from_seqno = seqno;
            self.flush_state_anew(effects);
            self.publish();
        }
    }
}

#[cfg(test)]
mod tests {
    use document::{KeyBuf, VbUuid, Vbid};

    use super::*;
    use crate::hash_table::HashSeed;
    use crate::memory_account::MemoryAccount;
    use crate::operation::Now;
    use crate::persistence::SnapshotRange;
    use crate::vbucket::receiving::ReceivedSnapshot;
    use crate::vbucket::restore::Restored;
    use crate::vbucket::role::RoleChange;

    fn vbucket(state: VbucketState) -> Vbucket {
        Vbucket::new(Vbid(0), state, VbUuid(7), HashSeed::new(1), MemoryAccount::default())
    }

    fn become_one(vbucket: &mut Vbucket, state: VbucketState) {
        let change =
            RoleChange { state, topology: None, is_takeover: false, fresh_uuid: VbUuid(9) };
        vbucket.change_role(change, Now::default(), &mut Vec::new());
    }

    /// A replica is told of the snapshot up to `end`.
    fn announce(vbucket: &mut Vbucket, start: u64, end: u64, is_disk: bool) {
        let snapshot = ReceivedSnapshot {
            start: Seqno(start),
            end: Seqno(end),
            is_disk,
            begins_checkpoint: false,
            max_visible: None,
            high_completed: None,
            high_prepared: None,
            purge_seqno: None,
        };
        vbucket.receive_snapshot(snapshot, &mut Vec::new()).unwrap();
    }

    /// A replica that receives the snapshot up to `end` and has come to its end.
    fn receive(vbucket: &mut Vbucket, start: u64, end: u64) {
        announce(vbucket, start, end, false);
        vbucket.receive_seqno_advanced(Seqno(end), &mut Vec::new()).unwrap();
    }

    fn replica_with_stream() -> Vbucket {
        let mut vbucket = vbucket(VbucketState::Replica);
        let log = [document::FailoverEntry { uuid: VbUuid(70), seqno: Seqno(0) }];
        vbucket.begin_receiving(vbucket.stream_position(), &log, &mut Vec::new()).unwrap();
        vbucket
    }

    #[test]
    fn an_empty_copy_is_whole_where_the_active_one_says_that_it_is() {
        for (end, is_whole) in [(4, false), (5, true), (6, true)] {
            let mut vbucket = replica_with_stream();
            assert!(!vbucket.is_whole());
            vbucket.note_whole_from(Seqno(5), &mut Vec::new());
            receive(&mut vbucket, 1, end);
            assert_eq!(vbucket.is_whole(), is_whole, "{end}");
        }
        let mut vbucket = replica_with_stream();
        vbucket.note_whole_from(Seqno(0), &mut Vec::new());
        assert!(vbucket.is_whole(), "there is nothing to be had");
    }

    #[test]
    fn who_looks_without_the_lock_sees_a_copy_that_became_whole_by_what_is_not_queued() {
        let mut vbucket = replica_with_stream();
        vbucket.note_whole_from(Seqno(5), &mut Vec::new());
        receive(&mut vbucket, 1, 5);
        assert!(vbucket.is_whole() && vbucket.is_published());

        let mut vbucket = replica_with_stream();
        vbucket.note_whole_from(Seqno(5), &mut Vec::new());
        announce(&mut vbucket, 1, 5, true);
        let key = KeyBuf::in_default_collection(b"k").unwrap();
        let (prepare, now) = (Seqno(3), Now::default());
        let ended = vbucket.receive_commit(key.as_key(), prepare, Seqno(5), now, &mut Vec::new());
        ended.unwrap();
        assert!(vbucket.is_whole() && vbucket.is_published());
    }

    #[test]
    fn what_comes_before_the_active_copy_has_said_how_far_it_is_counts() {
        let mut vbucket = replica_with_stream();
        receive(&mut vbucket, 1, 9);
        assert!(!vbucket.is_whole());
        vbucket.note_whole_from(Seqno(9), &mut Vec::new());
        assert!(vbucket.is_whole());
        receive(&mut vbucket, 10, 12);
        vbucket.note_whole_from(Seqno(100), &mut Vec::new());
        assert!(vbucket.is_whole(), "who is whole lags from then on");
    }

    #[test]
    fn what_is_said_while_a_flush_is_under_way_reaches_the_file_with_the_next_one() {
        let mut vbucket = replica_with_stream();
        let effects = &mut Vec::new();
        let batch = vbucket.begin_flush().expect("the role is to be flushed");
        vbucket.note_whole_from(Seqno(5), effects);
        vbucket.flush_succeeded(&batch, Now::default(), effects);
        assert!(!vbucket.is_state_flushed());
        let batch = vbucket.begin_flush().expect("the file does not know what was said");
        assert_eq!(batch.state.whole_from_seqno, Seqno(5));
        vbucket.flush_succeeded(&batch, Now::default(), effects);
        assert!(vbucket.is_state_flushed() && vbucket.begin_flush().is_none());
    }

    #[test]
    fn a_role_decides_what_an_empty_copy_lacks() {
        use VbucketState::{Active, Dead, Pending, Replica};
        for (before, after, is_whole) in [
            (Active, Replica, false),
            (Active, Pending, false),
            (Dead, Replica, false),
            (Replica, Active, true),
            (Replica, Dead, true),
        ] {
            let mut vbucket = vbucket(before);
            become_one(&mut vbucket, after);
            assert_eq!(vbucket.is_whole(), is_whole, "{before:?} {after:?}");
        }
    }

    #[test]
    fn a_copy_in_part_stays_one_until_it_is_promoted() {
        let mut vbucket = replica_with_stream();
        receive(&mut vbucket, 1, 9);
        for (state, is_whole) in [
            (VbucketState::Dead, false),
            (VbucketState::Replica, false),
            (VbucketState::Active, true),
            (VbucketState::Dead, true),
        ] {
            become_one(&mut vbucket, state);
            assert_eq!(vbucket.is_whole(), is_whole, "{state:?}");
        }
    }

    #[test]
    fn who_begins_to_follow_is_whole_where_the_active_copy_says_so_whatever_is_here() {
        use VbucketState::{Active, Dead, Pending, Replica};
        for (before, after, stays_whole) in [
            (Active, Replica, false),
            (Active, Pending, false),
            (Dead, Replica, false),
            (Replica, Pending, true),
            (Pending, Replica, true),
            (Replica, Dead, true),
        ] {
            let mut vbucket = replica_with_stream();
            receive(&mut vbucket, 1, 9);
            vbucket.note_whole_from(Seqno(9), &mut Vec::new());
            become_one(&mut vbucket, before);
            vbucket.note_whole_from(Seqno(9), &mut Vec::new());
            assert!(vbucket.is_whole());
            become_one(&mut vbucket, after);
            assert_eq!(vbucket.is_whole(), stays_whole, "{before:?} {after:?}");
            vbucket.note_whole_from(Seqno(9), &mut Vec::new());
            assert!(vbucket.is_whole(), "it has what the active copy has: {before:?} {after:?}");
        }
    }

    #[test]
    fn a_file_remembers_what_its_copy_lacks() {
        for (high, snapshot, whole_from, is_whole) in [
            (50, (50, 50), 0, true),
            (50, (50, 50), 50, true),
            (50, (50, 50), 51, false),
            (50, (40, 60), 40, true),
            (50, (40, 60), 41, false),
            (50, (50, 50), u64::MAX, false),
            (0, (0, 0), 0, false),
        ] {
            let mut state = PersistentState::new(VbucketState::Replica);
            state.high_seqno = Seqno(high);
            state.snapshot = SnapshotRange { start: Seqno(snapshot.0), end: Seqno(snapshot.1) };
            state.whole_from_seqno = Seqno(whole_from);
            let (vbid, fresh_uuid) = (Vbid(0), VbUuid(8));
            let restored = Restored { vbid, state, document_count: 0, fresh_uuid, was_clean: true };
            let vbucket = Vbucket::restore(restored, HashSeed::new(1), MemoryAccount::default());
            assert_eq!(vbucket.is_whole(), is_whole, "{high} {snapshot:?} {whole_from}");
        }
    }
}
