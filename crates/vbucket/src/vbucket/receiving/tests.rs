//! What a replica receives, and where it stands then.

use document::{CollectionId, Deletion, ItemMeta, KeyBuf, Vbid};
use platform::Instant;

use super::*;
use crate::checkpoint::CheckpointLimits;
use crate::eviction::{EvictionOptions, EvictionPolicy};
use crate::hash_table::HashSeed;
use crate::memory_account::MemoryAccount;
use crate::operation::{Refusal, StoreMode, WriteCondition};
use crate::vbucket::recovery::RecoveryStep;
use crate::vbucket::restore::Restored;
use crate::vbucket::role::RoleChange;
use crate::waiter::Waiter;

struct Bench {
    vbucket: Vbucket,
    effects: Vec<Effect>,
}

fn key(name: &str) -> KeyBuf {
    KeyBuf::in_default_collection(name.as_bytes()).unwrap()
}

fn snapshot(start: u64, end: u64) -> ReceivedSnapshot {
    ReceivedSnapshot {
        start: Seqno(start),
        end: Seqno(end),
        is_disk: false,
        begins_checkpoint: false,
        max_visible: None,
        high_completed: None,
        high_prepared: None,
        purge_seqno: None,
    }
}

fn disk(start: u64, end: u64) -> ReceivedSnapshot {
    ReceivedSnapshot { is_disk: true, high_completed: Some(Seqno(0)), ..snapshot(start, end) }
}

fn received(name: &str, seqno: u64, deletion: Option<Deletion>) -> Received {
    let meta = ItemMeta { deletion, ..ItemMeta::default() };
    let builder = ItemBuilder::new(key(name).as_key(), meta, b"value");
    Received { builder, cas: Cas(seqno << 16), seqno: Seqno(seqno), revision: RevSeqno(seqno) }
}

impl Bench {
    fn new() -> Self {
        Self::of(Vbucket::new(
            Vbid(0),
            VbucketState::Replica,
            VbUuid(7),
            HashSeed::new(1),
            MemoryAccount::default(),
        ))
    }

    fn of(mut vbucket: Vbucket) -> Self {
        let mut effects = Vec::new();
        let log = [FailoverEntry { uuid: VbUuid(70), seqno: Seqno(0) }];
        vbucket.begin_receiving(vbucket.stream_position(), &log, &mut effects).unwrap();
        Self { vbucket, effects }
    }

    fn announce(&mut self, snapshot: ReceivedSnapshot) -> Result<(), ReceiveError> {
        self.vbucket.receive_snapshot(snapshot, &mut self.effects)
    }

    fn receive(&mut self, received: Received) -> Result<(), ReceiveError> {
        self.vbucket.receive(received, Now::default(), &mut self.effects)
    }

    /// Receives mutations of keys that are named as their seqnos.
    fn receive_all(&mut self, seqnos: impl IntoIterator<Item = u64>) {
        for seqno in seqnos {
            self.receive(received(&seqno.to_string(), seqno, None)).unwrap();
        }
    }

    fn position(&self) -> (u64, u64, u64, u64) {
        let position = self.vbucket.stream_position();
        let StreamPosition { start, snapshot_start, snapshot_end, uuid } = position;
        (start.0, snapshot_start.0, snapshot_end.0, uuid.0)
    }

    /// Flushes up to `bytes_max`; returns the snapshot that the file is in, and its last seqno.
    fn flush(&mut self, bytes_max: usize) -> (u64, u64, u64) {
        let mut batch = self.vbucket.begin_flush().unwrap();
        batch.take_items(bytes_max);
        self.vbucket.flush_succeeded(&batch, Now::default(), &mut self.effects);
        self.vbucket.apply_succeeded(batch.high_seqno());
        let range = batch.state.snapshot_in_file();
        (range.start.0, range.end.0, batch.high_seqno().0)
    }

    fn value(&mut self, name: &str) -> Result<Vec<u8>, Refusal> {
        let key = key(name);
        let found = self.vbucket.get_replica(key.as_key(), Now::default(), &mut self.effects)?;
        Ok(found.item.value().to_vec())
    }
}

