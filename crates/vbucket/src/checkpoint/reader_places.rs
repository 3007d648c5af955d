//! How far the readers of a log are, for whoever looks without the vBucket's lock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use platform::OwnedCounter;

/// One reader: its name, and the items behind it, which are published where they change: a write,
/// which puts an item in front of all readers, does not come here.
#[derive(Debug)]
pub(crate) struct ReaderPlace {
    pub(super) name: Arc<str>,
    pub(super) passed: OwnedCounter,
}

impl ReaderPlace {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.into(), passed: OwnedCounter::default() }
    }
}

/// The readers of a log. The list is replaced by whoever registers or removes a cursor, under the
/// vBucket's lock; its own is held for one look or swap, and no request changes it.
#[derive(Debug, Default)]
pub(crate) struct ReaderPlaces(Mutex<Vec<Arc<ReaderPlace>>>);

impl ReaderPlaces {
    /// Items in front of the reader `name`, of `log_items` in all; of one that is not there, none.
    pub(crate) fn remaining(&self, name: &str, log_items: u64) -> u64 {
        let places = self.lock();
        let place = places.iter().find(|place| &*place.name == name);
        place.map_or(0, |place| log_items.saturating_sub(place.passed.get()))
    }

    /// These are the readers from now on.
    pub(super) fn list(&self, places: Vec<Arc<ReaderPlace>>) {
        let before = std::mem::replace(&mut *self.lock(), places);
        drop(before);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<ReaderPlace>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
