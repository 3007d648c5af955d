//! File headers: what a commit writes last.
//!
//! ```text
//! offset  size
//!      0     1  disk version, 11 to 14
//!      1     6  highest seqno ever saved
//!      7     6  purge seqno
//!     13     6  purge pointer, unused
//!     19     2  size of the by-seqno root, 0 for an empty tree
//!     21     2  size of the by-id root
//!     23     2  size of the local documents' root
//!     25     8  nanoseconds since the epoch (version 13 and later)
//!      +     6  previous header's position << 1 | file is encrypted (version 14)
//!      +        roots: by-seqno, by-id, local
//! root: 6 position, 6 size of the subtree, reduction
//! ```
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

use platform::File;

use crate::couchstore::bytes::{Fields, U48_MAX, length, put_u48};
use crate::couchstore::checksum::Checksum;
use crate::couchstore::chunk::{self, BLOCK_SIZE, CHUNK_HEAD_SIZE, DATA_BLOCK, HEADER_BLOCK};
use crate::couchstore::node::{Pointer, TreeKind};
use crate::error::StorageError;

/// The disk version of files that we create.
pub(crate) const VERSION: u8 = 14;

/// The oldest disk version that we read.
const VERSION_MIN: u8 = 11;

/// Stands in the first header of a file for "there is no previous one": 47 bits, all one.
const NO_PREVIOUS: u64 = U48_MAX >> 1;

/// The type byte of an encrypted file's first block.
const METADATA_BLOCK: u8 = 2;

/// A header: one state of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// Where it stands in the file. 0 in a header that is not written yet.
    pub position: u64,
    /// Disk version, 11 to 14.
    pub version: u8,
    /// The highest seqno ever saved.
    pub high_seqno: u64,
    /// The highest seqno that compaction has dropped.
    pub purge_seqno: u64,
    /// Nanoseconds since the epoch; 0 before version 13.
    pub timestamp: u64,
    /// Where the state before this one has its header (version 14).
    pub previous: Option<u64>,
    pub(crate) by_seqno: Option<Pointer>,
    pub(crate) by_id: Option<Pointer>,
    pub(crate) local: Option<Pointer>,
}

impl FileHeader {
    /// The state of a new file.
    pub(crate) fn empty() -> Self {
        Self {
            position: 0,
            version: VERSION,
            high_seqno: 0,
            purge_seqno: 0,
            timestamp: 0,
            previous: None,
            by_seqno: None,
            by_id: None,
            local: None,
        }
    }

    /// Documents that are alive, from the by-id tree's reduction.
    pub fn alive_count(&self) -> u64 {
        self.by_id.map_or(0, |root| root.reduction.totals().alive)
    }

    /// Tombstones, from the by-id tree's reduction.
    pub fn deleted_count(&self) -> u64 {
        self.by_id.map_or(0, |root| root.reduction.totals().deleted)
    }

    /// Bytes of bodies and nodes that this state reaches.
    pub fn live_bytes(&self) -> u64 {
        let bodies = self.by_id.map_or(0, |root| root.reduction.totals().body_bytes);
        let roots = [self.by_seqno, self.by_id, self.local];
        let nodes = roots.iter().flatten().map(|root| root.subtree_size);
        nodes.fold(bodies, u64::saturating_add)
    }

    pub(crate) fn checksum(&self) -> Checksum {
        Checksum::of_version(self.version)
    }

    /// Where the file that it is in ends, at least.
    pub(crate) fn end(&self) -> u64 {
        let head_size = CHUNK_HEAD_SIZE.saturating_add(1) as u64;
        self.position.saturating_add(head_size).saturating_add(length(&self.encode()))
    }