#[test]
fn a_snapshot_goes_on_when_a_replica_becomes_pending_or_back_and_in_no_other_role() {
    use VbucketState::{Dead, Pending, Replica};
    let become_one = |bench: &mut Bench, state| {
        let change = RoleChange { state, topology: None, is_takeover: true, fresh_uuid: VbUuid(9) };
        bench.vbucket.change_role(change, Now::default(), &mut bench.effects);
    };
    let mut bench = Bench::new();
    bench.announce(snapshot(1, 3)).unwrap();
    bench.receive_all(1..=1);
    for (state, next) in [(Pending, 2), (Replica, 3)] {
        become_one(&mut bench, state);
        bench.receive_all(next..=next);
    }
    assert_eq!(bench.position(), (3, 3, 3, 70), "it is whole");
    assert_eq!(bench.flush(usize::MAX), (3, 3, 3));
    // Who was dead in between may have missed something.
    bench.announce(snapshot(4, 5)).unwrap();
    for state in [Dead, Pending] {
        become_one(&mut bench, state);
    }
    let out_of_snapshot = Err(ReceiveError::OutOfSnapshot);
    assert_eq!(bench.receive(received("4", 4, None)), out_of_snapshot);
    // A stream that was granted has announced nothing yet, whatever the role was then.
    let position = bench.vbucket.stream_position();
    let log = [FailoverEntry { uuid: VbUuid(70), seqno: Seqno(0) }];
    bench.vbucket.begin_receiving(position, &log, &mut bench.effects).unwrap();
    become_one(&mut bench, Replica);
    assert_eq!(bench.receive(received("4", 4, None)), out_of_snapshot);
}

#[test]
fn in_the_middle_of_a_snapshot_its_end_is_compared_with_others() {
    let mut bench = Bench::new();
    let seqnos = |bench: &Bench| {
        let vbucket = &bench.vbucket;
        (vbucket.comparable_high_seqno().0, vbucket.comparable_visible_seqno().0)
    };
    assert_eq!(seqnos(&bench), (0, 0));
    bench.announce(ReceivedSnapshot { max_visible: Some(Seqno(4)), ..disk(1, 5) }).unwrap();
    assert_eq!(seqnos(&bench), (5, 4));
    bench.receive_all(1..=4);
    assert_eq!(seqnos(&bench), (5, 4));
    bench.vbucket.receive_seqno_advanced(Seqno(5), &mut bench.effects).unwrap();
    assert_eq!(seqnos(&bench), (5, 4));
    bench.announce(snapshot(6, 9)).unwrap();
    bench.receive_all(6..=6);
    assert_eq!(seqnos(&bench), (9, 9));
    let collection = bench.vbucket.collection_high_seqno(CollectionId::DEFAULT);
    assert_eq!(collection, Some(Seqno(6)), "what has come");
    let (state, topology, fresh_uuid) = (VbucketState::Active, None, VbUuid(9));
    let change = RoleChange { state, topology, is_takeover: false, fresh_uuid };
    bench.vbucket.change_role(change, Now::default(), &mut bench.effects);
    assert_eq!(seqnos(&bench), (6, 6), "what was to come does not come any more");
}

#[test]
fn a_state_flushed_while_a_snapshot_is_announced_says_where_history_is_consistent() {
    let flush = |bench: &mut Bench| {
        let mut batch = bench.vbucket.begin_flush().unwrap();
        batch.take_items(usize::MAX);
        bench.vbucket.flush_succeeded(&batch, Now::default(), &mut bench.effects);
        let SnapshotRange { start, end } = batch.state.snapshot_in_file();
        (batch.high_seqno().0, start.0, end.0, batch.state.whole_seqno().0)
    };
    let mut bench = Bench::new();
    bench.announce(snapshot(1, 3)).unwrap();
    assert_eq!(flush(&mut bench), (0, 0, 3, 0), "nothing of it is here");
    bench.receive_all(1..=3);
    assert_eq!(flush(&mut bench), (3, 3, 3, 3));
    bench.announce(snapshot(4, 9)).unwrap();
    bench.vbucket.flush_state_anew(&mut bench.effects);
    assert_eq!(flush(&mut bench), (3, 3, 9, 3), "the next one begins behind what is whole");
    bench.receive_all(4..=5);
    assert_eq!(flush(&mut bench), (5, 3, 9, 3));
    bench.vbucket.flush_state_anew(&mut bench.effects);
    assert_eq!(flush(&mut bench), (5, 3, 9, 3));
    bench.vbucket.receive_seqno_advanced(Seqno(9), &mut bench.effects).unwrap();
    bench.announce(snapshot(10, 12)).unwrap();
    bench.vbucket.flush_state_anew(&mut bench.effects);
    assert_eq!(flush(&mut bench), (5, 5, 12, 5), "nothing lies between the fifth and the ninth");
}

