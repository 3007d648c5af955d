//! What a bucket decides about the eviction of its vBuckets' documents.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use super::frequency_counter::INITIAL;
use super::{EvictionPolicy, FilterOptions};

/// The frequency counter of documents that come into memory. A handle: one bucket, one value.
#[derive(Clone, Debug)]
pub struct InitialFrequency(Arc<AtomicU8>);

impl Default for InitialFrequency {
    fn default() -> Self {
        Self(Arc::new(AtomicU8::new(INITIAL)))
    }
}

impl InitialFrequency {
    /// The counter.
    pub fn get(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }

    /// From now on it is `counter`.
    pub fn set(&self, counter: u8) {
        self.0.store(counter, Ordering::Relaxed);
    }
}

/// How a vBucket's documents leave memory and are found again.
#[derive(Clone, Debug)]
pub struct EvictionOptions {
    /// What leaves.
    pub policy: EvictionPolicy,
    /// How keys on disk are remembered.
    pub filter: FilterOptions,
    /// Look-ups of keys in the file at once, in percent of the documents in memory
    /// (`ht_temp_items_allowed_percent`), but from 64 to 1024.
    pub lookups_max_percent: usize,
    /// Where frequency counters begin.
    pub initial_frequency: InitialFrequency,
}

impl Default for EvictionOptions {
    fn default() -> Self {
        Self {
            policy: EvictionPolicy::default(),
            filter: FilterOptions::default(),
            lookups_max_percent: 10,
            initial_frequency: InitialFrequency::default(),
        }
    }
}
