//! Keys of a vBucket that are not in its hash table: which of them are on disk, which are being
//! looked up there, and what the last look has found.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use document::{CollectionId, Item, Key};

use super::{FilterOptions, KeyFilter};

/// Look-ups and their results that a vBucket holds, whatever part of its documents that is.
const LOOKUPS_MIN: usize = 64;
/// The same at most: when there are too many, all results go at once, under the vBucket's lock.
const LOOKUPS_MAX: usize = 1024;

/// No two look-ups of a process have the same ticket: a vBucket that is emptied begins anew, and
/// what was read for the one before must not count.
static NEXT_TICKET: AtomicU64 = AtomicU64::new(0);

/// What is read of one vBucket must not count for another in its place, whose departures begin far
/// away: the same branch of history may have begun again at an earlier seqno.
static NEXT_HISTORY: AtomicU64 = AtomicU64::new(0);
/// Departures of one vBucket that are told apart from those of the next.
const HISTORY_SHIFT: u32 = 40;

/// The right to report what a look into the file has found. It is worth nothing once the key has
/// been written meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookupTicket(u64);

/// A key that has to be looked up in the file.
#[derive(Clone, Debug)]
pub struct Lookup {
    /// The encoded key.
    pub key: Box<[u8]>,
    /// For [`crate::Vbucket::finish_lookup`].
    pub ticket: LookupTicket,
    /// Whether somebody else has begun the look-up, and sees to it that it comes to an end.
    pub is_joined: bool,
}

/// What is known of a key that is not in the hash table.
#[derive(Debug)]
pub(crate) enum Absent {
    /// The file has no live document of that name; perhaps this tombstone.
    Gone(Option<Item>),
    /// The file may have one.
    Unknown,
}

/// The keys that are not in the hash table.
#[derive(Debug)]
pub(crate) struct AbsentKeys {
    /// Keys that the file may hold: of tombstones, and of documents that left memory whole.
    filter: KeyFilter,
    /// In order: keys that clients choose make no hash table slow.
    lookups: BTreeMap<Box<[u8]>, State>,
    /// Live documents that are only in the file.
    pub(crate) document_count: usize,
    /// How much of that count are corrections, when the file was asked.
    correction: i64,
    /// Collections whose documents were counted by what the filter guesses, since the file was
    /// asked.
    guessed: BTreeSet<CollectionId>,
    /// Rises whenever a key leaves the hash table: what was read from the file before may be older
    /// than what is there now.
    pub(crate) departures: u64,
}

#[derive(Debug)]
enum State {
    Pending(LookupTicket),
    Gone(Option<Item>),
}

impl AbsentKeys {
    pub(crate) fn new(options: FilterOptions) -> Self {
        Self {
            filter: KeyFilter::new(options),
            lookups: BTreeMap::new(),
            document_count: 0,
            correction: 0,
            guessed: BTreeSet::new(),
            departures: NEXT_HISTORY.fetch_add(1 << HISTORY_SHIFT, Ordering::Relaxed),
        }
    }

    /// What a count of documents was before corrections.
    pub(crate) fn uncorrected(&self, count: usize) -> i64 {
        i64::try_from(count).unwrap_or(i64::MAX).saturating_sub(self.correction)
    }

    /// The file had `found` live documents where [`AbsentKeys::uncorrected`] was `uncorrected`.
    pub(crate) fn correct(&mut self, uncorrected: i64, found: u64) {
        let found = i64::try_from(found).unwrap_or(i64::MAX);
        self.correct_by(found.saturating_sub(uncorrected).saturating_sub(self.correction));
    }

    /// The file has so many live documents more than were counted.
    pub(crate) fn correct_by(&mut self, change: i64) {
        let before = i64::try_from(self.document_count).unwrap_or(i64::MAX);
        let after = before.saturating_add(change).max(0);
        self.correction = self.correction.saturating_add(after - before);
        self.document_count = usize::try_from(after).unwrap_or(0);
    }

    /// A document of this collection was counted by what the filter guesses.
    pub(crate) fn note_guess(&mut self, collection: CollectionId) {
        self.guessed.insert(collection);
    }

    /// The collections whose counts are guesses.
    pub(crate) fn guessed(&self) -> &BTreeSet<CollectionId> {
        &self.guessed
    }

    /// The file was asked for this collection.
    pub(crate) fn end_guess(&mut self, collection: CollectionId) {
        self.guessed.remove(&collection);
    }

    /// What is known of `key`, which is not in the hash table.
    pub(crate) fn find(&self, key: Key<'_>) -> Absent {
        if !self.filter.may_contain(hash(key)) {
            return Absent::Gone(None);
        }
        match self.lookups.get(key.encoded()) {
            Some(State::Gone(tombstone)) => Absent::Gone(tombstone.clone()),
            _ => Absent::Unknown,
        }
    }

