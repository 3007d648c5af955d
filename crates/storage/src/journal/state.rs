//! A vBucket's state as a batch carries it: what [`VbucketRecord`] has but for its place in the
//! journal.
//!
//! ```text
//!  0  1 version, 3                 12  8 first seqno of the snapshot    60  8 high prepared seqno
//!  1  1 state, as on the wire      20  8 last one                       68  8 max visible seqno
//!  2  1 bit 0: may have xattrs     28  8 highest CAS                    76  8 prepares on disk
//!  3  1 0 disk, 1 initial disk,    36  8 clock epoch, signed            84  8 their bytes
//!       2 memory                   44  8 completed seqno                92  4 failover entries
//!  4  8 max deleted revision       52  8 prepared seqno                 96  4 chains
//! 100  8 purge seqno
//! 108  8 whole from seqno
//! 116  entries: 8 uuid, 8 seqno; chains: 4 nodes; each 4 length (all ones: not placed), name
//! ```
//!
//! Version 1 has no purge seqno, and neither it nor version 2 the seqno that a copy is whole from.
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

use std::sync::Arc;

use document::{Cas, FailoverEntry, Seqno, VbUuid, VbucketState};

use crate::couchstore::bytes::{Fields, index};
use crate::journal::encoder::Encoder;
use crate::records::vbucket_record::{CheckpointType, VbucketRecord};

const VERSION: u8 = 3;
const VERSION_WITHOUT_WHOLE_FROM: u8 = 2;
const VERSION_WITHOUT_PURGE: u8 = 1;
const XATTRS: u8 = 1;
const NOT_PLACED: u32 = u32::MAX;

/// Bytes in front of the entries.
const HEAD_SIZE: usize = 116;
const ENTRY_SIZE: usize = 16;
const COUNT_SIZE: usize = 4;

/// How many bytes [`encode`] appends.
pub(super) fn encoded_size(state: &VbucketRecord) -> usize {
    let nodes = state.replication_topology.iter().flatten().flatten();
    let name_bytes: usize = nodes.map(String::len).sum();
    let chains = state.replication_topology.iter();
    let count_count: usize = chains.map(|chain| chain.len().saturating_add(1)).sum();
    HEAD_SIZE
        .saturating_add(state.failover_table.len().saturating_mul(ENTRY_SIZE))
        .saturating_add(count_count.saturating_mul(COUNT_SIZE))
        .saturating_add(name_bytes)
}

pub(super) fn encode(state: &VbucketRecord, target: &mut Encoder<'_>) {
    let xattrs = if state.might_contain_xattrs { XATTRS } else { 0 };
    let checkpoint_type = match state.checkpoint_type {
        CheckpointType::Disk => 0,
        CheckpointType::InitialDisk => 1,
        CheckpointType::Memory => 2,
    };
    target.put(&[VERSION, state.state as u8, xattrs, checkpoint_type]);
    let numbers = [
        state.max_deleted_revision,
        state.snapshot_start.0,
        state.snapshot_end.0,
        state.max_cas.0,
        state.hlc_epoch.cast_unsigned(),
        state.completed_seqno.0,
        state.prepared_seqno.0,
        state.high_prepared_seqno.0,
        state.max_visible_seqno.0,
        state.on_disk_prepares,
        state.on_disk_prepare_bytes,
    ];
    for number in numbers {
        target.put(&number.to_be_bytes());
    }
    put_count(target, state.failover_table.len());
    put_count(target, state.replication_topology.len());
    target.put(&state.purge_seqno.0.to_be_bytes());
    target.put(&state.whole_from_seqno.0.to_be_bytes());
    for entry in &*state.failover_table {
        target.put(&entry.uuid.0.to_be_bytes());
        target.put(&entry.seqno.0.to_be_bytes());
    }
    for chain in &*state.replication_topology {
        put_count(target, chain.len());
        for node in chain {
            match node {
                None => target.put(&NOT_PLACED.to_be_bytes()),
                Some(name) => {
                    put_count(target, name.len());
                    target.put(name.as_bytes());
                }
            }
        }
    }
}

fn put_count(target: &mut Encoder<'_>, count: usize) {
    let count = u32::try_from(count).expect("what one vBucket's state lists is below 2^32");
    target.put(&count.to_be_bytes());
}

