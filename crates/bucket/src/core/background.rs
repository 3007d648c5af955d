//! What a bucket does behind its clients' backs, as far as no subject has it.

use executor::Owner;

use crate::roles::Timeouts;
use crate::start::WarmupState;

/// For whom the tasks of a bucket run, and what some of them share.
pub(crate) struct Background {
    pub(crate) owner: Owner,
    pub(crate) timeouts: Timeouts,
    pub(crate) warmup: WarmupState,
}
