//! What nodes have, and use of it.

use std::ops::AddAssign;

/// Memory and disk of a node, or of several together, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StorageFigures {
    /// Memory that processes may use, and the part that somebody uses.
    pub memory: Usage,
    /// Memory for documents of all buckets, at most, and the part that buckets may use.
    pub quota: Usage,
    /// What the file systems hold in all, and the part that is used.
    pub disk: Usage,
    /// The part of the disk that may still be written.
    pub disk_free_bytes: u64,
    /// Memory that buckets use.
    pub memory_used_by_data_bytes: u64,
    /// Bytes of the files of buckets.
    pub disk_used_by_data_bytes: u64,
}

/// How much there is, and how much of it is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// All of it.
    pub total_bytes: u64,
    /// The part that is used.
    pub used_bytes: u64,
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.total_bytes = self.total_bytes.saturating_add(other.total_bytes);
        self.used_bytes = self.used_bytes.saturating_add(other.used_bytes);
    }
}

/// Others say what they have: whatever that is, sums stay numbers.
impl AddAssign for StorageFigures {
    fn add_assign(&mut self, other: Self) {
        self.memory += other.memory;
        self.quota += other.quota;
        self.disk += other.disk;
        for (sum, part) in [
            (&mut self.disk_free_bytes, other.disk_free_bytes),
            (&mut self.memory_used_by_data_bytes, other.memory_used_by_data_bytes),
            (&mut self.disk_used_by_data_bytes, other.disk_used_by_data_bytes),
        ] {
            *sum = sum.saturating_add(part);
        }
    }
}