#[test]
fn nothing_is_completed_behind_the_end_of_a_snapshot() {
    let mut bench = Bench::new();
    let beyond = ReceivedSnapshot { high_completed: Some(Seqno(9)), ..disk(1, 2) };
    assert_eq!(bench.announce(beyond), Err(ReceiveError::BadSnapshot));
    let within = ReceivedSnapshot { high_completed: Some(Seqno(2)), ..disk(1, 2) };
    bench.announce(within).unwrap();
    bench.receive_all([1, 2]);
    assert_eq!(bench.vbucket.high_completed_seqno(), Seqno(2));
}

#[test]
fn a_replica_is_whole_where_a_snapshot_ends() {
    let mut bench = Bench::new();
    assert_eq!(bench.position(), (0, 0, 0, 0), "nothing has come");
    bench.announce(snapshot(0, 3)).unwrap();
    bench.receive_all([1, 2]);
    assert_eq!(bench.position(), (2, 0, 3, 70));
    assert!(!bench.vbucket.is_snapshot_whole());
    bench.receive_all([3]);
    assert_eq!(bench.position(), (3, 3, 3, 70));
    assert!(bench.vbucket.is_snapshot_whole());
    bench.announce(snapshot(4, 9)).unwrap();
    bench.receive_all([5]);
    assert_eq!(bench.position(), (5, 3, 9, 70));
    // The stream breaks, and what is missing comes on another one.
    let position = bench.vbucket.stream_position();
    bench.vbucket.begin_receiving(position, &[], &mut Vec::new()).unwrap();
    bench.announce(snapshot(3, 12)).unwrap();
    assert_eq!(bench.position(), (5, 3, 12, 70), "what was whole before still is");
    bench.receive_all([12]);
    assert_eq!(bench.position(), (12, 12, 12, 70));
    assert_eq!(bench.value("12").unwrap(), b"value");
}

#[test]
fn what_breaks_the_rules_is_refused() {
    let mut bench = Bench::new();
    let item = |seqno| received("k", seqno, None);
    assert_eq!(bench.receive(item(1)), Err(ReceiveError::OutOfSnapshot), "none was announced");
    bench.announce(snapshot(1, 6)).unwrap();
    let cases = [
        (4, Ok(())),
        (4, Err(ReceiveError::SeqnoTooLow)),
        (7, Err(ReceiveError::OutOfSnapshot)),
        (6, Ok(())),
    ];
    for (seqno, expected) in cases {
        assert_eq!(bench.receive(item(seqno)), expected, "{seqno}");
    }
    let bad = [
        snapshot(5, 6),
        snapshot(9, 8),
        snapshot(8, 9),
        disk(8, 9),
        ReceivedSnapshot { max_visible: Some(Seqno(9)), ..snapshot(7, 8) },
        ReceivedSnapshot { high_prepared: Some(Seqno(9)), ..disk(7, 8) },
        ReceivedSnapshot { purge_seqno: Some(Seqno(9)), ..disk(7, 8) },
    ];
    for snapshot in bad {
        assert_eq!(bench.announce(snapshot), Err(ReceiveError::BadSnapshot), "{snapshot:?}");
    }
    for state in [VbucketState::Active, VbucketState::Dead] {
        let (topology, fresh_uuid) = (None, VbUuid(9));
        let change = RoleChange { state, topology, is_takeover: false, fresh_uuid };
        bench.vbucket.change_role(change, Now::default(), &mut Vec::new());
        assert_eq!(bench.announce(snapshot(7, 8)), Err(ReceiveError::NotReceiving));
        assert_eq!(bench.receive(item(7)), Err(ReceiveError::NotReceiving));
    }
}

