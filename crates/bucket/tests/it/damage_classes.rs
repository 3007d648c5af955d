//! Single damages of each kind of byte, of files and of the journal: none makes a vBucket serve a
//! wrong or an old value, none takes more than its vBucket out of service, and all are told.
//!
//! Damage in the journal is not that of one vBucket: nobody can tell whose writes a group held. The
//! bucket does not start then, and says which file is damaged, and where.
//!
//! What no start and no read meets a compaction finds, which reads all that the file has: then it
//! is told, or the damaged bytes belong to nothing that is used.
//!
//! `SEEDS=200` has so many damages of each kind; with `--nocapture` what came of them is printed.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bucket::{ApplyConfig, BucketConfig, CompactionOrder, Refused};
use document::Vbid;
use platform::simulated::SimulatedFiles;
use platform::{Files, OpenMode, Random};
use storage::couchstore::CouchFile;
use storage::{Order, Selection};
use tracing::Level;

use crate::compaction::compact;
use crate::heard_log::HeardLog;
use crate::support::{DIRECTORY, Machine, No, config};

const VBUCKET_COUNT: u16 = 4;
const KEY_COUNT: usize = 30;
const BLOCK: usize = 4096;
const FILE: &str = "1.couch.1";
const DAMAGED: Vbid = Vbid(1);

/// Which bytes are damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Of a file: headers with their type bytes, the newest ones twice as often.
    Headers,
    /// Nodes of the trees.
    Trees,
    Bodies,
    /// The node that holds the vBucket's state, in front of the newest header.
    State,
    /// Of the journal: headers of segments.
    SegmentHeads,
    /// Groups with others behind them.
    Groups,
    /// The last group with records.
    LastGroup,
}

const CLASSES: &[Class] = &[
    Class::Headers,
    Class::Trees,
    Class::Bodies,
    Class::State,
    Class::SegmentHeads,
    Class::Groups,
    Class::LastGroup,
];

/// What comes of a damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// The bucket does not start, and says why.
    Refused,
    /// The vBucket does not serve, as the start says.
    OutOfService,
    /// Some reads are refused, which is told.
    RefusesReads,
    /// The start tells of it, or a read does, and all is served.
    Told,
    /// A compaction tells of it.
    FoundByCompaction,
    /// A compaction, which reads all that is used, finds everything as it should be.
    Unused,
}

/// What a document was given last; `None`: it was deleted.
fn expected(vbid: Vbid, number: usize) -> Option<Vec<u8>> {
    let round = match number {
        _ if number < KEY_COUNT / 5 => return None,
        _ if number < KEY_COUNT / 2 => "second",
        _ => "first",
    };
    Some(format!("{round} value of {vbid} {number} {}", "x".repeat(number * 20)).into_bytes())
}

/// A bucket whose files have everything of it and of which the journal holds a part.
fn filled() -> Machine {
    let cycle = Duration::from_secs(10);
    let apply = ApplyConfig { cycle, applier_count: 1 };
    let mut machine = Machine::with(BucketConfig { apply, ..config() });
    for vbid in (0..VBUCKET_COUNT).map(Vbid) {
        for number in 0..KEY_COUNT {
            let value = format!("first value of {vbid} {number} {}", "x".repeat(number * 20));
            machine.set(vbid, &format!("key-{number}"), value.as_bytes()).unwrap();
        }
    }
    machine.run();
    machine.advance(Duration::from_secs(60));
    for vbid in (0..VBUCKET_COUNT).map(Vbid) {
        for number in 0..KEY_COUNT / 2 {
            let value = format!("second value of {vbid} {number} {}", "x".repeat(number * 20));
            machine.set(vbid, &format!("key-{number}"), value.as_bytes()).unwrap();
        }
        for number in 0..KEY_COUNT / 5 {
            machine.delete(vbid, &format!("key-{number}")).unwrap();
        }
        machine.run();
    }
    machine.advance(Duration::from_secs(2));
    machine
}

/// What is on the disk when the node is not running.
struct Image {
    files: Vec<(PathBuf, Vec<u8>)>,
    config: BucketConfig,
}

impl Image {
    fn of(machine: Machine) -> Self {
        machine.files.power_cut(0);
        let mut files = Vec::new();
        for directory in [PathBuf::from(DIRECTORY), Path::new(DIRECTORY).join("journal")] {
            for name in machine.files.list(&directory).unwrap() {
                let path = directory.join(name);
                files.extend(machine.files.content(&path).map(|content| (path, content)));
            }
        }
        Self { files, config: machine.config }
    }

