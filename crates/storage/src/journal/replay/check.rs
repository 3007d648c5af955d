//! Whether a journal would open, found out without a change.

use document::Vbid;

use super::{Pass, Visitor, Walk, check_identity, take_inventory};
use crate::error::StorageError;
use crate::journal::options::Lsn;
use crate::journal::record::{RawContent, ReplayedRecord};
use crate::journal::segment::Directory;

/// Reads the journal in `directory` as [`super::open`] does before it hands anything out, and
/// changes nothing.
///
/// # Errors
/// With what [`super::open`] would end there.
pub(in crate::journal) fn check(directory: &Directory) -> Result<(), StorageError> {
    let inventory = take_inventory(directory, None)?;
    check_identity(&inventory.live)?;
    let mut nobody = Nobody;
    let mut look = Walk::new(Pass::Look, &mut nobody);
    look.segments(directory, &inventory.live, None)?;
    look.hand_out_held()?;
    look.held.check_records()
}

/// Hears of nothing.
struct Nobody;

impl Visitor for Nobody {
    fn survey(&mut self, _: Lsn, _: Vbid, _: u32, _: &RawContent<'_>) {}

    fn wants(&self, _: Lsn, _: Vbid, _: &RawContent<'_>) -> bool {
        false
    }

    fn replay(&mut self, _: Lsn, _: ReplayedRecord) -> Result<(), StorageError> {
        Ok(())
    }
}
