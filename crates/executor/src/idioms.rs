//! Shapes that tasks of the engine have in common, on top of the pool's public interface.

pub(crate) mod concurrency_limit;
pub(crate) mod head_timeout;
pub(crate) mod notifier;
pub(crate) mod progress_tracker;
pub(crate) mod ready_queue;
pub(crate) mod ready_task;
mod time_slice;
pub(crate) mod visits;
