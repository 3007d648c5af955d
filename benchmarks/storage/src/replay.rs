//! How long a start takes that finds a full journal, as a crash leaves it.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use document::Seqno;
use platform::files::RealFiles;
use platform::{Clock, Entropy};
use storage::{FlushBatch, JournalOptions, StorageError, Store, StoreOptions, VbucketRecord};

use crate::directories::Directory;
use crate::documents::Documents;
use crate::measurement::Usage;
use crate::options::Options;
use crate::report::{Column, Report};
use crate::served_bucket::Size;

const BENCH: &str = "replay";
const VARIANT: &str = "settee";
const OPEN_FILES_MAX: usize = 2048;
/// Documents that a flush takes.
const BATCH_SIZE: usize = 2_000;

const COLUMNS: [Column; 7] = [
    Column::scaled("MiB of journal", "journal_bytes", (1 << 20) as f64),
    Column::new("documents in it", "documents"),
    Column::new("s", "took_s"),
    Column::new("CPU s", "cpu_s"),
    Column::new("documents/s", "documents_per_s"),
    Column::new("documents/s a core", "documents_per_core_s"),
    Column::scaled("MB written", "written_bytes", 1e6),
];

/// Measures and prints the table. Every measurement begins with a copy of `base`.
pub fn run(options: &Options, base: &Directory, report: &mut Report) -> Result<()> {
    for round in 0..options.rounds {
        let directory = base.copy("replay", &["journal"])?;
        let (documents, journal_bytes) = crash(options, directory.path(), round as u64)?;
        let before = Usage::now()?;
        let (store, _) = open(options, directory.path())?;
        let used = before.until_now()?;
        ensure!(store.backlog().vbuckets == 0, "a start brings files up to date");
        let mut add = |metric, value| report.add(BENCH, VARIANT, metric, value);
        add("journal_bytes", journal_bytes as f64);
        add("documents", documents as f64);
        add("took_s", used.seconds);
        add("cpu_s", used.cpu_seconds);
        add("documents_per_s", documents as f64 / used.seconds);
        add("documents_per_core_s", documents as f64 / used.cpu_seconds);
        add("written_bytes", used.written_bytes as f64);
    }
    let title = "Replay of a journal that a crash left";
    report.print_table(title, BENCH, &[VARIANT], &COLUMNS);
    Ok(())
}

fn open(options: &Options, directory: &Path) -> Result<(Store, storage::StartReport)> {
    let defaults = JournalOptions::default();
    let bytes_max = if options.is_quick { 4 << 20 } else { defaults.bytes_max };
    let segment_bytes = defaults.segment_bytes.min(bytes_max / 4);
    let options = StoreOptions {
        entropy: Entropy::real(),
        clock: Clock::real(),
        open_files_max: OPEN_FILES_MAX,
        journal: Some(JournalOptions { bytes_max, segment_bytes, ..defaults }),
    };
    Ok(Store::open(Arc::new(RealFiles), directory, options)?)
}

/// Fills the journal with random updates, no file following, and leaves it so. Returns how many
/// there are, and the bytes of the journal.
fn crash(options: &Options, directory: &Path, seed: u64) -> Result<(u64, u64)> {
    let (store, report) = open(options, directory)?;
    let size = Size::of(options);
    let mut states: Vec<(Seqno, Option<VbucketRecord>)> =
        vec![(Seqno(0), None); usize::from(size.vbuckets)];
    for found in report.vbuckets {
        states[usize::from(found.vbid.0)] = (found.high_seqno, Some(found.record));
    }
    let mut documents = Documents::new(size.documents, seed);
    let mut count = 0;
    loop {
        let (batches, drawn) = flush(size, &mut documents, &mut states)?;
        count += drawn;
        let mut last = Ok(());
        let mut refused = 0;
        let sizes: Vec<usize> = batches.iter().map(|batch| batch.items.len()).collect();
        let mut sizes = sizes.into_iter();
        store.commit(batches, |_, result| {
            let items = sizes.next().unwrap_or(0);
            if let Err(error) = result {
                refused += items as u64;
                last = Err(error);
            }
        });
        match last {
            Ok(()) => {}
            // Dropped as it is: nothing is sealed, nothing applied.
            Err(StorageError::JournalFull { .. }) => {
                let written_bytes = store.journal_usage().unwrap_or_default().written_bytes;
                return Ok((count - refused, written_bytes));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Draws what a flush takes, as batches of their vBuckets, and says how many documents it is.
fn flush(
    size: Size,
    documents: &mut Documents,
    states: &mut [(Seqno, Option<VbucketRecord>)],
) -> Result<(Vec<FlushBatch>, u64)> {
    let mut batches: Vec<FlushBatch> = Vec::new();
    let mut places = vec![None; states.len()];
    let drawn = documents.draw(BATCH_SIZE.min(usize::try_from(size.documents)?));
    for document in &drawn {
        let vbid = size.vbid(document.number);
        let (seqno, state) = &mut states[usize::from(vbid.0)];
        let place = match places[usize::from(vbid.0)] {
            Some(place) => place,
            None => {
                let state = state.clone().context("every vBucket was loaded")?;
                batches.push(FlushBatch { vbid, previous_seqno: *seqno, items: Vec::new(), state });
                batches.len() - 1
            }
        };
        places[usize::from(vbid.0)] = Some(place);
        seqno.0 += 1;
        let batch = &mut batches[place];
        batch.items.push(document.item(*seqno));
        batch.state.snapshot_start = *seqno;
        batch.state.snapshot_end = *seqno;
    }
    Ok((batches, drawn.len() as u64))
}
