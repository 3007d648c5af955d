//! What appending to a journal costs: the processor's part, with files that take no time, and all
//! of it, in a directory that is given, beside plain writes and syncs of the same size.
#![expect(clippy::print_stdout, reason = "an example prints what it has found out")]

use std::path::Path;
use std::sync::Arc;

use document::key::KeyBuf;
use document::{Cas, Item, ItemBuilder, ItemMeta, RevSeqno, Seqno, Vbid, VbucketState};
use platform::files::{RealFiles, remove_tree};
use platform::{Clock, Entropy, File, FileError, Files, OpenMode};
use storage::VbucketRecord;
use storage::journal::{Journal, JournalOptions, Lsn, Record, ReplayedRecord};

const OPTIONS: JournalOptions = JournalOptions {
    segment_bytes: 64 << 20,
    bytes_max: 1 << 30,
    group_bytes_max: 8 << 20,
    portion_bytes: 1 << 20,
};
const VALUE_SIZE: usize = 512;
const VBUCKETS: usize = 64;

/// Files that swallow everything.
struct NoFiles;

impl File for NoFiles {
    fn read_at(&self, _: &mut [u8], _: u64) -> Result<usize, FileError> {
        Ok(0)
    }

    fn write_at(&self, _: &[u8], _: u64) -> Result<(), FileError> {
        Ok(())
    }

    fn sync(&self) -> Result<(), FileError> {
        Ok(())
    }

    fn size(&self) -> Result<u64, FileError> {
        Ok(0)
    }

    fn set_size(&self, _: u64) -> Result<(), FileError> {
        Ok(())
    }
}

impl Files for NoFiles {
    fn open(&self, _: &Path, _: OpenMode) -> Result<Box<dyn File>, FileError> {
        Ok(Box::new(Self))
    }

    fn rename(&self, _: &Path, _: &Path) -> Result<(), FileError> {
        Ok(())
    }

    fn remove(&self, _: &Path) -> Result<(), FileError> {
        Ok(())
    }

    fn remove_directory(&self, _: &Path) -> Result<(), FileError> {
        Ok(())
    }

    fn sync_directory(&self, _: &Path) -> Result<(), FileError> {
        Ok(())
    }

    fn create_directory(&self, _: &Path) -> Result<(), FileError> {
        Ok(())
    }

    fn list(&self, _: &Path) -> Result<Vec<String>, FileError> {
        Ok(Vec::new())
    }

    fn exists(&self, _: &Path) -> Result<bool, FileError> {
        Ok(false)
    }
}

/// So many items for each of the vBuckets.
fn batches(items: usize) -> Vec<Vec<Item>> {
    let item =
        |number: usize| {
            let key = KeyBuf::in_default_collection(format!("key-{number:010}").as_bytes());
            let value = vec![b'v'; VALUE_SIZE];
            let number = number as u64;
            ItemBuilder::new(key.expect("a short key").as_key(), ItemMeta::default(), &value)
                .finish(Cas(number), Seqno(number + 1), RevSeqno(1))
        };
    (0..VBUCKETS).map(|_| (0..items).map(item).collect()).collect()
}

fn records<'a>(batches: &'a [Vec<Item>], state: &'a VbucketRecord) -> Vec<Record<'a>> {
    let record = |(vbid, items): (usize, &'a Vec<Item>)| Record::Batch {
        vbid: Vbid(u16::try_from(vbid).expect("there are few")),
        previous_seqno: Seqno(0),
        supersedes: false,
        items,
        state,
    };
    batches.iter().enumerate().map(record).collect()
}

/// Nanoseconds that `body` takes a time, when it is done `rounds` times.
fn nanoseconds(rounds: u32, mut body: impl FnMut()) -> f64 {
    let clock = Clock::real();
    let start = clock.now();
    for _ in 0..rounds {
        body();
    }
    clock.now().since(start).as_secs_f64() * 1e9 / f64::from(rounds)
}

fn open(files: Arc<dyn Files>, directory: &Path) -> Journal {
    Journal::open(files, directory, OPTIONS, Clock::real(), Entropy::real(), &mut |_, _| Ok(()))
        .expect("the directory can be written")
        .0
}

fn append(journal: &Journal, records: &[Record<'_>]) {
    journal.append(records, &mut |_, result| {
        result.expect("the disk takes it");
    });
}

fn main() {
    let state = VbucketRecord::new(VbucketState::Active);
    println!("processor's part, values of {VALUE_SIZE} bytes:");
    for items in [1, 4, 100] {
        let batches = batches(items);
        let records = records(&batches, &state);
        let journal = open(Arc::new(NoFiles), Path::new("nowhere"));
        let rounds = u32::try_from(200_000 / (items * VBUCKETS)).expect("few");
        append(&journal, &records);
        let time = nanoseconds(rounds, || {
            append(&journal, &records);
            journal.release(None);
        });
        let count = items * VBUCKETS;
        println!("  {VBUCKETS} batches of {items}: {:.0} ns an item", time / count as f64);
    }
    let Some(directory) = std::env::args().nth(1) else { return };
    let directory = Path::new(&directory).join("journal-append");
    RealFiles.create_directories(&directory).expect("the directory can be written");
    let journal = open(Arc::new(RealFiles), &directory);
    let single = batches(1);
    let first = nanoseconds(1, || append(&journal, &records(&single[..1], &state)));
    println!("first append: {:.2} ms", first / 1e6);
    println!("growing segment: {:.3} ms a group", many(&journal, &single, &state));
    let spare = nanoseconds(1, || while journal.fill_spare().expect("the disk takes it") {});
    println!("a spare of {} MiB: {:.0} ms", OPTIONS.segment_bytes >> 20, spare / 1e6);
    let large = batches(400);
    while journal.usage().segment_count < 2 {
        append(&journal, &records(&large, &state));
    }
    println!("filled segment: {:.3} ms a group", many(&journal, &single, &state));
    println!("plain write and sync: {:.3} ms", plain(&directory));
    drop(journal);
    replay(&directory);
    remove_tree(&directory).expect("the directory can be written");
}

/// Reads back what was appended.
fn replay(directory: &Path) {
    let mut items_found = 0;
    let time = nanoseconds(1, || {
        let mut count = |_: Lsn, record| {
            if let ReplayedRecord::Batch { items, .. } = record {
                items_found += items.len();
            }
            Ok(())
        };
        Journal::open(
            Arc::new(RealFiles),
            directory,
            OPTIONS,
            Clock::real(),
            Entropy::real(),
            &mut count,
        )
        .expect("what was written is read");
    });
    println!("replay of {items_found} items: {:.0} ns an item", time / items_found as f64);
}

/// Milliseconds a group of one batch.
fn many(journal: &Journal, batches: &[Vec<Item>], state: &VbucketRecord) -> f64 {
    let records = records(&batches[..1], state);
    nanoseconds(500, || append(journal, &records)) / 1e6
}

/// Milliseconds a write of one block to a file that is filled, and its sync.
fn plain(directory: &Path) -> f64 {
    let path = directory.join("plain");
    let file = RealFiles.open(&path, OpenMode::CreateNew).expect("the directory can be written");
    let all = vec![0; 4096 * 500];
    file.write_at(&all, 0).and_then(|()| file.sync()).expect("the disk takes it");
    let mut position = 0;
    let write = || {
        let block = vec![1; 4096];
        file.write_at(&block, position).and_then(|()| file.sync()).expect("the disk takes it");
        position += 4096;
    };
    nanoseconds(500, write) / 1e6
}