#[test]
fn a_stream_is_not_received_by_a_vbucket_that_is_elsewhere_than_where_it_was_asked_for() {
    let mut bench = Bench::new();
    bench.announce(snapshot(1, 4)).unwrap();
    bench.receive_all([1, 2, 3]);
    let asked_from = bench.vbucket.stream_position();
    let begin = |bench: &mut Bench| {
        let log = [FailoverEntry { uuid: VbUuid(71), seqno: Seqno(0) }];
        bench.vbucket.begin_receiving(asked_from, &log, &mut bench.effects)
    };
    let mut emptied = Bench::new();
    assert_eq!(begin(&mut emptied), Err(ReceiveError::OtherPosition));
    assert_eq!(emptied.vbucket.uuid(), VbUuid(70), "nor is its history");
    assert_eq!(emptied.announce(snapshot(3, 4)), Err(ReceiveError::BadSnapshot));
    emptied.announce(snapshot(0, 4)).unwrap();
    emptied.receive_all([1, 2, 3]);
    assert_eq!(begin(&mut emptied), Ok(()), "it is where it was asked for");
    bench.receive_all([4]);
    assert_eq!(begin(&mut bench), Err(ReceiveError::OtherPosition), "more has come meanwhile");
}

#[test]
fn deletions_expirations_and_what_is_skipped_have_their_place() {
    let mut bench = Bench::new();
    bench.announce(snapshot(1, 9)).unwrap();
    bench.receive(received("a", 1, None)).unwrap();
    bench.receive(received("b", 2, None)).unwrap();
    bench.receive(received("a", 3, Some(Deletion::Explicit))).unwrap();
    bench.receive(received("b", 4, Some(Deletion::Expired))).unwrap();
    bench.receive(received("c", 5, None)).unwrap();
    assert!(matches!(bench.value("a"), Err(Refusal::NotFound)));
    assert_eq!((bench.vbucket.document_count(), bench.vbucket.tombstone_count()), (1, 2));
    assert_eq!(bench.vbucket.max_cas(), Cas(5 << 16));
    bench.vbucket.receive_seqno_advanced(Seqno(9), &mut Vec::new()).unwrap();
    assert_eq!(bench.position(), (9, 9, 9, 70));
    assert_eq!(bench.flush(usize::MAX), (0, 9, 5), "the file has what there is");
    bench.announce(snapshot(10, 11)).unwrap();
    bench.receive_all([11]);
    assert_eq!(bench.flush(usize::MAX), (11, 11, 11));
    assert!(bench.vbucket.is_flushed());
}

#[test]
fn the_file_knows_the_snapshot_that_it_is_in_wherever_a_flush_ends() {
    let mut bench = Bench::new();
    bench.announce(disk(0, 2_000)).unwrap();
    assert!(bench.vbucket.is_receiving_initial_disk_snapshot());
    bench.receive_all(1..=2_000);
    assert!(!bench.vbucket.is_receiving_initial_disk_snapshot());
    bench.announce(snapshot(2_001, 2_005)).unwrap();
    bench.receive_all([2_001]);
    assert_eq!(bench.flush(1), (0, 2_000, 1_024), "a part of a large disk snapshot");
    assert_eq!(bench.vbucket.persisted_for_clients(), Seqno(0), "nothing whole");
    assert_eq!(bench.flush(usize::MAX), (2_000, 2_000, 2_000), "disk snapshots stand alone");
    assert_eq!(bench.flush(usize::MAX), (2_000, 2_005, 2_001));
    assert_eq!(bench.vbucket.persisted_for_clients(), Seqno(2_000));
    bench.announce(snapshot(2_001, 2_009)).unwrap();
    bench.receive_all([2_009]);
    assert_eq!(bench.flush(usize::MAX), (2_009, 2_009, 2_009));
    assert_eq!(bench.vbucket.persisted_for_clients(), Seqno(2_009));
}

