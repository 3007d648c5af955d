//! When the next wait is over, for those who begin one.

use std::sync::OnceLock;

use document::Vbid;
use executor::HeadTimeout;
use platform::Instant;

/// When waits are over that are limited in time.
pub(crate) struct Timeouts {
    /// Waits for persistence.
    pub(super) persistence: PersistenceTimeouts,
    /// Durable writes.
    pub(super) sync_writes: SyncWriteTimeouts,
}

impl Timeouts {
    pub(crate) fn new(vbucket_count: u16) -> Self {
        Self {
            persistence: PersistenceTimeouts::default(),
            sync_writes: SyncWriteTimeouts::new(vbucket_count),
        }
    }

    /// A wait for persistence has begun that is over at `deadline`.
    pub(crate) fn expect_persistence_by(&self, deadline: Instant) {
        self.persistence.expect_by(deadline);
    }

    /// See [`SyncWriteTimeouts::expect_by`].
    pub(crate) fn expect_sync_write_by(&self, vbid: Vbid, deadline: Instant) {
        self.sync_writes.expect_by(vbid, deadline);
    }
}

/// For each vBucket, when the durable write that waits first becomes ambiguous.
pub(super) struct SyncWriteTimeouts(pub(super) Box<[OnceLock<HeadTimeout>]>);

impl SyncWriteTimeouts {
    pub(crate) fn new(vbucket_count: u16) -> Self {
        Self(std::iter::repeat_with(OnceLock::new).take(usize::from(vbucket_count)).collect())
    }

    /// The first durable write of the vBucket that waits is over at `deadline`, unless one is
    /// before that. Never waits for a timeout that is being dealt with.
    pub(crate) fn expect_by(&self, vbid: Vbid, deadline: Instant) {
        if let Some(timeout) = self.0.get(usize::from(vbid.0)).and_then(OnceLock::get) {
            timeout.expect_by(deadline);
        }
    }
}

/// Knows when the first wait may be over.
#[derive(Default)]
pub(super) struct PersistenceTimeouts(pub(super) OnceLock<HeadTimeout>);

impl PersistenceTimeouts {
    /// A wait has begun that is over at `deadline`.
    pub(crate) fn expect_by(&self, deadline: Instant) {
        if let Some(timeout) = self.0.get() {
            timeout.expect_by(deadline);
        }
    }
}
