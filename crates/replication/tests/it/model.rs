//! A stream against a plain history, while everything happens to the log and the file that can.

use std::collections::BTreeMap;
use std::time::Duration;

use bucket::{BucketConfig, BucketType, Persistence};
use document::{DurabilityLevel, Seqno, VbucketState};
use platform::Random;
use platform::seeds::seeds;
use protocol::dcp::Message;
use protocol::{Feature, Status};
use replication::Answer;
use vbucket::{Now, RecoveryStep, Waiter};

use crate::consumer::Consumer;
use crate::support::{Machine, VBID, config, key};

/// Every version there was, in order.
#[derive(Default)]
struct History(Vec<(Seqno, Vec<u8>, Option<Vec<u8>>)>);

impl History {
    /// The documents as they were at `seqno`.
    fn at(&self, seqno: Seqno) -> BTreeMap<Vec<u8>, (Vec<u8>, Seqno)> {
        let mut documents = BTreeMap::new();
        for (written, key, value) in self.0.iter().take_while(|version| version.0 <= seqno) {
            match value {
                Some(value) => documents.insert(key.clone(), (value.clone(), *written)),
                None => documents.remove(key),
            };
        }
        documents
    }
}

struct Run {
    seed: u64,
    random: Random,
    machine: Machine,
    history: History,
    consumer: Consumer,
    kind: Kind,
    /// Durable writes under way, by who waits for them.
    durable: BTreeMap<u64, (Vec<u8>, Vec<u8>)>,
    next_waiter: u64,
    backfills: u64,
    commits: u64,
}

/// Who consumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A client that knows neither collections nor durable writes.
    Classic,
    /// A client that knows collections.
    Client,
    /// A replica.
    Replica,
}

impl Kind {
    fn open(self, machine: &Machine) -> Consumer {
        let features: &[Feature] =
            if self == Self::Classic { &[] } else { &[Feature::Collections] };
        let mut consumer = Consumer::open(machine, "model", 0x25, features);
        if self == Self::Replica {
            for (key, value) in [("enable_sync_writes", "true"), ("consumer_name", "n_1")] {
                assert_eq!(consumer.control(machine, key, value), Answer::Done);
            }
        }
        consumer
    }
}

fn configs() -> [BucketConfig; 3] {
    // Checkpoints are full soon, so that slow streams lose their place.
    let small = BucketConfig { checkpoint_memory_ratio: 0.005, ..config() };
    let ephemeral = Some(BucketType::Ephemeral);
    [
        BucketConfig { persistence: Persistence::Files, ..small.clone() },
        BucketConfig { bucket_type: ephemeral, ..small.clone() },
        small,
    ]
}

impl Run {
    fn new(seed: u64, config: BucketConfig) -> Self {
        let mut random = Random::from_seed(seed);
        let machine = Machine::with(config);
        let name = |name: &str| Some(name.to_owned());
        let topology = Some(vec![vec![name("n_0"), name("n_1")]]);
        machine.bucket.set_vbucket_state(VBID, VbucketState::Active, topology).unwrap();
        let kinds = [Kind::Classic, Kind::Client, Kind::Replica];
        let kind = kinds[usize::try_from(random.below(3)).unwrap()];
        Self {
            seed,
            random,
            consumer: kind.open(&machine),
            machine,
            history: History::default(),
            kind,
            durable: BTreeMap::new(),
            next_waiter: 0,
            backfills: 0,
            commits: 0,
        }
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random.below(end)
    }

    fn step(&mut self) {
        match self.below(24) {
            0..6 => self.write(),
            6 => self.delete(),
            7..9 => {
                for _ in 0..self.below(5) {
                    self.machine.driver.run_one();
                }
            }
            9 => self.machine.run(),
            10 => self.recover_memory(),
            11 => self.reconnect(),
            12 => self.change_buffer(),
            13 | 14 => self.write_durably(),
            15 => self.acknowledge(),
            16 => self.end_durable_writes(),
            _ => self.take(),
        }
    }

    fn encoded(&self, name: &str) -> Vec<u8> {
        let key = key(name);
        let key = key.as_key();
        if self.kind != Kind::Classic { key.encoded().to_vec() } else { key.name().to_vec() }
    }

    fn write(&mut self) {
        for _ in 0..=self.below(10) {
            let name = format!("key{}", self.below(40));
            let size = if self.below(20) == 0 { 6_000 } else { self.below(300) };
            let mut value = vec![0; usize::try_from(size).unwrap()];
            self.random.fill(&mut value);
            let Some(seqno) = self.machine.try_set(&name, &value) else { return };
            self.history.0.push((seqno, self.encoded(&name), Some(value)));
        }
    }

    fn write_durably(&mut self) {
        let name = format!("key{}", self.below(40));
        let value = self.random.next_u64().to_be_bytes().to_vec();
        let waiter = Waiter(self.next_waiter);
        self.next_waiter += 1;
        let level = DurabilityLevel::Majority;
        if self.machine.set_durable_for(waiter, &name, &value, level) {
            self.durable.insert(waiter.0, (self.encoded(&name), value));
        }
    }

