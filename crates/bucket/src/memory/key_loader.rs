//! Brings keys back into memory that are to stay there from now on: those of documents that have
//! left whole, before the bucket's eviction policy was changed.

use std::ops::ControlFlow;
use std::time::Duration;

use document::{Item, Seqno, Vbid};
use executor::{ExecutorPool, Next, OwnerIsGone, Task, TaskContext};
use executor::{TaskKind, TaskName};
use storage::StorageError;
use vbucket::Vbucket;
use vbucket::eviction::KeyLoad;

use crate::core::{Bucket, BucketCore};

static KEY_LOADER: TaskName =
    TaskName::new("KeyLoader", TaskKind::Reader).priority(7).expected(Duration::from_millis(100));

/// A run ends after this long.
const RUN_DURATION_MAX: Duration = Duration::from_millis(100);
/// Items of a file that are read before what they bring is in memory.
const ITEMS_READ_MAX: usize = 1024;
/// Documents put into memory while one vBucket's lock is held.
const PORTION_MAX: usize = 64;
/// From a file that could not be read, or memory that is too full, to the next try.
const PAUSE: Duration = Duration::from_secs(1);

/// What is next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// There is more to load.
    GoOn,
    /// Nothing is left of this vBucket.
    Done,
    /// Its file cannot be read, or too much has left memory meanwhile.
    Failed,
}

struct KeyLoader {
    bucket: Bucket,
    /// Whether there was something to load since the last time that there was not.
    is_loading: bool,
    /// Whether people were told that memory is too full.
    has_complained: bool,
}

pub(crate) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    let task = KeyLoader { bucket: bucket.clone(), is_loading: false, has_complained: false };
    bucket.0.memory.key_loader.set(pool.schedule_asleep(
        &bucket.0.background.owner,
        &KEY_LOADER,
        task,
    )?);
    Ok(())
}

impl Task for KeyLoader {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        if context.is_shutting_down() {
            return Next::Finished;
        }
        let core = self.bucket.0.clone();
        let deadline = context.started().after(RUN_DURATION_MAX);
        let mut has_failed = false;
        for (vbid, _) in core.slots() {
            while core.has_keys_to_load(vbid) {
                if self.must_wait(&core) {
                    return Next::SleepFor(PAUSE);
                }
                self.is_loading = true;
                match core.load_keys(vbid) {
                    Step::GoOn => {}
                    Step::Done => break,
                    Step::Failed => {
                        has_failed = true;
                        break;
                    }
                }
                if core.clock.now() >= deadline {
                    return Next::Again;
                }
            }
        }
        if has_failed {
            return Next::SleepFor(PAUSE);
        }
        if std::mem::take(&mut self.is_loading) {
            self.has_complained = false;
            tracing::info!(bucket = core.config.name, "all keys are in memory, and stay there");
        }
        Next::Sleep
    }
}

impl KeyLoader {
    /// Whether values have to leave before more keys fit.
    fn must_wait(&mut self, core: &BucketCore) -> bool {
        if core.memory.account.used_bytes() <= core.memory.limits().watermarks().high_bytes {
            return false;
        }
        core.memory.pager.wake();
        if !self.has_complained {
            self.has_complained = true;
            tracing::warn!(
                bucket = core.config.name,
                "memory is too full for keys to come back that are to stay in it: they are looked \
                 up in the files until there is room"
            );
        }
        true
    }
}

impl BucketCore {
    fn has_keys_to_load(&self, vbid: Vbid) -> bool {
        self.slot(vbid)
            .is_some_and(|slot| slot.lock().as_ref().is_some_and(Vbucket::has_keys_to_load))
    }

    /// Brings back what the next items of a vBucket's file are.
    fn load_keys(&self, vbid: Vbid) -> Step {
        let Some(slot) = self.slot(vbid) else { return Step::Done };
        // Before the file is opened: what leaves from here on may not be in what is read.
        let Some(load) = slot.lock().as_mut().and_then(Vbucket::begin_key_load) else {
            return Step::Done;
        };
        let (documents, continue_at) = match self.read_keys(vbid, load) {
            Ok(read) => read,
            Err(error) => {
                tracing::error!(%error, vbucket = vbid.0, "keys are not loaded: tried again");
                return Step::Failed;
            }
        };
        let mut documents = documents.into_iter().peekable();
        while documents.peek().is_some() {
            let mut left_over = Vec::with_capacity(PORTION_MAX);
            match slot.lock().as_mut() {
                Some(vbucket) => {
                    let portion = documents.by_ref().take(PORTION_MAX);
                    left_over.extend(portion.filter_map(|item| vbucket.load_key(load, item)));
                }
                None => return Step::Done,
            }
        }
        let end = |vbucket: &mut Vbucket| vbucket.end_key_load(load, continue_at);
        let has_counted = slot.lock().as_mut().is_some_and(end);
        if has_counted { Step::GoOn } else { Step::Failed }
    }

    /// The live documents among the next items of a file, without values, and the seqno of the
    /// item behind these unless there is none.
    fn read_keys(
        &self,
        vbid: Vbid,
        load: KeyLoad,
    ) -> Result<(Vec<Item>, Option<Seqno>), StorageError> {
        let (mut documents, mut read_count) = (Vec::new(), 0);
        let mut continue_at = None;
        self.store.scan(vbid, load.from, false, |item: Item| {
            if read_count == ITEMS_READ_MAX {
                continue_at = Some(item.seqno());
                return ControlFlow::Break(());
            }
            read_count += 1;
            let is_document = !item.operation().is_prepared() && !item.key().is_of_event();
            if is_document && !item.is_deleted() {
                documents.push(item.ejected());
            }
            ControlFlow::Continue(())
        })?;
        Ok((documents, continue_at))
    }
}
