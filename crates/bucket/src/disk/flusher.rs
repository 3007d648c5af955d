//! Brings what vBuckets have queued to disk.

use std::time::Duration;

use executor::{ExecutorPool, Next, OwnerIsGone, Task, TaskContext};
use executor::{TaskKind, TaskName};
use platform::Instant;

use super::apply_pace;
use super::flush_order::FlushOrder;
use crate::core::Bucket;

static FLUSHER: TaskName =
    TaskName::new("FlusherTask", TaskKind::Writer).priority(5).expected(Duration::from_secs(1));
/// Clients wait for what the journal's flusher does, and it takes no longer than a fetch: it must
/// not stand behind others at the lowest priority.
static JOURNAL_FLUSHER: TaskName = TaskName::new("JournalFlusherTask", TaskKind::Reader)
    .priority(0)
    .expected(Duration::from_millis(100));
/// Pause before another try when the journal is full and nobody says earlier that it is not.
const JOURNAL_FULL_PAUSE: Duration = Duration::from_millis(50);
/// For so long nothing is tried that would be in vain as far as anybody can tell.
const JOURNAL_FULL_WAIT_MAX: Duration = Duration::from_secs(1);

/// Items that a flusher writes, at most, before it gives memory back when it has nothing to do.
const UNRELEASED_ITEMS_MAX: usize = 10_000;
/// Items of a flush whose lists leave a thread with memory that is worth looking for later.
const AWAITED_ITEMS_MIN: usize = 1_000;
/// The journal's memory is given back when there has been nothing to do for so long: what the next
/// groups want again costs milliseconds to take anew.
const JOURNAL_RELEASE_DELAY: Duration = Duration::from_secs(1);
/// When nothing has come for so long, the last group is protected.
const JOURNAL_REST_DELAY: Duration = Duration::from_secs(1);
/// How often a flusher tries again to flush what a failing disk refuses while the node stops.
const SHUTDOWN_ATTEMPTS_MAX: usize = 3;

struct Flusher {
    bucket: Bucket,
    index: usize,
    /// Portions that were flushed.
    portion_count: u64,
    failed_attempts: usize,
    /// The journal fills up: the next group waits until then.
    not_before: Instant,
    /// The journal was full: tried again then, whatever became of it.
    full_retry_at: Instant,
    /// Items written since memory was given back to the system.
    unreleased_items: usize,
    /// When to give the journal's memory back, if there is nothing to do before.
    journal_release_at: Option<Instant>,
    /// When to end what the last group has begun, if there is nothing to do before.
    rest_at: Option<Instant>,
}

pub(crate) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    let is_journal = bucket.0.store.journal_usage().is_some();
    let name = if is_journal { &JOURNAL_FLUSHER } else { &FLUSHER };
    for (index, queue) in bucket.0.disk.flush_queues.queues.iter().enumerate() {
        let flusher = Flusher {
            bucket: bucket.clone(),
            index,
            portion_count: 0,
            failed_attempts: 0,
            not_before: Instant::default(),
            full_retry_at: Instant::default(),
            unreleased_items: 0,
            journal_release_at: None,
            rest_at: None,
        };
        let handle = pool.schedule(&bucket.0.background.owner, name, flusher)?;
        queue.flusher.set(handle).expect("flushers start once");
    }
    Ok(())
}

