//! Loads the vBuckets from their files: first every document's metadata, which lets a vBucket
//! serve, then the values, until memory is as full as it should get. Where documents leave memory
//! whole, the first step keeps nothing but which keys there are.

use std::ops::ControlFlow;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use document::{Item, Seqno, Vbid};
use executor::{ExecutorPool, Next, OwnerIsGone, Task, TaskContext};
use executor::{TaskKind, TaskName};
use platform::Instant;
use storage::{FoundVbucket, StorageError};
use vbucket::Departures;

use super::rebuild::{FileContent, MissingInFile, Rebuilt, Visit};
use super::warmup_state::{Loaded, Step, WarmupPhase, WarmupProgress};
use crate::core::{Bucket, BucketCore};
use crate::disk::file_state;

static WARMUP: TaskName =
    TaskName::new("Warmup", TaskKind::Reader).priority(0).expected(Duration::from_millis(200));

/// Tasks that load side by side.
const TASK_COUNT: usize = 2;
/// A run that loads values ends after this long.
const RUN_DURATION_MAX: Duration = Duration::from_millis(100);
/// Values put into memory while one vBucket's lock is held.
const PORTION_MAX: usize = 64;

impl Bucket {
    /// How far loading has come.
    pub fn warmup_progress(&self) -> WarmupProgress {
        self.0.background.warmup.progress(self.0.clock.now())
    }

    /// Blocks until every vBucket serves, at most for `patience`. Returns whether that is so. Not
    /// for front-end workers.
    pub fn wait_until_serving(&self, patience: Duration) -> bool {
        let warmup = &self.0.background.warmup;
        let (inner, _) = warmup
            .changed
            .wait_timeout_while(warmup.lock(), patience, |inner| {
                inner.phase == WarmupPhase::Metadata
            })
            .unwrap_or_else(PoisonError::into_inner);
        inner.phase != WarmupPhase::Metadata
    }
}

struct Warmup(Bucket);

pub(crate) fn start(
    bucket: &Bucket,
    pool: &ExecutorPool,
    found: Vec<FoundVbucket>,
) -> Result<(), OwnerIsGone> {
    let warmup = &bucket.0.background.warmup;
    warmup.begin(found, bucket.0.clock.now());
    if warmup.lock().phase == WarmupPhase::Done {
        return Ok(());
    }
    for _ in 0..TASK_COUNT {
        let task =
            pool.schedule_asleep(&bucket.0.background.owner, &WARMUP, Warmup(bucket.clone()))?;
        // Listed before it runs: a phase that ends wakes only those that are listed.
        warmup.lock().tasks.push(task.clone());
        task.wake();
    }
    Ok(())
}

impl Task for Warmup {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        if context.is_shutting_down() {
            return Next::Finished;
        }
        let core = &self.0.0;
        match core.background.warmup.next_step() {
            Step::Finish => return Next::Finished,
            Step::Wait => return Next::Sleep,
            Step::Metadata(found) => core.load_metadata(&found),
            Step::Values(vbid, from) => {
                core.load_values(vbid, from, context.started().after(RUN_DURATION_MAX));
            }
        }
        Next::Again
    }
}

impl BucketCore {
    /// Makes a vBucket of its file's metadata and lets it serve.
    fn load_metadata(&self, found: &FoundVbucket) {
        let vbid = found.vbid;
        let loaded = match self.restore(found) {
            Ok(()) if found.item_count > 0 => Loaded::ValuesToo,
            Ok(()) => Loaded::MetadataOnly,
            Err(error) => {
                self.give_up_loading(vbid, &error);
                Loaded::Failed
            }
        };
        self.background.warmup.finish_metadata(vbid, loaded, self.clock.now());
        if !self.background.warmup.is_loading_metadata() {
            self.settle_manifest();
        }
    }