    /// The body of the header chunk.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let roots = [self.by_seqno, self.by_id, self.local].map(|root| {
            let mut bytes = Vec::new();
            if let Some(root) = root {
                root.encode_root(&mut bytes);
            }
            bytes
        });
        let mut body = vec![self.version];
        put_u48(&mut body, self.high_seqno);
        put_u48(&mut body, self.purge_seqno);
        put_u48(&mut body, 0);
        for root in &roots {
            let size = u16::try_from(root.len()).expect("a root has at most 28 bytes");
            body.extend_from_slice(&size.to_be_bytes());
        }
        if self.version >= 13 {
            body.extend_from_slice(&self.timestamp.to_be_bytes());
        }
        if self.version >= 14 {
            put_u48(&mut body, self.previous.unwrap_or(NO_PREVIOUS) << 1);
        }
        roots.iter().for_each(|root| body.extend_from_slice(root));
        body
    }

    fn decode(body: &[u8], position: u64) -> Result<Self, &'static str> {
        let mut fields = Fields::new(body);
        let cut = "a header ends early";
        let version = fields.u8().ok_or(cut)?;
        let high_seqno = fields.number::<6>().ok_or(cut)?;
        let purge_seqno = fields.number::<6>().ok_or(cut)?;
        if fields.number::<6>().ok_or(cut)? > position {
            return Err("a header's purge pointer lies behind it");
        }
        let mut sizes = [0; 3];
        for size in &mut sizes {
            *size = usize::from(fields.u16().ok_or(cut)?);
        }
        let timestamp = if version >= 13 { fields.number::<8>().ok_or(cut)? } else { 0 };
        let mut previous = None;
        if version >= 14 {
            let both = fields.number::<6>().ok_or(cut)?;
            if both & 1 != 0 {
                return Err("the file is encrypted, which is not supported");
            }
            previous = Some(both >> 1).filter(|previous| *previous != NO_PREVIOUS);
        }
        let [by_seqno, by_id, local] = sizes;
        let mut root = |size, kind| -> Result<Option<Pointer>, &'static str> {
            let bytes = fields.take(size).ok_or(cut)?;
            if bytes.is_empty() {
                return Ok(None);
            }
            let root = Pointer::decode_root(bytes, kind).ok_or("a root of the wrong size")?;
            if root.position >= position {
                return Err("a root lies behind its header");
            }
            Ok(Some(root))
        };
        let by_seqno = root(by_seqno, TreeKind::BySeqno)?;
        let by_id = root(by_id, TreeKind::ById)?;
        let local = root(local, TreeKind::Local)?;
        if !fields.rest().is_empty() {
            return Err("a header goes on behind its roots");
        }
        Ok(Self {
            position,
            version,
            high_seqno,
            purge_seqno,
            timestamp,
            previous,
            by_seqno,
            by_id,
            local,
        })
    }
}

/// What stands at a block boundary.
pub(crate) enum Block {
    /// Data, or nothing at all.
    Data,
    /// A header.
    Header(Box<FileHeader>),
    /// A header that cannot be believed. A commit switches its header on by one byte once all of it
    /// is durable, so this is damage and never a commit that was cut off.
    Damaged(&'static str),
    /// Nothing that belongs into a couchstore file.
    Garbage(&'static str),
}

/// Reads the block at `position`, a multiple of the block size.
pub(crate) fn read_block(file: &dyn File, position: u64) -> Result<Block, StorageError> {
    let mut kind = [DATA_BLOCK];
    file.read_at(&mut kind, position)?;
    match kind {
        [DATA_BLOCK] => return Ok(Block::Data),
        [HEADER_BLOCK] => {}
        [METADATA_BLOCK] if position == 0 => return Ok(Block::Damaged("the file is encrypted")),
        _ => {
            return Ok(match parse(file, position)? {
                Block::Header(_) => Block::Damaged("a header behind a damaged type byte"),
                _ => Block::Garbage("a block of unknown type"),
            });
        }
    }
    parse(file, position)
}

/// Reads the header behind the type byte at `position`, whatever that byte is.
pub(crate) fn parse(file: &dyn File, position: u64) -> Result<Block, StorageError> {
    let Some((body, stored)) = chunk::read_header_chunk(file, position)? else {
        return Ok(Block::Damaged("a header of impossible length"));
    };
    let version = body.first().copied().unwrap_or(0);
    if !(VERSION_MIN..=VERSION).contains(&version) {
        return Ok(Block::Damaged("a header of unknown version"));
    }
    if Checksum::of_version(version).of(&body) != stored {
        return Ok(Block::Damaged("the checksum of a header"));
    }
    Ok(match FileHeader::decode(&body, position) {
        Ok(header) => Block::Header(Box::new(header)),
        Err(what) => Block::Damaged(what),
    })
}

/// Something that is no header, on the way to the newest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Skipped {
    pub(crate) position: u64,
    /// What is wrong there.
    pub(crate) what: &'static str,
    /// Whether a header stood there.
    pub(crate) was_header: bool,
}

/// Finds the newest whole header that begins in front of `end`. `skipped` hears of what is stepped
/// over on the way: whoever believes the header must not do so when one stood behind it.
pub(crate) fn find_newest(
    file: &dyn File,
    end: u64,
    skipped: &mut dyn FnMut(Skipped),
) -> Result<Option<FileHeader>, StorageError> {
    // A lone type byte at the end is not a header yet.
    let Some(last) = end.checked_sub(2) else { return Ok(None) };
    let mut block = last.checked_div(BLOCK_SIZE).unwrap_or(0);
    loop {
        let position = block.saturating_mul(BLOCK_SIZE);
        match read_block(file, position)? {
            Block::Header(header) => return Ok(Some(*header)),
            Block::Damaged(what) => skipped(Skipped { position, what, was_header: true }),
            Block::Garbage(what) => skipped(Skipped { position, what, was_header: false }),
            Block::Data => {}
        }
        let Some(before) = block.checked_sub(1) else { return Ok(None) };
        block = before;
    }
}