impl Task for Flusher {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        let core = &self.bucket.0;
        // While the node stops nobody else makes room: to wait for it would be in vain.
        if let Some(pause) = self.pause()
            && !context.is_shutting_down()
        {
            return Next::SleepFor(pause);
        }
        let queue = &core.disk.flush_queues.queues[self.index];
        let now = core.clock.now();
        let due_by = (!context.is_shutting_down()).then_some(now);
        let group = queue.pop_group(core.config.persistence.group_vbuckets_max(), due_by);
        if group.is_empty() {
            if let Some(next) = queue.next_deferred() {
                return Next::SleepFor(next.since(now));
            }
            return self.rest(now);
        }
        // The group that follows now protects the last one.
        self.rest_at = None;
        if let Some(release_at) = &mut self.journal_release_at {
            *release_at = now.after(JOURNAL_RELEASE_DELAY);
        }
        let flushed = core.flush_portion(&group, FlushOrder::of_portion(self.portion_count));
        self.portion_count += 1;
        self.unreleased_items += flushed.item_count;
        if flushed.item_count >= AWAITED_ITEMS_MIN {
            // What waits for the files is let go of by who writes them.
            platform::allocator::await_frees();
        }
        if flushed.journal_is_full {
            if !context.is_shutting_down() {
                self.full_retry_at = core.clock.now().after(JOURNAL_FULL_WAIT_MAX);
                return Next::SleepFor(JOURNAL_FULL_PAUSE);
            }
            return self.make_room_for_the_last();
        }
        if !flushed.has_failed {
            self.failed_attempts = 0;
            let pause = apply_pace::pause_of_commits(core.apply_pressure());
            self.not_before = core.clock.now().after(pause);
            return Next::Again;
        }
        if context.is_shutting_down() {
            return self.make_room_for_the_last();
        }
        self.failed_attempts += 1;
        Next::SleepFor(core.config.flush_retry_interval)
    }
}

impl Flusher {
    /// The journal, or the disk, is full while the node stops, and nobody else brings files up to
    /// date any more, which lets parts of the journal go. That is done until everything is durable,
    /// however long it takes; given up is only what the disk refuses again and again, or what
    /// damaged files leave no room for.
    fn make_room_for_the_last(&mut self) -> Next {
        let core = &self.bucket.0;
        if core.make_room() {
            self.failed_attempts = 0;
            return Next::Again;
        }
        self.failed_attempts += 1;
        if self.failed_attempts < SHUTDOWN_ATTEMPTS_MAX {
            Next::Again
        } else {
            Next::SleepFor(core.config.flush_retry_interval)
        }
    }

    /// How long the journal's state has this flusher wait, if it does.
    fn pause(&self) -> Option<Duration> {
        let core = &self.bucket.0;
        let now = core.clock.now();
        if now < self.full_retry_at && core.waits_for_journal() {
            return Some(JOURNAL_FULL_PAUSE);
        }
        (now < self.not_before).then(|| self.not_before.since(now))
    }

    /// There is nothing to do. Gives back what large batches took.
    fn rest(&mut self, now: Instant) -> Next {
        if self.unreleased_items >= UNRELEASED_ITEMS_MAX {
            self.unreleased_items = 0;
            platform::allocator::release_unused();
            self.journal_release_at = Some(now.after(JOURNAL_RELEASE_DELAY));
        }
        if let Some(rest_at) = self.rest_journal(now) {
            return Next::SleepFor(rest_at.since(now));
        }
        let Some(release_at) = self.journal_release_at else { return Next::Sleep };
        if now < release_at {
            return Next::SleepFor(release_at.since(now));
        }
        self.journal_release_at = None;
        self.bucket.0.store.give_memory_back();
        Next::Sleep
    }

    /// Nothing follows the last group: damage of it would look like a group that was being written.
    /// When that has been so for a while, has an empty one follow it. Returns when to look again.
    fn rest_journal(&mut self, now: Instant) -> Option<Instant> {
        let store = &self.bucket.0.store;
        if !store.is_restless() {
            self.rest_at = None;
            return None;
        }
        let rest_at = *self.rest_at.get_or_insert(now.after(JOURNAL_REST_DELAY));
        if now < rest_at {
            return Some(rest_at);
        }
        self.rest_at = None;
        if let Err(error) = store.rest() {
            tracing::warn!(
                %error,
                "the journal's last group is not protected against damage yet, or room is kept \
                 that nothing needs"
            );
            self.rest_at = Some(now.after(self.bucket.0.config.flush_retry_interval));
        }
        self.rest_at
    }
}
