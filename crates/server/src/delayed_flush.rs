//! FLUSH with a delay: the bucket is emptied later, once. A later order takes the place of one that
//! still waits, as memcached's does.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bucket::Bucket;
use executor::{ExecutorPool, Next, Owner, OwnerIsGone, Task, TaskContext, TaskHandle};
use executor::{TaskKind, TaskName};

static DELAYED_FLUSH: TaskName =
    TaskName::new("DelayedFlushTask", TaskKind::AuxIo).expected(Duration::from_secs(10));

/// The order that waits, if there was one.
#[derive(Default)]
pub(crate) struct DelayedFlush {
    task: Mutex<Option<TaskHandle>>,
}

struct Emptier {
    bucket: Bucket,
}

impl DelayedFlush {
    /// The bucket is emptied after `delay`, with all that it holds by then.
    pub(crate) fn order(
        &self,
        (pool, owner): (&ExecutorPool, &Owner),
        bucket: &Bucket,
        delay: Duration,
    ) -> Result<(), OwnerIsGone> {
        let mut place = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        let task = match place.take() {
            Some(task) => task,
            None => {
                let emptier = Emptier { bucket: bucket.clone() };
                pool.schedule_asleep(owner, &DELAYED_FLUSH, emptier)?
            }
        };
        place.insert(task).snooze(delay);
        Ok(())
    }

    /// The bucket is emptied now, so that an order that still waits counts no more: it would take
    /// what is written from now on.
    pub(crate) fn withdraw(&self) {
        let waiting = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = waiting {
            task.cancel();
        }
    }
}

impl Task for Emptier {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        if context.is_shutting_down() {
            return Next::Finished;
        }
        if let Err(error) = self.bucket.flush_all() {
            tracing::error!(%error, "the bucket could not be emptied");
        }
        Next::Sleep
    }
}
