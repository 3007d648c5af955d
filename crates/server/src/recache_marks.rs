//! Which documents are to be made anew, and by whom: what meta commands keep beside a document
//! (`md` with `I`, `mg` with `N` and `R`). Here it lies beside the bucket, in memory alone: a start
//! forgets it, and so does a document that gets another value, unless that is
//! counted from the one of before.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use document::Cas;
use platform::Instant;
use protocol::text::answer::Recaching;

/// Documents with a mark. The oldest marks go when there are more.
pub(crate) const RECACHE_MARKS_MAX: usize = 16_384;
/// How long a mark stays behind a read of another version: whoever has made that of the marked one
/// is about to move the mark, at the end of a durable write at the latest.
const MOVE_TIME_MAX: Duration = Duration::from_secs(120);

/// The marks of all documents.
#[derive(Default)]
pub(crate) struct RecacheMarks {
    marks: Mutex<Marks>,
    /// How many there are, so that those who read without any need no lock.
    count: AtomicUsize,
}

#[derive(Default)]
struct Marks {
    /// Ordered: clients choose the keys.
    by_document: BTreeMap<DocumentName, Kept>,
    /// In the order of their making; some have gone since, or were made again.
    order: VecDeque<DocumentName>,
}

/// What is kept of a document.
#[derive(Clone, Copy, Debug)]
struct Kept {
    mark: Mark,
    /// When a client has read another version first.
    overtaken: Option<Instant>,
}

/// A bucket's name and a key.
pub(crate) type DocumentName = (String, Vec<u8>);

/// What a version of a document is marked as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// It is out of date.
    pub(crate) is_stale: bool,
    /// A client was told that it is the one to make the document anew.
    pub(crate) is_won: bool,
    /// The version. Of others nothing is known.
    pub(crate) cas: Cas,
}

/// A read of a document, which may move it to another version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkedRead {
    /// The version that was read.
    pub(crate) cas: Cas,
    /// The version that there is behind the read.
    pub(crate) cas_after: Cas,
    /// Whether the client may win the right to make the document anew also if it is not stale.
    pub(crate) may_win: bool,
    /// When that is.
    pub(crate) now: Instant,
}

impl RecacheMarks {
    /// Marks a version of a document.
    pub(crate) fn mark(&self, name: DocumentName, mark: Mark) {
        self.with_marks(|marks| marks.put(name, mark));
    }

    /// The mark of a version of a document, if it has one.
    pub(crate) fn of(&self, name: &DocumentName, cas: Cas) -> Option<Mark> {
        self.with_marks(|marks| marks.of(name, cas))
    }

    /// What a client hears that reads a document. Who is told that it has won is the only one.
    pub(crate) fn read(&self, name: impl FnOnce() -> DocumentName, read: MarkedRead) -> Recaching {
        // A mark made in this moment may as well come behind the read, so Relaxed is enough.
        if !read.may_win && self.count.load(Ordering::Relaxed) == 0 {
            return Recaching::default();
        }
        let name = name();
        self.with_marks(|marks| marks.read(name, read))
    }

    /// The version `before` of a document has given way to `after`, which is no newer: its mark
    /// goes on.
    pub(crate) fn carry_on(&self, name: impl FnOnce() -> DocumentName, before: Cas, after: Cas) {
        if self.count() == 0 {
            return;
        }
        let name = name();
        self.with_marks(|marks| {
            if let Some(mark) = marks.of(&name, before) {
                marks.put(name, Mark { cas: after, ..mark });
            }
        });
    }

    /// How many documents have a mark.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn with_marks<T>(&self, body: impl FnOnce(&mut Marks) -> T) -> T {
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let result = body(&mut marks);
        let (count, order_count) = (marks.by_document.len(), marks.order.len());
        assert!(count <= order_count, "every document with a mark has a place in the order");
        assert!(order_count <= RECACHE_MARKS_MAX, "the oldest marks go");
        self.count.store(count, Ordering::Relaxed);
        result
    }
}

impl Marks {
    fn put(&mut self, name: DocumentName, mark: Mark) {
        if self.by_document.insert(name.clone(), Kept { mark, overtaken: None }).is_none() {
            self.order.push_back(name);
        }
        // What was forgotten still stands in the order.
        while self.order.len() > RECACHE_MARKS_MAX {
            let Some(oldest) = self.order.pop_front() else { break };
            self.by_document.remove(&oldest);
        }
    }

    fn of(&self, name: &DocumentName, cas: Cas) -> Option<Mark> {
        self.by_document.get(name).map(|kept| kept.mark).filter(|mark| mark.cas == cas)
    }

