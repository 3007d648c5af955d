//! Runs scripts on a vBucket.

use std::fmt::Write;
use std::time::Duration;

use document::{
    Cas, CollectionId, Deletion, Item, ItemBuilder, ItemMeta, Operation, RevSeqno, Seqno, VbUuid,
    Vbid, VbucketState,
};
use platform::{Clock, WallTime};

use super::words::{key, level, number, refused, seconds_until, told, topology};
use crate::checkpoint::Tenure;
use crate::durability::DurabilityLimits;
use crate::effect::Effect;
use crate::hash_table::HashSeed;
use crate::memory_account::MemoryAccount;
use crate::operation::{
    Now, Refusal, StoreMode, SyncWriteEnd, SyncWriteRequest, WriteCondition, Written,
};
use crate::persistence::{FlushUrgency, PersistentState, Topology};
use crate::vbucket::Vbucket;
use crate::vbucket::receiving::{Received, ReceivedSnapshot};
use crate::vbucket::restore::Restored;
use crate::vbucket::role::RoleChange;
use crate::waiter::Waiter;

/// Runs `script`, line by line.
pub(super) fn run(script: &str) {
    let mut bench = Bench::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (what, expected) = line.split_once("=>").unwrap_or((line, ""));
        let outcome = bench.act(what.trim());
        assert_eq!(outcome, expected.trim(), "{line}\nin{script}");
    }
}

/// A vBucket, active at first and without a topology.
pub(super) struct Bench {
    pub(super) vbucket: Vbucket,
    clock: Clock,
    effects: Vec<Effect>,
    /// By waiter: the key, and whether the write has ended.
    writes: Vec<(String, bool)>,
    /// What the file has: its state, and the newest version of each key and namespace.
    file: PersistentState,
    file_items: Vec<Item>,
    branches: u64,
    /// How soon flushes were asked for since somebody looked.
    asked: Vec<&'static str>,
}

/// Collections that are there from the beginning.
const NAMED: [CollectionId; 2] = [CollectionId(8), CollectionId(9)];

impl Bench {
    pub(super) fn new() -> Self {
        let (state, account) = (VbucketState::Active, MemoryAccount::default());
        let mut vbucket = Vbucket::new(Vbid(0), state, VbUuid(1), HashSeed::new(1), account);
        vbucket.assume_collections(&NAMED);
        Self {
            vbucket,
            clock: Clock::simulated(WallTime(1_700_000_000 * 1_000_000_000)),
            effects: Vec::new(),
            writes: Vec::new(),
            file: PersistentState::new(state),
            file_items: Vec::new(),
            branches: 1,
            asked: Vec::new(),
        }
    }

    fn now(&self) -> Now {
        Now { monotonic: self.clock.now(), wall: self.clock.wall_time() }
    }

    /// Does one thing and says what comes of it.
    pub(super) fn act(&mut self, line: &str) -> String {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let words: Vec<&str> = rest.split_whitespace().collect();
        let seqno = |index: usize| Seqno(number(words[index]));
        let now = self.now();
        let mut outcome = match verb {
            "topology" => self.change_role(VbucketState::Active, Some(topology(rest))),
            "role" => self.change_role(VbucketState::from_name(words[0]).unwrap(), None),
            "fallback" => {
                self.limit(DurabilityLimits { replicas_max: 2, fallback_to_master_ack: true })
            }
            "replicas_max" => {
                let replicas_max = words[0].parse().unwrap();
                self.limit(DurabilityLimits { replicas_max, ..DurabilityLimits::default() })
            }
            "set" | "add" | "replace" => self.store(verb, words[0], None),
            "delete" => self.delete(words[0], None),
            "sync_set" | "sync_add" | "sync_replace" | "sync_delete" => {
                self.sync_write(verb, &words)
            }
            "get" | "get_replica" | "meta" | "observe" | "lock" | "unlock" | "expire" => {
                self.read(verb, words[0])
            }
            "ack" => {
                self.vbucket.acknowledge(words[0], seqno(1), now, &mut self.effects);
                String::new()
            }
            "restart" => {
                self.vbucket.restart_acknowledgements(words[0], seqno(1));
                String::new()
            }
            "flush" => self.flush(),
            "asked" => std::mem::take(&mut self.asked).join(" "),
            "hurry" => {
                self.vbucket.hurry_flush(&mut self.effects);
                String::new()
            }
            "await" => {
                let (deadline, waiter) = (now.monotonic, Waiter(u64::MAX));
                let effects = &mut self.effects;
                self.vbucket.wait_for_persistence(seqno(0), deadline, waiter, effects).to_string()
            }
            "wait" => self.wait(number(words[0])),
            "stream" => {
                let position = self.vbucket.stream_position();
                told(self.vbucket.begin_receiving(position, &[], &mut self.effects))
            }
            "memory" | "checkpoint" | "disk" => self.announce(verb, &words),
            "mutation" | "deletion" | "prepare" => self.receive(verb, &words),
            "commit" | "abort" => self.receive_end(verb, &words),
            "advance" => told(self.vbucket.receive_seqno_advanced(seqno(0), &mut self.effects)),
            "drop" => self.drop_collection(number(words[0]), words.get(1).map(|_| seqno(1))),
            "crash" => self.crash(),
            "retire" => {
                self.vbucket.retire(&mut self.effects);
                String::new()
            }
            "state" => self.state(),
            "file" => self.file_facts(),
            "log" => self.log(),
            _ => panic!("no such thing: {line}"),
        };
        self.say_effects(&mut outcome);
        self.check_invariants();
        outcome.trim().to_owned()
    }