/// Reads what [`encode`] wrote, all of it.
pub(super) fn decode(bytes: &[u8]) -> Option<VbucketRecord> {
    let mut fields = Fields::new(bytes);
    let version = fields.u8()?;
    if !(VERSION_WITHOUT_PURGE..=VERSION).contains(&version) {
        return None;
    }
    let mut state = VbucketRecord::new(state_of(fields.u8()?)?);
    state.might_contain_xattrs = match fields.u8()? {
        0 => false,
        XATTRS => true,
        _ => return None,
    };
    state.checkpoint_type = match fields.u8()? {
        0 => CheckpointType::Disk,
        1 => CheckpointType::InitialDisk,
        2 => CheckpointType::Memory,
        _ => return None,
    };
    state.max_deleted_revision = fields.number::<8>()?;
    state.snapshot_start = Seqno(fields.number::<8>()?);
    state.snapshot_end = Seqno(fields.number::<8>()?);
    state.max_cas = Cas(fields.number::<8>()?);
    state.hlc_epoch = fields.number::<8>()?.cast_signed();
    state.completed_seqno = Seqno(fields.number::<8>()?);
    state.prepared_seqno = Seqno(fields.number::<8>()?);
    state.high_prepared_seqno = Seqno(fields.number::<8>()?);
    state.max_visible_seqno = Seqno(fields.number::<8>()?);
    state.on_disk_prepares = fields.number::<8>()?;
    state.on_disk_prepare_bytes = fields.number::<8>()?;
    let (entries, chains) = (fields.u32()?, fields.u32()?);
    if version > VERSION_WITHOUT_PURGE {
        state.purge_seqno = Seqno(fields.number::<8>()?);
    }
    if version > VERSION_WITHOUT_WHOLE_FROM {
        state.whole_from_seqno = Seqno(fields.number::<8>()?);
    }
    let mut entry = || {
        let uuid = VbUuid(fields.number::<8>()?);
        Some(FailoverEntry { uuid, seqno: Seqno(fields.number::<8>()?) })
    };
    state.failover_table = (0..entries).map(|_| entry()).collect::<Option<_>>()?;
    let chains: Option<Vec<_>> = (0..chains).map(|_| decode_chain(&mut fields)).collect();
    state.replication_topology = Arc::new(chains?);
    fields.rest().is_empty().then_some(state)
}

fn decode_chain(fields: &mut Fields<'_>) -> Option<Vec<Option<String>>> {
    let mut chain = Vec::new();
    for _ in 0..fields.u32()? {
        let length = fields.u32()?;
        chain.push(if length == NOT_PLACED {
            None
        } else {
            let name = fields.take(index(length.into()))?;
            Some(String::from_utf8(name.to_vec()).ok()?)
        });
    }
    Some(chain)
}

fn state_of(number: u8) -> Option<VbucketState> {
    [VbucketState::Active, VbucketState::Replica, VbucketState::Pending, VbucketState::Dead]
        .into_iter()
        .find(|state| *state as u8 == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> VbucketRecord {
        VbucketRecord {
            max_deleted_revision: 1,
            snapshot_start: Seqno(2),
            snapshot_end: Seqno(3),
            max_cas: Cas(u64::MAX - 1),
            hlc_epoch: -5,
            might_contain_xattrs: true,
            completed_seqno: Seqno(6),
            prepared_seqno: Seqno(7),
            high_prepared_seqno: Seqno(8),
            max_visible_seqno: Seqno(9),
            purge_seqno: Seqno(4),
            whole_from_seqno: Seqno(5),
            on_disk_prepares: 10,
            on_disk_prepare_bytes: 11,
            checkpoint_type: CheckpointType::InitialDisk,
            failover_table: Arc::new([
                FailoverEntry { uuid: VbUuid(12), seqno: Seqno(13) },
                FailoverEntry { uuid: VbUuid(14), seqno: Seqno(0) },
            ]),
            replication_topology: Arc::new(vec![
                vec![Some("a".to_owned()), None, Some(String::new())],
                vec![],
            ]),
            ..VbucketRecord::new(VbucketState::Replica)
        }
    }

    fn encoded(record: &VbucketRecord) -> Vec<u8> {
        let mut group = [0xff; 4096];
        let mut encoder = Encoder::new(&mut group, None);
        let start = encoder.position();
        encode(record, &mut encoder);
        let end = encoder.position();
        assert_eq!(end.checked_sub(start), Some(encoded_size(record)));
        drop(encoder);
        group[start..end].to_vec()
    }

    #[test]
    fn a_state_reads_back_as_it_was_written() {
        use CheckpointType::{Disk, InitialDisk, Memory};
        use VbucketState::{Active, Dead, Pending, Replica};
        for state in [Active, Replica, Pending, Dead] {
            for checkpoint_type in [Disk, InitialDisk, Memory] {
                let empty = VbucketRecord { checkpoint_type, ..VbucketRecord::new(state) };
                for record in [empty, VbucketRecord { state, checkpoint_type, ..full() }] {
                    assert_eq!(decode(&encoded(&record)), Some(record));
                }
            }
        }
    }

    #[test]
    fn states_of_the_versions_before_are_read() {
        let mut bytes = encoded(&full());
        bytes[0] = VERSION_WITHOUT_WHOLE_FROM;
        bytes.drain(108..116);
        let without_whole_from = VbucketRecord { whole_from_seqno: Seqno(0), ..full() };
        assert_eq!(decode(&bytes), Some(without_whole_from.clone()));
        bytes[0] = VERSION_WITHOUT_PURGE;
        bytes.drain(100..108);
        let without_both = VbucketRecord { purge_seqno: Seqno(0), ..without_whole_from };
        assert_eq!(decode(&bytes), Some(without_both));
    }

    #[test]
    fn no_prefix_and_no_extension_of_a_state_is_one() {
        let mut bytes = encoded(&full());
        for end in 0..bytes.len() {
            assert_eq!(decode(&bytes[..end]), None, "{end}");
        }
        bytes.push(0);
        assert_eq!(decode(&bytes), None);
        bytes[0] = VERSION + 1;
        assert_eq!(decode(&bytes[..bytes.len() - 1]), None);
    }
}
