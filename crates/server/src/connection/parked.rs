//! Requests that wait for something, of all connections of one worker.

use bucket::Completion;
use document::Map;
use vbucket::Waiter;

use crate::commands::Completed;

/// The worker's number takes the upper bits of a waiter's name, a count the lower ones.
const WORKER_SHIFT: u32 = 48;

/// A request that waits.
#[derive(Debug)]
pub(crate) struct ParkedRequest {
    /// Whose it is.
    pub(crate) token: usize,
    /// The whole frame.
    pub(crate) frame: Vec<u8>,
    /// How far it has come.
    pub(crate) progress: Progress,
    /// When it was received.
    pub(crate) started: platform::Instant,
}

/// How far a request that waits has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nothing has happened: it is executed again, or answered.
    NotBegun,
    /// Its durable write has begun, and it waits for the end alone. Its value is gone, so that it
    /// must not be executed again. The answer to a counter carries its number.
    Begun {
        /// The number that a durable counter has, if it is one.
        number: Option<u64>,
    },
}

impl Progress {
    /// What a durable counter that has begun answers.
    pub(super) fn number(self) -> Option<u64> {
        match self {
            Self::NotBegun => None,
            Self::Begun { number } => number,
        }
    }

    /// Whether a request that has come this far may go on with `completed`.
    fn admits(self, completed: &Completed) -> bool {
        match self {
            Self::NotBegun => true,
            Self::Begun { .. } => matches!(completed, Completed::Bucket(Completion::SyncWrite(_))),
        }
    }
}

/// All requests of a worker that wait, by the name under which their completions come.
#[derive(Debug)]
pub(crate) struct Parked {
    requests: Map<u64, ParkedRequest>,
    worker: usize,
    next: u64,
}

impl Parked {
    pub(crate) fn of_worker(worker: usize) -> Self {
        Self { requests: Map::default(), worker, next: 0 }
    }

    /// The worker that a waiter belongs to.
    pub(crate) fn worker_of(waiter: Waiter) -> usize {
        usize::try_from(waiter.0 >> WORKER_SHIFT).unwrap_or(usize::MAX)
    }

    /// A name for a request that may have to wait. No other has it: whatever has begun in its name
    /// may complete later, also if the request did not wait for it after all.
    pub(crate) fn next_waiter(&mut self) -> Waiter {
        let worker = u64::try_from(self.worker).unwrap_or(u64::MAX);
        let waiter = Waiter((worker << WORKER_SHIFT) | self.next);
        self.next = (self.next + 1) & ((1 << WORKER_SHIFT) - 1);
        waiter
    }

    /// Parks a request under its name, from [`Parked::next_waiter`].
    pub(crate) fn park(&mut self, waiter: Waiter, request: ParkedRequest) {
        self.requests.insert(waiter.0, request);
    }

    /// Takes the request whose completion has come. One that has begun stays until its durable
    /// write has ended, whatever else comes in its name.
    pub(crate) fn take(&mut self, waiter: Waiter, completed: &Completed) -> Option<ParkedRequest> {
        let request = self.requests.get(&waiter.0)?;
        if !request.progress.admits(completed) {
            return None;
        }
        self.requests.remove(&waiter.0)
    }

    /// Forgets the requests of a connection that is gone.
    pub(crate) fn forget(&mut self, token: usize) {
        self.requests.retain(|_, request| request.token != token);
    }
}

#[cfg(test)]
mod tests {
    use vbucket::SyncWriteEnd;

    use super::*;

    const RETRY: Completed = Completed::Bucket(Completion::Retry(None));

    fn request(token: usize, progress: Progress) -> ParkedRequest {
        ParkedRequest { token, frame: Vec::new(), progress, started: Default::default() }
    }

    #[test]
    fn a_waiter_leads_back_to_its_worker_and_request() {
        let mut parked = Parked::of_worker(3);
        let first = parked.next_waiter();
        parked.park(first, request(7, Progress::NotBegun));
        let unused = parked.next_waiter();
        let second = parked.next_waiter();
        parked.park(second, request(8, Progress::NotBegun));
        assert!(parked.take(unused, &RETRY).is_none(), "what it waited for is nobody else's");
        assert_eq!(Parked::worker_of(second), 3);
        assert_eq!(parked.take(first, &RETRY).unwrap().token, 7);
        assert!(parked.take(first, &RETRY).is_none());
        parked.forget(8);
        assert!(parked.take(second, &RETRY).is_none());
    }

    #[test]
    fn a_durable_write_that_has_begun_waits_for_its_end_alone() {
        let mut parked = Parked::of_worker(0);
        let waiter = parked.next_waiter();
        let progress = Progress::Begun { number: Some(5) };
        parked.park(waiter, request(7, progress));
        for other in [Completion::Retry(None), Completion::ReadFailed, Completion::NotPersisted] {
            let taken = parked.take(waiter, &Completed::Bucket(other.clone()));
            assert!(taken.is_none(), "{other:?} is not the end of a durable write");
        }
        let end = Completed::Bucket(Completion::SyncWrite(SyncWriteEnd::Ambiguous));
        assert_eq!(parked.take(waiter, &end).unwrap().progress, progress);
        assert!(parked.take(waiter, &end).is_none(), "a write ends once");
    }
}
