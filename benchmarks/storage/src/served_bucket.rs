//! A bucket as the node opens it: real files, a real pool of threads, and a front end that writes
//! documents and waits for SEQNO_PERSISTENCE.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use bucket::{Bucket, BucketConfig, Completions, Incoming, Persistence, Refused, Session, Write};
use bucket::{Surroundings, WarmupPhase};
use document::{Seqno, Vbid};
use executor::{ExecutorPool, PoolOptions};
use platform::{Clock, Entropy};
use vbucket::Written;

use crate::counted_files::CountedFiles;
use crate::directories::Directory;
use crate::documents::{Document, Documents};
use crate::options::Options;

/// How a bucket keeps its documents.
#[derive(Clone, Copy)]
pub struct Mode {
    /// Its name in tables.
    pub name: &'static str,
    /// Where documents become durable first.
    pub persistence: fn() -> Persistence,
    /// Files kept open, at most.
    pub open_files_max: usize,
}

/// Files that a bucket of this benchmark may keep open: more than it has.
const OPEN_FILES_MAX: usize = 2048;
/// Enough for all documents: nothing is evicted.
const QUOTA_BYTES: u64 = 4 << 30;

/// The journal, with a bucket's defaults.
pub const JOURNAL: Mode =
    Mode { name: "journal", persistence: Persistence::default, open_files_max: OPEN_FILES_MAX };
/// Each vBucket's file is committed at once, and stays open.
pub const PLAIN: Mode = Mode {
    name: "plain, kept open",
    persistence: || Persistence::Files,
    open_files_max: OPEN_FILES_MAX,
};
/// The same with room for one open file, so that nearly every commit opens its file.
pub const REOPENED: Mode =
    Mode { name: "plain, reopened", persistence: || Persistence::Files, open_files_max: 1 };

impl Mode {
    /// A copy of a bucket for this mode. With a journal it keeps the spare segments: one that has
    /// been running for a while has them.
    pub fn copy(&self, base: &Directory, name: &str) -> Result<Directory> {
        let has_journal = (self.persistence)() != Persistence::Files;
        base.copy(name, if has_journal { &[] } else { &["journal"] })
    }
}

/// How many documents in how many vBuckets.
#[derive(Clone, Copy)]
pub struct Size {
    /// Documents.
    pub documents: u64,
    /// vBuckets.
    pub vbuckets: u16,
}

impl Size {
    /// As the goals say, or smaller for a look.
    pub fn of(options: &Options) -> Self {
        if options.is_quick {
            Self { documents: 2_000, vbuckets: 16 }
        } else {
            Self { documents: 1_000_000, vbuckets: 1024 }
        }
    }

    /// Where a document lives.
    pub fn vbid(self, number: u64) -> Vbid {
        Vbid(u16::try_from(number % u64::from(self.vbuckets)).unwrap_or(0))
    }
}

/// A bucket that is open.
pub struct ServedBucket {
    /// The bucket.
    pub bucket: Bucket,
    /// What counts its blocks.
    pub files: CountedFiles,
    pool: ExecutorPool,
    size: Size,
}

impl ServedBucket {
    /// Opens what is in a directory, or makes it. Documents are still being loaded.
    pub fn open(
        directory: &Path,
        mode: Mode,
        size: Size,
        completions: Arc<dyn Completions>,
    ) -> Result<Self> {
        platform::process::raise_open_files_limit();
        let clock = Clock::real();
        let cpus = platform::threads::available_cpus();
        let pool = ExecutorPool::start(clock.clone(), PoolOptions::for_cpus(cpus))?;
        let files = CountedFiles::default();
        let surroundings = Surroundings {
            clock,
            files: Arc::new(files.clone()),
            pool: pool.clone(),
            completions,
            entropy: Entropy::real(),
        };
        let config = BucketConfig {
            vbucket_count: size.vbuckets,
            memory_quota_bytes: QUOTA_BYTES,
            persistence: (mode.persistence)(),
            open_files_max: mode.open_files_max,
            // Only when it is asked for.
            compaction_fragmentation_percent: 0,
            ..BucketConfig::named("benchmark")
        };
        let bucket = Bucket::open(surroundings, config, directory)?;
        Ok(Self { bucket, files, pool, size })
    }

    /// Waits until every document is in memory.
    pub fn wait_until_warm(&self) -> Result<()> {
        let clock = Clock::real();
        let deadline = clock.now().after(Duration::from_secs(300));
        while self.bucket.warmup_progress().phase != WarmupPhase::Done {
            ensure!(clock.now() < deadline, "warmup does not end");
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Stores a document.
    pub fn store(&self, session: &mut Session, document: &Document) -> Result<Seqno, Refused> {
        let vbid = self.size.vbid(document.number);
        let key = document.key();
        let write = Write::set(vbid, key.as_key(), Incoming::plain(&document.body));
        let stored = self.bucket.store(session, write)?.answer().and_then(Written::done);
        Ok(stored.expect("what is neither evicted nor durable is written at once").seqno)
    }

    /// Ends it in order: everything is in the files.
    pub fn close(self) -> Result<()> {
        let closed = self.bucket.shut_down();
        self.pool.shutdown();
        closed.map_err(|count| anyhow!("{count} vBuckets could not be flushed"))
    }

    /// How many documents in how many vBuckets.
    pub fn size(&self) -> Size {
        self.size
    }
}

/// Completions for who waits for nothing.
pub struct Nobody;

impl Completions for Nobody {
    fn complete(&self, _: vbucket::Waiter, _: bucket::Completion) {}

    fn release_memory(&self) {}
}

/// Makes the bucket that writers and warmup begin with: all documents, in the files of all
/// vBuckets, and nothing in the journal.
pub fn load(parent: &Path, size: Size) -> Result<Directory> {
    let directory = Directory::new(parent, "loaded-bucket")?;
    let served = ServedBucket::open(directory.path(), JOURNAL, size, Arc::new(Nobody))?;
    served.wait_until_warm()?;
    let mut session = Session::default();
    let mut documents = Documents::new(size.documents, u64::MAX);
    for number in 0..size.documents {
        let document = documents.document(number);
        store_patiently(&served, &mut session, &document).context("loading documents")?;
    }
    served.close()?;
    Ok(directory)
}

/// Stores a document, however long there is no room for it.
fn store_patiently(
    served: &ServedBucket,
    session: &mut Session,
    document: &Document,
) -> Result<()> {
    loop {
        match served.store(session, document) {
            Ok(_) => return Ok(()),
            Err(Refused::Blocked(_)) => std::thread::sleep(Duration::from_millis(1)),
            Err(refused) => bail!("{refused:?}"),
        }
    }
}
