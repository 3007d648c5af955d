//! Which of the copies of a vBucket that are known is to be promoted.
//!
//! Whoever becomes active begins a branch of history where its own ends, and who follows it gives
//! up what lies behind that. So copies are compared by what they have of a history that can go on,
//! and not by their seqnos: a copy that has not heard of the newest branch may be ahead of all
//! others in one that was abandoned.

use std::cmp::Ordering;

use document::{FailoverEntry, VbUuid};

use crate::peer_copies::Held;

/// The copy that is to be promoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Who has it.
    pub member: usize,
    /// Whether nothing is lost by it that somebody is known to need: it has what each copy has that
    /// can be trusted, and there is one.
    pub is_safe: bool,
}

/// Chooses among the copies that members have; the first of those that are equally far.
///
/// A copy can be trusted that is whole and of whose history no other copy knows a newer branch. The
/// furthest of these is chosen, unless another copy has all that this one has, and more of the same
/// history: it acknowledges durable writes as others do, and may be the one that makes a majority
/// with the active copy.
pub(super) fn choose(copies: &[(usize, &Held)]) -> Option<Choice> {
    let is_left = |held: &Held| copies.iter().any(|(_, other)| has_left(other, held));
    let trusted = copies.iter().copied().filter(|(_, held)| held.is_whole && !is_left(held));
    let trusted: Vec<(usize, &Held)> = trusted.collect();
    let first = furthest(if trusted.is_empty() { copies } else { &trusted })?;
    let chosen = copies
        .iter()
        .fold(first, |chosen, &copy| if compare(copy.1, chosen.1).is_gt() { copy } else { chosen });
    // Where histories of trusted copies have parted, whichever goes on costs what the others have.
    let has_all = trusted.iter().all(|(_, held)| compare(chosen.1, held).is_ge());
    Some(Choice { member: chosen.0, is_safe: has_all && !trusted.is_empty() })
}

/// Chooses among copies that nodes have kept which were given up. One that was active and crashed
/// has begun a branch where its file ends when it started again, though nobody serves it any more.
/// As such a branch looks like that of a promotion behind which nothing was written, copies are
/// compared with and without the branches that nothing is in: where both are safe, they have to
/// agree.
pub(super) fn choose_kept(copies: &[(usize, &Held)]) -> Option<Choice> {
    let bare: Vec<(usize, Held)> =
        copies.iter().map(|&(member, held)| (member, without_empty_branches(held))).collect();
    let bare: Vec<(usize, &Held)> = bare.iter().map(|(member, held)| (*member, held)).collect();
    let (told, without) = (choose(copies)?, choose(&bare)?);
    let of = |member: usize| bare.iter().find(|(of, _)| *of == member).map(|(_, held)| *held);
    let has_more = compare(of(without.member)?, of(told.member)?).is_gt();
    Some(match (told.is_safe, without.is_safe) {
        (true, true) if has_more => Choice { is_safe: false, ..without },
        (true, _) => told,
        (false, _) => without,
    })
}

fn without_empty_branches(held: &Held) -> Held {
    let is_empty = |entry: &&FailoverEntry| entry.seqno.0 == held.high_seqno;
    let count = held.branches.iter().take_while(is_empty).count();
    let branches = held.branches.iter().skip(count).copied().collect();
    Held { branches, ..*held }
}

/// The copy with the most, whatever histories there are.
fn furthest<'a>(copies: &[(usize, &'a Held)]) -> Option<(usize, &'a Held)> {
    // `max_by_key` takes the last of several.
    let copies = copies.iter().rev().copied();
    copies.max_by_key(|(_, held)| (held.is_whole, held.whole_seqno, held.high_seqno))
}

/// How what `one` has compares with what `other` has, if the history of `one` goes on. What counts
/// of either is what is consistent: acknowledged durable writes are in it (docs/durability.md,
/// invariant 8).
pub(super) fn compare(one: &Held, other: &Held) -> Ordering {
    let (branches, others) = (branches_of(one), branches_of(other));
    match others.first().and_then(|newest| end_of(branches, newest.uuid)) {
        // What comes behind this in the other one was given up when the newer branch began.
        Some(end) => one.whole_seqno.cmp(&other.whole_seqno.min(end)),
        None => one.whole_seqno.min(agreed_seqno(branches, others)).cmp(&other.whole_seqno),
    }
}

