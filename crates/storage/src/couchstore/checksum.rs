//! The two checksums of the format.

/// Which CRC a file uses, decided by its disk version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checksum {
    /// IEEE 802.3: disk version 11.
    Crc32,
    /// Castagnoli: disk versions 12 and later.
    Crc32c,
}

impl Checksum {
    /// The checksum of files of a disk version.
    pub(crate) fn of_version(version: u8) -> Self {
        if version <= 11 { Self::Crc32 } else { Self::Crc32c }
    }

    /// The checksum of stored (compressed) bytes.
    pub(crate) fn of(self, bytes: &[u8]) -> u32 {
        match self {
            Self::Crc32 => crc32fast::hash(bytes),
            Self::Crc32c => crc32c::crc32c(bytes),
        }
    }
}
