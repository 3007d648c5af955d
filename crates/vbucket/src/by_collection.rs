//! What there is for each named collection of a vBucket.

use std::cell::Cell;

use document::{CollectionId, Map};
use platform::prefetch::prefetch;

/// Values by the id of a collection, in no order.
///
/// One request after the other is about the same collection, and a vBucket's own map is cold when
/// its turn comes: what was asked for last is found without one.
#[derive(Debug)]
pub(crate) struct ByCollection<T> {
    list: Vec<Entry<T>>,
    /// Where each is in `list`.
    places: Map<CollectionId, u32>,
    /// The place that was asked for last; it may be another's by now.
    last: Cell<u32>,
}

/// Where vBuckets take turns each request waits for it: it lies in one line of memory, or in as few
/// as it fits into.
#[derive(Debug)]
#[repr(align(64))]
struct Entry<T> {
    id: CollectionId,
    value: T,
}

impl<T> Default for ByCollection<T> {
    fn default() -> Self {
        Self { list: Vec::new(), places: Map::default(), last: Cell::default() }
    }
}

impl<T> ByCollection<T> {
    #[inline]
    fn place(&self, id: CollectionId) -> Option<usize> {
        let last = self.last.get() as usize;
        if self.list.get(last).is_some_and(|known| known.id == id) {
            return Some(last);
        }
        let place = *self.places.get(&id)?;
        self.last.set(place);
        Some(place as usize)
    }

    #[inline]
    pub(crate) fn contains(&self, id: CollectionId) -> bool {
        self.place(id).is_some()
    }

    #[inline]
    pub(crate) fn get(&self, id: CollectionId) -> Option<&T> {
        self.list.get(self.place(id)?).map(|entry| &entry.value)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: CollectionId) -> Option<&mut T> {
        let place = self.place(id)?;
        self.list.get_mut(place).map(|entry| &mut entry.value)
    }

    /// Has what was asked for last fetched while the caller does something else.
    #[inline]
    pub(crate) fn prefetch_last(&self) {
        if let Some(entry) = self.list.get(self.last.get() as usize) {
            prefetch(entry);
        }
    }

    /// Takes the place of what there was.
    pub(crate) fn insert(&mut self, id: CollectionId, value: T) {
        match self.get_mut(id) {
            Some(known) => *known = value,
            None => {
                let place = u32::try_from(self.list.len()).expect("ids have as many bits");
                self.places.insert(id, place);
                self.list.push(Entry { id, value });
            }
        }
    }

    pub(crate) fn remove(&mut self, id: CollectionId) -> Option<T> {
        let place = self.places.remove(&id)?;
        let gone = self.list.swap_remove(place as usize);
        if let Some(moved) = self.list.get(place as usize) {
            self.places.insert(moved.id, place);
        }
        Some(gone.value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (CollectionId, &T)> {
        self.list.iter().map(|entry| (entry.id, &entry.value))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use platform::Random;

    use super::*;

    #[test]
    fn it_has_what_a_plain_map_has() {
        let mut random = Random::from_seed(1);
        let (mut tried, mut model) = (ByCollection::default(), BTreeMap::new());
        for step in 0..20_000_u64 {
            let id = CollectionId(8 + (random.next_u64() % 12) as u32);
            match random.next_u64() % 4 {
                0 => {
                    tried.insert(id, step);
                    model.insert(id, step);
                }
                1 => assert_eq!(tried.remove(id), model.remove(&id), "step {step}"),
                2 => assert_eq!(tried.get_mut(id), model.get_mut(&id), "step {step}"),
                _ => {
                    assert_eq!(tried.contains(id), model.contains_key(&id), "step {step}");
                    assert_eq!(tried.get(id), model.get(&id), "step {step}");
                }
            }
            let mut all: Vec<_> = tried.iter().map(|(id, value)| (id, *value)).collect();
            all.sort_unstable();
            let expected: Vec<_> = model.iter().map(|(id, value)| (*id, *value)).collect();
            assert_eq!(all, expected, "step {step}");
        }
    }
}
