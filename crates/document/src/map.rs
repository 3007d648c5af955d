//! Maps and sets that iterate in the same order in every run (architecture invariant 12).

/// A hash map with a fixed hash function. Keys that clients choose belong in a table seeded with
/// randomness from `platform` instead.
pub type Map<K, V> = hashbrown::HashMap<K, V, foldhash::fast::FixedState>;

/// A hash set with a fixed hash function; see [`Map`].
pub type Set<K> = hashbrown::HashSet<K, foldhash::fast::FixedState>;