    fn limit(&mut self, limits: DurabilityLimits) -> String {
        self.vbucket.set_durability_limits(limits);
        String::new()
    }

    fn change_role(&mut self, state: VbucketState, topology: Option<Topology>) -> String {
        self.branches += 1;
        let fresh_uuid = VbUuid(self.branches);
        let change = RoleChange { state, topology, is_takeover: false, fresh_uuid };
        let now = self.now();
        self.vbucket.change_role(change, now, &mut self.effects);
        String::new()
    }

    fn store(&mut self, verb: &str, name: &str, request: Option<SyncWriteRequest>) -> String {
        let mode = match verb {
            "add" | "sync_add" => StoreMode::Add,
            "replace" | "sync_replace" => StoreMode::Replace,
            _ => StoreMode::Set,
        };
        let value = format!("{name}@{}", self.vbucket.high_seqno().0 + 1);
        let meta = ItemMeta::default();
        let condition = WriteCondition { sync_write: request, ..WriteCondition::default() };
        let operation = condition.operation();
        let builder = ItemBuilder::step(key(name).as_key(), meta, operation, value.as_bytes());
        let now = self.now();
        self.written(|vbucket, effects| vbucket.store(mode, builder, condition, now, effects))
    }

    fn delete(&mut self, name: &str, request: Option<SyncWriteRequest>) -> String {
        let condition = WriteCondition { sync_write: request, ..WriteCondition::default() };
        let now = self.now();
        self.written(|vbucket, effects| vbucket.delete(key(name).as_key(), condition, now, effects))
    }

    fn written(
        &mut self,
        write: impl FnOnce(&mut Vbucket, &mut Vec<Effect>) -> Result<Written, Refusal>,
    ) -> String {
        let before = self.vbucket.high_seqno();
        match write(&mut self.vbucket, &mut self.effects) {
            Ok(Written::Done(mutation)) => format!("@{}", mutation.seqno),
            Ok(Written::Begun) => format!("begun@{}", before.next()),
            Err(refusal) => refused(&refusal),
        }
    }

    /// `sync_set key level [timeout in seconds]`
    fn sync_write(&mut self, verb: &str, words: &[&str]) -> String {
        let seconds = words.get(2).map_or(30, |seconds| number(seconds));
        let deadline = self.clock.now().after(Duration::from_secs(seconds));
        let waiter = Waiter(self.writes.len() as u64);
        self.writes.push((words[0].to_owned(), false));
        let request = Some(SyncWriteRequest { level: level(words[1]), deadline, waiter });
        match verb {
            "sync_delete" => self.delete(words[0], request),
            _ => self.store(verb, words[0], request),
        }
    }

