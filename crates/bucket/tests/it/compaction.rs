//! Compaction of the files of a bucket that is in use.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use bucket::{Bucket, BucketConfig, BucketType, CompactionEnd, CompactionOrder, Incoming, Write};
use bucket::{Persistence, Refused, Session, Surroundings};
use document::{Seqno, Vbid};
use executor::{ExecutorPool, PoolOptions};
use platform::seeds::seeds;
use platform::simulated::SimulatedFiles;
use platform::{Clock, Entropy, Random};
use vbucket::StoreMode;
use vbucket::eviction::EvictionPolicy;

use crate::eviction::{finish, get, name, with_policy};
use crate::support::{DIRECTORY, Heard, Machine, No, OTHER, VBID, config, key};

/// With files that hold what is persisted as soon as it is: what a compaction finds is certain.
fn plain(config: BucketConfig) -> BucketConfig {
    BucketConfig { persistence: Persistence::Files, ..config }
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn fragmented(policy: EvictionPolicy) -> BucketConfig {
    BucketConfig {
        compaction_file_bytes_min: 64 << 10,
        compaction_interval: Duration::from_secs(10),
        memory_quota_bytes: 64 << 20,
        ..plain(with_policy(policy))
    }
}

/// Has a vBucket compacted and waits for the end.
pub(crate) fn compact(machine: &mut Machine, vbid: Vbid, order: CompactionOrder) -> CompactionEnd {
    let (told, heard) = mpsc::channel();
    machine.bucket.compact(vbid, order, move |end| told.send(end).unwrap()).unwrap();
    machine.run();
    heard.try_recv().unwrap()
}

fn purge_seqno(machine: &Machine, vbid: Vbid) -> Seqno {
    let mut seqno = Seqno(0);
    machine.bucket.with_vbucket(vbid, |vbucket| seqno = vbucket.purge_seqno());
    seqno
}

#[test]
fn writers_live_on_a_small_disk_on_what_compaction_frees() {
    const NEVER: Duration = Duration::from_secs(1_000_000);
    for persistence in [config().persistence, Persistence::Files] {
        let mut machine = Machine::with(BucketConfig {
            persistence,
            compaction_interval: NEVER,
            ..fragmented(EvictionPolicy::ValueOnly)
        });
        machine.files.set_capacity(3 << 20);
        // Ten times what the disk holds, of which a tenth of the disk is alive.
        for number in 0..20_000_u32 {
            let (vbid, name) = ([VBID, OTHER][number as usize % 2], (number % 200).to_string());
            let mut attempts = 0;
            while machine.set(vbid, &name, &[number as u8; 3000]).is_err() {
                attempts += 1;
                assert!(attempts < 60, "{persistence:?}: {number} is refused for ever");
                machine.advance(Duration::from_secs(1));
            }
            if number % 50 == 0 {
                machine.run();
            }
        }
        machine.advance(Duration::from_secs(60));
        let done = machine.bucket.compaction_statistics().done;
        assert!(done > 1, "{persistence:?}: {done}");
        assert_eq!(machine.bucket.shut_down(), Ok(()), "{persistence:?}");
    }
}

#[test]
fn what_finds_no_room_is_tried_less_and_less_often_until_room_comes() {
    let mut machine = Machine::with(fragmented(EvictionPolicy::ValueOnly));
    for _ in 0..3 {
        for number in 0..60_u64 {
            machine.set(Vbid((number % 4) as u16), &name(number), &no_run(number)).unwrap();
        }
        machine.run();
    }
    // Less than the files have.
    machine.files.set_capacity(1 << 16);
    // A writer that tries all the time wakes whoever looks for room.
    let mut failed_before = machine.bucket.compaction_statistics().failed;
    let mut tries = |machine: &mut Machine, seconds: u32| {
        for _ in 0..seconds * 20 {
            machine.set(VBID, "more", b"value").ok();
            machine.advance(Duration::from_millis(50));
        }
        let failed = machine.bucket.compaction_statistics().failed;
        failed - std::mem::replace(&mut failed_before, failed)
    };
    let first_minute = tries(&mut machine, 60);
    assert!((3..=7 * 4).contains(&first_minute), "{first_minute}");
    tries(&mut machine, 60);
    let later = tries(&mut machine, 300);
    assert!((3..=6 * 4).contains(&later), "{later}");
    assert_eq!(machine.bucket.compaction_statistics().done, 0);

    machine.files.set_capacity(u64::MAX);
    assert_eq!(tries(&mut machine, 11), 0);
    let statistics = machine.bucket.compaction_statistics();
    assert_eq!((statistics.done, statistics.fragmented_count), (4, 0), "{statistics:?}");
}

/// A value that does not get shorter by compression.
fn no_run(seed: u64) -> Vec<u8> {
    let mut value = vec![0; 4000];
    Random::from_seed(seed).fill(&mut value);
    value
}

#[test]
fn files_stay_compact_under_random_overwrites_and_every_document_is_readable() {
    for policy in [EvictionPolicy::ValueOnly, EvictionPolicy::Full] {
        for seed in seeds(3) {
            let mut random = Random::from_seed(seed);
            let mut machine = Machine::with(fragmented(policy));
            let mut model = BTreeMap::new();
            for step in 0..4000_u64 {
                let number = random.below(300);
                let vbid = Vbid((number % 4) as u16);
                match random.below(8) {
                    0 => {
                        let gone = |machine: &mut Machine| machine.delete(vbid, &name(number));
                        let deleted = finish(&mut machine, gone);
                        assert_eq!(deleted.is_ok(), model.remove(&number).is_some());
                    }
                    1 => drop(machine.evict(vbid, &name(number))),
                    _ => {
                        let mut value = vec![b'v'; random.below(2000) as usize];
                        random.fill(&mut value);
                        let set = |machine: &mut Machine| machine.set(vbid, &name(number), &value);
                        finish(&mut machine, set).unwrap();
                        model.insert(number, value);
                    }
                }
                if random.below(20) == 0 {
                    machine.run();
                }
                if step % 500 == 0 {
                    machine.advance(Duration::from_secs(10));
                }
            }
            machine.run();
            let before = machine.bucket.file_sizes();
            machine.advance(Duration::from_secs(10));
            let after = machine.bucket.file_sizes();
            let at = format!("{policy:?}, seed {seed}: {before:?} {after:?}");
            assert!((after.file_bytes - after.live_bytes) * 10 < after.file_bytes * 3, "{at}");
            let statistics = machine.bucket.compaction_statistics();
            assert!(statistics.done > 4 && statistics.failed == 0, "{at}: {statistics:?}");
            assert!(statistics.running.is_empty() && statistics.fragmented_count == 0, "{at}");
            for start in 0..2 {
                for number in 0..300 {
                    machine.evict(Vbid((number % 4) as u16), &name(number)).ok();
                    let read = |machine: &mut Machine| {
                        machine.find(Vbid((number % 4) as u16), &name(number))
                    };
                    let found = finish(&mut machine, read);
                    let found = found.map(|found| found.item.value().to_vec());
                    let expected = model.get(&number).cloned().ok_or(No(Refused::NotFound));
                    assert_eq!(found, expected, "{at}, start {start}");
                }
                machine = machine.stop_and_start();
                machine.run();
            }
        }
    }
}

#[test]
fn documents_past_their_time_are_deleted_unless_there_is_a_newer_version() {
    for policy in [EvictionPolicy::ValueOnly, EvictionPolicy::Full] {
        for seed in seeds(20) {
            let mut random = Random::from_seed(seed);
            let mut machine = Machine::with(plain(with_policy(policy)));
            let soon = machine.clock.wall_time().seconds() + 5;
            for number in 0..40 {
                let expiry = if number < 30 { soon } else { 0 };
                machine.store(StoreMode::Set, VBID, &name(number), b"old", expiry).unwrap();
            }
            machine.run();
            (0..40).for_each(|number| machine.evict(VBID, &name(number)).unwrap());
            machine.advance(Duration::from_secs(10));
            // Ten of them get another version, which may be flushed before or after.
            for number in 10..20 {
                let set = |machine: &mut Machine| machine.set(VBID, &name(number), b"new");
                finish(&mut machine, set).unwrap();
                for _ in 0..random.below(3) {
                    machine.driver.run_one();
                }
            }
            assert_eq!(
                compact(&mut machine, VBID, CompactionOrder::default()),
                CompactionEnd::Done
            );
            let at = format!("{policy:?}, seed {seed}");
            assert_eq!(machine.bucket.compaction_statistics().expired, 20, "{at}");
            assert_eq!(machine.bucket.statistics().document_count, 20, "{at}");
            for number in 10..20 {
                assert_eq!(get(&mut machine, &name(number)).unwrap().item.value(), b"new", "{at}");
            }
            // Their tombstones reach the file like any others.
            compact(&mut machine, VBID, CompactionOrder::default());
            assert_eq!(machine.bucket.compaction_statistics().expired, 20, "{at}");
        }
    }
}

#[test]
fn tombstones_go_by_age_and_the_vbucket_knows_how_far() {
    for policy in [EvictionPolicy::ValueOnly, EvictionPolicy::Full] {
        let mut machine = Machine::with(plain(with_policy(policy)));
        for number in 0..10 {
            machine.set(VBID, &name(number), b"value").unwrap();
        }
        let mut last_old = Seqno(0);
        for number in 0..5 {
            last_old = machine.delete(VBID, &name(number)).unwrap().seqno;
        }
        machine.advance(DAY);
        machine.delete(VBID, &name(5)).unwrap();
        machine.run();
        compact(&mut machine, VBID, CompactionOrder::default());
        assert_eq!(purge_seqno(&machine, VBID), Seqno(0), "all are young");
        machine.advance(2 * DAY + DAY / 2);
        compact(&mut machine, VBID, CompactionOrder::default());
        assert_eq!(purge_seqno(&machine, VBID), last_old);
        assert_eq!(machine.bucket.compaction_statistics().tombstones_purged, 5);
        // What was purged is absent, and can be made again.
        assert_eq!(get(&mut machine, &name(0)).unwrap_err(), Refused::NotFound);
        let set = |machine: &mut Machine| machine.set(VBID, &name(0), b"again");
        let again = finish(&mut machine, set).unwrap();
        let all = CompactionOrder { drop_deletes: true, ..CompactionOrder::default() };
        machine.run();
        compact(&mut machine, VBID, all);
        let purged = purge_seqno(&machine, VBID);
        assert!(purged > last_old && purged < again.seqno, "{policy:?}");
        let mut machine = machine.stop_and_start();
        machine.run();
        assert_eq!(purge_seqno(&machine, VBID), purged, "{policy:?}");
        assert_eq!(get(&mut machine, &name(0)).unwrap().item.value(), b"again");
        assert_eq!(machine.bucket.statistics().document_count, 5);
        machine.bucket.flush_all().unwrap();
        assert_eq!(purge_seqno(&machine, VBID), Seqno(0), "a new history");
    }
}

#[test]
fn orders_are_taken_in_turn_joined_and_forgotten() {
    let mut machine = Machine::with(plain(config()));
    machine.set(VBID, "k", b"value").unwrap();
    machine.set(OTHER, "k", b"value").unwrap();
    machine.run();
    let (told, heard) = mpsc::channel();
    for (number, vbid) in [VBID, OTHER, VBID].into_iter().enumerate() {
        let told = told.clone();
        let on_end = move |end| told.send((number, end)).unwrap();
        machine.bucket.compact(vbid, CompactionOrder::default(), on_end).unwrap();
    }
    assert_eq!(machine.bucket.compaction_statistics().ordered_count, 2);
    machine.run();
    let ends: Vec<_> = heard.try_iter().collect();
    let done = CompactionEnd::Done;
    assert_eq!(ends, [(0, done), (2, done), (1, done)]);
    assert_eq!(machine.bucket.compaction_statistics().done, 2);
    assert_eq!(
        machine.bucket.compact(Vbid(900), CompactionOrder::default(), |_| ()),
        Err(Refused::NotMyVbucket)
    );
    // All of them: those without a file are done at once.
    machine.bucket.compact_all().unwrap();
    assert_eq!(machine.bucket.compaction_statistics().ordered_count, 4);
    machine.run();
    assert_eq!(machine.bucket.compaction_statistics().done, 4);
    let ordered = |machine: &Machine| {
        let told = told.clone();
        let on_end = move |end| told.send((9, end)).unwrap();
        machine.bucket.compact(VBID, CompactionOrder::default(), on_end).unwrap();
    };
    ordered(&machine);
    machine.bucket.cancel_compactions();
    assert_eq!(heard.try_recv().unwrap(), (9, CompactionEnd::Aborted));
    machine.run();
    assert_eq!(machine.bucket.compaction_statistics().done, 4);
    ordered(&machine);
    machine.bucket.shut_down().unwrap();
    assert_eq!(heard.try_recv().unwrap(), (9, CompactionEnd::Aborted));
    ordered(&machine);
    assert_eq!(heard.try_recv().unwrap(), (9, CompactionEnd::Aborted));
}

#[test]
fn a_bucket_without_files_has_nothing_to_compact() {
    let config = BucketConfig { bucket_type: Some(BucketType::Ephemeral), ..config() };
    let machine = Machine::with(config);
    assert_eq!(machine.bucket.compact_all(), Err(Refused::Ephemeral));
    let ordered = machine.bucket.compact(VBID, CompactionOrder::default(), |_| ());
    assert_eq!(ordered, Err(Refused::Ephemeral));
}

/// A bucket on real threads whose compactions stand still once they have written a little.
fn slow_bucket() -> (Bucket, ExecutorPool, SimulatedFiles) {
    let (clock, files) = (Clock::real(), SimulatedFiles::new());
    let pool = ExecutorPool::start(clock.clone(), PoolOptions::for_cpus(2)).unwrap();
    let surroundings = Surroundings {
        clock,
        files: Arc::new(files.clone()),
        pool: pool.clone(),
        completions: Arc::new(Heard::default()),
        entropy: Entropy::simulated(1),
    };
    let config = BucketConfig { compaction_bytes_per_second: 1, ..plain(config()) };
    let bucket = Bucket::open(surroundings, config, Path::new(DIRECTORY)).unwrap();
    (bucket, pool, files)
}

/// Fills a vBucket, and returns while its compaction is under way.
fn begin_slow_compaction(bucket: &Bucket) -> mpsc::Receiver<CompactionEnd> {
    let mut random = Random::from_seed(7);
    let mut value = vec![0; 10_000];
    for number in 0..60 {
        random.fill(&mut value);
        let (session, key) = (&mut Session::default(), key(&name(number)));
        let write = Write::set(VBID, key.as_key(), Incoming::plain(&value));
        bucket.store(session, write).unwrap();
    }
    while bucket.statistics().items_persisted < 60 {
        std::thread::yield_now();
    }
    let (told, heard) = mpsc::channel();
    let on_end = move |end| told.send(end).unwrap();
    bucket.compact(VBID, CompactionOrder::default(), on_end).unwrap();
    let is_writing = || {
        let running = bucket.compaction_statistics().running;
        running.first().is_some_and(|running| running.bytes_done > 0 && running.left.is_some())
    };
    while !is_writing() {
        std::thread::yield_now();
    }
    heard
}

#[test]
fn a_file_of_little_use_is_compacted_at_full_speed() {
    let (bucket, pool, _) = slow_bucket();
    let value = vec![b'v'; 10_000];
    for number in 1..=10 {
        let (session, key) = (&mut Session::default(), key("alone"));
        let write = Write::set(VBID, key.as_key(), Incoming::plain(&value));
        bucket.store(session, write).unwrap();
        while bucket.statistics().items_persisted < number {
            std::thread::yield_now();
        }
    }
    let (told, heard) = mpsc::channel();
    let on_end = move |end| told.send(end).unwrap();
    bucket.compact(VBID, CompactionOrder::default(), on_end).unwrap();
    // At a byte a second it would take hours.
    let end = heard.recv_timeout(Duration::from_mins(2));
    assert_eq!(end, Ok(CompactionEnd::Done));
    bucket.shut_down().unwrap();
    pool.shutdown();
}

#[test]
fn emptying_the_bucket_and_stopping_it_do_not_wait_for_compactions() {
    type Interruption = fn(&Bucket);
    let cases: [(&str, Interruption, usize); 3] = [
        ("emptied", |bucket| bucket.flush_all().unwrap(), 0),
        ("cancelled", Bucket::cancel_compactions, 1),
        ("stopped", |bucket| bucket.shut_down().unwrap(), 1),
    ];
    for (what, interrupt, file_count) in cases {
        let (bucket, pool, files) = slow_bucket();
        let ended = begin_slow_compaction(&bucket);
        interrupt(&bucket);
        assert_eq!(ended.recv().unwrap(), CompactionEnd::Aborted, "{what}");
        assert_eq!(bucket.compaction_statistics().aborted, 1, "{what}");
        bucket.shut_down().unwrap();
        pool.shutdown();
        let directory = Path::new(DIRECTORY);
        let names = platform::Files::list(&files, directory).unwrap();
        let data_files = names.iter().filter(|name| name.contains(".couch."));
        assert_eq!(data_files.count(), file_count, "{what}: {names:?}");
    }
}
