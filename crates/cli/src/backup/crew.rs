//! Threads that share a list of jobs, and a line now and then about how far they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context, bail};
use platform::{Clock, Instant};

use crate::output::note;
use crate::progress::Pace;

/// Between two looks at the progress.
const LOOK: Duration = Duration::from_millis(250);
/// Without a sign of life for so long, the other side is taken for gone.
const SILENCE_MAX: Duration = Duration::from_secs(120);
/// How long a thread may take to end after an error.
const PARTING_MAX: Duration = Duration::from_secs(2);

/// Bytes that have been moved so far; what the jobs count, and others watch.
#[derive(Clone, Default)]
pub(super) struct Moved(Arc<Counts>);

#[derive(Default)]
struct Counts {
    bytes: AtomicU64,
    /// Signs of life that move no bytes forward.
    beats: AtomicU64,
}

/// How far it is, for people.
struct Progress {
    clock: Clock,
    began: Instant,
    /// When the next line is due.
    due_at: Instant,
    /// When there was a sign of life last, and how many there had been.
    moved_at: (Instant, u64),
    pace: Pace,
    jobs: usize,
    bytes_expected: u64,
}

impl Moved {
    pub(super) fn add(&self, bytes: usize) {
        self.0.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Something goes on, although these bytes were counted before.
    pub(super) fn beat(&self) {
        self.0.beats.fetch_add(1, Ordering::Relaxed);
    }

    fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Changes as long as anything goes on.
    pub(super) fn activity(&self) -> u64 {
        self.bytes().wrapping_add(self.0.beats.load(Ordering::Relaxed))
    }
}

/// Does `job` for each number below `jobs`, by `threads` threads. The results come in any order.
/// `check` is asked again and again whether it makes sense to go on.
///
/// # Errors
/// The first of a job, or of `check`: no further ones begin.
pub(super) fn run<T: Send + 'static>(
    jobs: usize,
    threads: usize,
    moved: &Moved,
    bytes_expected: u64,
    check: impl Fn() -> anyhow::Result<()>,
    job: impl Fn(usize) -> anyhow::Result<T> + Send + Sync + 'static,
) -> anyhow::Result<Vec<T>> {
    let (job, next) = (Arc::new(job), Arc::new(AtomicUsize::new(0)));
    let is_over = Arc::new(AtomicBool::new(false));
    let (sender, results) = mpsc::channel();
    for _ in 0..threads.clamp(1, jobs.max(1)) {
        let (job, next, sender) = (Arc::clone(&job), Arc::clone(&next), sender.clone());
        let is_over = Arc::clone(&is_over);
        let work = move || {
            while !is_over.load(Ordering::Relaxed) {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= jobs || sender.send(job(index)).is_err() {
                    return;
                }
            }
        };
        platform::threads::spawn("BackupWorker", work).context("no thread can be started")?;
    }
    // Only workers have senders from here on: when the last one has ended, so have the results.
    drop(sender);
    let mut progress = Progress::new(jobs, bytes_expected);
    let mut done = Vec::with_capacity(jobs);
    let ended = loop {
        match results.recv_timeout(LOOK) {
            Ok(Ok(result)) => done.push(result),
            Ok(Err(error)) => break Err(error),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break Ok(()),
        }
        if let Err(error) = progress.look(done.len(), moved).and_then(|()| check()) {
            break Err(error);
        }
    };
    is_over.store(true, Ordering::Relaxed);
    if ended.is_err() {
        // Whoever cleans up should be alone; who waits for the network is not waited for.
        while results.recv_timeout(PARTING_MAX).is_ok() {}
    }
    progress.clear();
    assert!(done.len() <= jobs, "a job is done once");
    assert!(ended.is_err() || done.len() == jobs, "who ends without an error has done every job");
    ended.map(|()| done)
}

impl Progress {
    fn new(jobs: usize, bytes_expected: u64) -> Self {
        let clock = Clock::real();
        let began = clock.now();
        let pace = Pace::of_stderr();
        let (due_at, moved_at) = (began.after(pace.silence), (began, 0));
        Self { clock, began, due_at, moved_at, pace, jobs, bytes_expected }
    }

    fn look(&mut self, done: usize, moved: &Moved) -> anyhow::Result<()> {
        let (now, bytes) = (self.clock.now(), moved.bytes());
        if moved.activity() != self.moved_at.1 {
            self.moved_at = (now, moved.activity());
        }
        if now.since(self.moved_at.0) > SILENCE_MAX {
            bail!("nothing has moved for {} seconds", SILENCE_MAX.as_secs());
        }
        if now >= self.due_at {
            self.due_at = now.after(self.pace.interval);
            let took = now.since(self.began);
            self.pace.write(&line(done, self.jobs, bytes, self.bytes_expected, took));
        }
        Ok(())
    }

    fn clear(&self) {
        if self.pace.is_terminal {
            note("\r\x1b[K");
        }
    }
}

/// vBuckets, bytes, rate, and how long it will go on.
fn line(done: usize, jobs: usize, bytes: u64, expected: u64, took: Duration) -> String {
    let rate = bytes as f64 / took.as_secs_f64().max(1e-3);
    let left = expected.saturating_sub(bytes) as f64 / rate.max(1.0);
    format!(
        "{done} of {jobs} vBuckets, {:.1} of about {:.1} MB, {:.1} MB/s, about {left:.0} s left",
        bytes as f64 / 1e6,
        expected.max(bytes) as f64 / 1e6,
        rate / 1e6,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_is_done_once_and_the_first_error_ends_all() {
        let mut done = run(100, 7, &Moved::default(), 0, || Ok(()), Ok).unwrap();
        done.sort_unstable();
        assert_eq!(done, (0..100).collect::<Vec<_>>());
        let job = |index| if index == 30 { bail!("job {index}") } else { Ok(index) };
        let error = run(100, 3, &Moved::default(), 0, || Ok(()), job).unwrap_err();
        assert_eq!(error.to_string(), "job 30");
        assert!(run(0, 3, &Moved::default(), 0, || Ok(()), Ok).unwrap().is_empty());
    }

    #[test]
    fn what_makes_no_sense_any_more_ends_though_a_job_takes_long() {
        let job = |index| {
            platform::threads::pause(PARTING_MAX * 2);
            Ok(index)
        };
        let check = || bail!("the other side is silent");
        let error = run(1, 1, &Moved::default(), 0, check, job).unwrap_err();
        assert_eq!(error.to_string(), "the other side is silent");
    }

    #[test]
    fn a_line_says_how_far_it_is_and_how_long_it_goes_on() {
        let text = line(3, 16, 50_000_000, 200_000_000, Duration::from_secs(10));
        assert_eq!(text, "3 of 16 vBuckets, 50.0 of about 200.0 MB, 5.0 MB/s, about 30 s left");
    }
}
