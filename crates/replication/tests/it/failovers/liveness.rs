//! What is healed goes on: nothing waits for ever.

use document::{CollectionId, DurabilityLevel};
use vbucket::Waiter;

use super::node::{Node, key_in};
use super::{LEVELS, Run};

/// Rounds within which a write is durable. A flusher that a full journal, or a disk, has refused
/// pauses for a second.
const ROUNDS_MAX: usize = 40;

impl Run {
    /// What was begun has ended and is durable, with nothing behind it that would help. Then a
    /// durable write of each level is committed.
    pub(super) fn check_liveness(&mut self) {
        self.check_settled();
        let levels: &[DurabilityLevel] =
            if self.nodes[0].is_ephemeral() { &LEVELS[..1] } else { &LEVELS };
        for &level in levels {
            let waiter = Waiter(self.random.next_u64());
            let key = key_in(CollectionId::DEFAULT, &format!("{level:?}"));
            let begins = |run: &mut Self| {
                let node = &mut run.nodes[run.active];
                node.set(&key, b"alive", 0, Some((level, waiter)))
            };
            self.expect_soon("a durable write begins", begins);
            let is_committed = |run: &mut Self| {
                let committed = run.source().committed.take();
                committed.iter().any(|(ended, _)| *ended == waiter)
            };
            self.expect_soon(&format!("{level:?} is committed"), is_committed);
        }
        self.check_settled();
    }

    fn check_settled(&mut self) {
        self.note_commits();
        self.expect_soon("durable writes have ended", |run| {
            run.note_commits();
            run.nodes.iter().all(|node| node.prepare_count() == 0)
        });
        self.expect_soon("all is durable", |run| run.nodes.iter().all(Node::is_flushed));
    }

    fn expect_soon(&mut self, what: &str, is_so: impl Fn(&mut Self) -> bool) {
        for _ in 0..ROUNDS_MAX {
            if is_so(self) {
                return;
            }
            self.come_closer();
        }
        panic!("seed {}: {what}: it does not come about", self.seed);
    }
}
