//! Why writes are refused, for whoever is to hear it.

/// Why writes are refused for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteBlock {
    /// Documents take nearly all the memory that the bucket may use, and none of it can be freed at
    /// once.
    Memory,
    /// Checkpoints take all the memory that they may: the disk, or a replica, is slower than the
    /// writers.
    Checkpoints,
    /// The same as memory in a bucket that makes no room by itself, once its log has given back
    /// what it can.
    NoMemory,
    /// The device is full: what is in memory cannot be flushed.
    DiskFull,
    /// Writing or syncing a file fails.
    DiskFailed,
    /// Another node takes the document's vBucket over and does not catch up with its writers. Said
    /// by the vBucket, never by the gate.
    Takeover,
    /// The file of the document's vBucket is damaged. Other vBuckets take writes.
    VbucketFileDamaged,
}

impl WriteBlock {
    /// What the client reads.
    pub fn context(self) -> &'static str {
        match self {
            Self::Memory => {
                "the bucket's memory is used up until more of it is on disk; try again, or raise \
                 the quota"
            }
            Self::Checkpoints => {
                "checkpoints have used up their part of the memory quota; the disk or a replica \
                 is slower than the writers: write again a little later"
            }
            Self::NoMemory => {
                "the bucket's memory quota is used up, and it deletes nothing by itself"
            }
            Self::DiskFull => "the data directory's device is full; writes resume when it has room",
            Self::DiskFailed => "writing to the data directory fails; see the node's log",
            Self::Takeover => {
                "the vBucket moves to another node, which does not catch up with its writers; try \
                 again a little later, there"
            }
            Self::VbucketFileDamaged => "the vBucket's file is damaged; see the node's log",
        }
    }
}