    fn content(&self, path: &Path) -> &[u8] {
        &self.files.iter().find(|(found, _)| found == path).unwrap().1
    }

    /// A disk on which one file is another one.
    fn disk_with(&self, path: &Path, content: &[u8]) -> SimulatedFiles {
        let disk = SimulatedFiles::new();
        for (found, intact) in &self.files {
            disk.insert(found, if found == path { content } else { intact });
        }
        disk
    }

    fn segments(&self) -> Vec<&Path> {
        let is_live = |path: &&PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("j."))
        };
        self.files.iter().map(|(path, _)| path).filter(is_live).map(PathBuf::as_path).collect()
    }
}

/// Where the bytes of a class are: a file, and ranges of it.
fn places(image: &Image, class: Class, seed: u64) -> (PathBuf, Vec<Range<usize>>) {
    match class {
        Class::Headers | Class::Trees | Class::Bodies | Class::State => {
            let path = Path::new(DIRECTORY).join(FILE);
            let ranges = places_in_file(image, &path, class);
            (path, ranges)
        }
        Class::SegmentHeads => {
            let segments = image.segments();
            let path = segments[seed as usize % segments.len()].to_path_buf();
            (path, std::iter::once(0..64).collect())
        }
        Class::Groups | Class::LastGroup => {
            let path = image.segments().pop().unwrap().to_path_buf();
            let groups = groups_in(image.content(&path));
            let with_records = groups.iter().rposition(|(_, records)| *records > 0).unwrap();
            let chosen = if class == Class::LastGroup {
                &groups[with_records..=with_records]
            } else {
                &groups[..with_records]
            };
            (path, chosen.iter().map(|(range, _)| range.clone()).collect())
        }
    }
}

/// The groups of a segment, each with its number of records.
fn groups_in(content: &[u8]) -> Vec<(Range<usize>, u32)> {
    let (mut groups, mut at) = (Vec::new(), BLOCK);
    let number = |at: usize| u32::from_be_bytes(content[at..at + 4].try_into().unwrap());
    while at + 64 <= content.len() && &content[at..at + 4] == b"SJG1" {
        let bytes = number(at + 4) as usize;
        groups.push((at..at + bytes, number(at + 32)));
        at += bytes.next_multiple_of(BLOCK);
    }
    groups
}

