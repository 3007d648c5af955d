//! How a bucket opens: what its directory holds is read, the parts are made, the tasks start.

use std::path::Path;
use std::sync::Arc;

use executor::{ExecutorPool, OwnerIsGone};
use storage::FoundVbucket;
use vbucket::MemoryAccount;

use crate::collections::{ManifestStore, eraser, manifest_keeper};
use crate::compaction::{Compaction, compactor, watcher};
use crate::config::BucketConfig;
use crate::core::{
    Background, Bucket, BucketCore, Counters, Listeners, Surroundings, VbucketFactory, Vbuckets,
    WriteRules,
};
use crate::disk::{BackingStore, Disk, applier, background_fetcher, flusher};
use crate::memory::{
    Memory, checkpoint_destroyer, checkpoint_recovery, defragmenter, expiry_pager,
    frequency_decayer, item_compressor, item_pager, key_loader, quota_change, tombstone_purger,
};
use crate::roles::{Timeouts, persistence_timeouts, sync_write_timeouts};
use crate::scan::{self, RangeScans};
use crate::start::{BucketDirectory, OpenError, WarmupState, warmup};

impl Bucket {
    /// Opens the bucket in the directory at `path`, making it when there is none, and begins to
    /// load it. vBuckets serve as soon as they are loaded.
    pub fn open(
        surroundings: Surroundings,
        mut config: BucketConfig,
        path: &Path,
    ) -> Result<Self, OpenError> {
        let Surroundings { clock, files, pool, completions, entropy } = surroundings;
        let directory = BucketDirectory::open(&files, path, &config, &entropy)?;
        config.vbucket_count = directory.vbucket_count();
        let manifest = ManifestStore::open(&files, path, config.max_ttl_seconds)?;
        let last_stop = directory.last_stop(&config)?;
        let bucket_type = directory.bucket_type();
        let options = storage::StoreOptions {
            clock: clock.clone(),
            entropy: entropy.clone(),
            open_files_max: config.open_files_max,
            journal: config.persistence.journal(),
        };
        let keeps_journal = options.journal.is_some();
        let (store, mut report) =
            BackingStore::open(bucket_type, &files, path, options, &last_stop)?;
        // Only now: a start that the store refuses leaves the mark of the last stop as it is.
        directory.begin_run(keeps_journal)?;
        let account = MemoryAccount::default();
        let factory = VbucketFactory::new(&config, bucket_type, account.clone(), &entropy);
        let bucket = Self(Arc::new(BucketCore {
            rules: WriteRules::new(&config),
            vbuckets: Vbuckets::new(usize::from(config.vbucket_count), factory),
            memory: Memory::new(&config, account),
            disk: Disk::new(&config),
            compaction: Compaction::new(&config),
            range_scans: RangeScans::new(&config),
            background: Background {
                owner: pool.register_owner(&config.name),
                timeouts: Timeouts::new(config.vbucket_count),
                warmup: WarmupState::new(clock.now(), last_stop.was_clean),
            },
            listeners: Listeners::new(completions),
            counters: Counters::default(),
            config,
            clock,
            directory,
            manifest,
            store,
        }));
        bucket.0.follow_quota();
        bucket.report_ignored(&report);
        // Before vBuckets are made: one that was deleted must not come back empty.
        bucket.forget_absent(&mut report);
        bucket.create_missing_vbuckets(&report);
        bucket.note_unreadable_vbuckets(&report);
        start_tasks(&bucket, &pool, report.vbuckets).map_err(|_| OpenError::ExecutorIsGone)?;
        Ok(bucket)
    }
}

/// Schedules all tasks of `bucket`; warmup loads the vBuckets in `found`.
fn start_tasks(
    bucket: &Bucket,
    pool: &ExecutorPool,
    found: Vec<FoundVbucket>,
) -> Result<(), OwnerIsGone> {
    checkpoint_destroyer::start(bucket, pool)?;
    checkpoint_recovery::start(bucket, pool)?;
    flusher::start(bucket, pool)?;
    applier::start(bucket, pool)?;
    background_fetcher::start(bucket, pool)?;
    persistence_timeouts::start(bucket, pool)?;
    sync_write_timeouts::start(bucket, pool)?;
    scan::start(bucket, pool)?;
    expiry_pager::start(bucket, pool)?;
    item_pager::start(bucket, pool)?;
    key_loader::start(bucket, pool)?;
    frequency_decayer::start(bucket, pool)?;
    quota_change::start(bucket, pool)?;
    item_compressor::start(bucket, pool)?;
    defragmenter::start(bucket, pool)?;
    tombstone_purger::start(bucket, pool)?;
    eraser::start(bucket, pool)?;
    manifest_keeper::start(bucket, pool)?;
    compactor::start(bucket, pool)?;
    watcher::start(bucket, pool)?;
    warmup::start(bucket, pool, found)
}
