//! The executor's promises, on threads and without them.

#![cfg(not(feature = "model"))]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail their tests")]

mod concurrency_limit;
mod deadlines;
mod destruction;
mod deterministic;
mod head_timeout;
mod loops;
mod notifier;
mod order;
mod owners;
mod ready_queue;
mod resizing;
mod single_stepping;
mod stress;
mod support;
mod threads;
mod visits;
mod wakes;