fn places_in_file(image: &Image, path: &Path, class: Class) -> Vec<Range<usize>> {
    let content = image.content(path);
    let disk = image.disk_with(path, content);
    let file = CouchFile::open(&disk, path, OpenMode::Read).unwrap();
    let (newest, _) = file.newest_header().unwrap();
    let at = |position: u64| usize::try_from(position).unwrap();
    let mut headers = vec![at(newest.position)];
    let mut state = newest.clone();
    while let Some(before) = file.header_before(&state).unwrap() {
        headers.push(at(before.position));
        state = before;
    }
    let mut bodies = Vec::new();
    let selection = Selection { order: Order::BySeqno, start_seqno: 0, with_bodies: true };
    storage::documents(&file, &newest, selection, |document| {
        if document.body_position > 0 {
            let start = at(document.body_position);
            bodies.push(start..start + document.body_size as usize);
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    let data_end = content[..at(newest.position)].iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let is_header =
        |byte: usize| headers.iter().any(|header| (*header..header + 130).contains(&byte));
    let is_body = |byte: usize| bodies.iter().any(|body| body.contains(&byte));
    match class {
        Class::Headers => {
            let whole = |header: &usize| *header..(header + 130).min(content.len());
            headers.iter().take(1).chain(&headers).map(whole).collect()
        }
        Class::Bodies => bodies,
        Class::State => std::iter::once(data_end - 150..data_end).collect(),
        _ => (0..data_end)
            .filter(|byte| !is_header(*byte) && !is_body(*byte) && content[*byte] != 0)
            .map(|byte| byte..byte + 1)
            .collect(),
    }
}

/// Damages one place: a bit, a byte, or what is left of a sector.
fn damage(content: &[u8], ranges: &[Range<usize>], random: &mut Random) -> Vec<u8> {
    let range = &ranges[usize::try_from(random.below(ranges.len() as u64)).unwrap()];
    let length = range.end.min(content.len()) - range.start;
    let at = range.start + usize::try_from(random.below(length as u64)).unwrap();
    let mut damaged = content.to_vec();
    match random.below(4) {
        0 => damaged[at] = damaged[at].wrapping_add(1 + random.below(255) as u8),
        1 => {
            let end = (at + 1).next_multiple_of(512).min(damaged.len());
            damaged[at..end].iter_mut().for_each(|byte| *byte = !*byte);
        }
        _ => damaged[at] ^= 1 << random.below(8),
    }
    damaged
}

/// What reads of the damaged vBucket gave.
#[derive(Default)]
struct Reads {
    right: usize,
    refused: usize,
}

fn read_all(machine: &mut Machine, at: &str) -> Reads {
    let mut reads = Reads::default();
    for vbid in (0..VBUCKET_COUNT).map(Vbid) {
        for number in 0..KEY_COUNT {
            let found = machine.get(vbid, &format!("key-{number}"));
            let expected = expected(vbid, number).ok_or(No(Refused::NotFound));
            if found == expected {
                reads.right += 1;
                continue;
            }
            let is_refused = matches!(&found, Err(refused) if *refused != Refused::NotFound);
            assert!(is_refused, "{at}: {vbid} key-{number} is {found:?}");
            assert_eq!(vbid, DAMAGED, "{at}: another vBucket does not serve: {found:?}");
            reads.refused += 1;
        }
    }
    reads
}

fn check(image: &Image, class: Class, seed: u64) -> Outcome {
    let at = format!("{class:?}, seed {seed}");
    let mut random = Random::from_seed(seed << 8 | class as u64);
    let (path, ranges) = places(image, class, seed);
    assert!(!ranges.is_empty(), "{at}: nothing to damage in {}", path.display());
    let damaged = damage(image.content(&path), &ranges, &mut random);
    let disk = image.disk_with(&path, &damaged);
    let log = HeardLog::default();
    let started = log.during(|| Machine::begin(disk, image.config.clone()));
    let is_journal = path.starts_with(Path::new(DIRECTORY).join("journal"));
    let mut machine = match started {
        Ok(machine) => machine,
        Err(refusal) => {
            assert!(is_journal, "{at}: one file keeps the bucket from starting: {refusal}");
            let refusal = refusal.to_string();
            assert!(refusal.contains("is corrupt at byte"), "{at}: {refusal}");
            return Outcome::Refused;
        }
    };
    assert!(!is_journal, "{at}: damage in the journal is believed: {log:?}");
    let reads = log.during(|| {
        machine.run();
        let reads = read_all(&mut machine, &at);
        machine.run();
        reads
    });
    assert!(
        reads.refused == 0 || log.count(Level::ERROR) > 0,
        "{at}: {} of {} reads refused, and nothing said: {log:?}",
        reads.refused,
        reads.right + reads.refused
    );
    let is_told = log.count(Level::ERROR) > 0;
    match (reads.refused, is_told) {
        (KEY_COUNT, _) => return Outcome::OutOfService,
        (1.., _) => return Outcome::RefusesReads,
        (0, true) => return Outcome::Told,
        (0, false) => {}
    }
    log.during(|| {
        let _end = compact(&mut machine, DAMAGED, CompactionOrder::default());
        machine.run();
    });
    let is_told = log.count(Level::ERROR) > 0;
    let reads = read_all(&mut machine, &at);
    assert!(
        is_told || reads.refused == 0,
        "{at}: compacted with damage, and nothing said: {log:?}"
    );
    if is_told { Outcome::FoundByCompaction } else { Outcome::Unused }
}

#[test]
fn single_damages_serve_nothing_wrong_and_take_one_vbucket() {
    let mut stopped = filled();
    stopped.advance(Duration::from_secs(60));
    stopped.bucket.shut_down().unwrap();
    let stopped = Image::of(stopped);
    let killed = Image::of(filled());
    for &class in CLASSES {
        let mut outcomes: BTreeMap<Outcome, u32> = BTreeMap::new();
        for seed in platform::seeds::seeds(25) {
            let is_journal =
                matches!(class, Class::SegmentHeads | Class::Groups | Class::LastGroup);
            let image = if is_journal || seed % 2 == 0 { &killed } else { &stopped };
            *outcomes.entry(check(image, class, seed)).or_default() += 1;
        }
        println!("{class:?}: {outcomes:?}");
    }
}