    /// Begins to look `key` up, or joins whoever does. `None` when there are `count_max` already.
    pub(crate) fn look_up(&mut self, key: Key<'_>, count_max: usize) -> Option<Lookup> {
        if let Some(State::Pending(ticket)) = self.lookups.get(key.encoded()) {
            let ticket = *ticket;
            return Some(Lookup { key: key.encoded().into(), ticket, is_joined: true });
        }
        let count_max = count_max.clamp(LOOKUPS_MIN, LOOKUPS_MAX);
        if self.lookups.len() >= count_max {
            self.forget_results();
            if self.lookups.len() >= count_max {
                return None;
            }
        }
        let ticket = LookupTicket(NEXT_TICKET.fetch_add(1, Ordering::Relaxed));
        self.lookups.insert(key.encoded().into(), State::Pending(ticket));
        Some(Lookup { key: key.encoded().into(), ticket, is_joined: false })
    }

    /// Ends a look-up. Returns whether it still counted: then the file has nothing newer than what
    /// was found there.
    pub(crate) fn finish(&mut self, lookup: &Lookup) -> bool {
        let counts = matches!(
            self.lookups.get(&lookup.key),
            Some(State::Pending(ticket)) if *ticket == lookup.ticket
        );
        if counts {
            self.lookups.remove(&lookup.key);
        }
        counts
    }

    /// Remembers that the file has no live document under `key`.
    pub(crate) fn note_gone(&mut self, key: &[u8], tombstone: Option<Item>) {
        self.lookups.insert(key.into(), State::Gone(tombstone));
    }

    /// A new version of `key` came about: whatever was read or is being read is history.
    pub(crate) fn forget(&mut self, key: Key<'_>) {
        if !self.lookups.is_empty() {
            self.lookups.remove(key.encoded());
        }
    }

    /// Drops the results of look-ups; those that are under way stay.
    fn forget_results(&mut self) {
        self.lookups.retain(|_, state| matches!(state, State::Pending(_)));
    }

    /// `key` has left the hash table and is in the file. `key_count` estimates how many there will
    /// be.
    pub(crate) fn note_departure(&mut self, key: Key<'_>, key_count: usize) {
        self.departures += 1;
        self.filter.insert(hash(key), key_count);
    }

    /// Makes room for `key_count` keys.
    pub(crate) fn reserve(&mut self, key_count: usize) {
        self.filter.reserve(key_count);
    }

    /// The filter.
    pub(crate) fn filter(&self) -> &KeyFilter {
        &self.filter
    }

    /// Look-ups under way and their results.
    pub(crate) fn lookup_count(&self) -> usize {
        self.lookups.len()
    }
}

/// Whoever chooses keys that collide makes requests for them look into the file, and nothing else.
fn hash(key: Key<'_>) -> u64 {
    let mut hasher = foldhash::quality::FixedState::default().build_hasher();
    hasher.write(key.encoded());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use document::KeyBuf;

    use super::*;

    fn key(name: &str) -> KeyBuf {
        KeyBuf::in_default_collection(name.as_bytes()).unwrap()
    }

    fn keys_with(name: &str) -> AbsentKeys {
        let mut keys = AbsentKeys::new(FilterOptions::default());
        keys.note_departure(key(name).as_key(), 1);
        keys
    }

    #[test]
    fn a_key_that_never_left_is_gone_without_a_look() {
        let keys = keys_with("here");
        assert!(matches!(keys.find(key("other").as_key()), Absent::Gone(None)));
        assert!(matches!(keys.find(key("here").as_key()), Absent::Unknown));
    }

    #[test]
    fn a_result_counts_unless_the_key_was_written_meanwhile() {
        let key = key("k");
        let mut keys = keys_with("k");
        let first = keys.look_up(key.as_key(), 10).unwrap();
        let joined = keys.look_up(key.as_key(), 10).unwrap();
        assert_eq!(first.ticket, joined.ticket);
        keys.forget(key.as_key());
        let second = keys.look_up(key.as_key(), 10).unwrap();
        assert!(!keys.finish(&first));
        assert!(keys.finish(&second));
        assert!(!keys.finish(&second));
    }

    #[test]
    fn however_many_documents_there_are_results_are_few_enough_to_go_at_once() {
        let mut keys = keys_with("k");
        for number in 0..10_000 {
            let lookup = keys.look_up(key(&format!("k{number}")).as_key(), 100_000).unwrap();
            assert!(keys.finish(&lookup));
            keys.note_gone(&lookup.key, None);
            assert!(keys.lookup_count() <= LOOKUPS_MAX);
        }
    }

    #[test]
    fn look_ups_are_bounded_and_results_make_room() {
        let mut keys = keys_with("k");
        for number in 0..LOOKUPS_MIN {
            let lookup = keys.look_up(key(&format!("k{number}")).as_key(), 0).unwrap();
            if number == 0 {
                assert!(keys.finish(&lookup));
                keys.note_gone(&lookup.key, None);
            }
        }
        assert!(keys.look_up(key("one more").as_key(), 0).is_some());
        assert!(keys.look_up(key("too many").as_key(), 0).is_none());
        assert!(keys.look_up(key("k1").as_key(), 0).is_some(), "who joins needs no room");
    }
}
