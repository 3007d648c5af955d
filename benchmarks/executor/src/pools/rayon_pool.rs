//! Rayon: a work-stealing pool for closures, without timers and without tasks that sleep.

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::pool_under_test::{PoolThreads, PoolUnderTest};

/// [`ThreadPool::spawn`].
#[derive(Debug)]
pub struct Rayon(ThreadPool);

impl PoolUnderTest for Rayon {
    const NAME: &'static str = "rayon";

    fn start(threads: PoolThreads) -> Self {
        let builder = ThreadPoolBuilder::new().num_threads(threads.non_io);
        Self(builder.build().expect("there is room for threads"))
    }

    fn schedule(&self, job: impl FnOnce() + Send + 'static) {
        self.0.spawn(job);
    }

    fn shutdown(self) {
        drop(self.0);
    }
}
