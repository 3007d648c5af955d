//! Writes the manifest again when a change of it has failed in such a way that the file may have
//! what was refused.

use std::time::Duration;

use executor::{ExecutorPool, Next, OwnerIsGone, TaskContext, TaskKind, TaskName};

use crate::core::Bucket;

static KEEPER: TaskName = TaskName::new("ManifestKeeper", TaskKind::AuxIo);

/// How long it waits for a disk that takes nothing.
const PAUSE: Duration = Duration::from_secs(1);

/// Starts the task, which sleeps until it is woken.
pub(crate) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    let kept = bucket.clone();
    let task = move |_: &TaskContext<'_>| {
        let manifest = &kept.0.manifest;
        let _right_to_change = manifest.lock();
        match manifest.make_sure() {
            Ok(()) => Next::Sleep,
            Err(_) => Next::SleepFor(PAUSE),
        }
    };
    let handle = pool.schedule_asleep(&bucket.0.background.owner, &KEEPER, task)?;
    bucket.0.manifest.keeper.set(handle);
    Ok(())
}
