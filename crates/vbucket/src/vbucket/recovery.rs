//! Letting parts of the log go because memory is short.

use document::Seqno;

use super::Vbucket;
use crate::checkpoint::{CursorId, LogRange, Registration};
use crate::effect::Effect;

/// Something that may free memory of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryStep {
    /// Close the open checkpoint if it is full: nothing else may come that would.
    CloseFullCheckpoint,
    /// Let go what every reader has, which was kept for streams that come back.
    Expel,
    /// Drop the cursors of streams that keep more than the flusher: they go on from the file.
    DropSlowCursors,
}

impl Vbucket {
    /// Takes a step. Returns how many cursors were dropped.
    pub fn recover_memory(&mut self, step: RecoveryStep, effects: &mut Vec<Effect>) -> usize {
        let mut dropped_count = 0;
        match step {
            RecoveryStep::CloseFullCheckpoint => {
                self.checkpoints.set_limits(self.account.checkpoint_limits());
                let size_max = self.checkpoints.checkpoint_bytes_max();
                if self.checkpoints.open_extent().bytes() >= size_max {
                    let detached = self.checkpoints.begin_checkpoint();
                    self.destroy(detached, effects);
                }
            }
            RecoveryStep::Expel => {
                let detached = self.checkpoints.expel();
                self.destroy(detached, effects);
            }
            RecoveryStep::DropSlowCursors => {
                for cursor in self.checkpoints.cursors_to_drop() {
                    let detached = self.checkpoints.remove_cursor(cursor);
                    self.destroy(detached, effects);
                    effects.push(Effect::CursorDropped(cursor));
                    dropped_count += 1;
                }
            }
        }
        self.settle_account();
        dropped_count
    }

    /// Registers a stream that has everything up to `after`, in place of one of the same name.
    /// Fails with the highest seqno if that is lower.
    pub fn register_stream(&mut self, name: &str, after: Seqno) -> Result<Registration, Seqno> {
        let registration = self.checkpoints.register(name, after, true);
        self.settle_account();
        registration
    }

    /// What a stream reads next; it confirms that by [`Vbucket::confirm_stream`].
    pub fn read_stream(&mut self, cursor: CursorId) -> Option<LogRange> {
        let range = self.checkpoints.begin_read(cursor);
        self.settle_account();
        range
    }

    /// The stream has taken over the `item_count` items of `range`.
    pub fn confirm_stream(
        &mut self,
        range: &LogRange,
        item_count: usize,
        effects: &mut Vec<Effect>,
    ) {
        let detached = self.checkpoints.finish_read(range, item_count);
        self.destroy(detached, effects);
        self.settle_account();
    }

    /// A stream ends.
    pub fn remove_stream(&mut self, cursor: CursorId, effects: &mut Vec<Effect>) {
        let detached = self.checkpoints.remove_cursor(cursor);
        self.destroy(detached, effects);
        self.settle_account();
    }
}
