//! What is in a file after a group was written to it, and in which order that came.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use document::key::KeyBuf;
use document::{Cas, Item, ItemBuilder, ItemMeta, RevSeqno, Seqno, Vbid, VbucketState};
use platform::FileErrorKind;

use super::*;
use crate::journal::options::Lsn;
use crate::records::vbucket_record::VbucketRecord;

const BLOCK: usize = BLOCK_SIZE as usize;
const POSITION: u64 = 3 * BLOCK_SIZE;

/// A file that knows what was written to it; the write of number `fails_at` fails.
#[derive(Default)]
struct Memory {
    writes: Mutex<Vec<(u64, Vec<u8>)>>,
    fails_at: Option<usize>,
}

impl Memory {
    fn error(&self) -> FileError {
        let (kind, cause) = (FileErrorKind::Failed, Arc::new(io::ErrorKind::Other.into()));
        FileError { kind, operation: "write", path: PathBuf::new(), cause }
    }

    /// Positions in the group and lengths.
    fn places(&self) -> Vec<(usize, usize)> {
        let writes = self.writes.lock().unwrap();
        writes.iter().map(|(at, bytes)| ((at - POSITION) as usize, bytes.len())).collect()
    }

    fn content(&self) -> Vec<u8> {
        let mut content = Vec::new();
        for (position, bytes) in self.writes.lock().unwrap().iter() {
            let start = (position - POSITION) as usize;
            content.resize(content.len().max(start + bytes.len()), 0xee);
            content[start..start + bytes.len()].copy_from_slice(bytes);
        }
        content
    }
}

impl File for Memory {
    fn read_at(&self, _: &mut [u8], _: u64) -> Result<usize, FileError> {
        Err(self.error())
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> Result<(), FileError> {
        let mut writes = self.writes.lock().unwrap();
        writes.push((position, bytes.to_vec()));
        if self.fails_at == Some(writes.len() - 1) { Err(self.error()) } else { Ok(()) }
    }

    fn sync(&self) -> Result<(), FileError> {
        Ok(())
    }

    fn size(&self) -> Result<u64, FileError> {
        Err(self.error())
    }

    fn set_size(&self, _: u64) -> Result<(), FileError> {
        Err(self.error())
    }
}

fn item(seqno: u64, value_size: usize) -> Item {
    let key = KeyBuf::in_default_collection(format!("key-{seqno}").as_bytes()).unwrap();
    let value: Vec<u8> = (0..value_size).map(|at| (at as u64 * 7 + seqno) as u8).collect();
    let builder = ItemBuilder::new(key.as_key(), ItemMeta::default(), &value);
    builder.finish(Cas(seqno), Seqno(seqno), RevSeqno(1))
}

fn header() -> GroupHeader {
    GroupHeader {
        bytes: 0,
        lsn: Lsn(5),
        salt: 6,
        durable_lsn: Lsn(4),
        records: 1,
        previous_crc: 7,
        wall_ns: 8,
        crc: 0,
    }
}

/// Writes a group of records, each with items of these sizes.
fn write(
    group: &mut Group,
    batches: &[Vec<Item>],
    portion_bytes: usize,
    file: &Memory,
) -> Result<u32, FileError> {
    let state = VbucketRecord::new(VbucketState::Active);
    let records: Vec<Record<'_>> = batches
        .iter()
        .map(|items| Record::Batch {
            vbid: Vbid(1),
            previous_seqno: Seqno(0),
            supersedes: false,
            items,
            state: &state,
        })
        .collect();
    if group.bytes == 0 {
        assert_eq!(group.begin(&records, usize::MAX), records.len());
    }
    group.write(&records, header(), Destination { file, position: POSITION, portion_bytes })
}

fn batches_of(sizes: &[&[usize]]) -> Vec<Vec<Item>> {
    let numbered = |sizes: &&[usize]| {
        let sizes = sizes.iter().enumerate();
        sizes.map(|(at, size)| item(at as u64 + 1, *size)).collect()
    };
    sizes.iter().map(numbered).collect()
}

#[test]
fn a_group_is_the_same_at_once_and_in_portions_and_its_header_is_last() {
    let many = [500; 100];
    // Values of the items of each batch; whether it is written in portions of a block.
    let rows: &[(&[&[usize]], bool)] = &[
        (&[], false),
        (&[&[10]], false),
        (&[&[7900]], false),
        (&[&[8300]], true),
        (&[&[100_000]], true),
        (&[&[4000, 4000, 4000]], true),
        (&[&many], true),
        (&[&many, &[], &[20_000], &many], true),
    ];
    for (sizes, is_in_portions) in rows {
        let batches = batches_of(sizes);
        let (at_once, in_portions) = (Memory::default(), Memory::default());
        let crc = write(&mut Group::default(), &batches, usize::MAX / 2, &at_once).unwrap();
        let crc_too = write(&mut Group::default(), &batches, BLOCK, &in_portions).unwrap();
        let content = at_once.content();
        assert_eq!(at_once.places(), [(0, content.len())]);
        assert!(GroupHeader::decode(&content).unwrap().is_whole(&content), "{sizes:?}");
        assert_eq!((crc, &content), (crc_too, &in_portions.content()), "{sizes:?}");
        let places = in_portions.places();
        assert_eq!(places.len() > 1, *is_in_portions, "{sizes:?}: {places:?}");
        let (last, first) = places.split_last().unwrap();
        if *is_in_portions {
            assert_eq!(*last, (0, BLOCK));
            let mut next = BLOCK;
            for (start, length) in first {
                assert_eq!((*start, length % BLOCK), (next, 0), "{sizes:?}");
                next += length;
            }
            assert_eq!(next, content.len(), "everything is written once");
        }
    }
}

#[test]
fn whichever_write_fails_the_group_is_written_again_whole() {
    let batches = batches_of(&[&[4000; 6], &[9000]]);
    let whole = Memory::default();
    write(&mut Group::default(), &batches, BLOCK, &whole).unwrap();
    let count = whole.places().len();
    assert!(count > 5);
    for fails_at in 0..count {
        let (failing, next) =
            (Memory { fails_at: Some(fails_at), ..Memory::default() }, Memory::default());
        let mut group = Group::default();
        write(&mut group, &batches, BLOCK, &failing).unwrap_err();
        assert_eq!(failing.places().len(), fails_at + 1, "nothing follows a failure");
        write(&mut group, &batches, BLOCK, &next).unwrap();
        assert_eq!(next.content(), whole.content());
    }
}