    fn read(&mut self, verb: &str, name: &str) -> String {
        let (key, now, effects) = (key(name), self.now(), &mut self.effects);
        let key = key.as_key();
        let found = match verb {
            "get" => self.vbucket.get(key, now, effects),
            "get_replica" => self.vbucket.get_replica(key, now, effects),
            "meta" => self.vbucket.get_metadata(key, now),
            "lock" => self.vbucket.lock(key, Duration::from_secs(9), now, effects),
            "unlock" => {
                let unlocked = self.vbucket.unlock(key, Cas(1), now);
                return unlocked.map_or_else(|refusal| refused(&refusal), |()| String::new());
            }
            "expire" => {
                let deleted = self.vbucket.delete_if_expired(key, now, effects);
                return deleted.map_or_else(|refusal| refused(&refusal), |it| it.to_string());
            }
            _ => {
                return match self.vbucket.observe(key, now) {
                    Ok(found) => found.is_some().to_string(),
                    Err(refusal) => refused(&refusal),
                };
            }
        };
        match found {
            Ok(found) if found.item.is_deleted() => "deleted".to_owned(),
            Ok(found) => String::from_utf8(found.item.value().to_vec()).unwrap(),
            Err(refusal) => refused(&refusal),
        }
    }

    /// Writes all that is not in the file, and says it.
    pub(super) fn flush(&mut self) -> String {
        while let Some(mut batch) = self.vbucket.begin_flush() {
            for item in batch.take_items(usize::MAX).items {
                let namespace = |item: &Item| item.operation().is_prepared();
                self.file_items.retain(|other| {
                    other.key() != item.key() || namespace(other) != namespace(&item)
                });
                self.file_items.push(item);
            }
            self.file = batch.state.clone();
            let now = self.now();
            self.vbucket.flush_succeeded(&batch, now, &mut self.effects);
            self.vbucket.apply_succeeded(batch.high_seqno());
        }
        String::new()
    }

    fn wait(&mut self, seconds: u64) -> String {
        self.clock.advance(Duration::from_secs(seconds));
        let now = self.now();
        let next = self.vbucket.end_overdue_sync_writes(now, &mut self.effects);
        next.map_or_else(String::new, |next| format!("next {}", seconds_until(next, now)))
    }

    /// `memory start end`, `disk start end [high completed [high prepared]]`
    fn announce(&mut self, kind: &str, words: &[&str]) -> String {
        let seqno = |index: usize| words.get(index).map(|word| Seqno(number(word)));
        let snapshot = ReceivedSnapshot {
            start: seqno(0).unwrap(),
            end: seqno(1).unwrap(),
            is_disk: kind == "disk",
            begins_checkpoint: kind == "checkpoint",
            max_visible: None,
            high_completed: seqno(2),
            high_prepared: seqno(3),
            purge_seqno: (kind == "disk").then_some(Seqno(0)),
        };
        told(self.vbucket.receive_snapshot(snapshot, &mut self.effects))
    }

    /// `mutation key seqno`, `prepare key level seqno`
    fn receive(&mut self, verb: &str, words: &[&str]) -> String {
        let seqno = number(words.last().unwrap());
        let deletion = (verb == "deletion").then_some(Deletion::Explicit);
        let meta = ItemMeta { deletion, ..ItemMeta::default() };
        let value = format!("{}@{seqno}", words[0]);
        let builder = ItemBuilder::new(key(words[0]).as_key(), meta, value.as_bytes());
        let builder = match verb {
            "prepare" => builder.with_operation(Operation::Prepare(level(words[1]))),
            _ => builder,
        };
        let (cas, seqno) = (Cas(seqno << 16), Seqno(seqno));
        let received = Received { builder, cas, seqno, revision: RevSeqno(1) };
        let now = self.now();
        told(self.vbucket.receive(received, now, &mut self.effects))
    }

    /// `commit key prepare seqno`
    fn receive_end(&mut self, verb: &str, words: &[&str]) -> String {
        let (name, now, effects) = (key(words[0]), self.now(), &mut self.effects);
        let (prepare, seqno) = (Seqno(number(words[1])), Seqno(number(words[2])));
        told(match verb {
            "commit" => self.vbucket.receive_commit(name.as_key(), prepare, seqno, now, effects),
            _ => self.vbucket.receive_abort(name.as_key(), prepare, seqno, now, effects),
        })
    }

