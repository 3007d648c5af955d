//! A branch of a vBucket's history.

use crate::ids::{Seqno, VbUuid};

/// One branch: `uuid` wrote everything after `seqno`, until the next newer entry's seqno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailoverEntry {
    /// Its name.
    pub uuid: VbUuid,
    /// Where it begins.
    pub seqno: Seqno,
}
