//! The end of a bucket that was deleted: a task that looks whether everybody has let go of it, and
//! removes what is left then. Nobody waits in it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bucket::Bucket;
use executor::{ExecutorPool, Next, Owner, OwnerIsGone, Task, TaskContext, TaskKind, TaskName};
use platform::{Files, Instant};
use server::Departure;

static CLOSE_BUCKET: TaskName =
    TaskName::new("CloseBucketTask", TaskKind::AuxIo).expected(Duration::from_secs(1));

/// How soon the task looks again.
const PAUSE: Duration = Duration::from_millis(5);

/// The names of buckets that are on their way out, and since when: there cannot be others of these
/// yet.
#[derive(Clone, Default)]
pub(crate) struct Leaving(Arc<Mutex<BTreeMap<String, Instant>>>);

impl Leaving {
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.lock().contains_key(name)
    }

    /// They have places among the buckets until they are gone.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// Whether one of them is on its way for less than `age`.
    pub(crate) fn has_younger(&self, age: Duration, now: Instant) -> bool {
        self.lock().values().any(|&since| now.since(since) < age)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A bucket that was deleted, whose mark says so.
pub(crate) struct Closing {
    pub(crate) name: String,
    pub(crate) files: Arc<dyn Files>,
    pub(crate) directory: PathBuf,
    pub(crate) bucket: Bucket,
    /// The connections that have it.
    pub(crate) departure: Option<Departure>,
    /// Called when nothing of it is left, or a start has to remove it.
    pub(crate) done: Box<dyn FnOnce() + Send>,
}

/// What is still to be done.
enum Step {
    /// Connections lose the bucket.
    Leave(Closing),
    /// Its tasks have ended; others still look at it.
    Empty(Closing),
    Over,
}

struct CloseBucket {
    step: Step,
    leaving: Leaving,
}

impl Closing {
    /// Has a task of `owner` close it.
    pub(crate) fn begin(
        self,
        now: Instant,
        pool: &ExecutorPool,
        owner: &Owner,
        leaving: &Leaving,
    ) -> Result<(), OwnerIsGone> {
        // Before the task can run: its end takes the name out again.
        leaving.lock().insert(self.name.clone(), now);
        let task = CloseBucket { step: Step::Leave(self), leaving: leaving.clone() };
        pool.schedule(owner, &CLOSE_BUCKET, task).map(drop)
    }

    fn finish(self, leaving: &Leaving) {
        let Self { name, files, directory, bucket, done, .. } = self;
        // The journal and all files are closed with it.
        drop(bucket);
        if let Err(error) = bucket::remove_remains(&*files, &directory) {
            tracing::warn!(%error, bucket = name, "what is left of a bucket is for the next start");
        }
        tracing::info!(bucket = name, "the bucket is gone");
        // Before anybody hears of the end: who does may make a bucket of that name at once.
        leaving.lock().remove(&name);
        done();
    }
}

impl Task for CloseBucket {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        // What is left is for the next start, whose mark it has.
        if context.is_shutting_down() {
            return Next::Finished;
        }
        match std::mem::replace(&mut self.step, Step::Over) {
            Step::Leave(mut closing) => {
                if closing.departure.as_ref().is_some_and(|it| !it.is_complete()) {
                    self.step = Step::Leave(closing);
                    return Next::SleepFor(PAUSE);
                }
                closing.departure = None;
                // Only when no connection has it: what waited for its tasks would wait in vain.
                closing.bucket.discard();
                self.step = Step::Empty(closing);
                Next::Again
            }
            Step::Empty(closing) if !closing.bucket.is_last_handle() => {
                self.step = Step::Empty(closing);
                Next::SleepFor(PAUSE)
            }
            Step::Empty(closing) => {
                closing.finish(&self.leaving);
                Next::Finished
            }
            Step::Over => Next::Finished,
        }
    }
}
