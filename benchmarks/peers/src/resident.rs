//! What a process occupies, by kinds of mappings.

use std::fs;
use std::ops::Sub;

use anyhow::{Context, Result};

/// Bytes of physical memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resident {
    /// Mappings that refuse large pages: the node has its blocks of documents there, and nobody
    /// else in this process asks for that.
    pub slabs: i64,
    /// All other memory of the process: the allocator's, stacks.
    pub other: i64,
    /// Mapped files: code and constants.
    pub files: i64,
}

impl Resident {
    /// Of a process, now.
    pub fn of(pid: u32) -> Result<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/smaps"))?)
    }

    fn parse(smaps: &str) -> Result<Self> {
        let mut resident = Self::default();
        let (mut is_file, mut bytes) = (false, 0);
        for line in smaps.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("Rss:") => {
                    let kibibytes = words.next().context("no size behind Rss")?;
                    bytes = kibibytes.parse::<i64>()? * 1024;
                }
                // The last line of a mapping.
                Some("VmFlags:") if is_file => resident.files += bytes,
                Some("VmFlags:") if words.any(|flag| flag == "nh") => resident.slabs += bytes,
                Some("VmFlags:") => resident.other += bytes,
                // Address, permissions, offset, device, inode, and the path if there is one.
                Some(word) if !word.ends_with(':') => {
                    is_file = words.nth(4).is_some_and(|path| path.starts_with('/'));
                }
                _ => {}
            }
        }
        Ok(resident)
    }

    /// All of it.
    pub fn sum(self) -> i64 {
        self.slabs + self.other + self.files
    }
}

impl Sub for Resident {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            slabs: self.slabs - earlier.slabs,
            other: self.other - earlier.other,
            files: self.files - earlier.files,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
7f00-7f10 r-xp 00000000 08:01 42       /usr/bin/settee
Size:                 64 kB
Rss:                  12 kB
VmFlags: rd ex mr
7f20-7f30 rw-p 00000000 00:00 0
Rss:                   8 kB
VmFlags: rd wr mr nh
7f30-7f40 rw-p 00000000 00:00 0        [heap]
Rss:                   4 kB
VmFlags: rd wr mr
";

    #[test]
    fn mappings_count_by_file_and_flag() {
        let resident = Resident::parse(SMAPS).expect("well-formed");
        assert_eq!(resident, Resident { slabs: 8192, other: 4096, files: 12288 });
        assert_eq!(resident.sum(), 24576);
        assert_eq!((resident - resident).sum(), 0);
        assert!(Resident::parse("Rss: x kB").is_err());
    }

    #[test]
    fn this_process_has_memory_and_files() {
        let resident = Resident::of(std::process::id()).expect("readable");
        assert!(resident.other > 0 && resident.files > 0);
    }
}
