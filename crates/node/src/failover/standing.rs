//! How far the copies of vBuckets are that could be promoted.

use std::collections::BTreeMap;

use super::Replicas;
use super::choice::{Choice, choose, choose_kept, compare};
use crate::peer_copies::{Copies, Held};

/// Of who has no copy, though a map says so.
static NOTHING: Held =
    Held { is_whole: false, whole_seqno: 0, high_seqno: 0, branches: Vec::new() };

/// What members hold, by their index in the plan. Of who did not answer nothing is in it.
#[derive(Debug, Default)]
pub struct Standing {
    /// By bucket.
    held: BTreeMap<String, BTreeMap<usize, Copies>>,
    /// Who did not answer, with what is known of why.
    silent: BTreeMap<usize, String>,
}

impl Standing {
    pub(super) fn add(&mut self, bucket: &str, member: usize, copies: Copies) {
        let before = self.held.entry(bucket.to_owned()).or_default().insert(member, copies);
        assert!(before.is_none(), "a member says once how far it is");
    }

    /// A member does not say how far it is. What it has said of some buckets does not count.
    pub(super) fn note_silent(&mut self, member: usize, why: String) {
        self.held.values_mut().for_each(|of_members| drop(of_members.remove(&member)));
        let before = self.silent.insert(member, why);
        assert!(before.is_none(), "a member is asked once");
    }

    /// Who did not answer, in words.
    pub fn silent(&self) -> Vec<&str> {
        self.silent.values().map(String::as_str).collect()
    }

    /// The replica that is the furthest (docs/cluster.md, "Who is promoted"). `None` if none of
    /// them has answered.
    pub fn furthest(&self, bucket: &str, vbid: u16, replicas: &[usize]) -> Option<usize> {
        self.choice(bucket, vbid, replicas).map(|choice| choice.member)
    }

    /// The vBuckets of which the furthest replica may lack what others are known to have, or to
    /// have had, as far as members have answered.
    pub fn in_doubt(&self, replicas: &Replicas) -> Vec<(String, u16)> {
        let is_in_doubt = |&(bucket, vbid, holders): &(&str, u16, &[usize])| {
            self.choice(bucket, vbid, holders).is_some_and(|choice| !choice.is_safe)
        };
        let in_doubt = replicas.all().filter(is_in_doubt);
        in_doubt.map(|(bucket, vbid, _)| (bucket.to_owned(), vbid)).collect()
    }

    /// Whether some of these replicas has everything that is in `own`, the copy that they follow.
    pub fn has_reached(&self, bucket: &str, vbid: u16, replicas: &[usize], own: &Held) -> bool {
        !self.reached(bucket, vbid, replicas, own).is_empty()
    }

    /// The furthest of those that have everything that is in `own`, the copy that they follow. Of
    /// others, which may be ahead in a history that was given up, only where there is none.
    pub fn furthest_behind(
        &self,
        bucket: &str,
        vbid: u16,
        replicas: &[usize],
        own: &Held,
    ) -> Option<usize> {
        let reached = self.reached(bucket, vbid, replicas, own);
        let candidates = if reached.is_empty() { replicas } else { &reached };
        self.furthest(bucket, vbid, candidates)
    }

    fn reached(&self, bucket: &str, vbid: u16, replicas: &[usize], own: &Held) -> Vec<usize> {
        let held = |replica: usize| self.of(bucket, replica)?.get(&vbid);
        let has_all =
            |&replica: &usize| held(replica).is_some_and(|held| compare(held, own).is_ge());
        replicas.iter().copied().filter(has_all).collect()
    }

    /// Whose copy of a vBucket that no node has active is to count from now on, of these that were
    /// asked for what they have kept, the first of equals. `None` if none of them has one.
    pub fn kept(&self, bucket: &str, vbid: u16, nodes: &[usize]) -> Option<Choice> {
        let held = |&node: &usize| Some((node, self.of(bucket, node)?.get(&vbid)?));
        choose_kept(&nodes.iter().filter_map(held).collect::<Vec<_>>())
    }