/// What a snapshot leaves out because it comes later in it was on no disk.
#[test]
fn nothing_of_a_snapshot_is_said_to_be_persisted_before_all_of_it_is() {
    let mut bench = Bench::new();
    let wait = |bench: &mut Bench, seqno| {
        let (deadline, waiter) = (Instant(u64::MAX), Waiter(seqno));
        bench.effects.clear();
        bench.vbucket.wait_for_persistence(Seqno(seqno), deadline, waiter, &mut bench.effects)
    };
    let heard = |bench: &mut Bench| -> Vec<u64> {
        let of = |effect| if let Effect::Persisted(Waiter(id)) = effect { Some(id) } else { None };
        let mut heard: Vec<u64> = bench.effects.drain(..).filter_map(of).collect();
        heard.sort_unstable();
        heard
    };
    bench.announce(snapshot(1, 20)).unwrap();
    bench.receive_all(1..=15);
    assert!(!wait(&mut bench, 9));
    bench.flush(usize::MAX);
    assert!(!wait(&mut bench, 10));
    bench.receive_all(16..=20);
    bench.flush(usize::MAX);
    assert_eq!(heard(&mut bench), [9, 10]);
    assert!(wait(&mut bench, 20));
    // Seqnos without items at the end of one are there when the state is that says so.
    bench.announce(snapshot(21, 25)).unwrap();
    bench.receive_all([22]);
    assert!(!wait(&mut bench, 25));
    bench.flush(usize::MAX);
    assert_eq!(heard(&mut bench), [0; 0]);
    bench.vbucket.receive_seqno_advanced(Seqno(25), &mut bench.effects).unwrap();
    assert_eq!(heard(&mut bench), [0; 0]);
    bench.flush(usize::MAX);
    assert_eq!(heard(&mut bench), [25]);
    // One that consists of such needs no flush.
    bench.announce(snapshot(26, 30)).unwrap();
    assert!(!wait(&mut bench, 30));
    bench.vbucket.receive_seqno_advanced(Seqno(30), &mut bench.effects).unwrap();
    assert_eq!(heard(&mut bench), [30]);
    assert!(wait(&mut bench, 30));
}

#[test]
fn a_replica_that_comes_back_from_its_file_goes_on_where_that_ends() {
    let mut bench = Bench::new();
    bench.announce(snapshot(1, 4)).unwrap();
    bench.receive_all([1, 2, 3, 4]);
    bench.announce(snapshot(5, 9)).unwrap();
    bench.receive_all([5, 6]);
    let mut batch = bench.vbucket.begin_flush().unwrap();
    batch.take_items(usize::MAX);
    let (vbid, fresh_uuid) = (Vbid(0), VbUuid(8));
    let state = batch.state.clone();
    let restored = Restored { vbid, state, document_count: 0, fresh_uuid, was_clean: false };
    let vbucket = Vbucket::restore(restored, HashSeed::new(1), MemoryAccount::default());
    assert_eq!(vbucket.stream_position().snapshot_start, Seqno(4));
    let mut bench = Bench::of(vbucket);
    assert_eq!(bench.position(), (6, 4, 9, 70));
    assert_eq!(bench.receive(received("k", 7, None)), Err(ReceiveError::OutOfSnapshot));
    bench.announce(snapshot(4, 9)).unwrap();
    bench.receive_all([9]);
    assert_eq!(bench.position(), (9, 9, 9, 70));
}