    /// Another version than the marked one was read. The mark goes, unless it may be about to move
    /// to that.
    fn overtake(&mut self, name: &DocumentName, now: Instant) {
        let Some(kept) = self.by_document.get_mut(name) else { return };
        if now.since(*kept.overtaken.get_or_insert(now)) >= MOVE_TIME_MAX {
            self.by_document.remove(name);
        }
    }

    fn read(&mut self, name: DocumentName, read: MarkedRead) -> Recaching {
        let found = self.of(&name, read.cas);
        let Mark { is_stale, is_won, .. } = found.unwrap_or_default();
        let has_won = !is_won && (is_stale || read.may_win);
        if is_stale || is_won || has_won {
            self.put(name, Mark { is_stale, is_won: is_won || has_won, cas: read.cas_after });
        } else {
            self.overtake(&name, read.now);
        }
        Recaching { has_won, is_stale, is_taken: is_won }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY: Recaching = Recaching { has_won: false, is_stale: false, is_taken: false };

    fn name(key: &str) -> DocumentName {
        ("bucket".to_owned(), key.as_bytes().to_vec())
    }

    fn read(marks: &RecacheMarks, cas: u64, may_win: bool) -> Recaching {
        read_at(Instant::default(), marks, cas, may_win)
    }

    fn read_at(now: Instant, marks: &RecacheMarks, cas: u64, may_win: bool) -> Recaching {
        let read = MarkedRead { cas: Cas(cas), cas_after: Cas(cas), may_win, now };
        marks.read(|| name("k"), read)
    }

    #[test]
    fn one_client_wins_and_the_others_hear_so() {
        let marks = RecacheMarks::default();
        assert_eq!(read(&marks, 1, false), NOBODY);
        assert_eq!(read(&marks, 1, true), Recaching { has_won: true, ..NOBODY });
        for may_win in [true, false] {
            assert_eq!(read(&marks, 1, may_win), Recaching { is_taken: true, ..NOBODY });
        }
        assert_eq!(read(&marks, 2, false), NOBODY, "another version");
        let later = Instant::default().after(MOVE_TIME_MAX);
        assert_eq!(read_at(later, &marks, 2, false), NOBODY);
        assert_eq!(marks.count(), 0, "nobody has moved the mark");
    }

    #[test]
    fn what_is_stale_is_won_once() {
        let marks = RecacheMarks::default();
        marks.mark(name("k"), Mark { is_stale: true, is_won: false, cas: Cas(1) });
        assert_eq!(read(&marks, 1, false), Recaching { has_won: true, is_stale: true, ..NOBODY });
        assert_eq!(read(&marks, 1, false), Recaching { is_stale: true, is_taken: true, ..NOBODY });
        let now = Instant::default();
        let moved = MarkedRead { cas: Cas(1), cas_after: Cas(5), may_win: false, now };
        assert!(marks.read(|| name("k"), moved).is_stale);
        assert!(read(&marks, 5, false).is_taken, "a touched document keeps its mark");
        marks.carry_on(|| name("k"), Cas(1), Cas(6));
        assert!(read(&marks, 5, false).is_stale, "that was the mark of another version");
        marks.carry_on(|| name("k"), Cas(5), Cas(7));
        assert_eq!(read(&marks, 7, false), Recaching { is_stale: true, is_taken: true, ..NOBODY });
    }

    #[test]
    fn a_read_between_a_touch_and_the_move_of_the_mark_leaves_it() {
        let marks = RecacheMarks::default();
        marks.mark(name("k"), Mark { is_stale: true, is_won: false, cas: Cas(1) });
        // Another client has made version 5 of version 1.
        assert_eq!(read(&marks, 5, false), NOBODY);
        marks.carry_on(|| name("k"), Cas(1), Cas(5));
        assert_eq!(read(&marks, 5, false), Recaching { has_won: true, is_stale: true, ..NOBODY });
    }

    #[test]
    fn the_oldest_marks_go() {
        let marks = RecacheMarks::default();
        let mark = Mark { is_stale: true, is_won: false, cas: Cas(1) };
        for number in 0..=RECACHE_MARKS_MAX {
            marks.mark(name(&number.to_string()), mark);
        }
        assert_eq!(marks.count(), RECACHE_MARKS_MAX);
        assert_eq!(marks.of(&name("0"), Cas(1)), None);
        assert_eq!(marks.of(&name("1"), Cas(1)), Some(mark));
    }
}
