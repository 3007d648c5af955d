//! Peers that say anything: nothing of it stops the node, and what is left works.

use document::{Datatype, Deletion, DurabilityLevel, ItemMeta, KeyBuf, Vbid};
use platform::{Instant, Random, WallTime, seeds::seeds};

use super::*;
use crate::checkpoint::CheckpointLimits;
use crate::durability::DurabilityLimits;
use crate::hash_table::HashSeed;
use crate::memory_account::MemoryAccount;
use crate::operation::{StoreMode, SyncWriteRequest, WriteCondition};
use crate::persistence::PersistentState;
use crate::vbucket::recovery::RecoveryStep;
use crate::vbucket::restore::Restored;
use crate::vbucket::role::RoleChange;
use crate::waiter::Waiter;

const STEPS: usize = 300;

/// Every checkpoint is full.
fn account() -> MemoryAccount {
    let account = MemoryAccount::default();
    let limits = CheckpointLimits { with_streams_bytes: 1, alone_bytes: 1 };
    account.set_checkpoint_limits(limits);
    account
}

struct Bench {
    vbucket: Vbucket,
    random: Random,
    now: Now,
    file: PersistentState,
    items: Vec<Item>,
    effects: Vec<Effect>,
    /// How much of what was said was taken.
    taken_count: usize,
    refused_count: usize,
}

impl Bench {
    fn new(random: Random) -> Self {
        let (state, account) = (VbucketState::Replica, account());
        Self {
            vbucket: Vbucket::new(Vbid(0), state, VbUuid(7), HashSeed::new(1), account),
            random,
            now: Now { wall: WallTime(1_700_000_000 * 1_000_000_000), ..Now::default() },
            file: PersistentState::new(state),
            items: Vec::new(),
            effects: Vec::new(),
            taken_count: 0,
            refused_count: 0,
        }
    }

