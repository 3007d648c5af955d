//! Task pools: threads by kind of work, wakes, deadlines, owners, statistics.
//!
//! A [`Task`] is registered for an [`Owner`] (a bucket, or the node itself) and runs on a thread of
//! its [`TaskKind`]. Between runs it sleeps until somebody wakes it through its [`TaskHandle`] or
//! its deadline passes. Six promises hold for every task:
//!
//! 1. It never runs twice at the same time.
//! 2. A wake is never lost: after it, at least one more run begins.
//! 3. Wakes during a run add up to exactly one further run.
//! 4. `wake`, `snooze` and `cancel` never wait for a run, whoever calls them.
//! 5. It is destroyed under no lock of the pool, on a thread of the pool or on the one that
//!    unregisters its owner.
//! 6. Once [`Owner::unregister`] has returned, no task of that owner runs, waits to run or waits to
//!    be destroyed, and none can be scheduled.
//!
//! A pool with nothing to do makes no wake-ups at all.

mod deterministic_pool;
mod idioms;
mod loop_handle;
mod loops;
#[cfg(all(test, feature = "model"))]
mod models;
mod options;
mod owner;
mod pool;
mod pool_core;
mod queue;
mod statistics;
mod sync;
mod task;
mod threads;
mod timers;

pub use deterministic_pool::DeterministicPool;
pub use idioms::concurrency_limit::{ConcurrencyLimit, LimitPlace, Permit};
pub use idioms::head_timeout::HeadTimeout;
pub use idioms::notifier::{NotifiableTask, Notifier};
pub use idioms::progress_tracker::ProgressTracker;
pub use idioms::ready_queue::VbucketReadyQueue;
pub use idioms::ready_task::VbucketReadyTask;
pub use idioms::visits::{
    Interrupt, Revisit, StepOutcome, VbucketVisitor, VisitOrder, VisitOutcome, VisitTask,
    visit_async, visit_stepwise,
};
pub use loop_handle::{LoopHandle, LoopHasPanicked};
pub use loops::Looping;
pub use options::{PoolOptions, THREADS_MAX, ThreadCounts, ThreadSetting};
pub use owner::Owner;
pub use owner::terms::{OwnerIsGone, OwnerScope, Shutdown};
pub use pool::ExecutorPool;
pub use statistics::{TaskRuns, TaskStatisticsSnapshot, TaskStatus, Workload};
pub use task::cell::TaskHandle;
pub use task::kind::{TaskClass, TaskKind};
pub use task::name::TaskName;
pub use task::{Next, Task, TaskContext};
