//! Whether live documents may be in the file alone, and how far they have come back since keys are
//! to stay in memory.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use document::{Key, Seqno};

use super::EvictionPolicy;

/// Keys that may leave during one run: a run during which more do is worth nothing.
const DEPARTED_MAX: usize = 1024;

/// No two runs of a process are taken for each other, whatever vBucket is in the place of another.
static NEXT_RUN: AtomicU64 = AtomicU64::new(0);

/// A run that reads keys from the file to bring them back: from which seqno on, for
/// [`crate::Vbucket::load_key`] and [`crate::Vbucket::end_key_load`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyLoad {
    run: u64,
    /// Every key below is in memory.
    pub from: Seqno,
}

/// Which live documents may be in the file alone.
#[derive(Debug)]
pub(crate) enum Residency {
    /// None: keys stay in memory.
    Whole,
    /// Any: documents leave whole.
    Partial,
    /// Those from a seqno of the file on, which come back. None leaves whole meanwhile.
    Returning { from: Seqno, run: Option<Run> },
}

#[derive(Debug)]
pub(crate) struct Run {
    number: u64,
    /// Keys of tombstones that have left since it began: it may have read what was before them.
    departed: BTreeSet<Box<[u8]>>,
}

impl Residency {
    /// That of a vBucket which begins with this policy.
    pub(crate) fn of(policy: EvictionPolicy) -> Self {
        match policy {
            EvictionPolicy::ValueOnly => Self::Whole,
            EvictionPolicy::Full => Self::Partial,
        }
    }

    /// Whether the file may have live documents that the hash table lacks.
    pub(crate) fn may_lack_documents(&self) -> bool {
        !matches!(self, Self::Whole)
    }

    /// Whether keys are to come back.
    pub(crate) fn is_returning(&self) -> bool {
        matches!(self, Self::Returning { .. })
    }

    /// From now on documents leave by `policy`.
    pub(crate) fn follow(&mut self, policy: EvictionPolicy) {
        match policy {
            EvictionPolicy::Full => *self = Self::Partial,
            EvictionPolicy::ValueOnly if matches!(self, Self::Partial) => {
                *self = Self::Returning { from: Seqno(0), run: None };
            }
            EvictionPolicy::ValueOnly => {}
        }
    }

    /// Begins a run, before the file is opened for it. `None` when nothing has to come back. A run
    /// before it is worth nothing any more.
    pub(crate) fn begin(&mut self) -> Option<KeyLoad> {
        let Self::Returning { from, run } = self else { return None };
        let number = NEXT_RUN.fetch_add(1, Ordering::Relaxed);
        *run = Some(Run { number, departed: BTreeSet::new() });
        Some(KeyLoad { run: number, from: *from })
    }

    /// Whether what `load` has read of `key`, which is not in memory, is what the file has.
    pub(crate) fn may_bring(&self, load: KeyLoad, key: Key<'_>) -> bool {
        let Self::Returning { run: Some(run), .. } = self else { return false };
        run.number == load.run && !run.departed.contains(key.encoded())
    }

    /// `key` has left the hash table.
    pub(crate) fn note_departure(&mut self, key: Key<'_>) {
        let Self::Returning { run, .. } = self else { return };
        if let Some(Run { departed, .. }) = run {
            departed.insert(key.encoded().into());
            if departed.len() > DEPARTED_MAX {
                *run = None;
            }
        }
    }

    /// What `load` has read is not this vBucket's: the run is worth nothing.
    pub(crate) fn spoil(&mut self, load: KeyLoad) {
        if let Self::Returning { run, .. } = self
            && run.as_ref().is_some_and(|run| run.number == load.run)
        {
            *run = None;
        }
    }

    /// `load` has brought everything below `continue_at`, or up to the end of the file. Says
    /// whether it counts.
    pub(crate) fn end(&mut self, load: KeyLoad, continue_at: Option<Seqno>) -> bool {
        let Self::Returning { run: Some(run), .. } = self else { return false };
        if run.number != load.run {
            return false;
        }
        *self = match continue_at {
            Some(from) => Self::Returning { from, run: None },
            None => Self::Whole,
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use document::KeyBuf;

    use super::*;

    fn key(name: &str) -> KeyBuf {
        KeyBuf::in_default_collection(name.as_bytes()).unwrap()
    }

    fn returning() -> Residency {
        let mut residency = Residency::of(EvictionPolicy::Full);
        residency.follow(EvictionPolicy::ValueOnly);
        residency
    }

    #[test]
    fn keys_come_back_only_where_documents_have_left_whole() {
        let mut whole = Residency::of(EvictionPolicy::ValueOnly);
        whole.follow(EvictionPolicy::ValueOnly);
        assert!(!whole.may_lack_documents() && whole.begin().is_none());
        whole.follow(EvictionPolicy::Full);
        assert!(whole.may_lack_documents() && whole.begin().is_none());
        whole.follow(EvictionPolicy::ValueOnly);
        assert!(whole.may_lack_documents() && whole.is_returning());
    }

    #[test]
    fn runs_go_on_where_the_one_before_has_ended_until_everything_is_here() {
        let mut residency = returning();
        let first = residency.begin().unwrap();
        assert_eq!(first.from, Seqno(0));
        assert!(residency.end(first, Some(Seqno(7))) && residency.may_lack_documents());
        let second = residency.begin().unwrap();
        assert_eq!(second.from, Seqno(7));
        residency.follow(EvictionPolicy::ValueOnly);
        assert!(residency.end(second, None) && !residency.may_lack_documents());
    }

    #[test]
    fn a_run_is_worth_nothing_once_another_began_or_documents_leave_whole_again() {
        let mut residency = returning();
        let first = residency.begin().unwrap();
        let second = residency.begin().unwrap();
        assert!(!residency.may_bring(first, key("k").as_key()) && !residency.end(first, None));
        assert!(residency.may_bring(second, key("k").as_key()));
        residency.follow(EvictionPolicy::Full);
        residency.follow(EvictionPolicy::ValueOnly);
        assert!(!residency.may_bring(second, key("k").as_key()) && !residency.end(second, None));
        assert_eq!(residency.begin().unwrap().from, Seqno(0), "what came back may have left");
    }

    #[test]
    fn what_left_during_a_run_is_not_brought_by_it_and_too_much_of_that_ends_it() {
        let mut residency = returning();
        let load = residency.begin().unwrap();
        residency.note_departure(key("k").as_key());
        assert!(!residency.may_bring(load, key("k").as_key()));
        assert!(residency.may_bring(load, key("other").as_key()));
        for number in 0..=DEPARTED_MAX {
            residency.note_departure(key(&format!("k{number}")).as_key());
        }
        assert!(!residency.may_bring(load, key("other").as_key()) && !residency.end(load, None));
        let next = residency.begin().unwrap();
        assert!(residency.may_bring(next, key("k").as_key()), "it reads what is there now");
    }
}
