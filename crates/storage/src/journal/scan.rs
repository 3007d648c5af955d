//! Reading segments: whole groups, and what is left where one is not whole.
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

use platform::File;

use crate::couchstore::bytes::index;
use crate::error::StorageError;
use crate::journal::layout::{
    BLOCK_SIZE, GROUP_HEADER_SIZE, GroupHeader, SEGMENT_HEADER_SIZE, SegmentHeader,
};
use crate::journal::options::Lsn;

/// Which group must stand at a place to be believed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    pub(crate) salt: u64,
    pub(crate) lsn: Lsn,
    /// Of the group before; `None` when that is not known.
    pub(crate) previous_crc: Option<u32>,
}

/// Reads the header of a segment; `Ok(Ok(None))` when none was ever written.
pub(crate) fn read_segment_header(
    file: &dyn File,
) -> Result<Result<Option<SegmentHeader>, &'static str>, StorageError> {
    let mut block = vec![0; index(SEGMENT_HEADER_SIZE)];
    let count = file.read_at(&mut block, 0)?;
    block.truncate(count);
    Ok(SegmentHeader::decode(&block))
}

/// Reads the group at `position` into `group`, header and padding included. The inner error says
/// why there is none to be believed.
pub(crate) fn read_group(
    file: &dyn File,
    position: u64,
    expected: &Expected,
    group: &mut Vec<u8>,
) -> Result<Result<GroupHeader, &'static str>, StorageError> {
    let header = match read_header(file, position)? {
        Ok(header) => header,
        Err(what) => return Ok(Err(what)),
    };
    if header.salt != expected.salt {
        return Ok(Err("a group of an earlier use of the segment"));
    }
    if !read_whole(file, position, &header, group)? {
        return Ok(Err("the checksum of a group"));
    }
    Ok(if header.lsn != expected.lsn {
        Err("a group with another lsn")
    } else if expected.previous_crc.is_some_and(|crc| crc != header.previous_crc) {
        Err("a group that does not follow the one before")
    } else if header.durable_lsn >= header.lsn {
        Err("a group that was durable before it was written")
    } else if !GroupHeader::is_of_known_version(group) {
        Err("a group of an unknown version")
    } else {
        Ok(header)
    })
}

/// Looks for a whole group that begins at `position` or at a later block. Only groups with `salt`,
/// if that is known, and of `lsn` or later count.
pub(crate) fn find_group(
    file: &dyn File,
    mut position: u64,
    salt: Option<u64>,
    lsn: Lsn,
    group: &mut Vec<u8>,
) -> Result<Option<(u64, GroupHeader)>, StorageError> {
    let size = file.size()?;
    while position < size {
        if let Ok(header) = read_header(file, position)?
            && salt.is_none_or(|salt| salt == header.salt)
            && header.lsn >= lsn
            && read_whole(file, position, &header, group)?
        {
            return Ok(Some((position, header)));
        }
        position = position.saturating_add(BLOCK_SIZE);
    }
    Ok(None)
}

/// The header of a group of the segment that begins at `position`, whole or not.
pub(crate) fn begun_group(
    file: &dyn File,
    position: u64,
    salt: u64,
) -> Result<Option<GroupHeader>, StorageError> {
    Ok(read_header(file, position)?.ok().filter(|header| header.salt == salt))
}

fn read_header(
    file: &dyn File,
    position: u64,
) -> Result<Result<GroupHeader, &'static str>, StorageError> {
    let mut bytes = [0; GROUP_HEADER_SIZE];
    let count = file.read_at(&mut bytes, position)?;
    Ok(GroupHeader::decode(bytes.get(..count).unwrap_or_default()))
}

/// Reads a group whose header has been looked at. Says whether it is as it was written.
fn read_whole(
    file: &dyn File,
    position: u64,
    header: &GroupHeader,
    group: &mut Vec<u8>,
) -> Result<bool, StorageError> {
    let bytes = header.padded_bytes();
    // A damaged header must not have more memory taken than the file has bytes.
    if bytes > file.size()?.saturating_sub(position) {
        return Ok(false);
    }
    group.resize(index(bytes), 0);
    let count = file.read_at(group, position)?;
    Ok(count == group.len() && header.is_whole(group))
}