    fn choice(&self, bucket: &str, vbid: u16, replicas: &[usize]) -> Option<Choice> {
        let held = |&replica: &usize| {
            let copies = self.of(bucket, replica)?;
            Some((replica, copies.get(&vbid).unwrap_or(&NOTHING)))
        };
        choose(&replicas.iter().filter_map(held).collect::<Vec<_>>())
    }

    fn of(&self, bucket: &str, member: usize) -> Option<&Copies> {
        self.held.get(bucket)?.get(&member)
    }
}

#[cfg(test)]
mod tests {
    use document::{FailoverEntry, Seqno, VbUuid};

    use super::*;

    const BUCKET: &str = "default";

    fn held(whole_seqno: u64) -> Copies {
        let (is_whole, high_seqno) = (true, whole_seqno);
        Copies::from([(7, Held { is_whole, whole_seqno, high_seqno, branches: Vec::new() })])
    }

    fn in_part() -> Copies {
        Copies::from([(7, Held { high_seqno: 9, ..Held::default() })])
    }

    #[test]
    fn who_does_not_answer_is_not_chosen() {
        let mut standing = Standing::default();
        assert_eq!(standing.furthest(BUCKET, 7, &[1, 2]), None);
        standing.add(BUCKET, 2, held(3));
        assert_eq!(standing.furthest(BUCKET, 7, &[1, 2]), Some(2));
        standing.add(BUCKET, 1, Copies::new());
        assert_eq!(standing.furthest(BUCKET, 7, &[1, 2]), Some(2), "who has no copy comes last");
    }

    #[test]
    fn a_vbucket_is_in_doubt_where_nobody_who_answers_can_be_trusted() {
        let replicas = Replicas::one(BUCKET, 7, &[1, 2]);
        for (first, second, in_doubt) in [
            (Some(held(0)), Some(in_part()), vec![]),
            (Some(in_part()), Some(in_part()), vec![7]),
            (Some(in_part()), None, vec![7]),
            (Some(Copies::new()), None, vec![7]),
            (None, None, vec![]),
        ] {
            let mut standing = Standing::default();
            for (member, copies) in [(1, first), (2, second)] {
                if let Some(copies) = copies {
                    standing.add(BUCKET, member, copies);
                }
            }
            let named = in_doubt.into_iter().map(|vbid| (BUCKET.to_owned(), vbid));
            assert_eq!(standing.in_doubt(&replicas), named.collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_replica_has_reached_the_copy_that_it_follows_once_it_has_all_of_that_history() {
        let branch = |uuid| FailoverEntry { uuid: VbUuid(uuid), seqno: Seqno(0) };
        let of = |uuid, whole_seqno| {
            let mut copies = held(whole_seqno);
            copies.values_mut().for_each(|held| held.branches.push(branch(uuid)));
            copies
        };
        for (uuid, seqno, has_reached) in [(1, 4, true), (1, 5, true), (1, 3, false), (2, 9, false)]
        {
            let mut standing = Standing::default();
            standing.add(BUCKET, 1, of(uuid, seqno));
            standing.add(BUCKET, 2, Copies::new());
            let reached = standing.has_reached(BUCKET, 7, &[1, 2, 3], &of(1, 4)[&7]);
            assert_eq!(reached, has_reached, "{uuid} {seqno}");
        }
        // Behind a FLUSH that one of them has not heard of.
        let mut standing = Standing::default();
        standing.add(BUCKET, 1, of(1, 4));
        standing.add(BUCKET, 2, of(2, 9));
        let own = &of(1, 4)[&7];
        assert_eq!(standing.furthest_behind(BUCKET, 7, &[1, 2], own), Some(1));
        assert_eq!(standing.furthest_behind(BUCKET, 7, &[2], own), Some(2), "if nobody has it");
    }
}