/// Of a snapshot from a file, where tombstones up to the seventh seqno may be missing.
#[test]
fn what_a_sender_has_purged_is_missing_as_far_as_its_snapshot_has_come() {
    let promote = |bench: &mut Bench| {
        let state = VbucketState::Active;
        let (topology, fresh_uuid) = (None, VbUuid(9));
        let change = RoleChange { state, topology, is_takeover: false, fresh_uuid };
        bench.vbucket.change_role(change, Now::default(), &mut Vec::new());
    };
    let said = Some(Seqno(7));
    for (come, said, expected) in [
        (vec![], said, 0),
        (vec![2, 5], said, 5),
        (vec![2, 5, 9], said, 7),
        (vec![2, 5, 10], said, 7),
        (vec![2, 5], Some(Seqno(0)), 0),
        // A sender that does not say it may have purged anything.
        (vec![2, 5], None, 5),
        (vec![2, 5, 10], None, 10),
    ] {
        let mut bench = Bench::new();
        bench.announce(ReceivedSnapshot { purge_seqno: said, ..disk(0, 10) }).unwrap();
        bench.receive_all(come.clone());
        let case = format!("{come:?} {said:?}");
        assert_eq!(bench.vbucket.purge_seqno(), Seqno(expected), "{case}");
        let coming = said.unwrap_or(Seqno(10));
        assert_eq!(bench.vbucket.stream_purge_seqno(), coming, "{case}");
        let mut batch = bench.vbucket.begin_flush().unwrap();
        batch.take_items(usize::MAX);
        let restored = Vbucket::restore(
            Restored {
                vbid: Vbid(0),
                state: batch.state,
                document_count: 0,
                fresh_uuid: VbUuid(8),
                was_clean: false,
            },
            HashSeed::new(1),
            MemoryAccount::default(),
        );
        assert_eq!(restored.purge_seqno(), Seqno(expected), "{case}");
        promote(&mut bench);
        assert_eq!(bench.vbucket.stream_purge_seqno(), Seqno(expected), "{case}");
        for name in ["a", "b", "c", "d", "e"] {
            let builder = ItemBuilder::new(key(name).as_key(), ItemMeta::default(), b"v");
            let (condition, now) = (WriteCondition::default(), Now::default());
            let effects = &mut Vec::new();
            bench.vbucket.store(StoreMode::Set, builder, condition, now, effects).unwrap();
        }
        assert_eq!(bench.vbucket.purge_seqno(), Seqno(expected), "{case}: what comes is whole");
    }
}

#[test]
fn what_a_snapshot_lacks_is_missing_when_other_snapshots_have_followed() {
    let mut bench = Bench::new();
    let from_file = |start, end, purged| ReceivedSnapshot {
        purge_seqno: Some(Seqno(purged)),
        ..disk(start, end)
    };
    bench.announce(from_file(0, 10, 9)).unwrap();
    bench.receive_all([4]);
    bench.announce(snapshot(5, 20)).unwrap();
    bench.receive_all([8]);
    assert_eq!(bench.vbucket.purge_seqno(), Seqno(4), "a log has all of its tombstones");
    bench.receive_all([20]);
    bench.announce(from_file(21, 30, 25)).unwrap();
    bench.receive_all([23]);
    // The file ends in a part of what is in memory.
    assert_eq!(bench.vbucket.purge_seqno(), Seqno(23));
    let mut purged = Vec::new();
    while let Some(mut batch) = bench.vbucket.begin_flush() {
        batch.take_items(usize::MAX);
        bench.vbucket.flush_succeeded(&batch, Now::default(), &mut bench.effects);
        purged.push((batch.high_seqno().0, batch.state.purge_seqno.0));
    }
    assert_eq!(purged, [(4, 4), (20, 20), (23, 23)], "never above what the file has");
    bench.receive_all([30]);
    assert_eq!(bench.vbucket.purge_seqno(), Seqno(25));
    bench.announce(from_file(31, 40, 3)).unwrap();
    bench.receive_all([40]);
    assert_eq!(bench.vbucket.purge_seqno(), Seqno(25), "it never falls");
}

