//! Reading ahead of a scan.
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

use platform::{File, FileError};

use crate::couchstore::bytes::index;

/// Bytes that are read at once. Bodies that are much larger gain nothing.
const WINDOW_SIZE: u64 = 64 << 10;

/// A read this close behind the one before is taken for a scan's: at least some of what is read
/// ahead will be wanted.
const GAP_MAX: u64 = 16 << 10;

/// A part of a file, for who reads it in the order of positions, with gaps: a commit writes bodies
/// by seqno. Below a header a file does not change.
#[derive(Default)]
pub(super) struct ReadAhead {
    /// Where the bytes begin in the file.
    start: u64,
    bytes: Vec<u8>,
    /// Where the last read ended; 0 before the first.
    last_end: u64,
}

impl ReadAhead {
    /// As [`File::read_at`], of a file that is read up to `end`.
    pub(super) fn read_at(
        &mut self,
        file: &dyn File,
        end: u64,
        buffer: &mut [u8],
        position: u64,
    ) -> Result<usize, FileError> {
        let wanted = buffer.len() as u64;
        let is_scan = position.checked_sub(self.last_end).is_some_and(|gap| gap <= GAP_MAX);
        let is_first = self.last_end == 0;
        self.last_end = position.saturating_add(wanted);
        if let Some(found) = self.found(position, buffer.len()) {
            buffer.copy_from_slice(found);
            return Ok(buffer.len());
        }
        if is_first || !is_scan || wanted > WINDOW_SIZE.saturating_div(4) {
            return file.read_at(buffer, position);
        }
        let size = index(WINDOW_SIZE.min(end.saturating_sub(position)).max(wanted));
        self.bytes.resize(size, 0);
        let count = match file.read_at(&mut self.bytes, position) {
            Ok(count) => count,
            Err(error) => {
                self.bytes.clear();
                return Err(error);
            }
        };
        self.bytes.truncate(count);
        self.start = position;
        let count = count.min(buffer.len());
        if let (Some(target), Some(found)) = (buffer.get_mut(..count), self.bytes.get(..count)) {
            target.copy_from_slice(found);
        }
        Ok(count)
    }

    fn found(&self, position: u64, size: usize) -> Option<&[u8]> {
        let from = index(position.checked_sub(self.start)?);
        self.bytes.get(from..from.checked_add(size)?)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use platform::simulated::{Call, SimulatedFiles};
    use platform::{Files, OpenMode, Random};

    use super::*;

    #[test]
    fn it_reads_what_the_file_holds_and_a_scan_in_few_reads() {
        let files = SimulatedFiles::new();
        let mut random = Random::from_seed(1);
        let mut content = vec![0; 1 << 20];
        random.fill(&mut content);
        files.insert(Path::new("file"), &content);
        let file = files.open(Path::new("file"), OpenMode::Read).unwrap();
        let end = content.len() as u64;
        // Gaps between reads, how many, and how many calls that takes at most and at least.
        let rows = [(0..1, 1_500, 13..30), (0..1_000, 900, 15..60), (20_000..30_000, 40, 40..41)];
        for (gaps, count, expected_calls) in rows {
            let mut ahead = ReadAhead::default();
            let before = files.calls().of(Call::Read);
            let mut position = 1;
            for _ in 0..count {
                let mut buffer = vec![0; 100 + index(random.below(1_000))];
                let size = ahead.read_at(&*file, end, &mut buffer, position).unwrap();
                let from = index(position);
                let there = content.get(from..).unwrap_or_default();
                assert_eq!(size, buffer.len().min(there.len()));
                assert_eq!(buffer[..size], there[..size]);
                let gap = gaps.start + random.below(gaps.end - gaps.start);
                position += buffer.len() as u64 + gap;
            }
            let calls = files.calls().of(Call::Read) - before;
            assert!(expected_calls.contains(&calls), "{gaps:?}: {calls} reads");
        }
    }

    #[test]
    fn it_goes_back_and_past_the_end_like_any_read() {
        let files = SimulatedFiles::new();
        files.insert(Path::new("file"), &[7; 5_000]);
        let file = files.open(Path::new("file"), OpenMode::Read).unwrap();
        let mut ahead = ReadAhead::default();
        for (position, expected) in
            [(100, 1_000), (1_100, 1_000), (3_500, 1_000), (4_500, 500), (5_500, 0), (50, 1_000)]
        {
            let mut buffer = vec![0; 1_000];
            let size = ahead.read_at(&*file, 5_000, &mut buffer, position).unwrap();
            assert_eq!(size, expected, "{position}");
            assert!(buffer[..size].iter().all(|byte| *byte == 7));
        }
    }
}
