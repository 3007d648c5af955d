//! What the machine does by itself, to tell its own pauses from those of what is measured.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hdrhistogram::Histogram;

/// Bytes of a write: about a group of the journal.
const WRITE_BYTES: usize = 8 << 10;
/// Bytes of the file, which is written over and over.
const FILE_BYTES: u64 = 32 << 20;
/// Between two writes: the disk is not to be busy.
const PAUSE: Duration = Duration::from_micros(500);

/// How long writes with a sync each take, nanoseconds, one after the other with pauses, to a file
/// whose blocks are all allocated, where temporary files are.
pub fn time_of_syncs(duration: Duration) -> Result<Histogram<u64>> {
    let file = tempfile::tempfile()?;
    write_over(&file, FILE_BYTES)?;
    let bytes = vec![0x5A; WRITE_BYTES];
    let mut times = Histogram::new_with_bounds(1_000, 60_000_000_000, 3)?;
    let end = Instant::now() + duration;
    let mut position = 0;
    while Instant::now() < end {
        let started = Instant::now();
        file.write_all_at(&bytes, position)?;
        file.sync_data()?;
        times.saturating_record(u64::try_from(started.elapsed().as_nanos())?);
        position = (position + WRITE_BYTES as u64) % FILE_BYTES;
        std::thread::sleep(PAUSE);
    }
    Ok(times)
}

/// Time that CPUs of this virtual machine were ready to run and did not, since its start, in ticks
/// of 10 ms, and all time of all CPUs.
pub fn stolen_and_total_ticks() -> Result<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/stat")?;
    let line = text.lines().next().context("/proc/stat has a first line")?;
    let ticks = line.split_whitespace().skip(1).map(str::parse).collect::<Result<Vec<u64>, _>>()?;
    // user, nice, system, idle, iowait, irq, softirq, steal: proc(5).
    Ok((ticks.get(7).copied().unwrap_or(0), ticks.iter().take(8).sum()))
}

/// How many threads ran or wanted to, on the average of the last minute.
pub fn load_average() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/loadavg")?;
    Ok(text.split_whitespace().next().context("/proc/loadavg has fields")?.parse()?)
}

fn write_over(file: &File, size: u64) -> Result<()> {
    let zeros = vec![0; 1 << 20];
    for position in (0..size).step_by(zeros.len()) {
        file.write_all_at(&zeros, position)?;
    }
    Ok(file.sync_all()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_a_disk_and_time() {
        let before = stolen_and_total_ticks().expect("Linux counts time");
        let times = time_of_syncs(Duration::from_millis(50)).expect("there is a disk");
        assert!(!times.is_empty() && times.len() <= 100, "{}", times.len());
        let after = stolen_and_total_ticks().expect("Linux counts time");
        assert!(after.1 > before.1 && after.0 >= before.0);
        assert!(load_average().expect("Linux counts threads") >= 0.0);
    }
}
