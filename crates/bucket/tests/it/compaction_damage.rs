//! Compaction of files that cannot be read in whole.

use std::time::Duration;

use bucket::{BucketConfig, CompactionEnd, DamageKind, Persistence};
use platform::Random;
use platform::simulated::{Call, Fault, FaultError};
use tracing::Level;

use crate::compaction::compact;
use crate::damage::file_of;
use crate::heard_log::HeardLog;
use crate::support::{Machine, VBID, config};

const INTERVAL: Duration = Duration::from_secs(10);
const COUNT: u64 = 100;
const COLD: u64 = 7;

fn files() -> BucketConfig {
    BucketConfig {
        persistence: Persistence::Files,
        compaction_file_bytes_min: 64 << 10,
        compaction_interval: INTERVAL,
        ..config()
    }
}

/// What does not get shorter by compression.
fn value(number: u64) -> Vec<u8> {
    let mut value = vec![0; 2000];
    Random::from_seed(number).fill(&mut value);
    value
}

fn overwrite_others(machine: &mut Machine) {
    for number in (0..COUNT).filter(|number| *number != COLD) {
        machine.set(VBID, &number.to_string(), &value(number)).unwrap();
    }
    machine.run();
}

/// A start after a bit of one document on disk has changed.
fn with_damaged_body() -> Machine {
    let mut machine = Machine::with(files());
    machine.set(VBID, &COLD.to_string(), &value(COLD)).unwrap();
    overwrite_others(&mut machine);
    machine.bucket.shut_down().unwrap();
    let path = file_of(&machine.files, VBID);
    let mut image = machine.files.content(&path).unwrap();
    let wanted = &value(COLD)[..16];
    let at = image.windows(16).position(|window| window == wanted).unwrap();
    image[at] ^= 1;
    machine.files.insert(&path, &image);
    let mut machine = machine.restart();
    machine.run();
    machine
}

#[test]
fn a_file_with_a_damaged_body_is_compacted_and_the_body_stays_refused_and_is_told_once() {
    let mut machine = with_damaged_body();
    let log = HeardLog::default();
    log.during(|| {
        for _ in 0..8 {
            overwrite_others(&mut machine);
            machine.advance(INTERVAL);
        }
    });
    let statistics = machine.bucket.compaction_statistics();
    assert!(statistics.done > 2 && statistics.failed == 0, "{statistics:?}");
    assert_eq!(statistics.damaged_bodies, statistics.done, "{statistics:?}");
    let sizes = machine.bucket.file_sizes();
    assert!(sizes.file_bytes < 3 * sizes.live_bytes, "{sizes:?}");
    assert!(log.has(Level::ERROR, "a document is damaged and cannot be read"), "{log:?}");
    assert_eq!(log.count(Level::ERROR), 1, "{log:?}");
    assert_eq!(machine.bucket.statistics().damaged_vbucket_count, 1);
    let [damage] = machine.bucket.damaged_vbuckets().try_into().unwrap();
    assert_eq!((damage.vbid, damage.kind), (VBID, DamageKind::InPart));
    let expected = "1 documents cannot be read; the first is `0:7` with seqno 1, at byte 1 of";
    assert!(damage.reason.starts_with(expected), "{}", damage.reason);
    assert!(machine.get(VBID, &COLD.to_string()).is_err(), "never what was not written");
    assert_eq!(machine.get(VBID, "8").unwrap(), value(8));

    machine.set(VBID, &COLD.to_string(), b"newer").unwrap();
    machine.run();
    assert_eq!(compact(&mut machine, VBID, Default::default()), CompactionEnd::Done);
    assert_eq!(machine.bucket.damaged_vbuckets(), []);
    assert_eq!(machine.get(VBID, &COLD.to_string()).unwrap(), b"newer");
}

#[test]
fn a_file_that_cannot_be_compacted_is_left_alone_longer_and_longer() {
    let mut machine = Machine::with(files());
    overwrite_others(&mut machine);
    overwrite_others(&mut machine);
    let (call, error) = (Some(Call::Read), FaultError::Io);
    machine.files.fail(Fault { call, number: 1, error, from_then_on: true });
    let log = HeardLog::default();
    // Over an hour, in which the file is looked at 360 times.
    log.during(|| (0..360).for_each(|_| machine.advance(INTERVAL)));
    let statistics = machine.bucket.compaction_statistics();
    assert!((4..10).contains(&statistics.failed), "{statistics:?}");
    assert_eq!(log.count(Level::ERROR) as u64, statistics.failed, "{log:?}");
    assert_eq!(compact(&mut machine, VBID, Default::default()), CompactionEnd::Failed);

    machine.files.heal();
    assert_eq!(compact(&mut machine, VBID, Default::default()), CompactionEnd::Done);
    // And at once the next time.
    overwrite_others(&mut machine);
    machine.advance(INTERVAL);
    assert_eq!(machine.bucket.compaction_statistics().done, 2);
}
