//! What requests are going to touch is fetched by the processor while others are executed.

use document::{Key, Vbid};
use platform::prefetch::prefetch;
use vbucket::Vbucket;

use crate::core::{Bucket, VbucketGuard};

/// Expects requests for keys of one vBucket. Its lock is held: for a moment only.
pub struct Expecting<'a>(VbucketGuard<'a>);

impl Bucket {
    /// A request for this vBucket comes soon.
    pub fn expect(&self, vbid: Vbid) {
        if let Some(slot) = self.0.slot(vbid) {
            prefetch(slot);
        }
    }

    /// Requests for keys of this vBucket come soon. `None` if somebody is at it, or it is not here.
    pub fn expecting(&self, vbid: Vbid) -> Option<Expecting<'_>> {
        let place = self.0.slot(vbid)?.try_lock()?;
        place.as_ref()?.expect();
        Some(Expecting(place))
    }
}

impl Expecting<'_> {
    /// One of them is for this key.
    pub fn key(&self, key: Key<'_>) {
        if let Some(vbucket) = self.0.as_ref() {
            Vbucket::expect_key(vbucket, key);
        }
    }
}
