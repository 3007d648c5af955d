//! Random histories against a list that keeps everything.

use document::{Item, Operation, Seqno};
use platform::Random;
use platform::seeds::seeds;

use super::support::{ABORT, Bench, COMMIT, KEY_COUNT, PREPARE, item, name_of, seqnos};
use crate::checkpoint::{
    CheckpointKind, CursorId, LogPersistence, LogRange, ReadLimit, Snapshot, Tenure,
};

/// What is known of a reader.
struct Reader {
    cursor: CursorId,
    name: String,
    /// It has everything up to here.
    has: u64,
    /// A read that is not confirmed, and what it showed.
    unconfirmed: Option<(LogRange, Vec<u64>)>,
}

/// The plain list.
#[derive(Default)]
struct Model {
    /// Every version ever queued: key, whether it is in the prepared namespace, seqno, and the
    /// number of its checkpoint.
    history: Vec<(usize, bool, u64, u64)>,
}

impl Model {
    /// What somebody sees who reads from behind `after` to `through`: of every key and namespace
    /// the last version of each checkpoint, as far as that is read at all.
    fn visible(&self, after: u64, through: u64) -> Vec<u64> {
        let begin = self.history.partition_point(|version| version.2 <= after);
        let end = self.history.partition_point(|version| version.2 <= through);
        let mut met = std::collections::BTreeSet::new();
        let read = &self.history[begin..end.max(begin)];
        let newest =
            read.iter().rev().filter(|version| met.insert((version.3, version.0, version.1)));
        let mut seqnos: Vec<u64> = newest.map(|version| version.2).collect();
        seqnos.reverse();
        seqnos
    }
}

struct Run {
    bench: Bench,
    model: Model,
    readers: Vec<Reader>,
    random: Random,
    registered: usize,
    is_replica: bool,
    /// The end of the snapshot that a marker has announced to a replica.
    announced: u64,
    seed: u64,
}

#[test]
fn random_histories_show_every_reader_what_a_plain_list_would() {
    for seed in seeds(40) {
        for is_replica in [false, true] {
            let mut run = Run::new(seed, is_replica);
            for step in 0..5_000 {
                run.step();
                if step % 16 == 0 {
                    run.check();
                }
            }
            run.finish();
        }
    }
}

impl Run {
    fn new(seed: u64, is_replica: bool) -> Self {
        let mut random = Random::from_seed(seed);
        let persistence =
            if random.below(4) == 0 { LogPersistence::None } else { LogPersistence::File };
        let mut bench = Bench::new(0, persistence);
        if random.below(2) == 0 {
            bench.log.set_checkpoint_bytes_max(500);
        }
        let mut run = Self {
            bench,
            model: Model::default(),
            readers: Vec::new(),
            random,
            registered: 0,
            is_replica,
            announced: 0,
            seed,
        };
        if persistence == LogPersistence::File {
            let cursor = run.bench.persistence();
            let name = "persistence".to_owned();
            run.readers.push(Reader { cursor, name, has: 0, unconfirmed: None });
        }
        run
    }

    fn pick(&mut self, count: usize) -> usize {
        usize::try_from(self.random.below(count as u64)).unwrap()
    }

    fn step(&mut self) {
        match self.random.below(30) {
            0..=15 => self.queue(),
            16..=18 => self.begin_read(),
            19..=22 => self.end_read(true),
            23 => self.end_read(false),
            24 => self.register(),
            25 => self.unregister(),
            26 => drop(self.bench.log.expel()),
            27 if self.is_replica => drop(self.bench.log.begin_part()),
            27 => drop(self.bench.log.begin_checkpoint()),
            28 => {
                // Statistics change nothing.
                assert!(self.bench.log.checkpoint_count() >= 1);
            }
            _ => {}
        }
        if self.random.below(2_000) == 0 {
            self.reset();
        }
    }

    fn queue(&mut self) {
        let name = self.pick(KEY_COUNT);
        let operation = match self.random.below(10) {
            0 => PREPARE,
            1 => COMMIT,
            2 => ABORT,
            _ => Operation::Mutation,
        };
        if self.is_replica {
            self.receive(name);
        } else {
            drop(self.bench.queue_as(name, operation));
            let version = (name, operation.is_prepared());
            let log = &self.bench.log;
            let seqno = log.high_seqno().0;
            self.model.history.push((version.0, version.1, seqno, log.open_checkpoint_id()));
        }
    }

    /// A replica receives a mutation behind a gap, after a marker where one is due.
    fn receive(&mut self, name: usize) {
        let high = self.bench.log.high_seqno().0;
        if high >= self.announced {
            let start = high + 1;
            let end = start + self.random.below(20);
            self.announce(start, end);
        }
        let seqno = high + 1 + self.random.below(self.announced - high);
        let is_disk = self.bench.log.open_kind().is_disk();
        let open = self.bench.log.open_checkpoint_id();
        let has_key = |version: &&(usize, bool, u64, u64)| version.3 == open && version.0 == name;
        if is_disk && self.model.history.iter().rev().any(|version| has_key(&version)) {
            return;
        }
        let item = item(name, seqno, Operation::Mutation);
        let replaced = self.bench.newest[name][0].replace(item.clone());
        drop(self.bench.log.queue_received(item, replaced.as_ref()));
        self.model.history.push((name, false, seqno, open));
    }

