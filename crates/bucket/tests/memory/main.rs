//! What a bucket says that it uses beside what the allocator really holds for it.
//!
//! A binary of its own whose tests take turns: everything that is allocated meanwhile is the
//! bucket's.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail their tests")]
#![expect(clippy::print_stdout, reason = "the figures are of interest when all is well, too")]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bucket::{ApplyConfig, Surroundings, Write};
use bucket::{Bucket, BucketConfig, BucketType, Completion, Completions, Incoming, Session};
use document::{ItemMeta, KeyBuf, Vbid};
use executor::DeterministicPool;
use platform::counting_allocator::CountingAllocator;
use platform::files::RealFiles;
use platform::{Clock, Entropy, Random, WallTime, accounts, process};
use vbucket::{Waiter, WriteCondition};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Held by the test whose turn it is.
static TURN: Mutex<()> = Mutex::new(());

const VBUCKETS: u16 = 16;
const DOCUMENTS: u64 = 30_000;
/// How far the two may be apart, in percent.
const DIFFERENCE_MAX: f64 = 5.0;
const RUNS_MAX: usize = 100_000;
const DEFRAGMENTER_INTERVAL: Duration = Duration::from_secs(10);

struct Ignored;

impl Completions for Ignored {
    fn complete(&self, _waiter: Waiter, _completion: Completion) {}

    fn release_memory(&self) {}
}

struct Machine {
    driver: DeterministicPool,
    bucket: Bucket,
    session: Session,
    random: Random,
    _directory: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        Self::with(BucketConfig::named("memory"))
    }

    fn with(config: BucketConfig) -> Self {
        Self::with_all_of(quick(config))
    }

    fn with_all_of(config: BucketConfig) -> Self {
        let clock = Clock::simulated(WallTime(1_700_000_000_000_000_000));
        let driver = DeterministicPool::new(clock.clone(), 1);
        let directory = tempfile::tempdir().unwrap();
        let surroundings = Surroundings {
            clock,
            files: Arc::new(RealFiles),
            pool: driver.pool().clone(),
            completions: Arc::new(Ignored),
            entropy: Entropy::simulated(1),
        };
        let bucket = Bucket::open(surroundings, config, directory.path()).unwrap();
        let (session, random) = (Session::default(), Random::from_seed(1));
        let mut machine = Self { driver, bucket, session, random, _directory: directory };
        machine.run();
        machine
    }

    fn run(&mut self) {
        self.driver.run_until_idle(RUNS_MAX);
    }

    /// Mostly small values, a few of up to 32 KiB.
    fn store_any(&mut self, number: u64) {
        let size_max = 16 << self.random.below(12);
        let size = self.random.below(size_max);
        self.store(number, size as usize);
    }

    fn store(&mut self, number: u64, size: usize) {
        let value = vec![b'v'; size];
        let expiry = if number.is_multiple_of(3) { u32::MAX } else { 0 };
        let meta = ItemMeta { expiry, ..ItemMeta::default() };
        let key = key(number);
        let set = Write::set(vbid(number), key.as_key(), Incoming::plain(&value));
        self.bucket.store(&mut self.session, Write { meta, ..set }).unwrap();
    }

    fn delete(&mut self, number: u64) {
        let (key, condition) = (key(number), WriteCondition::default());
        self.bucket.delete(&mut self.session, vbid(number), key.as_key(), condition).ok();
    }

    fn evict(&mut self, number: u64) {
        self.bucket.evict(&mut self.session, vbid(number), key(number).as_key()).ok();
    }
}

/// Everything happens at once, and the defragmenter does something whenever it looks.
fn quick(config: BucketConfig) -> BucketConfig {
    BucketConfig {
        vbucket_count: VBUCKETS,
        defragmenter_interval: DEFRAGMENTER_INTERVAL,
        defragmenter_wasted_bytes_min: 0,
        // The journal follows memory at once, and files follow the journal.
        flush_interval: Duration::ZERO,
        apply: ApplyConfig { cycle: Duration::ZERO, applier_count: 1 },
        ..config
    }
}

/// A test's turn. Its thread keeps no free blocks behind it, which the next test would count.
struct Turn {
    _lock: MutexGuard<'static, ()>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        platform::allocator::share_kept_blocks();
    }
}

