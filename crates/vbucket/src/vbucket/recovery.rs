//! Letting parts of the log go because memory is short.

use document::VbucketState;
use platform::Instant;

use super::Vbucket;
use crate::effect::Effect;

/// Something that may free memory of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryStep {
    /// Close the open checkpoint if it is full: nothing else may come that would.
    CloseFullCheckpoint,
    /// Let go what every reader has, which was kept for streams that come back.
    Expel,
    /// Drop the cursors of streams that keep more than the flusher, by their tenure: they go on
    /// from the file.
    DropSlowCursors,
}

impl Vbucket {
    /// Takes a step. Returns how many cursors were dropped.
    pub fn recover_memory(
        &mut self,
        step: RecoveryStep,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) -> usize {
        let mut dropped_count = 0;
        match step {
            RecoveryStep::CloseFullCheckpoint => {
                self.checkpoints.set_limits(self.account.checkpoint_limits());
                let size_max = self.checkpoints.checkpoint_bytes_max();
                if self.checkpoints.open_extent().bytes() >= size_max {
                    let detached = match self.state {
                        VbucketState::Active => self.checkpoints.begin_checkpoint(),
                        // What another node has announced holds for the rest of it, too.
                        _ => self.checkpoints.begin_part(),
                    };
                    self.destroy(detached, effects);
                }
            }
            RecoveryStep::Expel => {
                let detached = self.checkpoints.expel();
                self.destroy(detached, effects);
            }
            RecoveryStep::DropSlowCursors => {
                for cursor in self.checkpoints.cursors_to_drop(now) {
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
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use document::{ItemBuilder, ItemMeta, KeyBuf, Seqno, VbUuid, Vbid};

    use super::*;
    use crate::checkpoint::{CheckpointLimits, CursorId, Tenure};
    use crate::hash_table::HashSeed;
    use crate::memory_account::MemoryAccount;
    use crate::operation::{Now, StoreMode, WriteCondition};

    struct Bench {
        vbucket: Vbucket,
        account: MemoryAccount,
        now: Instant,
    }

    impl Bench {
        /// An active vBucket whose checkpoints are full at `checkpoint_bytes_max` with streams.
        fn new(checkpoint_bytes_max: usize) -> Self {
            let account = MemoryAccount::default();
            account.set_checkpoint_limits(CheckpointLimits {
                with_streams_bytes: checkpoint_bytes_max,
                ..CheckpointLimits::NONE
            });
            let seed = HashSeed::new(1);
            let vbucket =
                Vbucket::new(Vbid(0), VbucketState::Active, VbUuid(7), seed, account.clone());
            Self { vbucket, account, now: Instant::default() }
        }

        fn set(&mut self, names: &[&str]) {
            for name in names {
                let key = KeyBuf::in_default_collection(name.as_bytes()).unwrap();
                let builder = ItemBuilder::new(key.as_key(), ItemMeta::default(), &[7; 100]);
                let (mode, condition) = (StoreMode::Set, WriteCondition::default());
                let now = Now::default();
                self.vbucket.store(mode, builder, condition, now, &mut Vec::new()).unwrap();
            }
        }

        fn flush(&mut self) {
            let mut batch = self.vbucket.begin_flush().unwrap();
            batch.take_items(usize::MAX);
            self.vbucket.flush_succeeded(&batch, Now::default(), &mut Vec::new());
        }

        /// Takes a step and returns how many cursors it dropped, and how many items have left.
        fn recover(&mut self, step: RecoveryStep) -> (usize, usize) {
            let before = self.items();
            let dropped = self.vbucket.recover_memory(step, self.now, &mut Vec::new());
            (dropped, before - self.items())
        }

        fn items(&self) -> usize {
            self.vbucket.checkpoints().extent().items
        }

        fn read(&mut self, cursor: CursorId) -> usize {
            let Some(range) = self.vbucket.read_stream(cursor) else { return 0 };
            let count = range.item_count();
            self.vbucket.finish_stream_read(&range, count, &mut Vec::new());
            count
        }

        fn stream(&mut self) -> CursorId {
            self.open("stream", Tenure::WhileMemoryLasts)
        }

        fn open(&mut self, name: &str, tenure: Tenure) -> CursorId {
            let after = self.vbucket.high_seqno();
            self.vbucket.open_stream(name, after, tenure).unwrap().id
        }
    }

    #[test]
    fn expelling_is_enough_where_the_stream_keeps_up() {
        let mut bench = Bench::new(usize::MAX);
        let stream = bench.stream();
        bench.set(&["a", "b", "c"]);
        bench.flush();
        assert_eq!(bench.read(stream), 3);
        assert_eq!(bench.items(), 3, "a stream that comes back would find them");
        assert_eq!(bench.recover(RecoveryStep::CloseFullCheckpoint), (0, 0));
        assert_eq!(bench.recover(RecoveryStep::Expel), (0, 3));
        assert_eq!(bench.recover(RecoveryStep::DropSlowCursors), (0, 0));
        bench.set(&["d"]);
        assert_eq!(bench.read(stream), 1, "the stream goes on");
    }

    #[test]
    fn nothing_can_be_expelled_before_a_slow_stream_is_dropped() {
        let mut bench = Bench::new(usize::MAX);
        bench.stream();
        bench.set(&["a", "b"]);
        bench.flush();
        assert_eq!(bench.recover(RecoveryStep::Expel), (0, 0), "the stream has read nothing");
        assert_eq!(bench.recover(RecoveryStep::DropSlowCursors), (0, 0), "the same checkpoint");
    }

    #[test]
    fn closing_a_full_checkpoint_lets_a_slow_stream_be_dropped() {
        let mut bench = Bench::new(1);
        bench.stream();
        bench.set(&["a"]);
        bench.flush();
        assert_eq!(bench.recover(RecoveryStep::CloseFullCheckpoint), (0, 0));
        let mut effects = Vec::new();
        let dropped =
            bench.vbucket.recover_memory(RecoveryStep::DropSlowCursors, bench.now, &mut effects);
        assert_eq!((dropped, bench.items()), (1, 0));
        let is_dropped = |effect: &Effect| matches!(effect, Effect::CursorDropped(_));
        assert_eq!(effects.iter().filter(|effect| is_dropped(effect)).count(), 1);
        let account = &bench.account;
        assert!(account.pending_destruction_bytes() > 0, "it counts until it is freed");
        assert_eq!(account.checkpoints_bytes(), account.pending_destruction_bytes());
        drop(effects);
        assert_eq!((account.checkpoints_bytes(), account.pending_destruction_bytes()), (0, 0));
    }

    #[test]
    fn a_replica_keeps_its_place_as_long_as_it_gets_on() {
        let mut bench = Bench::new(1);
        let replica = bench.open("replica", Tenure::WhileGettingOn);
        bench.stream();
        bench.set(&["a"]);
        bench.flush();
        assert_eq!(bench.recover(RecoveryStep::CloseFullCheckpoint), (0, 0));
        assert_eq!(bench.recover(RecoveryStep::DropSlowCursors), (1, 0), "the stream");
        for _ in 0..10 {
            bench.set(&["b", "c"]);
            bench.flush();
            bench.now = bench.now.after(Duration::from_millis(1999));
            assert_eq!(bench.recover(RecoveryStep::DropSlowCursors), (0, 0));
            assert!(bench.read(replica) > 0);
            bench.recover(RecoveryStep::CloseFullCheckpoint);
        }
    }

    #[test]
    fn a_replica_that_hangs_loses_its_place() {
        let mut bench = Bench::new(1);
        bench.open("replica", Tenure::WhileGettingOn);
        bench.set(&["a", "b"]);
        bench.flush();
        assert_eq!(bench.recover(RecoveryStep::CloseFullCheckpoint), (0, 0));
        for (milliseconds, dropped) in [(0, (0, 0)), (1999, (0, 0)), (1, (1, 2)), (0, (0, 0))] {
            bench.now = bench.now.after(Duration::from_millis(milliseconds));
            assert_eq!(bench.recover(RecoveryStep::DropSlowCursors), dropped, "{milliseconds} ms");
        }
    }

    #[test]
    fn a_log_that_is_held_stays_where_streams_are_dropped() {
        let mut bench = Bench::new(1);
        bench.stream();
        let held = bench.vbucket.hold_log("reader").unwrap();
        bench.set(&["a", "b"]);
        bench.flush();
        assert_eq!(bench.recover(RecoveryStep::CloseFullCheckpoint), (0, 0));
        assert_eq!(bench.recover(RecoveryStep::Expel), (0, 0));
        assert_eq!(bench.recover(RecoveryStep::DropSlowCursors), (1, 0), "the stream");
        assert_eq!(bench.read(held), 2);
    }

    #[test]
    fn the_flusher_is_never_dropped_and_loses_nothing() {
        let mut bench = Bench::new(1);
        let stream = bench.stream();
        bench.set(&["a", "b", "c"]);
        bench.read(stream);
        for step in
            [RecoveryStep::CloseFullCheckpoint, RecoveryStep::Expel, RecoveryStep::DropSlowCursors]
        {
            assert_eq!(bench.recover(step), (0, 0), "{step:?}");
        }
        assert_eq!(bench.vbucket.checkpoints().unflushed_count(), 3);
    }

    #[test]
    fn a_stream_that_ends_takes_along_what_only_it_has_kept() {
        let mut bench = Bench::new(1);
        let stream = bench.stream();
        bench.set(&["a", "b"]);
        bench.flush();
        assert_eq!(bench.items(), 2);
        bench.vbucket.close_stream(stream, &mut Vec::new());
        assert_eq!((bench.items(), bench.account.log_bytes()), (0, 0));
        let too_far = bench.vbucket.high_seqno().next();
        assert_eq!(
            bench.vbucket.open_stream("late", too_far, Tenure::WhileMemoryLasts),
            Err(Seqno(2))
        );
    }
}
