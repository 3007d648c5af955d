//! FLUSH: a bucket is emptied, at once or after a delay, and the client hears of it when no
//! failover can bring back what was in it. A later order with a delay takes the place of one that
//! still waits, as memcached's does.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bucket::Bucket;
use executor::{ExecutorPool, Next, Owner, OwnerIsGone, Task, TaskContext, TaskHandle};
use executor::{TaskKind, TaskName};
use platform::Instant;

use crate::bucket_administrator::{BucketAdministrator, Followers};

static FLUSH: TaskName =
    TaskName::new("FlushTask", TaskKind::AuxIo).expected(Duration::from_secs(10));
static DELAYED_FLUSH: TaskName =
    TaskName::new("DelayedFlushTask", TaskKind::AuxIo).expected(Duration::from_secs(10));

/// How long replicas may take to follow, and how often they are asked.
const FOLLOW_TIME_MAX: Duration = Duration::from_secs(10);
const FOLLOW_PAUSE: Duration = Duration::from_millis(20);

/// Called with the end: the bucket is empty, or why not, for people.
type Done = Box<dyn FnOnce(Result<(), String>) + Send>;

/// The order with a delay that waits, if there was one.
#[derive(Default)]
pub(crate) struct DelayedFlush {
    task: Mutex<Option<TaskHandle>>,
}

/// A bucket that is to be emptied.
pub(crate) struct Emptying {
    bucket: Bucket,
    /// Who asks replicas, if somebody does.
    administrator: Option<Weak<dyn BucketAdministrator>>,
    /// Who hears of the end.
    done: Option<Done>,
    /// Since when it is empty here.
    emptied: Option<Instant>,
}

/// How far it is.
enum Progress {
    /// It is asked again whether replicas have followed.
    Waits,
    /// No failover can bring anything back; or why not, for people.
    Ended(Result<(), String>),
}

impl DelayedFlush {
    /// The bucket is emptied after `delay`, with all that it holds by then.
    pub(crate) fn order(
        &self,
        (pool, owner): (&ExecutorPool, &Owner),
        emptying: Emptying,
        delay: Duration,
    ) -> Result<(), OwnerIsGone> {
        let task = pool.schedule_asleep(owner, &DELAYED_FLUSH, emptying)?;
        task.snooze(delay);
        let mut place = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        let earlier = place.replace(task);
        drop(place);
        // Also one that has emptied the bucket and only waits for replicas: those are waited for
        // again.
        if let Some(earlier) = earlier {
            earlier.cancel();
        }
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

impl Emptying {
    /// Of which nobody hears.
    pub(crate) fn new(
        bucket: &Bucket,
        administrator: Option<&Weak<dyn BucketAdministrator>>,
    ) -> Self {
        let (bucket, administrator) = (bucket.clone(), administrator.cloned());
        Self { bucket, administrator, done: None, emptied: None }
    }

    /// Begins it; `done` hears of the end.
    pub(crate) fn begin(
        mut self,
        (pool, owner): (&ExecutorPool, &Owner),
        done: Done,
    ) -> Result<(), OwnerIsGone> {
        self.done = Some(done);
        pool.schedule_detached(owner, &FLUSH, self)
    }

    fn step(&mut self, now: Instant) -> Progress {
        let Some(emptied) = self.emptied else {
            // Before anything is emptied: who cannot be asked might bring all of it back.
            if let Followers::Silent(reason) = self.followers() {
                return Progress::Ended(Err(format!("{reason}; nothing was emptied")));
            }
            if let Err(error) = self.bucket.flush_all() {
                tracing::error!(%error, "the bucket could not be emptied");
                let why = "a file could not be removed; see the node's log";
                return Progress::Ended(Err(why.to_owned()));
            }
            self.emptied = Some(now);
            return self.look(now, now);
        };
        self.look(now, emptied)
    }

    fn look(&self, now: Instant, emptied: Instant) -> Progress {
        match self.followers() {
            Followers::Followed => Progress::Ended(Ok(())),
            Followers::Behind(_) | Followers::Silent(_) if now.since(emptied) < FOLLOW_TIME_MAX => {
                Progress::Waits
            }
            Followers::Behind(reason) | Followers::Silent(reason) => Progress::Ended(Err(format!(
                "the bucket is empty, but a failover could bring back what was in it: \
                     {reason}; flush again"
            ))),
        }
    }

    fn followers(&self) -> Followers {
        let administrator = self.administrator.as_ref().and_then(Weak::upgrade);
        let asked = |it: Arc<dyn BucketAdministrator>| it.followers(&self.bucket.config().name);
        administrator.map_or(Followers::Followed, asked)
    }

    /// Tells who waits: nobody, behind an order with a delay.
    fn end(&mut self, result: Result<(), String>) {
        match (self.done.take(), result) {
            (Some(done), result) => done(result),
            (None, Err(reason)) => tracing::error!(reason, "a FLUSH with a delay has failed"),
            (None, Ok(())) => {}
        }
    }
}

impl Task for Emptying {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        if context.is_shutting_down() {
            return Next::Finished;
        }
        match self.step(context.started()) {
            Progress::Waits => Next::SleepFor(FOLLOW_PAUSE),
            Progress::Ended(result) => {
                self.end(result);
                Next::Finished
            }
        }
    }
}
