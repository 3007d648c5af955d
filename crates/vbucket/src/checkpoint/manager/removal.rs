//! What nobody needs any more leaves the log.

use std::sync::Arc;

use platform::Instant;

use super::super::cursor::{Cursor, CursorId};
use super::super::detached::Detached;
use super::super::extent::Extent;
use super::super::run::Run;
use super::super::segment::Segment;
use super::CheckpointManager;

impl CheckpointManager {
    /// Lets go what every cursor has read, of the open checkpoint too. A step of memory recovery:
    /// a stream that comes back has to get it from the file.
    pub fn expel(&mut self) -> Option<Detached> {
        // It is readers that freeze the tail: where there are none it would not go.
        if self.cursors.is_empty() {
            self.freeze();
        }
        let target = self.lowest_position();
        self.detach_before(&target, Vec::new())
    }

    /// How many bytes [`CheckpointManager::expel`] would let go.
    pub fn expellable_bytes(&self) -> usize {
        (self.position_of(&self.lowest_position()) - self.head_position).bytes()
    }

    /// Cursors that keep more of the log than the flusher does (or, where there is none, than the
    /// open checkpoint), and are to go by their tenure.
    pub fn cursors_to_drop(&mut self, now: Instant) -> Vec<CursorId> {
        let limit = match self.persistence.and_then(|cursor| self.cursor(cursor)) {
            Some(persistence) => self.checkpoint_id(&persistence.position),
            None => self.open.info.id(),
        };
        let (open_id, high_seqno) = (self.open.info.id(), self.high_seqno);
        let keeps_more =
            |cursor: &&mut Cursor| cursor.position.checkpoint_id().unwrap_or(open_id) < limit;
        let to_go = |cursor: &mut Cursor| cursor.is_to_go(high_seqno, now).then_some(cursor.id);
        self.cursors.iter_mut().filter(keeps_more).filter_map(to_go).collect()
    }

    /// The first seqno that the slowest cursor has not read.
    pub fn lowest_cursor_seqno(&self) -> Option<document::Seqno> {
        self.cursors.iter().map(Cursor::next_seqno).min()
    }

    /// Detaches what nobody needs: closed checkpoints as far as every cursor has read them. Of the
    /// open one, what has been read is kept as long as there are streams, one of which may come
    /// back after a short interruption. `index` goes with it.
    pub(super) fn detach_consumed(&mut self, index: Vec<Arc<Segment>>) -> Option<Detached> {
        let mut target = self.lowest_position();
        if self.has_streams() && target.ordinal > self.open.first.ordinal {
            target = Arc::clone(&self.open.first);
        }
        self.detach_before(&target, index)
    }

    fn detach_before(
        &mut self,
        target: &Arc<Segment>,
        mut index: Vec<Arc<Segment>>,
    ) -> Option<Detached> {
        if target.ordinal <= self.head.ordinal {
            return Detached::new(None, index, Extent::default());
        }
        let position = self.position_of(target);
        let extent = position - self.head_position;
        self.head_position = position;
        if target.ordinal > self.open.first.ordinal {
            self.open.first = Arc::clone(target);
            let kept = self.frozen_from(target);
            let kept = self.open.frozen.split_off(kept);
            let gone = std::mem::replace(&mut self.open.frozen, kept);
            if index.is_empty() {
                index = gone;
            } else {
                index.extend(gone);
            }
        }
        let head = std::mem::replace(&mut self.head, Arc::clone(target));
        Detached::new(Some(head), index, extent)
    }

    /// Lets everything go, whoever has read it: the log goes on with an empty tail, where every
    /// cursor stands.
    pub(super) fn restart(&mut self) -> Option<Detached> {
        let extent = self.extent();
        let next_seqno = self.high_seqno.next();
        let place = Segment::new(self.tail_place.ordinal + 1, next_seqno);
        self.tail = Run::beginning_at(next_seqno);
        for cursor in &mut self.cursors {
            cursor.position = Arc::clone(&place);
            cursor.skips_through = document::Seqno(0);
            cursor.read = None;
            cursor.set_passed(self.total_items);
        }
        let index = std::mem::take(&mut self.open.frozen);
        self.tail_position -= self.open.removed;
        self.open.removed = Extent::default();
        self.open.position = self.tail_position;
        self.open.first = Arc::clone(&place);
        self.head_position = self.tail_position;
        self.tail_place = Arc::clone(&place);
        let head = std::mem::replace(&mut self.head, place);
        Detached::new(Some(head), index, extent)
    }

    fn lowest_cursor(&self) -> Option<&Cursor> {
        self.cursors.iter().min_by_key(|cursor| cursor.position.ordinal)
    }

    /// Where the slowest cursor stands; where there is none, the end.
    fn lowest_position(&self) -> Arc<Segment> {
        let lowest = self.lowest_cursor().map_or(&self.tail_place, |cursor| &cursor.position);
        Arc::clone(lowest)
    }

    /// How much log lies before a segment, superseded items left out. Walks segments of the open
    /// checkpoint only if something in them has been superseded.
    pub(super) fn position_of(&self, segment: &Segment) -> Extent {
        let Some(content) = segment.content() else {
            return self.tail_position - self.open.removed;
        };
        if content.checkpoint.id() != self.open.info.id() {
            return content.position - content.removed_before();
        }
        if self.open.removed == Extent::default() {
            return content.position;
        }
        let mut removed = self.open.removed;
        for behind in &self.open.frozen[self.frozen_from(segment)..] {
            removed -= behind.content().map(|content| content.removed()).unwrap_or_default();
        }
        content.position - removed
    }

    /// The first of the open checkpoint's frozen segments that is `segment` or lies behind it.
    fn frozen_from(&self, segment: &Segment) -> usize {
        self.open.frozen.partition_point(|frozen| frozen.ordinal < segment.ordinal)
    }
}
