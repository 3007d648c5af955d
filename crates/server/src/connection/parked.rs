//! Requests that wait for something, of all connections of one worker.

use document::Map;
use vbucket::Waiter;

/// The worker's number takes the upper bits of a waiter's name, a count the lower ones.
const WORKER_SHIFT: u32 = 48;

/// A request that waits.
#[derive(Debug)]
pub(crate) struct ParkedRequest {
    /// Whose it is.
    pub(crate) token: usize,
    /// The whole frame.
    pub(crate) frame: Vec<u8>,
    /// The number that a durable counter has, if it is one.
    pub(crate) number: Option<u64>,
    /// When it was received.
    pub(crate) started: platform::Instant,
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

    /// Takes the request whose completion has come.
    pub(crate) fn take(&mut self, waiter: Waiter) -> Option<ParkedRequest> {
        self.requests.remove(&waiter.0)
    }

    /// Forgets the requests of a connection that is gone.
    pub(crate) fn forget(&mut self, token: usize) {
        self.requests.retain(|_, request| request.token != token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiter_leads_back_to_its_worker_and_request() {
        let mut parked = Parked::of_worker(3);
        let request = |token| ParkedRequest {
            token,
            frame: Vec::new(),
            number: None,
            started: Default::default(),
        };
        let first = parked.next_waiter();
        parked.park(first, request(7));
        let unused = parked.next_waiter();
        let second = parked.next_waiter();
        parked.park(second, request(8));
        assert!(parked.take(unused).is_none(), "what it waited for is nobody else's");
        assert_eq!(Parked::worker_of(second), 3);
        assert_eq!(parked.take(first).unwrap().token, 7);
        assert!(parked.take(first).is_none());
        parked.forget(8);
        assert!(parked.take(second).is_none());
    }
}