    fn restore(&self, found: &FoundVbucket) -> Result<(), StorageError> {
        let Some(slot) = self.slot(found.vbid) else {
            tracing::warn!(vbucket = found.vbid.0, "the bucket has no such vBucket; file ignored");
            return Ok(());
        };
        // What the file lacks is not brought to it before the vBucket is there to hear of it.
        let history = found.file_is_behind.then(|| slot.lock_history());
        let content = FileContent {
            vbid: found.vbid,
            state: file_state::from_file(&found.record, found.high_seqno),
            item_count: found.item_count,
            is_whole: self.background.warmup.was_clean && found.is_whole,
            missing: self.missing_in_file(found)?,
        };
        let scan = |from: Seqno, with_values: bool, visit: &mut Visit<'_>| {
            self.store.scan(found.vbid, from, with_values, visit)
        };
        let Rebuilt { mut vbucket, document_count } = self.rebuild(content, scan)?;
        self.background.warmup.documents_loaded.fetch_add(document_count, Ordering::Relaxed);
        vbucket.note_purged(found.purge_seqno);
        let mut effects = Vec::new();
        vbucket.flush_state(&mut effects);
        vbucket.resolve_sync_writes(self.now(), &mut effects);
        let file = slot.lock_file();
        // The bucket may have been emptied meanwhile, and the vBucket deleted after that: what was
        // loaded is history then.
        let is_wanted = slot.awaits_loading();
        let superfluous = if is_wanted { slot.replace(vbucket) } else { Some(vbucket) };
        drop(file);
        drop(history);
        drop(superfluous);
        if is_wanted {
            self.carry_out(found.vbid, &mut effects);
            self.adopt_manifest_of(found.vbid);
            self.have_manifest_followed(found.vbid);
            self.follow_eviction_policy(found.vbid);
            self.manifest.wake_eraser();
        }
        Ok(())
    }

    /// What the file of a vBucket lacks, because there was no room for it. The caller holds the
    /// vBucket's history then.
    fn missing_in_file(&self, found: &FoundVbucket) -> Result<MissingInFile, StorageError> {
        let items = match found.file_is_behind {
            true => self.store.unapplied_items(found.vbid),
            false => Vec::new(),
        };
        // There may have been room since.
        if items.is_empty() {
            return Ok(MissingInFile::none(found.high_seqno));
        }
        Ok(MissingInFile { file_seqno: self.store.high_seqno(found.vbid)?, items })
    }

    /// Loads values of one vBucket until `deadline`.
    fn load_values(&self, vbid: Vbid, from: Seqno, deadline: Instant) {
        if self.memory.account.used_bytes() >= self.memory.limits().watermarks().low_bytes {
            // This one has left the queue, and is still counted.
            self.background.warmup.finish_values(vbid, None, self.clock.now());
            self.background.warmup.give_up_values(self.clock.now());
            tracing::info!("warmup leaves the remaining values on disk: memory is full enough");
            return;
        }
        let Some(departures) = self.departures_of(vbid) else {
            return self.background.warmup.finish_values(vbid, None, self.clock.now());
        };
        let mut portion = Vec::with_capacity(PORTION_MAX);
        let mut continue_at = None;
        let result = self.store.scan(vbid, from, true, |item: Item| {
            let next = item.seqno().next();
            let is_document = !item.operation().is_prepared() && !item.key().is_of_event();
            if is_document && !item.is_deleted() {
                portion.push(self.memory.compression().as_kept(item));
            }
            if portion.len() < PORTION_MAX {
                return ControlFlow::Continue(());
            }
            self.restore_values(vbid, departures, &mut portion);
            // What leaves memory meanwhile makes what is read here old: another scan reads anew.
            let is_old = self.departures_of(vbid) != Some(departures);
            let is_full =
                self.memory.account.used_bytes() >= self.memory.limits().watermarks().low_bytes;
            if self.clock.now() < deadline && !is_full && !is_old {
                return ControlFlow::Continue(());
            }
            continue_at = Some(next);
            ControlFlow::Break(())
        });
        self.restore_values(vbid, departures, &mut portion);
        if let Err(error) = result {
            tracing::error!(%error, vbucket = vbid.0, "values are not loaded ahead of requests");
            continue_at = None;
        }
        self.background.warmup.finish_values(vbid, continue_at, self.clock.now());
    }

    fn departures_of(&self, vbid: Vbid) -> Option<Departures> {
        Some(self.slot(vbid)?.lock().as_ref()?.departures())
    }

    fn restore_values(&self, vbid: Vbid, departures: Departures, portion: &mut Vec<Item>) {
        let Some(slot) = self.slot(vbid) else { return };
        let count = u64::try_from(portion.len()).unwrap_or(u64::MAX);
        let mut left_over = Vec::with_capacity(portion.len());
        if let Some(vbucket) = slot.lock().as_mut() {
            let may_be_absent = vbucket.may_lack_documents();
            let restore = |item| match may_be_absent {
                false => vbucket.restore_value(item),
                true => vbucket.restore_absent(item, departures),
            };
            left_over.extend(portion.drain(..).filter_map(restore));
        }
        drop(left_over);
        self.background.warmup.values_loaded.fetch_add(count, Ordering::Relaxed);
    }
}
