//! What the nodes and the client have in the end.

use super::client::Documents;
use super::node::{Heard, key_in};
use super::{COLLECTIONS, Run};

impl Run {
    pub(super) fn check_client(&mut self) {
        let features = self.client.features;
        let expected = self.nodes[self.active].documents(features);
        for _ in 0..30 {
            self.source().run();
            let before = self.client.ends.len();
            self.client.take(&self.nodes[self.active].machine, 100_000);
            if self.client.is_to_ask_anew() {
                self.connect();
            } else if self.client.ends.len() == before {
                break;
            }
        }
        assert_same(self.seed, &self.client.documents(), &expected);
    }

    /// Both nodes have the same, and what was acknowledged.
    pub(super) fn check_nodes(&mut self) {
        self.nodes[self.active].follow_manifest(&self.manifest);
        self.pass_time();
        for key in self.keys() {
            self.nodes[self.active].get(&key);
        }
        self.catch_up();
        self.check_acknowledged(false);
        for known in self.acknowledged.values_mut() {
            known.is_alone = false;
        }
        self.catch_up();
        self.check_liveness();
        let expected = self.nodes[self.active].documents(COLLECTIONS);
        let replica = self.nodes[1 - self.active].documents(COLLECTIONS);
        assert_same(self.seed, &replica, &expected);
        for key in self.keys() {
            let heard = self.nodes[self.active].get(&key);
            let value = expected.get(&key).map(|(value, _)| Heard::Value(value.clone()));
            assert_eq!(heard, value.unwrap_or(Heard::Nothing), "seed {}: {key:?}", self.seed);
        }
    }

    /// Whatever expires has expired.
    fn pass_time(&mut self) {
        while self.nodes[self.active].seconds() <= self.expiry_max {
            self.nodes[self.active].pass_time();
        }
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        let collections = &self.manifest.scopes[0].collections;
        let names = || (0..20).map(|number| format!("key{number}"));
        collections.iter().flat_map(|it| names().map(|name| key_in(it.id, &name))).collect()
    }

    /// The replica follows, and each node does what it has to do.
    pub(super) fn come_closer(&mut self) {
        if self.link.is_none() {
            self.follow();
        }
        self.source().run();
        self.replicate(100_000);
        self.target().run();
        self.replicate(100_000);
    }

    /// The replica has all that the active node has.
    pub(super) fn catch_up(&mut self) {
        self.nodes.iter().for_each(|node| node.fill_disk(false));
        self.take_in();
        for _ in 0..30 {
            self.come_closer();
            self.note_commits();
            if self.source().high_seqno() == self.target().high_seqno() {
                return;
            }
        }
        panic!("seed {}: the replica does not catch up", self.seed);
    }

    /// Nodes that have written everything to their disks have it after a start.
    pub(super) fn check_restarts(&mut self) {
        for index in 0..2 {
            self.nodes[index].machine.run();
            let before = self.nodes[index].documents(COLLECTIONS);
            self.crash(index);
            let after = self.nodes[index].documents(COLLECTIONS);
            assert_same(self.seed, &after, &before);
        }
    }
}

#[track_caller]
fn assert_same(seed: u64, there: &Documents, expected: &Documents) {
    let more: Vec<_> = there.iter().filter(|it| expected.get(it.0) != Some(it.1)).collect();
    let less: Vec<_> = expected.iter().filter(|it| there.get(it.0) != Some(it.1)).collect();
    assert!(there == expected, "seed {seed}: {more:?} where {less:?} is expected");
}
