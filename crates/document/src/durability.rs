//! How safe a durable write must be before it is answered.

/// Where a durable write must be before it counts. Source: docs/specification/protocol.md,
/// section 11.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum DurabilityLevel {
    /// In memory on a majority of the nodes, the active one among them.
    Majority = 1,
    /// The same, and on the active node's disk.
    MajorityAndPersistOnMaster = 2,
    /// On the disks of a majority, the active node's among them.
    PersistToMajority = 3,
}

impl DurabilityLevel {
    /// The level with this number.
    pub fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Majority,
            2 => Self::MajorityAndPersistOnMaster,
            3 => Self::PersistToMajority,
            _ => return None,
        })
    }
}
