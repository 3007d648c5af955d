//! How fast range scans read: `cargo run --release -p bucket --example range_scan_speed`.
//! A million documents of 16-byte keys and 100-byte values in one vBucket, on a real disk. Prints
//! results a second of one thread, the best of five rounds, with the file up to date and, where it
//! says so, with as much in the journal alone as a scan lays over the file.
#![expect(clippy::print_stdout, reason = "it prints what it measures")]

use std::sync::Arc;

use bucket::{
    Bucket, BucketConfig, Completion, Completions, Incoming, KeyRange, PortionEnd, ScanContent,
    ScanLimits, ScanRequest, ScanSink, Session, Surroundings, Write,
};
use document::{CollectionId, Item, KeyBuf, Seqno, Vbid};
use executor::{ExecutorPool, PoolOptions};
use platform::files::RealFiles;
use platform::{Clock, Entropy};
use vbucket::Waiter;

const DOCUMENTS: u64 = 1_000_000;
const ROUNDS: u32 = 5;
const VBID: Vbid = Vbid(0);
const NO_LIMITS: ScanLimits = ScanLimits { items_max: None, bytes_max: None, time_max: None };

struct Nobody;

impl Completions for Nobody {
    fn complete(&self, _: Waiter, _: Completion) {}

    fn release_memory(&self) {}
}

/// Takes results as a connection does, and forgets them.
#[derive(Default)]
struct Sent {
    frame: Vec<u8>,
    count: u64,
}

impl Sent {
    fn push(&mut self, parts: [&[u8]; 2]) -> usize {
        if self.frame.len() >= 8192 {
            self.frame = Vec::with_capacity(9000);
        }
        let before = self.frame.len();
        for part in parts {
            self.frame.push(u8::try_from(part.len()).unwrap_or(u8::MAX));
            self.frame.extend_from_slice(part);
        }
        self.count += 1;
        self.frame.len() - before
    }
}

impl ScanSink for Sent {
    fn key(&mut self, name: &[u8]) -> usize {
        self.push([name, &[]])
    }

    fn document(&mut self, item: &Item) -> usize {
        self.push([item.key().name(), item.value()])
    }
}

fn main() {
    let directory = tempfile::tempdir().expect("there is a directory for temporary files");
    let clock = Clock::real();
    let options = PoolOptions::for_cpus(2);
    let pool = ExecutorPool::start(clock.clone(), options).expect("threads start");
    let surroundings = Surroundings {
        clock: clock.clone(),
        files: Arc::new(RealFiles),
        pool: pool.clone(),
        completions: Arc::new(Nobody),
        entropy: Entropy::simulated(1),
    };
    let config = BucketConfig { vbucket_count: 1, ..BucketConfig::named("default") };
    let path = directory.path().join("default");
    let bucket = Bucket::open(surroundings, config, &path).expect("a new bucket opens");
    let mut session = Session::default();
    write(&bucket, &mut session, 0..DOCUMENTS);
    wait_until(|| is_persisted(&bucket) && bucket.backlog().items == 0);
    measure("keys", &bucket, &clock, ScanContent::Keys);
    measure("documents", &bucket, &clock, ScanContent::Documents);
    write(&bucket, &mut session, (0..DOCUMENTS).step_by(4000));
    wait_until(|| is_persisted(&bucket));
    measure("keys, 250 of them in the journal alone", &bucket, &clock, ScanContent::Keys);
    bucket.shut_down().expect("everything is flushed");
    pool.shutdown();
}

/// Writes documents in an order that is not the one of their keys.
fn write(bucket: &Bucket, session: &mut Session, numbers: impl Iterator<Item = u64>) {
    const STEP: u64 = 7_368_787;
    for number in numbers {
        let name = format!("document{:08}", number * STEP % DOCUMENTS);
        let key = KeyBuf::in_default_collection(name.as_bytes()).expect("it is short");
        let value = [b'v'; 100];
        let set = |session: &mut Session| {
            bucket.store(session, Write::set(VBID, key.as_key(), Incoming::plain(&value)))
        };
        while set(session).is_err() {
            std::thread::yield_now();
        }
    }
}

fn wait_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        std::thread::yield_now();
    }
}

fn is_persisted(bucket: &Bucket) -> bool {
    let (mut high, mut persisted) = (Seqno(1), Seqno(0));
    bucket.with_vbucket(VBID, |vbucket| {
        (high, persisted) = (vbucket.high_seqno(), vbucket.persisted_seqno());
    });
    high == persisted
}

fn measure(what: &str, bucket: &Bucket, clock: &Clock, content: ScanContent) {
    let round = |_| {
        let request = ScanRequest {
            vbid: VBID,
            name: String::new(),
            collection: CollectionId::DEFAULT,
            range: KeyRange::of_collection(CollectionId::DEFAULT),
            sampling: None,
            content,
            snapshot: None,
        };
        let started = clock.now();
        let id = bucket.open_range_scan(&request).expect("there is something to scan");
        let turn = bucket.continue_range_scan(VBID, id, NO_LIMITS);
        let (mut turn, mut sent) = (turn.expect("nobody else goes on"), Sent::default());
        while turn.read(&mut sent) == PortionEnd::Portion {}
        assert_eq!(sent.count, DOCUMENTS, "every document is found once");
        clock.now().since(started)
    };
    let best = (0..ROUNDS).map(round).min().expect("there are rounds");
    let rate = u128::from(DOCUMENTS) * 1_000_000_000 / best.as_nanos().max(1);
    println!("{rate:9} /s  {what}");
}