    /// A replica acknowledges some of what is prepared.
    fn acknowledge(&mut self) {
        let high = self.machine.high_seqno();
        let seqno = Seqno(high.0.saturating_sub(self.below(30)));
        self.machine.bucket.on_vbucket(VBID, |vbucket, now, effects| {
            vbucket.acknowledge("n_1", seqno, now, effects);
        });
        for (waiter, seqno) in self.machine.committed.take() {
            let (key, value) = self.durable.remove(&waiter.0).unwrap();
            self.history.0.push((seqno, key, Some(value)));
            self.commits += 1;
        }
    }

    /// Nobody acknowledges what is prepared.
    fn end_durable_writes(&mut self) {
        self.machine.bucket.on_vbucket(VBID, |vbucket, now, effects| {
            let monotonic = now.monotonic.after(Duration::from_secs(100_000));
            vbucket.end_overdue_sync_writes(Now { monotonic, ..now }, effects);
        });
        self.durable.clear();
    }

    fn delete(&mut self) {
        let name = format!("key{}", self.below(40));
        if let Some(seqno) = self.machine.try_delete(&name) {
            self.history.0.push((seqno, self.encoded(&name), None));
        }
    }

    fn recover_memory(&mut self) {
        let steps =
            [RecoveryStep::CloseFullCheckpoint, RecoveryStep::Expel, RecoveryStep::DropSlowCursors];
        let count = usize::try_from(self.random.below(4)).unwrap();
        for step in &steps[..count] {
            self.machine.bucket.on_vbucket(VBID, |vbucket, now, effects| {
                vbucket.recover_memory(*step, now.monotonic, effects);
            });
        }
    }

    fn reconnect(&mut self) {
        let streams = std::mem::take(&mut self.consumer.streams);
        let mut fresh = self.kind.open(&self.machine);
        fresh.streams = streams;
        self.consumer = fresh;
        let end = match self.below(4) {
            0 => self.consumer.streams.get(&VBID).map_or(0, |known| known.seqno.0) + self.below(40),
            _ => u64::MAX,
        };
        self.resume(end);
    }

    /// A replica within a snapshot may have to wait until the rest of that is persisted.
    fn resume(&mut self, end: u64) {
        let mut answer = self.consumer.resume(&self.machine, VBID, end);
        if matches!(answer, Answer::Fail(Status::Etmpfail, _)) && self.kind == Kind::Replica {
            self.machine.run();
            answer = self.consumer.resume(&self.machine, VBID, end);
        }
        assert!(matches!(answer, Answer::Value(_)), "seed {}: {answer:?}", self.seed);
    }

    fn change_buffer(&mut self) {
        let size = if self.below(3) == 0 { 0 } else { 100 + self.random.below(20_000) };
        self.consumer.unacked_bytes = 0;
        self.consumer.control(&self.machine, "connection_buffer_size", &size.to_string());
    }

    fn take(&mut self) {
        let bytes_max = usize::try_from(1 + self.random.below(30_000)).unwrap();
        let times = usize::try_from(1 + self.random.below(20)).unwrap();
        self.consumer.take(&self.machine, bytes_max, times);
        let bytes = u32::try_from(std::mem::take(&mut self.consumer.unacked_bytes)).unwrap();
        if bytes > 0 {
            self.consumer.tell(&self.machine, VBID, &Message::BufferAck { bytes });
        }
        self.check();
        if self.consumer.streams.get(&VBID).is_none_or(|received| received.end.is_some()) {
            self.resume(u64::MAX);
        }
    }

    /// At the end of a snapshot the consumer has what there was at that moment.
    fn check(&mut self) {
        let Some(received) = self.consumer.streams.get(&VBID) else { return };
        let status = &self.machine.hub.producer_status()[0];
        self.backfills += u64::from(status.streams.iter().any(|stream| stream.backfill_items > 0));
        if received.is_whole() {
            let expected = self.history.at(received.seqno);
            assert!(received.documents == expected, "seed {}: at {:?}", self.seed, received.seqno);
        }
    }

    fn end(&mut self) {
        self.consumer.control(&self.machine, "connection_buffer_size", "0");
        self.consumer.unacked_bytes = 0;
        for _ in 0..2 {
            self.consumer.take_all(&mut self.machine);
            if self.consumer.streams.get(&VBID).is_none_or(|received| received.end.is_some()) {
                self.resume(u64::MAX);
            }
        }
        self.check();
        let received = &self.consumer.streams[&VBID];
        assert!(received.is_whole(), "seed {}", self.seed);
        let expected = self.history.at(Seqno(u64::MAX));
        assert!(received.documents == expected, "seed {}", self.seed);
        let status = &self.machine.hub.producer_status()[0];
        assert_eq!(status.backfill_bytes, 0, "seed {}: everything was sent", self.seed);
    }
}

#[test]
fn a_consumer_gets_the_whole_history_whatever_happens_to_the_log() {
    let (mut backfills, mut commits) = (0, 0);
    for seed in seeds(60) {
        for config in configs() {
            let mut run = Run::new(seed, config);
            for _ in 0..400 {
                run.step();
            }
            run.end();
            backfills += run.backfills;
            commits += run.commits;
        }
    }
    assert!(backfills > 0, "some of it came from files");
    assert!(commits > 0, "some of it was durable");
}