#[test]
fn whatever_name_a_version_has_the_vbucket_can_be_written_when_it_becomes_active() {
    for cas in [0, 1, u64::MAX / 2, u64::MAX - (1 << 16), u64::MAX - 1, u64::MAX] {
        let mut bench = Bench::new();
        bench.announce(snapshot(1, 1)).unwrap();
        bench.receive(Received { cas: Cas(cas), ..received("k", 1, None) }).unwrap();
        let change = RoleChange {
            state: VbucketState::Active,
            topology: None,
            is_takeover: false,
            fresh_uuid: VbUuid(9),
        };
        bench.vbucket.change_role(change, Now::default(), &mut Vec::new());
        let mut get = || bench.vbucket.get(key("k").as_key(), Now::default(), &mut Vec::new());
        let before = get().unwrap().cas;
        assert_eq!(before == Cas(cas), cas != 0 && cas != u64::MAX, "{cas}: {before:?}");
        let builder = ItemBuilder::new(key("k").as_key(), ItemMeta::default(), b"v");
        let condition = WriteCondition { cas: before, ..WriteCondition::default() };
        let (now, effects) = (Now::default(), &mut Vec::new());
        let stored = bench.vbucket.store(StoreMode::Set, builder, condition, now, effects);
        assert_ne!(stored.unwrap().done().unwrap().cas, before, "{cas}");
    }
}

#[test]
fn a_document_that_is_only_in_the_file_counts_once_when_another_version_comes() {
    let options = EvictionOptions { policy: EvictionPolicy::Full, ..Default::default() };
    let (seed, account) = (HashSeed::new(1), MemoryAccount::default());
    let vbucket = Vbucket::new(Vbid(0), VbucketState::Replica, VbUuid(7), seed, account);
    let mut bench = Bench::of(vbucket.with_eviction(options));
    bench.announce(snapshot(1, 9)).unwrap();
    bench.receive_all([1, 2]);
    bench.flush(usize::MAX);
    bench.vbucket.eject(key("1").as_key(), Now::default(), &mut Vec::new());
    assert!(matches!(bench.value("1"), Err(Refusal::Absent(_))));
    bench.receive(received("1", 3, None)).unwrap();
    bench.receive(received("3", 4, None)).unwrap();
    assert_eq!(bench.value("1").unwrap(), b"value");
    assert_eq!((bench.vbucket.document_count(), bench.vbucket.ejected_count()), (3, 0));
}

#[test]
fn memory_recovery_within_a_snapshot_changes_nothing_of_what_was_announced() {
    let announced = |is_disk: bool| ReceivedSnapshot {
        high_prepared: Some(Seqno(7)),
        high_completed: is_disk.then_some(Seqno(6)),
        purge_seqno: is_disk.then_some(Seqno(3)),
        is_disk,
        ..snapshot(1, 10)
    };
    for (state, is_disk) in [
        (VbucketState::Replica, true),
        (VbucketState::Replica, false),
        (VbucketState::Pending, true),
        (VbucketState::Pending, false),
    ] {
        let account = MemoryAccount::default();
        let limits = CheckpointLimits { with_streams_bytes: 1, alone_bytes: 1 };
        account.set_checkpoint_limits(limits);
        let seed = HashSeed::new(1);
        let mut bench = Bench::of(Vbucket::new(Vbid(0), state, VbUuid(7), seed, account));
        let recover = |bench: &mut Bench| {
            let before = bench.vbucket.checkpoints().open_snapshot();
            let step = RecoveryStep::CloseFullCheckpoint;
            bench.vbucket.recover_memory(step, Instant::default(), &mut bench.effects);
            let after = bench.vbucket.checkpoints().open_snapshot();
            assert_eq!(Snapshot { start: before.start, ..after }, before, "{state:?} {is_disk}");
            assert!(bench.vbucket.checkpoints().open_extent().items == 0, "it is closed");
        };
        bench.announce(announced(is_disk)).unwrap();
        recover(&mut bench);
        bench.receive_all(1..=3);
        recover(&mut bench);
        recover(&mut bench);
        assert_eq!(bench.position(), (3, 0, 10, 70));
        assert_eq!(bench.flush(usize::MAX), (0, 10, 3), "the file is within the snapshot");
        bench.receive_all(4..=9);
        assert_eq!(bench.flush(usize::MAX), (0, 10, 9));
        bench.receive_all([10]);
        recover(&mut bench);
        assert_eq!(bench.flush(usize::MAX), (10, 10, 10));
        bench.announce(snapshot(11, 12)).unwrap();
        bench.receive_all(11..=12);
        assert_eq!(bench.position(), (12, 12, 12, 70));
    }
}
