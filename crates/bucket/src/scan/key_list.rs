//! GET_KEYS: the keys of live documents that are durable.

use std::ops::ControlFlow;

use document::{CollectionId, Key, Vbid};

use super::key_range::KeyRange;
use super::refused::ScanRefused;
use crate::core::{Attempted, Bucket, Session};

impl Bucket {
    /// Whether keys of the vBucket can be listed: at once, or later through the session's waiter.
    ///
    /// # Errors
    /// Why not.
    pub fn check_listed(
        &self,
        session: &mut Session,
        vbid: Vbid,
        collection: CollectionId,
    ) -> Result<Attempted<()>, ScanRefused> {
        self.await_scan_snapshot(session, vbid, collection, None)
    }

    /// Visits the keys of live documents that are durable, rising, until `visit` breaks. Not for
    /// front-end workers.
    ///
    /// # Errors
    /// The vBucket is not active, has no such collection, or its file cannot be read.
    pub fn list_keys(
        &self,
        vbid: Vbid,
        range: &KeyRange,
        mut visit: impl FnMut(Key<'_>) -> ControlFlow<()>,
    ) -> Result<(), ScanRefused> {
        let core = &self.0;
        core.scanned_branch(vbid, range.collection)?;
        let view = core.key_view(vbid)?;
        let now_seconds = core.clock.wall_time().seconds();
        let listed = view.scan(&range.from, &range.to, |entry| {
            let is_live = entry.is_live(now_seconds)?;
            Ok(if is_live { visit(entry.key()?) } else { ControlFlow::Continue(()) })
        });
        listed.map_err(|error| core.scan_failed(vbid, &error))
    }
}