fn take_turn() -> Turn {
    Turn { _lock: TURN.lock().unwrap_or_else(PoisonError::into_inner) }
}

fn vbid(number: u64) -> Vbid {
    Vbid((number % u64::from(VBUCKETS)) as u16)
}

fn key(number: u64) -> KeyBuf {
    // Between 4 and 33 bytes.
    let name = format!("key-{:0width$}", number, width = (number % 30) as usize);
    KeyBuf::in_default_collection(name.as_bytes()).unwrap()
}

/// Compares, and prints what it compares.
fn compare(what: &str, machine: &Machine, before: usize) {
    let held = (CountingAllocator::held_bytes() - before) as f64;
    let used = machine.bucket.statistics().used_bytes() as f64;
    let percent = (held - used) / held * 100.0;
    println!("{what:<30} used {used:>10} held {held:>10} beyond used {percent:>6.2} %");
    assert!(percent.abs() <= DIFFERENCE_MAX, "{what}: {percent:.2} % apart");
}

#[test]
fn what_a_bucket_uses_is_what_the_allocator_holds_for_it() {
    let _turn = take_turn();
    let mut machine = Machine::new();
    let before = CountingAllocator::held_bytes();
    (0..DOCUMENTS / 10).for_each(|number| machine.store_any(number));
    compare("a tenth loaded, not flushed", &machine, before);
    (0..DOCUMENTS).for_each(|number| machine.store_any(number));
    compare("loaded, not flushed", &machine, before);
    machine.run();
    compare("flushed", &machine, before);
    for _ in 0..DOCUMENTS / 2 {
        let number = machine.random.below(DOCUMENTS);
        machine.store_any(number);
    }
    compare("half updated", &machine, before);
    machine.run();
    compare("flushed", &machine, before);
    (0..DOCUMENTS).step_by(3).for_each(|number| machine.delete(number));
    compare("a third deleted", &machine, before);
    machine.run();
    compare("flushed", &machine, before);
    (0..DOCUMENTS).step_by(2).for_each(|number| machine.evict(number));
    compare("half evicted", &machine, before);
    (0..DOCUMENTS).for_each(|number| machine.evict(number));
    compare("all evicted", &machine, before);
    (0..DOCUMENTS).for_each(|number| machine.delete(number));
    machine.run();
    let statistics = machine.bucket.statistics();
    // The keys of tombstones on disk are remembered.
    let left = statistics.used_bytes() - statistics.filter_bytes as u64;
    let held = CountingAllocator::held_bytes().saturating_sub(before);
    println!("all deleted and flushed: used {left}, held {held}");
    assert!(left == 0, "{left} bytes are accounted to nothing");
    assert!(held <= 1024 * 1024, "{held} bytes are held for nothing");
}

#[test]
fn documents_that_are_left_of_many_move_together_and_free_what_the_others_took() {
    let _turn = take_turn();
    let mut machine = Machine::new();
    let size_of = |number: u64| 100 + (number % 16) as usize * 100;
    let is_left = |number: u64| number.is_multiple_of(5);
    (0..DOCUMENTS).for_each(|number| machine.store(number, size_of(number)));
    machine.run();
    (0..DOCUMENTS).filter(|&number| !is_left(number)).for_each(|number| machine.delete(number));
    machine.run();
    let used = machine.bucket.statistics().used_bytes();
    let (held, resident) = (CountingAllocator::held_bytes(), process::resident_bytes());
    machine.driver.advance(DEFRAGMENTER_INTERVAL, RUNS_MAX);
    machine.run();
    let statistics = machine.bucket.statistics();
    let resident_after = process::resident_bytes();
    println!(
        "used {used}, resident {resident} before, {resident_after} after {} moves",
        statistics.defragmenter_moved
    );
    assert_eq!((statistics.defragmenter_rounds, statistics.used_bytes()), (1, used));
    assert!(CountingAllocator::held_bytes().abs_diff(held) < 100_000, "nothing is held twice");
    assert!(statistics.defragmenter_moved > 4_000, "{}", statistics.defragmenter_moved);
    // Four fifths of 26 MB were deleted; moving gives back most of that.
    assert!(resident_after + 10_000_000 < resident, "{resident} before, {resident_after} after");
    for number in (0..DOCUMENTS).filter(|&number| is_left(number)) {
        let (vbid, key) = (vbid(number), key(number));
        let found = machine.bucket.get(&mut machine.session, vbid, key.as_key()).unwrap();
        let found = found.answer().unwrap();
        assert_eq!(found.item.value().len(), size_of(number));
    }
    machine.driver.advance(DEFRAGMENTER_INTERVAL * 3, RUNS_MAX);
    let rounds = machine.bucket.statistics().defragmenter_rounds;
    assert_eq!(rounds, 1, "where nothing has changed there is nothing to do");
}