    /// Memory is lost, and the vBucket comes back from its file.
    fn crash(&mut self) -> String {
        self.branches += 1;
        let state = self.file.clone();
        let completed = state.facts.completed_seqno;
        let restored = Restored {
            vbid: Vbid(0),
            state,
            document_count: 0,
            fresh_uuid: VbUuid(self.branches),
            was_clean: false,
        };
        self.writes.iter_mut().for_each(|(_, has_ended)| *has_ended = true);
        self.vbucket = Vbucket::restore(restored, HashSeed::new(2), MemoryAccount::default());
        self.vbucket.assume_collections(&NAMED);
        let mut items = self.file_items.clone();
        items.sort_by_key(Item::seqno);
        for item in &items {
            if !item.operation().is_prepared() {
                drop(self.vbucket.restore_document(item.clone()));
            }
        }
        let is_open = |item: &&Item| {
            matches!(item.operation(), Operation::Prepare(_)) && item.seqno() > completed
        };
        items.iter().filter(is_open).for_each(|item| self.vbucket.restore_prepare(item.clone()));
        let now = self.now();
        self.vbucket.resolve_sync_writes(now, &mut self.effects);
        String::new()
    }

    /// `drop collection [through]`
    fn drop_collection(&mut self, id: u64, through: Option<Seqno>) -> String {
        let collection = CollectionId(u32::try_from(id).unwrap());
        let (through, now) = (through.unwrap_or(self.vbucket.high_seqno()), self.now());
        self.vbucket.drop_prepares(collection, through, now, &mut self.effects);
        String::new()
    }

    fn state(&self) -> String {
        let status = self.vbucket.durability_status();
        format!(
            "hps {} hcs {} tracked {} prepares {} visible {}",
            status.high_prepared_seqno,
            status.high_completed_seqno,
            status.tracked_count,
            self.vbucket.prepare_count(),
            self.vbucket.max_visible_seqno(),
        )
    }

    fn file_facts(&self) -> String {
        let facts = &self.file.facts;
        format!(
            "hps {} pcs {} pps {} visible {}",
            facts.high_prepared_seqno,
            facts.completed_seqno,
            facts.prepared_seqno,
            facts.max_visible_seqno,
        )
    }

    /// The log as a stream from the beginning sees it, checkpoints divided by bars.
    fn log(&mut self) -> String {
        let Ok(stream) = self.vbucket.open_stream("log", Seqno(0), Tenure::WhileMemoryLasts) else {
            return String::new();
        };
        let mut text = String::new();
        if let Some(range) = self.vbucket.read_stream(stream.id) {
            let starts = range.snapshots().into_iter().map(|(_, snapshot)| snapshot.start);
            let mut starts = starts.skip(1).peekable();
            range.for_each(|item| {
                let mark = match item.operation() {
                    Operation::Mutation => "m",
                    Operation::Prepare(_) => "p",
                    Operation::Commit { .. } => "c",
                    Operation::Abort { .. } => "a",
                };
                while starts.next_if(|&start| start <= item.seqno()).is_some() {
                    text.push_str("| ");
                }
                write!(text, "{mark}{} ", item.seqno()).unwrap();
            });
        }
        self.vbucket.close_stream(stream.id, &mut self.effects);
        text
    }

    fn say_effects(&mut self, outcome: &mut String) {
        let now = self.now();
        for effect in std::mem::take(&mut self.effects) {
            let text = match effect {
                Effect::SyncWriteEnded(waiter, end) => {
                    let write = &mut self.writes[usize::try_from(waiter.0).unwrap()];
                    assert!(!write.1, "the write of {} has ended twice", write.0);
                    write.1 = true;
                    match end {
                        SyncWriteEnd::Committed { mutation: commit, .. } => {
                            format!("commit {}@{}", write.0, commit.seqno)
                        }
                        SyncWriteEnd::Ambiguous(_) => format!("ambiguous {}", write.0),
                        SyncWriteEnd::Dropped => format!("dropped {}", write.0),
                    }
                }
                Effect::AcknowledgePrepares(seqno) => format!("held {seqno}"),
                Effect::TimeSyncWrites(until) => {
                    format!("timer {}", seconds_until(until, now))
                }
                Effect::Flush(urgency) => {
                    self.asked.push(match urgency {
                        FlushUrgency::Deferred => "deferred",
                        FlushUrgency::Soon => "soon",
                        FlushUrgency::Awaited => "awaited",
                    });
                    continue;
                }
                _ => continue,
            };
            write!(outcome, " {text}").unwrap();
        }
    }

    fn check_invariants(&self) {
        let status = self.vbucket.durability_status();
        assert!(status.last_committed_seqno <= status.high_prepared_seqno);
        assert!(status.last_tracked_seqno <= self.vbucket.high_seqno());
        assert!(self.vbucket.prepare_count() <= status.tracked_count);
    }
}
