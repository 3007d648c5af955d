//! How far the copies of vBuckets are that could be promoted.

use std::collections::BTreeMap;

use super::Replicas;
use crate::peer_copies::{Copies, Held};

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

    /// The replica that is the furthest: a whole one, by what it holds of durable writes, then by
    /// what else it has; the first of those that are equally far. Before that one that is not
    /// whole, but holds durable writes beyond all that this one has: it and the active copy may be
    /// the majority for which they were acknowledged. `None` if none of them has answered.
    pub fn furthest(&self, bucket: &str, vbid: u16, replicas: &[usize]) -> Option<usize> {
        let held = |replica: &usize| self.of(bucket, *replica).and_then(|it| it.get(&vbid));
        let has_answered = |replica: &usize| self.of(bucket, *replica).is_some();
        // `max_by_key` takes the last of several.
        let known = || replicas.iter().copied().filter(has_answered).rev();
        let first = known().max_by_key(held)?;
        // That it holds more than the whole one is not enough: all of a snapshot from a file may
        // count as held, durable writes or not, and what the whole one has behind that would be
        // lost for nothing.
        let exceeds_first = |replica: &usize| {
            held(replica).zip(held(&first)).is_some_and(|(held, first)| held.exceeds(first))
        };
        known().filter(exceeds_first).max_by_key(held).or(Some(first))
    }

    /// The vBuckets of which no replica is whole, as far as members have answered. Where one is,
    /// the furthest has what that has.
    pub fn not_whole(&self, replicas: &Replicas) -> Vec<(String, u16)> {
        let is_lacking = |&(bucket, vbid, holders): &(&str, u16, &[usize])| {
            let mut known = holders.iter().filter_map(|&holder| self.of(bucket, holder)).peekable();
            let is_whole = |copies: &Copies| copies.get(&vbid).is_some_and(|held| held.is_whole);
            known.peek().is_some() && !known.any(is_whole)
        };
        let lacking = replicas.all().filter(is_lacking);
        lacking.map(|(bucket, vbid, _)| (bucket.to_owned(), vbid)).collect()
    }

    /// Whether some of these replicas has everything up to `high_seqno`.
    pub fn has_reached(
        &self,
        bucket: &str,
        vbid: u16,
        replicas: &[usize],
        high_seqno: u64,
    ) -> bool {
        let held =
            |&replica: &usize| -> Option<Held> { self.of(bucket, replica)?.get(&vbid).copied() };
        replicas.iter().filter_map(held).any(|held| held.high_seqno >= high_seqno)
    }

    fn of(&self, bucket: &str, member: usize) -> Option<&Copies> {
        self.held.get(bucket)?.get(&member)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUCKET: &str = "default";

    fn held(prepared_seqno: u64, high_seqno: u64) -> BTreeMap<u16, Held> {
        BTreeMap::from([(7, Held { is_whole: true, prepared_seqno, high_seqno, uuid: 0 })])
    }

    fn in_part(prepared_seqno: u64, high_seqno: u64) -> BTreeMap<u16, Held> {
        BTreeMap::from([(7, Held { is_whole: false, prepared_seqno, high_seqno, uuid: 0 })])
    }

    fn of_another_branch(prepared_seqno: u64, high_seqno: u64) -> BTreeMap<u16, Held> {
        BTreeMap::from([(7, Held { is_whole: false, prepared_seqno, high_seqno, uuid: 1 })])
    }

    #[test]
    fn the_replica_that_is_the_furthest_is_chosen() {
        for (first, second, chosen) in [
            (held(5, 9), held(6, 7), 2),
            (held(5, 8), held(5, 9), 2),
            (held(5, 9), held(5, 9), 1),
            (BTreeMap::new(), held(0, 0), 2),
            (in_part(0, 9), held(0, 1), 2),
            (in_part(5, 9), held(0, 4), 1),
            (in_part(5, 9), held(0, 5), 2),
            (held(0, 4), in_part(5, 9), 2),
            (of_another_branch(5, 9), held(0, 4), 2),
            (in_part(5, 9), in_part(6, 1), 2),
        ] {
            let mut standing = Standing::default();
            standing.add(BUCKET, 1, first);
            standing.add(BUCKET, 2, second);
            assert_eq!(standing.furthest(BUCKET, 7, &[1, 2]), Some(chosen));
        }
    }

    #[test]
    fn who_does_not_answer_is_not_chosen() {
        let mut standing = Standing::default();
        assert_eq!(standing.furthest(BUCKET, 7, &[1, 2]), None);
        standing.add(BUCKET, 2, held(0, 3));
        assert_eq!(standing.furthest(BUCKET, 7, &[1, 2]), Some(2));
        assert!(
            standing.has_reached(BUCKET, 7, &[1, 2], 3)
                && !standing.has_reached(BUCKET, 7, &[1, 2], 4)
        );
    }

    #[test]
    fn a_vbucket_lacks_something_where_nobody_who_answers_is_whole() {
        let replicas = Replicas::one(BUCKET, 7, &[1, 2]);
        for (first, second, not_whole) in [
            (Some(held(0, 0)), Some(in_part(5, 9)), vec![]),
            (Some(held(0, 6)), Some(in_part(5, 9)), vec![]),
            (Some(in_part(5, 9)), Some(in_part(5, 9)), vec![7]),
            (Some(in_part(5, 9)), None, vec![7]),
            (Some(BTreeMap::new()), None, vec![7]),
            (None, None, vec![]),
        ] {
            let mut standing = Standing::default();
            for (member, copies) in [(1, first), (2, second)] {
                if let Some(copies) = copies {
                    standing.add(BUCKET, member, copies);
                }
            }
            let named = not_whole.into_iter().map(|vbid| (BUCKET.to_owned(), vbid));
            assert_eq!(standing.not_whole(&replicas), named.collect::<Vec<_>>());
        }
    }
}