/// Whether `one` knows a newer branch of the history in which `other` is still.
fn has_left(one: &Held, other: &Held) -> bool {
    let newest = branches_of(other).first();
    newest
        .and_then(|newest| end_of(branches_of(one), newest.uuid))
        .is_some_and(|end| end < u64::MAX)
}

/// The branches of a copy that say something of others. An active node that starts behind a crash
/// begins one where its file ends, be it that it was given up: nothing is in that, and nobody
/// follows it.
fn branches_of(held: &Held) -> &[FailoverEntry] {
    let is_its_own = |entry: &&FailoverEntry| !held.is_whole && entry.seqno.0 == held.high_seqno;
    let count = held.branches.iter().take_while(is_its_own).count();
    held.branches.get(count..).unwrap_or_default()
}

/// Where a branch ended in a history that runs through it; the newest one has no end.
fn end_of(branches: &[FailoverEntry], uuid: VbUuid) -> Option<u64> {
    let index = branches.iter().position(|entry| entry.uuid == uuid)?;
    let newer = index.checked_sub(1).and_then(|index| branches.get(index));
    Some(newer.map_or(u64::MAX, |newer| newer.seqno.0))
}

/// Up to where two histories are the same.
fn agreed_seqno(one: &[FailoverEntry], other: &[FailoverEntry]) -> u64 {
    let agreed =
        |entry: &FailoverEntry| Some(end_of(one, entry.uuid)?.min(end_of(other, entry.uuid)?));
    one.iter().find_map(agreed).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use document::Seqno;

    use super::*;

    /// The history of all, and two that come from it; and one that is of a crash.
    const OLD: &[(u64, u64)] = &[(1, 0)];
    const NEW: &[(u64, u64)] = &[(2, 50), (1, 0)];
    const OTHER: &[(u64, u64)] = &[(3, 55), (1, 0)];
    const CRASHED: &[(u64, u64)] = &[(9, 70), (1, 0)];

    fn held(branches: &[(u64, u64)], whole_seqno: u64) -> Held {
        let entry = |&(uuid, seqno)| FailoverEntry { uuid: VbUuid(uuid), seqno: Seqno(seqno) };
        let branches = branches.iter().map(entry).collect();
        Held { is_whole: true, whole_seqno, high_seqno: whole_seqno, branches }
    }

    fn in_part(branches: &[(u64, u64)], whole_seqno: u64) -> Held {
        Held { is_whole: false, ..held(branches, whole_seqno) }
    }

    /// In the middle of a snapshot.
    fn up_to(high_seqno: u64, held: Held) -> Held {
        Held { high_seqno, ..held }
    }

    #[track_caller]
    fn expect(first: &Held, second: &Held, member: usize, is_safe: bool, why: &str) {
        let chosen = choose(&[(1, first), (2, second)]);
        assert_eq!(chosen, Some(Choice { member, is_safe }), "{why}");
        let turned = choose(&[(2, second), (1, first)]).map(|choice| choice.is_safe);
        assert_eq!(turned, Some(is_safe), "{why}, whoever is asked first");
    }

    #[test]
    fn of_one_history_who_has_the_most_of_it_is_chosen() {
        for (first, second, member, is_safe, why) in [
            (held(OLD, 5), held(OLD, 6), 2, true, "the furthest"),
            (held(OLD, 5), held(OLD, 5), 1, true, "the first of equals"),
            (held(OLD, 5), up_to(9, held(OLD, 5)), 2, true, "with what else has come"),
            (up_to(9, held(OLD, 5)), held(OLD, 6), 2, true, "what is consistent counts more"),
            (up_to(9, in_part(OLD, 0)), held(OLD, 5), 2, true, "nothing is whole of a first file"),
            (in_part(OLD, 5), held(OLD, 5), 2, true, "a whole one of equals"),
            (held(OLD, 5), in_part(OLD, 9), 2, true, "all that the whole one has, and more"),
            (in_part(OLD, 5), in_part(OLD, 9), 2, false, "nobody can be trusted"),
            (Held::default(), held(OLD, 0), 2, true, "who has a copy"),
            (Held::default(), in_part(&[], 0), 1, false, "nobody has anything"),
        ] {
            expect(&first, &second, member, is_safe, why);
        }
        assert_eq!(choose(&[]), None);
    }

    #[test]
    fn a_copy_of_an_abandoned_branch_counts_up_to_where_that_was_left() {
        for (first, second, member, is_safe, why) in [
            (held(OLD, 70), held(NEW, 52), 2, true, "it has not heard of the newer one"),
            (held(OLD, 70), held(NEW, 50), 2, true, "which nobody else has anything of"),
            (held(OLD, 70), held(NEW, 30), 1, true, "but has all that the other one has"),
            (held(OLD, 40), held(NEW, 30), 1, true, "so has one that lagged, too"),
            (held(OLD, 70), in_part(NEW, 52), 2, false, "what is new is in part"),
            (held(OLD, 70), in_part(NEW, 30), 1, false, "and is somewhere"),
            (in_part(OLD, 70), held(NEW, 52), 2, true, "it was active, and is back"),
            (in_part(OLD, 70), held(NEW, 30), 1, true, "and has what is lacking"),
            (in_part(CRASHED, 70), held(NEW, 52), 2, true, "it was active, and crashed"),
            (in_part(CRASHED, 70), held(NEW, 50), 2, true, "it was active, and crashed"),
            (in_part(CRASHED, 70), in_part(NEW, 52), 2, false, "it was active, and crashed"),
            (in_part(CRASHED, 70), held(OLD, 60), 1, true, "nobody has left its history"),
            (in_part(OLD, 70), in_part(NEW, 52), 2, false, "durable writes are in what is new"),
        ] {
            expect(&first, &second, member, is_safe, why);
        }
    }

    #[test]
    fn where_trusted_histories_have_parted_somebody_decides() {
        for (first, second, member, is_safe, why) in [
            (held(NEW, 52), held(OTHER, 58), 2, false, "each has something"),
            (held(NEW, 50), held(OTHER, 58), 2, true, "the first one has nothing else"),
            (held(NEW, 52), in_part(OTHER, 58), 1, true, "only one can be trusted"),
            (held(NEW, 52), held(&[(8, 0)], 70), 2, false, "they have nothing in common"),
            (held(NEW, 52), held(&[(8, 0)], 0), 1, true, "there is nothing in it"),
        ] {
            expect(&first, &second, member, is_safe, why);
        }
    }

    #[test]
    fn of_kept_copies_the_one_counts_that_was_given_up_last_though_all_have_crashed() {
        const CRASHED_LATER: &[(u64, u64)] = &[(8, 52), (2, 50), (1, 0)];
        for (first, second, member, is_safe, why) in [
            (held(CRASHED, 70), held(CRASHED_LATER, 52), 2, true, "both have crashed"),
            (held(OLD, 70), held(CRASHED_LATER, 52), 2, true, "the last one has"),
            (held(CRASHED, 70), held(NEW, 52), 2, true, "the first one has"),
            (held(CRASHED, 70), held(&[(8, 60), (1, 0)], 60), 1, true, "it was a replica"),
            (held(OLD, 70), held(NEW, 50), 1, false, "promoted for nothing, or crashed"),
            (held(OLD, 50), held(NEW, 50), 2, true, "whatever it was"),
            (held(OLD, 70), held(&[(7, 0)], 0), 1, true, "there is nothing in it"),
            (held(&[(6, 0)], 0), held(&[(7, 0)], 0), 1, true, "nobody has anything"),
            (held(NEW, 52), held(OTHER, 58), 2, false, "each has something"),
            (in_part(OLD, 5), in_part(OLD, 9), 2, false, "nobody can be trusted"),
        ] {
            let chosen = choose_kept(&[(1, &first), (2, &second)]);
            assert_eq!(chosen, Some(Choice { member, is_safe }), "{why}");
        }
        let alone = held(CRASHED, 70);
        assert_eq!(choose_kept(&[(4, &alone)]), Some(Choice { member: 4, is_safe: true }));
        assert_eq!(choose_kept(&[]), None);
    }

    #[test]
    fn the_newest_branch_counts_whatever_lies_between() {
        let (oldest, newest) = (held(OLD, 90), held(&[(4, 60), (2, 50), (1, 0)], 61));
        let between = held(NEW, 80);
        for copies in [[&oldest, &between, &newest], [&newest, &oldest, &between]] {
            let copies: Vec<(usize, &Held)> = copies.map(|held| (held.branches.len(), held)).into();
            assert_eq!(choose(&copies), Some(Choice { member: 3, is_safe: true }));
        }
    }
}
