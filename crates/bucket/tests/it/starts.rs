//! What a start believes: nothing of which another witness says something else.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bucket::{ApplyConfig, BucketConfig, ConflictResolution, Persistence, Refused};
use document::Seqno;
use platform::Files;
use platform::simulated::{Call, Fault, FaultError, SimulatedFiles};
use tracing::Level;

use crate::heard_log::HeardLog;
use crate::support::{DIRECTORY, Machine, No, OTHER, Unanswered, VBID, config, files_config};

/// Documents of each vBucket. The first half is overwritten, and of that half are deleted.
const COUNT: usize = 40;
const BLOCK: usize = 4096;

fn path_of(name: &str) -> PathBuf {
    Path::new(DIRECTORY).join(name)
}

/// A bucket with documents of two commits, which are in its files.
fn filled(config: BucketConfig) -> Machine {
    let mut machine = Machine::with(config);
    for vbid in [VBID, OTHER] {
        for number in 0..COUNT {
            machine.set(vbid, &format!("key-{number}"), b"old").unwrap();
        }
    }
    settle(&mut machine);
    for vbid in [VBID, OTHER] {
        for number in 0..COUNT / 2 {
            machine.set(vbid, &format!("key-{number}"), b"new").unwrap();
        }
        for number in 0..COUNT / 4 {
            machine.delete(vbid, &format!("key-{number}")).unwrap();
        }
    }
    settle(&mut machine);
    machine
}

/// Has everything come to the files, and the journal come to rest.
fn settle(machine: &mut Machine) {
    machine.run();
    machine.advance(Duration::from_secs(2));
    machine.advance(Duration::from_secs(2));
}

fn check(machine: &mut Machine, vbid: document::Vbid, at: &str) {
    for number in 0..COUNT {
        let expected = match number {
            _ if number < COUNT / 4 => Err(No(Refused::NotFound)),
            _ if number < COUNT / 2 => Ok(b"new".to_vec()),
            _ => Ok(b"old".to_vec()),
        };
        assert_eq!(machine.get(vbid, &format!("key-{number}")), expected, "{at}: {number}");
    }
}

fn is_out_of_service(machine: &mut Machine) -> bool {
    let refused = |result: &Unanswered| *result != Refused::NotFound;
    (0..COUNT).all(|number| {
        let name = format!("key-{number}");
        machine.get(VBID, &name).as_ref().is_err_and(refused)
            && machine.set(VBID, &name, b"x").as_ref().is_err_and(refused)
    })
}

