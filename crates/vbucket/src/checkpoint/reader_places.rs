//! How far the readers of a log are, for whoever looks without the vBucket's lock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use platform::OwnedCounter;

/// One reader: its name, and the items in front of it when that was published last.
#[derive(Debug)]
pub(crate) struct ReaderPlace {
    pub(super) name: Arc<str>,
    pub(super) remaining: OwnedCounter,
}

impl ReaderPlace {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.into(), remaining: OwnedCounter::default() }
    }
}

/// The readers of a log. The list is replaced by whoever registers or removes a cursor, under the
/// vBucket's lock; its own is held for one look or swap, and no request changes it.
#[derive(Debug, Default)]
pub(crate) struct ReaderPlaces(Mutex<Vec<Arc<ReaderPlace>>>);

impl ReaderPlaces {
    /// Items in front of the reader `name`; of one that is not there, none.
    pub(crate) fn remaining(&self, name: &str) -> u64 {
        let places = self.lock();
        let place = places.iter().find(|place| &*place.name == name);
        place.map_or(0, |place| place.remaining.get())
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