    fn announce(&mut self, start: u64, end: u64) {
        let log = &mut self.bench.log;
        self.announced = end;
        let may_extend = self.random.below(2) == 0;
        if may_extend
            && log.extend_snapshot(Snapshot {
                end: Seqno(end),
                visible_end: Seqno(end),
                ..Snapshot::beginning_at(Seqno(end))
            })
        {
            return;
        }
        let is_disk = self.random.below(3) == 0;
        let kind = if is_disk { CheckpointKind::Disk } else { CheckpointKind::Memory };
        let snapshot = Snapshot {
            end: Seqno(end),
            high_completed: Some(Seqno(0)),
            ..Snapshot::beginning_at(Seqno(start))
        };
        drop(log.begin_snapshot(kind, snapshot));
    }

    fn begin_read(&mut self) {
        if self.readers.is_empty() {
            return;
        }
        let index = self.pick(self.readers.len());
        let reader = &mut self.readers[index];
        if reader.unconfirmed.is_some() {
            return;
        }
        let Some(mut range) = self.bench.log.begin_read(reader.cursor) else { return };
        let items_max = usize::try_from(self.random.below(40)).unwrap();
        let cuts_disk_snapshots = reader.name == "persistence";
        range.limit(ReadLimit { items_max, item_bytes_max: usize::MAX, cuts_disk_snapshots });
        let seen = seqnos(&range);
        let expected = self.model.visible(reader.has, range.last_seqno().0);
        assert_eq!(seen, expected, "seed {}: what {} sees", self.seed, reader.name);
        assert_eq!(range.item_count(), seen.len());
        reader.unconfirmed = Some((range, seen));
    }

    fn end_read(&mut self, succeeds: bool) {
        if self.readers.is_empty() {
            return;
        }
        let index = self.pick(self.readers.len());
        let reader = &mut self.readers[index];
        let Some((range, seen)) = reader.unconfirmed.take() else { return };
        assert_eq!(seqnos(&range), seen, "seed {}: a range does not change", self.seed);
        if succeeds {
            drop(self.bench.log.finish_read(&range, seen.len()));
            reader.has = range.last_seqno().0;
        } else {
            self.bench.log.fail_read(reader.cursor);
        }
    }

    fn register(&mut self) {
        if self.readers.len() > 4 {
            return;
        }
        self.registered += 1;
        let name = format!("stream {}", self.registered);
        let high = self.bench.log.high_seqno().0;
        assert_eq!(
            self.bench.log.register(&name, Seqno(high + 1), Tenure::WhileMemoryLasts),
            Err(Seqno(high))
        );
        let after = self.random.below(high + 1);
        let registration =
            self.bench.log.register(&name, Seqno(after), Tenure::WhileMemoryLasts).unwrap();
        let has = registration.next_seqno.0 - 1;
        assert_eq!(registration.needs_backfill, has > after, "seed {}", self.seed);
        self.readers.push(Reader { cursor: registration.id, name, has, unconfirmed: None });
    }

    fn unregister(&mut self) {
        let is_stream = |reader: &Reader| reader.name != "persistence";
        if let Some(index) = self.readers.iter().position(is_stream) {
            let reader = self.readers.swap_remove(index);
            drop(self.bench.log.remove_cursor(reader.cursor));
        }
    }

    fn reset(&mut self) {
        let high = self.bench.log.high_seqno().0 / 2;
        drop(self.bench.log.reset(Seqno(high)));
        self.model.history.clear();
        self.bench.newest = vec![[None, None]; KEY_COUNT];
        self.announced = high;
        for reader in &mut self.readers {
            reader.has = high;
            if let Some((range, seen)) = reader.unconfirmed.take() {
                assert!(self.bench.log.finish_read(&range, seen.len()).is_none());
            }
        }
    }

    /// Counts agree with the plain list.
    fn check(&self) {
        let high = self.bench.log.high_seqno().0;
        for reader in &self.readers {
            let expected = self.model.visible(reader.has, high).len();
            let remaining = self.bench.log.remaining(reader.cursor);
            assert_eq!(remaining, expected, "seed {}: {}", self.seed, reader.name);
        }
        let lowest = self.bench.log.lowest_cursor_seqno();
        let expected = self.readers.iter().map(|reader| reader.has + 1).min();
        assert_eq!(lowest.map(|seqno| seqno.0), expected, "seed {}", self.seed);
        let ids: Vec<u64> = self.bench.log.cursors().iter().map(|at| at.checkpoint_id).collect();
        let open = self.bench.log.open_checkpoint_id();
        let oldest = open + 1 - self.bench.log.checkpoint_count();
        assert!(ids.iter().all(|id| (oldest..=open).contains(id)), "seed {}", self.seed);
    }

    /// Once everybody has read everything and the streams are gone, nothing is left.
    fn finish(mut self) {
        while let Some(reader) = self.readers.pop() {
            drop(reader.unconfirmed);
            self.bench.log.fail_read(reader.cursor);
            while !self.bench.log.is_at_end(reader.cursor) {
                let range = self.bench.log.begin_read(reader.cursor).unwrap();
                let items: Vec<Item> = range.items();
                assert!(items.iter().all(|item| name_of(item) < KEY_COUNT));
                drop(self.bench.log.finish_read(&range, items.len()));
            }
            if reader.name != "persistence" {
                drop(self.bench.log.remove_cursor(reader.cursor));
            }
        }
        drop(self.bench.log.expel());
        let extent = self.bench.log.extent();
        assert_eq!((extent.items, extent.bytes()), (0, 0), "seed {}", self.seed);
        assert_eq!(self.bench.log.unflushed_count(), 0, "seed {}", self.seed);
    }
}