/// What happens to a file while the node is stopped; `None`: it is removed.
type Damage = (&'static str, fn(&[u8]) -> Option<Vec<u8>>);

fn newest_header(content: &[u8]) -> usize {
    let is_header = |block: &usize| content[block * BLOCK] == 1;
    (0..content.len().div_ceil(BLOCK)).rev().find(is_header).unwrap() * BLOCK
}

fn changed(content: &[u8], at: usize, byte: u8) -> Option<Vec<u8>> {
    let mut content = content.to_vec();
    content[at] = byte;
    Some(content)
}

const DAMAGES: &[Damage] = &[
    ("a bit of the newest header", |content| {
        let at = newest_header(content) + 30;
        changed(content, at, content[at] ^ 1)
    }),
    ("its type byte", |content| changed(content, newest_header(content), 0)),
    ("another type byte", |content| changed(content, newest_header(content), 3)),
    ("cut at the newest header", |content| Some(content[..newest_header(content)].to_vec())),
    ("cut in the last commit", |content| {
        let before = newest_header(&content[..newest_header(content)]);
        Some(content[..(before + newest_header(content)) / 2].to_vec())
    }),
    ("cut to the first block", |content| Some(content[..BLOCK].to_vec())),
    ("cut to nothing", |_| Some(Vec::new())),
    ("removed", |_| None),
    ("an older copy", |content| {
        let before = newest_header(&content[..newest_header(content)]);
        Some(content[..before + 200].to_vec())
    }),
];

fn apply_damage(machine: &Machine, damage: &Damage) -> Vec<u8> {
    let path = path_of("0.couch.1");
    let intact = machine.files.content(&path).unwrap();
    match damage.1(&intact) {
        Some(content) => machine.files.insert(&path, &content),
        None => {
            machine.files.remove(&path).unwrap();
            machine.files.sync_directory(Path::new(DIRECTORY)).unwrap();
        }
    }
    intact
}

fn check_out_of_service(mut machine: Machine, intact: &[u8], what: &str) {
    // A clean stop, or another crash, does not make it believed.
    for round in 0..3 {
        let at = format!("{what}, start {round}");
        let log = HeardLog::default();
        machine = log.during(|| match round {
            1 => {
                machine.bucket.shut_down().ok();
                machine.restart()
            }
            _ => machine.power_cut(round),
        });
        log.during(|| machine.run());
        assert!(is_out_of_service(&mut machine), "{at}: {log:?}");
        assert!(log.has(Level::ERROR, "0.couch.1"), "{at}: {log:?}");
        check(&mut machine, OTHER, &at);
    }
    machine.files.insert(&path_of("0.couch.1"), intact);
    let mut machine = machine.power_cut(0);
    machine.run();
    check(&mut machine, VBID, &format!("{what}, brought back"));
}

#[test]
fn a_file_that_is_not_what_a_clean_stop_has_left_is_out_of_service() {
    for damage in DAMAGES {
        let machine = filled(config());
        machine.bucket.shut_down().unwrap();
        let intact = apply_damage(&machine, damage);
        check_out_of_service(machine, &intact, damage.0);
    }
}

#[test]
fn a_file_that_lost_what_the_journal_has_let_go_of_is_out_of_service() {
    let options = storage::JournalOptions {
        segment_bytes: 16 << 10,
        bytes_max: 64 << 10,
        group_bytes_max: 8 << 10,
        portion_bytes: 4096,
    };
    for damage in DAMAGES {
        let persistence = Persistence::Journal(options);
        let mut machine = filled(BucketConfig { persistence, ..config() });
        for number in 0..30 {
            machine.set(OTHER, "filler", &[number; 1000]).unwrap();
            settle(&mut machine);
        }
        let intact = apply_damage(&machine, damage);
        check_out_of_service(machine, &intact, damage.0);
    }
}

#[test]
fn a_mark_of_an_older_version_is_believed_and_a_damaged_one_says_so() {
    for (mark, is_clean) in [(&b""[..], true), (b"settee files 1\ncrc 0", false)] {
        let machine = filled(config());
        let branches = machine.branches(VBID);
        machine.bucket.shut_down().unwrap();
        machine.files.insert(&path_of("clean-stop"), mark);
        let log = HeardLog::default();
        let mut machine = log.during(|| machine.restart());
        machine.run();
        check(&mut machine, VBID, "without witnesses");
        assert_eq!(machine.branches(VBID) == branches, is_clean);
        assert_eq!(log.count(Level::ERROR), usize::from(!is_clean), "{log:?}");
    }
}

#[test]
fn files_without_a_journal_have_the_mark_as_their_witness() {
    for damage in DAMAGES {
        let machine = filled(files_config());
        machine.bucket.shut_down().unwrap();
        apply_damage(&machine, damage);
        let log = HeardLog::default();
        let mut machine = log.during(|| machine.restart());
        machine.run();
        assert!(is_out_of_service(&mut machine), "{}", damage.0);
        assert!(log.has(Level::ERROR, "0.couch.1"), "{}: {log:?}", damage.0);
        check(&mut machine, OTHER, damage.0);
    }
}

/// How a bucket came to rest, with what is known of it then.
type Rest = (&'static str, fn() -> BucketConfig, fn(&Machine));

#[test]
fn a_bucket_that_lost_its_description_is_no_other_bucket() {
    let remove = |machine: &Machine, name: &str| machine.files.remove(&path_of(name)).unwrap();
    let rests: [Rest; 5] = [
        ("with a journal", lazy_config, |_| {}),
        ("with a journal in files", config, |_| {}),
        ("stopped in order", config, |machine| machine.bucket.shut_down().unwrap()),
        ("stopped without a journal", files_config, |machine| machine.bucket.shut_down().unwrap()),
        ("killed without a journal", files_config, |_| {}),
    ];
    for (rest, config, come_to_rest) in rests {
        let lww = ConflictResolution::Lww;
        let machine = filled(BucketConfig { conflict_resolution: Some(lww), ..config() });
        come_to_rest(&machine);
        let description = machine.files.content(&path_of("bucket.json")).unwrap();
        remove(&machine, "bucket.json");
        let Machine { files, driver, .. } = machine;
        driver.pool().shutdown();
        let begin = || Machine::begin(files.clone(), BucketConfig::named("test"));
        let refusal = begin().err().unwrap().to_string();
        assert!(refusal.contains("bucket.json: is missing"), "{rest}: {refusal}");
        let checked = bucket::check_directory(&files, Path::new(DIRECTORY), None);
        assert_eq!(said(&checked.refusals), [refusal], "{rest}");
        files.insert(&path_of("bucket.json"), &description);
        let mut machine = begin().unwrap();
        machine.run();
        assert_eq!(machine.bucket.conflict_resolution(), lww, "{rest}");
        check(&mut machine, VBID, rest);
    }
}

fn said(refusals: &[bucket::OpenError]) -> Vec<String> {
    refusals.iter().map(ToString::to_string).collect()
}

#[test]
fn a_check_says_what_a_start_says_of_what_describes_a_bucket() {
    let directory = Path::new(DIRECTORY);
    for name in ["bucket.json", "manifest.json", "absent-vbuckets.json"] {
        let Machine { files, driver, config, .. } = filled(lazy_config());
        driver.pool().shutdown();
        files.insert(&path_of(name), b"{");
        let checked = bucket::check_directory(&files, directory, None);
        let refusal = Machine::begin(files, config).err().unwrap().to_string();
        assert!(refusal.contains(name) && refusal.contains("from a"), "{refusal}");
        assert_eq!(said(&checked.refusals), [refusal]);
    }
    let machine = filled(lazy_config());
    segments(&machine).iter().for_each(|segment| machine.files.insert(segment, b""));
    let Machine { files, driver, config, .. } = machine;
    driver.pool().shutdown();
    let checked = bucket::check_directory(&files, directory, None);
    let accepting = BucketConfig { accepts_lost_journal: true, ..config.clone() };
    let accepted = bucket::check_directory(&files, directory, Some(&accepting));
    assert!(accepted.refusals.is_empty(), "{accepted:?}");
    let refusal = Machine::begin(files, config).err().unwrap().to_string();
    assert!(refusal.contains("--accept-lost-journal"), "{refusal}");
    assert_eq!(said(&checked.refusals), [refusal]);
}

#[test]
fn a_note_of_the_journal_that_cannot_be_read_is_refused_with_what_to_do() {
    let start = |files: &SimulatedFiles, config: &BucketConfig| {
        Machine::begin(files.clone(), config.clone()).err().map(|error| error.to_string())
    };
    let check = |files: &SimulatedFiles, config: &BucketConfig| {
        let checked = bucket::check_directory(files, Path::new(DIRECTORY), Some(config));
        said(&checked.refusals).into_iter().next()
    };
    type Attempt<'a> = &'a dyn Fn(&SimulatedFiles, &BucketConfig) -> Option<String>;
    let attempts: [Attempt<'_>; 2] = [&start, &check];
    for attempt in attempts {
        // The disk fails at one read after another, of which one is of the note.
        let is_refused = (1..50).any(|number| {
            let Machine { files, driver, config, .. } = filled(lazy_config());
            driver.pool().shutdown();
            let (call, error) = (Some(Call::Read), FaultError::Io);
            files.fail(Fault { call, number, error, from_then_on: false });
            attempt(&files, &config).is_some_and(|refusal| {
                refusal.contains("journal-in-use cannot be read")
                    && refusal.contains("--accept-lost-journal")
            })
        });
        assert!(is_refused);
    }
}

#[test]
fn a_check_reads_the_journal_as_a_start_does_and_changes_nothing() {
    let directory = Path::new(DIRECTORY);
    // A group with another one behind it, the last one, a header, and none of them.
    for damaged in [Some(BLOCK), Some(usize::MAX), Some(0), None] {
        let machine = filled(lazy_config());
        let segment = segments(&machine).pop().unwrap();
        let Machine { files, driver, config, .. } = machine;
        driver.pool().shutdown();
        let mut content = files.content(&segment).unwrap();
        let last = content.iter().rposition(|byte| *byte != 0).unwrap();
        if let Some(position) = damaged {
            content[last.min(position.saturating_add(40))] ^= 1;
        }
        files.insert(&segment, &content);
        let shared: std::sync::Arc<dyn Files> = std::sync::Arc::new(files.clone());
        let names = files.list(&path_of("journal")).unwrap();
        let checked = bucket::check_journal(&shared, directory).err();
        assert_eq!(files.content(&segment), Some(content), "{damaged:?}");
        assert_eq!(files.list(&path_of("journal")).unwrap(), names, "{damaged:?}");
        let refusal = Machine::begin(files, config).err().map(|error| error.to_string());
        assert_eq!(checked.map(|error| error.to_string()), refusal, "{damaged:?}");
        let is_in_the_middle = damaged.is_some_and(|position| position <= BLOCK);
        assert_eq!(refusal.is_some(), is_in_the_middle, "{damaged:?}: {refusal:?}");
        assert!(refusal.is_none_or(|it| it.contains("is corrupt at byte")), "{damaged:?}");
    }
}

#[test]
fn a_check_names_what_is_damaged_or_gone_where_a_start_goes_on() {
    let damaged = |files: &SimulatedFiles| {
        let checked = bucket::check_directory(files, Path::new(DIRECTORY), None);
        assert!(checked.refusals.is_empty(), "{checked:?}");
        checked.missed.into_iter().map(|(path, _)| path).collect::<Vec<_>>()
    };
    let machine = filled(lazy_config());
    assert!(damaged(&machine.files).is_empty());
    machine.files.insert(&path_of("journal-in-use"), b"settee");
    assert_eq!(damaged(&machine.files), [path_of("journal-in-use")]);
    machine.bucket.shut_down().unwrap();
    assert!(damaged(&machine.files).is_empty(), "behind a stop in order no journal is wanted");
    machine.files.insert(&path_of("clean-stop"), b"settee");
    assert_eq!(damaged(&machine.files), [path_of("clean-stop")]);
    machine.files.insert(&path_of("clean-stop"), b"");
    assert!(damaged(&machine.files).is_empty(), "one of an older version");
}

#[test]
fn settings_that_were_kept_and_are_gone_are_told_at_each_start() {
    let mut machine = filled(config());
    let path = path_of("settings.json");
    for is_there in [true, false, false, true] {
        if is_there {
            machine.files.insert(&path, b"{}");
        } else {
            machine.files.remove(&path).unwrap_or_default();
        }
        let log = HeardLog::default();
        machine = log.during(|| machine.stop_and_start());
        machine.run();
        assert_eq!(log.has(Level::WARN, "settings.json"), !is_there, "{log:?}");
        check(&mut machine, VBID, "with settings or without");
        let checked = bucket::check_directory(&machine.files, Path::new(DIRECTORY), None);
        assert_eq!(checked.missed.is_empty(), is_there, "{checked:?}");
    }
}

#[test]
fn what_is_there_before_a_bucket_is_described_is_no_trace_of_one() {
    let files = SimulatedFiles::new();
    files.create_directories(&path_of("journal")).unwrap();
    files.insert(&path_of("settings.json"), b"{}");
    files.insert(&path_of("bucket.new"), b"{");
    Machine::begin(files, config()).unwrap();
}

#[test]
fn files_of_vbuckets_alone_are_taken_over() {
    let machine = filled(config());
    machine.bucket.shut_down().unwrap();
    let Machine { files, driver, .. } = machine;
    driver.pool().shutdown();
    let names = files.list(Path::new(DIRECTORY)).unwrap();
    for name in names.iter().filter(|name| !name.contains(".couch.") && *name != "journal") {
        files.remove(&path_of(name)).unwrap();
    }
    let mut machine = Machine::begin(files, config()).unwrap();
    machine.run();
    check(&mut machine, VBID, "taken over");
}

/// A bucket whose files stay behind its journal.
fn lazy_config() -> BucketConfig {
    let cycle = Duration::from_secs(1000);
    BucketConfig { apply: ApplyConfig { cycle, applier_count: 1 }, ..config() }
}

fn segments(machine: &Machine) -> Vec<PathBuf> {
    let journal = path_of("journal");
    let names = machine.files.list(&journal).unwrap();
    names.iter().filter(|name| name.starts_with("j.")).map(|name| journal.join(name)).collect()
}

#[test]
fn a_journal_that_is_gone_after_a_crash_is_missed() {
    for removes_directory in [false, true] {
        let mut machine = filled(lazy_config());
        for segment in segments(&machine) {
            machine.files.remove(&segment).unwrap();
        }
        machine.files.sync_directory(&path_of("journal")).unwrap();
        if removes_directory {
            machine.config.persistence = Persistence::Files;
        }
        let (files, config) = (machine.files.clone(), machine.config.clone());
        let refusal = machine.try_restart().err().unwrap().to_string();
        assert!(refusal.contains("--accept-lost-journal"), "{refusal}");
        let refused = Machine::begin(files.clone(), config.clone()).err();
        assert!(refused.is_some(), "it is missed until somebody accepts that");
        files.insert(&path_of("journal-in-use"), b"settee journal 1");
        let refused = Machine::begin(files.clone(), config.clone()).err().unwrap().to_string();
        assert!(
            refused.contains("no segment of the journal"),
            "with a damaged note too: {refused}"
        );
        let accepting = BucketConfig { accepts_lost_journal: true, ..config.clone() };
        let log = HeardLog::default();
        let mut machine = log.during(|| Machine::begin(files.clone(), accepting)).unwrap();
        assert!(log.has(Level::ERROR, "what only the journal held is lost"), "{log:?}");
        machine.run();
        machine.set(VBID, "after", b"value").unwrap();
        settle(&mut machine);
        drop(machine);
        files.power_cut(0);
        let mut machine = Machine::begin(files, config).unwrap();
        machine.run();
        assert_eq!(machine.get(VBID, "after").unwrap(), b"value");
    }
}

#[test]
fn what_is_written_behind_a_journal_that_lost_its_end_is_there_after_the_next_crash() {
    for (lost, segment_bytes) in [("the last groups", 256 << 10), ("the newest segment", 16 << 10)]
    {
        let options = storage::JournalOptions {
            segment_bytes,
            bytes_max: 1 << 20,
            group_bytes_max: 8 << 10,
            portion_bytes: 4096,
        };
        let persistence = Persistence::Journal(options);
        let mut machine = Machine::with(BucketConfig { persistence, ..config() });
        for number in 0..10_u8 {
            machine.set(VBID, &format!("key-{number}"), &[number; 1000]).unwrap();
            machine.run();
        }
        // Appliers have time, and note which segment is the newest.
        settle(&mut machine);
        let newest = segments(&machine).pop().unwrap();
        if lost == "the newest segment" {
            machine.files.remove(&newest).unwrap();
            machine.files.sync_directory(&path_of("journal")).unwrap();
        } else {
            let content = machine.files.content(&newest).unwrap();
            machine.files.insert(&newest, &content[..3 * BLOCK]);
        }
        let before = machine.branches(VBID);
        let log = HeardLog::default();
        let mut machine = log.during(|| machine.restart());
        machine.run();
        assert!(log.has(Level::ERROR, "the end of the journal is missing"), "{lost}: {log:?}");
        assert_eq!(machine.branches(VBID)[1..], before, "{lost}");
        for round in 0..3_u64 {
            for number in 0..3 {
                machine.set(VBID, &format!("after-{number}"), &[7; 100]).unwrap();
                machine.run();
            }
            let high_seqno = machine.high_seqno(VBID);
            assert!(high_seqno > Seqno(10), "{lost}");
            let log = HeardLog::default();
            machine = log.during(|| machine.power_cut(round));
            machine.run();
            assert_eq!(machine.high_seqno(VBID), high_seqno, "{lost}, round {round}");
            assert_eq!(log.count(Level::ERROR), 0, "{lost}: it is told once: {log:?}");
            assert_eq!(machine.get(VBID, "after-2").unwrap(), [7; 100], "{lost}");
        }
    }
}

#[test]
fn the_last_group_is_protected_a_second_later_and_a_torn_one_is_told() {
    for seconds in [0, 2] {
        let mut machine = Machine::with(lazy_config());
        machine.set(VBID, "first", b"value").unwrap();
        machine.run();
        machine.set(VBID, "second", b"value").unwrap();
        machine.run();
        machine.advance(Duration::from_secs(seconds));
        let segment = segments(&machine).pop().unwrap();
        let content = machine.files.content(&segment).unwrap();
        let has_second = |block: &usize| {
            content[block * BLOCK..]
                .chunks(BLOCK)
                .next()
                .unwrap()
                .windows(6)
                .any(|w| w == b"second")
        };
        let block = (0..content.len() / BLOCK).find(has_second).unwrap();
        machine.files.insert(&segment, &changed(&content, block * BLOCK + 100, 0xff).unwrap());
        let log = HeardLog::default();
        let started = log.during(|| machine.try_restart());
        if seconds == 0 {
            started.unwrap();
            assert!(log.has(Level::WARN, "not whole"), "{log:?}");
        } else {
            let refusal = started.err().unwrap().to_string();
            assert!(refusal.contains("is corrupt at byte"), "{refusal}");
        }
    }
}

#[test]
fn a_file_that_cannot_be_read_takes_its_vbucket_and_no_other() {
    for name in ["0.couch.1", "77.couch.1"] {
        let machine = filled(config());
        if name == "0.couch.1" {
            machine.files.remove(&path_of(name)).unwrap();
        }
        machine.files.create_directories(&path_of(name)).unwrap();
        machine.files.sync_directory(Path::new(DIRECTORY)).unwrap();
        let log = HeardLog::default();
        let mut machine = log.during(|| machine.restart());
        machine.run();
        assert!(log.has(Level::ERROR, name), "{log:?}");
        check(&mut machine, OTHER, name);
        assert_eq!(is_out_of_service(&mut machine), name == "0.couch.1");
    }
}
