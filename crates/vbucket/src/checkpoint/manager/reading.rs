//! Cursors come, read and go.

use std::sync::Arc;

use document::Seqno;

use super::super::cursor::{Cursor, CursorId, Registration, UnconfirmedRead};
use super::super::detached::Detached;
use super::super::log_range::LogRange;
use super::super::segment::Segment;
use super::super::tenure::Tenure;
use super::CheckpointManager;

impl CheckpointManager {
    /// Registers a cursor for a reader that has everything up to `after`, in place of one of the
    /// same name. Fails with the highest seqno if that is lower than `after`. Walks the log.
    pub fn register(
        &mut self,
        name: &str,
        after: Seqno,
        tenure: Tenure,
    ) -> Result<Registration, Seqno> {
        if after > self.high_seqno {
            return Err(self.high_seqno);
        }
        // A cursor stands between segments, so the tail has to become one.
        self.freeze();
        let needs_backfill = after.next() < self.head.first_seqno;
        let position = self.segment_after(after);
        let skips_through = if needs_backfill { Seqno(0) } else { after };
        let passed = self.items_up_to(&position, skips_through);
        let cursor = Cursor::new(name, tenure, (position, skips_through), passed);
        let id = cursor.id;
        let next_seqno = cursor.next_seqno();
        // The old one goes only now: what both keep does not leave in between.
        self.cursors.retain(|cursor| &*cursor.place.name != name);
        self.cursors.push(cursor);
        self.list_readers();
        Ok(Registration { id, next_seqno, needs_backfill })
    }

    /// Removes a cursor. Returns what only it has kept.
    pub fn remove_cursor(&mut self, id: CursorId) -> Option<Detached> {
        assert!(Some(id) != self.persistence, "the flusher's cursor stays");
        self.cursors.retain(|cursor| cursor.id != id);
        self.list_readers();
        self.detach_consumed(Vec::new())
    }

    /// Begins to read everything in front of the cursor; none if there is nothing. The cursor moves
    /// when the read is confirmed, and until then the same log is there for another try.
    pub fn begin_read(&mut self, id: CursorId) -> Option<LogRange> {
        self.freeze();
        let end = Arc::clone(&self.tail_place);
        let (last_seqno, open) = (self.last_item_seqno, (self.open.info.id(), self.open.snapshot));
        let cursor = self.cursor_mut(id)?;
        if Arc::ptr_eq(&cursor.position, &end) {
            return None;
        }
        cursor.read = Some(UnconfirmedRead { end_ordinal: end.ordinal, superseded: Vec::new() });
        Some(LogRange {
            cursor: id,
            from: Arc::clone(&cursor.position),
            skips_through: cursor.skips_through,
            end,
            last_seqno,
            open,
        })
    }

    /// What was read, `item_count` items, is where it had to go: the cursor moves behind it.
    /// Returns what nobody needs any more.
    pub fn finish_read(&mut self, range: &LogRange, item_count: usize) -> Option<Detached> {
        let cursor = self.cursor_mut(range.cursor)?;
        // If the log was emptied meanwhile the cursor stands elsewhere and has nothing to confirm.
        let is_there = Arc::ptr_eq(&cursor.position, &range.from);
        let read = cursor.read.take_if(|_| is_there)?;
        // What was superseded meanwhile counts for nobody any more; the reader has had it all the
        // same.
        let superseded = read.superseded.iter().filter(|&&at| at < range.end.ordinal).count();
        cursor.position = Arc::clone(&range.end);
        cursor.skips_through = Seqno(0);
        cursor.set_passed(cursor.passed() + item_count - superseded);
        cursor.visits += 1;
        self.detach_consumed(Vec::new())
    }

    /// What was read is lost: the same comes again.
    pub fn fail_read(&mut self, id: CursorId) {
        if let Some(cursor) = self.cursor_mut(id) {
            cursor.read = None;
        }
    }

    /// The first segment with something behind `after`, or the tail's place.
    fn segment_after(&self, after: Seqno) -> Arc<Segment> {
        let mut segment = &self.head;
        while let Some(content) = segment.content() {
            if content.last_seqno > after {
                break;
            }
            segment = segment.next().expect("a frozen segment has a successor");
        }
        Arc::clone(segment)
    }

    /// Items before `segment` and, in it, up to `seqno`, counted as cursors count what they passed.
    fn items_up_to(&self, segment: &Segment, seqno: Seqno) -> usize {
        let before_head = self.total_items - self.extent().items;
        let before = (self.position_of(segment) - self.head_position).items;
        let Some(content) = segment.content() else { return before_head + before };
        let run = content.read();
        let slots = &run.slots()[..run.slot_after(seqno)];
        let hidden = content.hidden_from(Seqno(u64::MAX));
        let counts = |seqno: Seqno| hidden.binary_search(&seqno).is_err();
        let skipped = slots.iter().flatten().filter(|item| counts(item.seqno())).count();
        before_head + before + skipped
    }
}
