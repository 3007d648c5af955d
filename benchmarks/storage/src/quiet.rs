//! Waiting until a disk has come to rest.
//!
//! Under a virtual disk that has taken gigabytes, or has been told that gigabytes are free, syncs
//! of other files were seen to stand still for 20 to 600 ms at times for some tens of seconds more.
//! That is the benchmark's own doing, where it has just copied or removed a database.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

const BLOCK: [u8; 4096] = [0x5a; 4096];
const BLOCKS: u64 = 1024;
/// A sync that takes longer is not quiet.
const SYNC_MAX: Duration = Duration::from_millis(10);
/// For how long there must have been none.
const QUIET_MIN: Duration = Duration::from_secs(4);
const WAIT_MAX: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_micros(500);

/// Syncs single blocks in `directory` until none has taken long for a while. Whether that came
/// about in time.
pub fn wait_until_quiet(directory: &Path) -> Result<bool> {
    // Without a name it is gone when it is closed.
    let file = tempfile::tempfile_in(directory)?;
    fill(&file)?;
    let began = Instant::now();
    let mut quiet_since = began;
    for number in (0..BLOCKS).cycle() {
        let now = Instant::now();
        file.write_all_at(&BLOCK, number * BLOCK.len() as u64)?;
        file.sync_data()?;
        if now.elapsed() > SYNC_MAX {
            quiet_since = Instant::now();
        }
        if quiet_since.elapsed() >= QUIET_MIN {
            return Ok(true);
        }
        if began.elapsed() >= WAIT_MAX {
            break;
        }
        thread::sleep(PAUSE);
    }
    Ok(false)
}

fn fill(file: &File) -> Result<()> {
    for number in 0..BLOCKS {
        file.write_all_at(&BLOCK, number * BLOCK.len() as u64)?;
    }
    Ok(file.sync_all()?)
}
