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
//! 5. It is destroyed on a thread of the pool, under no lock of the pool.
//! 6. Once [`Owner::unregister`] has returned, no task of that owner runs, waits to run or waits to
//!    be destroyed, and none can be scheduled.
//!
//! A pool with nothing to do makes no wake-ups at all.

mod deterministic_pool;
mod options;
mod owner;
mod pool;
mod run_queue;
mod statistics;
mod task;
mod task_cell;
mod timers;
mod worker;

pub use deterministic_pool::DeterministicPool;
pub use options::{PoolOptions, ThreadCounts};
pub use owner::{Owner, OwnerIsGone, Shutdown};
pub use pool::ExecutorPool;
pub use statistics::{TaskStatistics, TaskStatisticsSnapshot};
pub use task::{Next, Task, TaskClass, TaskContext, TaskKind, TaskName};
pub use task_cell::TaskHandle;
