//! What clients were told to be durable.

use document::DurabilityLevel;

use super::Run;
use super::node::Heard;

/// What there may be of a document that somebody was told to be durable.
pub(super) struct Acknowledged {
    level: DurabilityLevel,
    /// Its value, and what was written over it since; none for a deletion.
    pub(super) values: Vec<Option<Vec<u8>>>,
    /// A node was lost since, and the other one may not have it yet.
    pub(super) is_alone: bool,
}

/// Key, value if it is no deletion, and level.
pub(super) type DurableWrite = (Vec<u8>, Option<Vec<u8>>, DurabilityLevel);

/// What the replica may lack of what it has acknowledged, until it begins a stream and says so.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lost {
    Nothing,
    /// What it had not written to its disk.
    Memory,
    Everything,
}

impl Run {
    /// A commit that rests on what the replica has lost is on the active node alone. What was
    /// known of its document before has the value already, as one that was written over it.
    pub(super) fn note_commits(&mut self) {
        for (waiter, _) in self.source().committed.take() {
            let (key, value, level) = self.waiting.remove(&waiter.0).expect("it was begun");
            if self.outlasts(level, self.replica_lost) {
                let known = Acknowledged { level, values: vec![value], is_alone: false };
                self.acknowledged.insert(key, known);
            }
        }
    }

    /// The replica loses something.
    pub(super) fn note_loss(&mut self, lost: Lost) {
        self.note_commits();
        let mut acknowledged = std::mem::take(&mut self.acknowledged);
        acknowledged.retain(|_, known| known.is_alone || self.outlasts(known.level, lost));
        self.acknowledged = acknowledged;
        self.replica_lost = self.replica_lost.max(lost);
    }

    /// The replica has said what it has: later commits rest on that.
    pub(super) fn note_stream(&mut self) {
        self.note_commits();
        self.replica_lost = Lost::Nothing;
    }

    /// What the replica has acknowledged of this level it still has.
    fn outlasts(&self, level: DurabilityLevel, lost: Lost) -> bool {
        match lost {
            Lost::Nothing => true,
            Lost::Memory => {
                level == DurabilityLevel::PersistToMajority && !self.nodes[0].is_ephemeral()
            }
            Lost::Everything => false,
        }
    }

    /// What was acknowledged is there, unless it `may_wait` for an end that it will get.
    pub(super) fn check_acknowledged(&mut self, may_wait: bool) {
        for (key, known) in &self.acknowledged {
            let heard = match self.nodes[self.active].get(key) {
                Heard::Value(value) => Some(value),
                Heard::Nothing => None,
                Heard::Refused if may_wait => continue,
                Heard::Refused => panic!("seed {}: {key:?} waits for ever", self.seed),
            };
            assert!(known.values.contains(&heard), "seed {}: {key:?} is {heard:?}", self.seed);
        }
    }
}
