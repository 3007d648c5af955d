//! How durable all writes are at least, while the bucket runs.

use std::sync::atomic::{AtomicU8, Ordering};

use super::durability::DurabilityMinLevel;
use super::named::Named;

/// The level, by its place among the names of all.
pub(crate) struct LevelMin(AtomicU8);

impl LevelMin {
    pub(crate) fn new(level: DurabilityMinLevel) -> Self {
        Self(AtomicU8::new(place_of(level)))
    }

    pub(crate) fn get(&self) -> DurabilityMinLevel {
        let place = usize::from(self.0.load(Ordering::Relaxed));
        DurabilityMinLevel::NAMES.get(place).map_or_else(Default::default, |(_, level)| *level)
    }

    pub(crate) fn set(&self, level: DurabilityMinLevel) {
        self.0.store(place_of(level), Ordering::Relaxed);
    }
}

fn place_of(level: DurabilityMinLevel) -> u8 {
    let place = DurabilityMinLevel::NAMES.iter().position(|(_, known)| *known == level);
    place.and_then(|place| u8::try_from(place).ok()).expect("every level has a name")
}