    fn note(&mut self, result: Result<(), ReceiveError>) {
        self.taken_count += usize::from(result.is_ok());
        self.refused_count += usize::from(result.is_err());
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    /// Near the highest seqno, or anywhere.
    fn seqno(&mut self) -> Seqno {
        let high = self.vbucket.high_seqno().0;
        Seqno(match self.below(20) {
            0 => self.below(high + 1),
            1 => high + 1 + self.below(1 << 34),
            _ => (high + self.below(8)).saturating_sub(2),
        })
    }

    fn maybe_seqno(&mut self) -> Option<Seqno> {
        let seqno = self.seqno();
        (self.below(2) == 0).then_some(seqno)
    }

    fn key(&mut self) -> KeyBuf {
        let name = [b'a' + u8::try_from(self.below(4)).unwrap()];
        KeyBuf::in_default_collection(&name).unwrap()
    }

    fn level(&mut self) -> DurabilityLevel {
        let byte = u8::try_from(1 + self.below(3)).unwrap();
        DurabilityLevel::from_byte(byte).unwrap()
    }

    fn announce(&mut self) {
        let snapshot = ReceivedSnapshot {
            start: self.seqno(),
            end: self.seqno(),
            is_disk: self.below(2) == 0,
            begins_checkpoint: self.below(2) == 0,
            max_visible: self.maybe_seqno(),
            high_completed: self.maybe_seqno(),
            high_prepared: self.maybe_seqno(),
            purge_seqno: self.maybe_seqno(),
        };
        let result = self.vbucket.receive_snapshot(snapshot, &mut self.effects);
        self.note(result);
    }

    fn receive(&mut self) {
        let value: Vec<u8> = (0..self.below(12)).map(|_| self.below(9) as u8).collect();
        let deletion = [None, Some(Deletion::Explicit), Some(Deletion::Expired)];
        let meta = ItemMeta {
            flags: [9; 4],
            expiry: [0, 1, 1_600_000_000, u32::MAX][self.below(4) as usize],
            datatype: Datatype::from_bits(self.below(8) as u8).unwrap_or_default(),
            deletion: deletion[self.below(3) as usize],
        };
        let operation = match self.below(3) {
            0 => Operation::Prepare(self.level()),
            _ => Operation::Mutation,
        };
        let builder = ItemBuilder::step(self.key().as_key(), meta, operation, &value);
        let cas = Cas([0, 1, 1 << 60, u64::MAX - 1, u64::MAX][self.below(5) as usize]);
        let revision = RevSeqno([0, 1, (1 << 48) - 1, u64::MAX][self.below(4) as usize]);
        let received = Received { builder, cas, seqno: self.seqno(), revision };
        let result = self.vbucket.receive(received, self.now, &mut self.effects);
        self.note(result);
    }

    fn receive_end(&mut self) {
        let (key, prepare, seqno, now) = (self.key(), self.seqno(), self.seqno(), self.now);
        let known = self.vbucket.prepared_items();
        let known = known.iter().find(|item| item.key() == key.as_key()).map(Item::seqno);
        let prepare = known.filter(|_| self.below(4) > 0).unwrap_or(prepare);
        let is_commit = self.below(2) == 0;
        let (vbucket, effects) = (&mut self.vbucket, &mut self.effects);
        let result = match is_commit {
            true => vbucket.receive_commit(key.as_key(), prepare, seqno, now, effects),
            false => vbucket.receive_abort(key.as_key(), prepare, seqno, now, effects),
        };
        self.note(result);
    }

    fn begin_stream(&mut self) {
        let count = self.below(3);
        let log: Vec<FailoverEntry> = (0..count)
            .map(|_| FailoverEntry { uuid: VbUuid(self.below(4)), seqno: self.seqno() })
            .collect();
        let mut position = self.vbucket.stream_position();
        if self.below(8) == 0 {
            // It was asked for before the vBucket became another.
            position.start = self.seqno();
        }
        let result = self.vbucket.begin_receiving(position, &log, &mut self.effects);
        self.note(result);
    }

    fn change_role(&mut self) {
        let state = match self.below(8) {
            0 => VbucketState::Active,
            1 => VbucketState::Dead,
            2 => VbucketState::Pending,
            _ => VbucketState::Replica,
        };
        let chain = ["a", "b"].map(|name| Some(name.to_owned())).to_vec();
        let topology = (state == VbucketState::Active).then(|| vec![chain]);
        let fresh_uuid = VbUuid(100 + self.below(1 << 30));
        let is_takeover = self.below(4) == 0;
        let change = RoleChange { state, topology, is_takeover, fresh_uuid };
        self.vbucket.change_role(change, self.now, &mut self.effects);
    }

    fn write(&mut self) {
        let key = self.key();
        let level = self.level();
        let (deadline, waiter) = (self.now.monotonic, Waiter(1));
        let request = SyncWriteRequest { level, deadline, waiter };
        let sync_write = Some(request).filter(|_| self.below(2) == 0);
        let condition = WriteCondition { sync_write, ..WriteCondition::default() };
        let (now, which) = (self.now, self.below(4));
        let seqno = self.seqno();
        let (vbucket, effects) = (&mut self.vbucket, &mut self.effects);
        match which {
            0 => drop(vbucket.delete(key.as_key(), condition, now, effects)),
            1 => drop(vbucket.delete_if_expired(key.as_key(), now, effects)),
            2 => vbucket.acknowledge("b", seqno, now, effects),
            _ => {
                let (meta, operation) = (ItemMeta::default(), condition.operation());
                let builder = ItemBuilder::step(key.as_key(), meta, operation, b"value");
                drop(vbucket.store(StoreMode::Set, builder, condition, now, effects));
            }
        }
        drop(vbucket.get(key.as_key(), now, effects));
    }

    fn flush(&mut self) {
        let Some(mut batch) = self.vbucket.begin_flush() else { return };
        let bytes_max = [1, usize::MAX][self.below(2) as usize];
        for item in batch.take_items(bytes_max).items {
            let namespace = |item: &Item| item.operation().is_prepared();
            self.items.retain(|old| old.key() != item.key() || namespace(old) != namespace(&item));
            self.items.push(item);
        }
        self.file = batch.state.clone();
        self.vbucket.flush_succeeded(&batch, self.now, &mut self.effects);
        self.vbucket.apply_succeeded(batch.high_seqno());
    }

    fn crash(&mut self) {
        let (vbid, fresh_uuid) = (Vbid(0), VbUuid(1 << 40));
        let state = self.file.clone();
        let completed = state.facts.completed_seqno;
        let restored = Restored { vbid, state, document_count: 0, fresh_uuid, was_clean: false };
        self.vbucket = Vbucket::restore(restored, HashSeed::new(2), account());
        self.vbucket.set_durability_limits(DurabilityLimits::default());
        self.items.sort_by_key(Item::seqno);
        for item in &self.items {
            if !item.operation().is_prepared() {
                drop(self.vbucket.restore_document(item.clone()));
            }
        }
        for item in &self.items {
            if matches!(item.operation(), Operation::Prepare(_)) && item.seqno() > completed {
                self.vbucket.restore_prepare(item.clone());
            }
        }
        self.vbucket.resolve_sync_writes(self.now, &mut self.effects);
    }

    fn recover_memory(&mut self) {
        let steps = [RecoveryStep::CloseFullCheckpoint, RecoveryStep::Expel];
        let step = steps[self.below(2) as usize];
        self.vbucket.recover_memory(step, Instant::default(), &mut self.effects);
    }

    fn step(&mut self) {
        match self.below(42) {
            0 => self.crash(),
            1 | 2 => self.change_role(),
            3 | 4 => self.begin_stream(),
            5..=11 => self.announce(),
            12..=22 => self.receive(),
            23..=28 => self.receive_end(),
            29 | 30 => {
                let seqno = self.seqno();
                let result = self.vbucket.receive_seqno_advanced(seqno, &mut self.effects);
                self.note(result);
            }
            31..=34 => self.flush(),
            35 | 36 => self.recover_memory(),
            _ => self.write(),
        }
        self.effects.clear();
        let vbucket = &self.vbucket;
        assert!(vbucket.purge_seqno() <= vbucket.high_seqno(), "what is missing was there");
        assert!(self.file.purge_seqno <= self.file.high_seqno, "nor does a file say so");
        let position = vbucket.stream_position();
        assert!(position.snapshot_start <= position.start, "{position:?}");
        assert!(position.start <= position.snapshot_end, "{position:?}");
        let is_whole = position.start == position.snapshot_end;
        assert!(is_whole || vbucket.state() != VbucketState::Active, "{position:?}");
    }
}

#[test]
fn whatever_a_peer_says_the_vbucket_goes_on() {
    let mut counts = (0, 0);
    for seed in seeds(100) {
        println!("seed {seed}");
        let mut bench = Bench::new(Random::from_seed(seed));
        for _ in 0..STEPS {
            bench.step();
        }
        for _ in 0..200 {
            bench.flush();
        }
        assert!(bench.vbucket.is_flushed(), "flushing comes to an end");
        counts = (counts.0 + bench.taken_count, counts.1 + bench.refused_count);
    }
    assert!(counts.0 > 0, "something is taken");
    assert!(counts.1 > 0, "something is refused");
    println!("{counts:?} taken and refused");
}