#[test]
fn what_other_buckets_hold_is_no_reason_to_defragment_and_what_is_sparse_is() {
    /// What the process may occupy beyond what its buckets use.
    const WASTED_BYTES_MIN: u64 = 64 << 20;
    const VALUE_SIZE: usize = 2_500;
    let _turn = take_turn();
    let wasted_bytes = || process::resident_bytes().saturating_sub(accounts::totals().used_bytes);
    let defragmenter_wasted_bytes_min = wasted_bytes() + WASTED_BYTES_MIN;
    let mut machines = ["first", "second", "third"].map(|name| {
        let config = BucketConfig::named(name);
        Machine::with_all_of(BucketConfig { defragmenter_wasted_bytes_min, ..quick(config) })
    });
    for machine in &mut machines {
        (0..DOCUMENTS).for_each(|number| machine.store(number, VALUE_SIZE));
        machine.run();
        // Enough has changed for a round.
        (0..DOCUMENTS / 10).for_each(|number| machine.store(number, VALUE_SIZE));
        machine.run();
    }
    let rounds = |machines: &mut [Machine; 3]| {
        machines.each_mut().map(|machine| {
            machine.driver.advance(DEFRAGMENTER_INTERVAL, RUNS_MAX);
            machine.run();
            machine.bucket.statistics().defragmenter_rounds
        })
    };
    let used_by_each = machines[0].bucket.statistics().used_bytes();
    assert!(used_by_each > WASTED_BYTES_MIN, "two buckets are more than may be wasted");
    let beyond = wasted_bytes();
    println!("each uses {used_by_each}, {beyond} beyond, {defragmenter_wasted_bytes_min} may be");
    assert_eq!(rounds(&mut machines), [0, 0, 0], "all that there is is used");
    for machine in &mut machines[..2] {
        (0..DOCUMENTS).filter(|number| number % 10 != 0).for_each(|number| machine.delete(number));
        machine.run();
    }
    println!("{} beyond, where one of ten is left", wasted_bytes());
    assert_eq!(rounds(&mut machines)[0], 1, "what is left of many is moved together");
}

#[test]
fn an_emptied_bucket_is_defragmented_like_a_new_one() {
    let _turn = take_turn();
    let mut machine = Machine::new();
    for round in 1..=2 {
        for number in 0..2_000 {
            machine.store(number, 100);
            // Half as many changes in the second round as in the first.
            (round..=2).for_each(|_| machine.store(number, 200));
        }
        machine.run();
        machine.driver.advance(DEFRAGMENTER_INTERVAL, RUNS_MAX);
        machine.run();
        assert_eq!(machine.bucket.statistics().defragmenter_rounds, round);
        machine.bucket.flush_all().unwrap();
    }
}

#[test]
fn a_bucket_that_deletes_to_make_room_is_defragmented() {
    let _turn = take_turn();
    let mut machine = Machine::with(BucketConfig {
        bucket_type: Some(BucketType::Ephemeral),
        memory_quota_bytes: 4 << 20,
        ..BucketConfig::named("memory")
    });
    for number in 0..10_000 {
        machine.store(number, 1_000);
        if number.is_multiple_of(50) {
            // The pager waits for the log between its rounds.
            machine.driver.advance(Duration::from_millis(2), RUNS_MAX);
        }
    }
    machine.driver.advance(DEFRAGMENTER_INTERVAL, RUNS_MAX);
    machine.run();
    let statistics = machine.bucket.statistics();
    assert!(statistics.vbuckets.auto_deletions > 1_000);
    assert_eq!(statistics.defragmenter_rounds, 1);
}
