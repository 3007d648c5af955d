//! The task that serves the vBuckets of a [`VbucketReadyQueue`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use document::Vbid;
use platform::Clock;

use crate::idioms::ready_queue::VbucketReadyQueue;
use crate::idioms::time_slice::TIME_SLICE;
use crate::task::{Next, Task, TaskContext};

/// Serves what a queue holds, until it is empty or a time slice has passed; then other tasks get
/// their turn first. Schedule it awake: it finds what was queued before it existed.
pub struct VbucketReadyTask<S> {
    clock: Clock,
    queue: Arc<VbucketReadyQueue>,
    serve: S,
    time_slice: Duration,
}

impl<S: FnMut(Vbid) + Send> VbucketReadyTask<S> {
    /// `clock` is the pool's; `serve` does what a ready vBucket waits for.
    pub fn new(clock: Clock, queue: Arc<VbucketReadyQueue>, serve: S) -> Self {
        Self { clock, queue, serve, time_slice: TIME_SLICE }
    }

    /// A run ends after `time_slice` instead of the default of 25 ms. Each run serves at least one
    /// vBucket.
    pub fn time_slice(self, time_slice: Duration) -> Self {
        Self { time_slice, ..self }
    }
}

impl<S: FnMut(Vbid) + Send> Task for VbucketReadyTask<S> {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        let end = context.started().after(self.time_slice);
        self.queue.begin_serving();
        while let Some(vbid) = self.queue.pop() {
            (self.serve)(vbid);
            if self.clock.now() >= end {
                return Next::Again;
            }
        }
        Next::Sleep
    }
}

impl<S> fmt::Debug for VbucketReadyTask<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("VbucketReadyTask")
            .field("queue", &self.queue)
            .field("time_slice", &self.time_slice)
            .finish_non_exhaustive()
    }
}
