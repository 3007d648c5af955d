//! The branches of a vBucket's history as they travel: { uuid:8 seqno:8 }, newest first.

use document::{Seqno, VbUuid};

use crate::fields::Fields;

/// Appends the branches.
pub fn encode_failover_log(entries: impl IntoIterator<Item = (VbUuid, Seqno)>, out: &mut Vec<u8>) {
    for (uuid, seqno) in entries {
        out.extend(uuid.0.to_be_bytes());
        out.extend(seqno.0.to_be_bytes());
    }
}

/// Reads them: what the answer to a stream request or to GET_FAILOVER_LOG holds. `None` when it is
/// no such log, or an empty one.
pub fn parse_failover_log(value: &[u8]) -> Option<Vec<(VbUuid, Seqno)>> {
    let mut fields = Fields::new(value);
    let mut entries = Vec::new();
    while !fields.is_empty() {
        entries.push((VbUuid(fields.u64()?), Seqno(fields.u64()?)));
    }
    (!entries.is_empty()).then_some(entries)
}

/// The seqno that a consumer has to roll back to, from an answer ROLLBACK.
pub fn parse_rollback_seqno(value: &[u8]) -> Option<Seqno> {
    value.try_into().ok().map(u64::from_be_bytes).map(Seqno)
}
