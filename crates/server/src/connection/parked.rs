//! Requests that wait for something, of all connections of one worker.

use bucket::Completion;
use document::Map;
use protocol::Opcode;
use vbucket::Waiter;

use super::identity::Reply;
use super::known_answer::{KnownAnswer, KnownOfLine};
use crate::completed::Completed;
use crate::slow_operations::Spans;

/// The worker's number takes the upper bits of a waiter's name, a count the lower ones.
const WORKER_SHIFT: u32 = 48;
const WORKERS_MAX: usize = 1 << (u64::BITS - WORKER_SHIFT);

/// A request that waits.
#[derive(Debug)]
pub(crate) struct ParkedRequest {
    /// Whose it is.
    pub(crate) token: usize,
    /// What is left of it.
    pub(crate) kept: Kept,
    /// When it was received.
    pub(crate) started: platform::Instant,
    /// When it began to wait.
    pub(crate) parked_at: platform::Instant,
    /// What it has waited for before.
    pub(crate) spans: Spans,
}

/// What is kept of a request that waits.
#[derive(Debug)]
pub(crate) enum Kept {
    /// The whole frame: nothing has happened yet, and it is executed again, or answered.
    Frame(Vec<u8>),
    /// The answer: its durable write has begun, and waits for the end alone.
    Answer(ParkedAnswer),
    /// Of a request of the text protocol its line, which says how it is answered: it has begun,
    /// and waits for its end alone.
    Line(Vec<u8>, KnownOfLine),
    /// A request of the text protocol that is still the first of the input, and is executed again.
    HeadOfInput,
}

/// What answers a durable write that has begun, but how it has ended.
#[derive(Clone, Debug)]
pub(crate) struct ParkedAnswer {
    pub(crate) reply: Reply,
    /// Whether success is not answered.
    pub(crate) is_quiet: bool,
    /// What the end brings.
    pub(crate) known: KnownAnswer,
}

impl Kept {
    /// Bytes that it holds of what the client sent.
    pub(super) fn held_bytes(&self) -> usize {
        match self {
            Self::Frame(bytes) | Self::Line(bytes, _) => bytes.capacity(),
            Self::Answer(_) | Self::HeadOfInput => 0,
        }
    }

    /// Whether it is an order about the node's buckets, which is carried out whichever of them the
    /// connection has.
    fn changes_buckets(&self) -> bool {
        match self {
            // The second byte of a frame is its opcode.
            Self::Frame(bytes) => bytes.get(1).is_some_and(|byte| {
                [Opcode::CreateBucket, Opcode::DeleteBucket].map(Opcode::byte).contains(byte)
            }),
            Self::Answer(_) | Self::Line(..) | Self::HeadOfInput => false,
        }
    }

    /// Whether it may go on with `completed`. A durable write that has begun waits for its end,
    /// and nothing else does.
    fn admits(&self, completed: &Completed) -> bool {
        let is_end = matches!(completed, Completed::Bucket(Completion::SyncWrite(_)));
        match self {
            Self::Answer(_) => is_end,
            Self::Frame(_) | Self::HeadOfInput => !is_end,
            // It may be a FLUSH as well.
            Self::Line(..) => is_end || matches!(completed, Completed::Flushed(_)),
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
        assert!(worker < WORKERS_MAX, "a worker's number fits into its waiters' names");
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
        assert_eq!(Self::worker_of(waiter), self.worker, "a request waits at its own worker");
        let before = self.requests.insert(waiter.0, request);
        assert!(before.is_none(), "no two requests wait under one name: {waiter:?}");
    }

    /// Takes the request whose completion has come. One that has begun stays until its durable
    /// write has ended, whatever else comes in its name.
    pub(crate) fn take(&mut self, waiter: Waiter, completed: &Completed) -> Option<ParkedRequest> {
        assert_eq!(
            Self::worker_of(waiter),
            self.worker,
            "a completion comes to the request's worker"
        );
        // Its connection may be gone, or the request did not wait for it after all.
        let request = self.requests.get(&waiter.0)?;
        if !request.kept.admits(completed) {
            return None;
        }
        self.requests.remove(&waiter.0)
    }

    /// Takes the requests of a connection that wait for its bucket: all, but for orders about
    /// buckets.
    pub(crate) fn take_of(&mut self, token: usize) -> Vec<ParkedRequest> {
        let is_lost =
            |request: &ParkedRequest| request.token == token && !request.kept.changes_buckets();
        let lost = self.requests.iter().filter(|(_, request)| is_lost(request));
        let mut names: Vec<u64> = lost.map(|(name, _)| *name).collect();
        // Answered in the order in which they came, not in that of the map (invariant 12).
        names.sort_unstable();
        names.iter().filter_map(|name| self.requests.remove(name)).collect()
    }

    /// Forgets the requests of a connection that is gone.
    pub(crate) fn forget(&mut self, token: usize) {
        self.requests.retain(|_, request| request.token != token);
    }
}

#[cfg(test)]
mod tests {
    use protocol::FeatureSet;
    use vbucket::{Ambiguity, SyncWriteEnd};

    use super::*;

    const RETRY: Completed = Completed::Bucket(Completion::Retry(None));

    fn request(token: usize, kept: Kept) -> ParkedRequest {
        let (started, spans) = (platform::Instant::default(), Spans::default());
        ParkedRequest { token, kept, started, parked_at: started, spans }
    }

    fn frame() -> Kept {
        Kept::Frame(Vec::new())
    }

    #[test]
    fn a_waiter_leads_back_to_its_worker_and_request() {
        let mut parked = Parked::of_worker(3);
        let first = parked.next_waiter();
        parked.park(first, request(7, frame()));
        let unused = parked.next_waiter();
        let second = parked.next_waiter();
        parked.park(second, request(8, frame()));
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
        let reply = Reply { opcode: 5, opaque: 1, features: FeatureSet::default() };
        let answer = ParkedAnswer { reply, is_quiet: false, known: KnownAnswer::Number(5) };
        let kept = Kept::Answer(answer);
        assert_eq!(kept.held_bytes(), 0, "nothing of what the client sent is held");
        parked.park(waiter, request(7, kept));
        for other in [Completion::Retry(None), Completion::ReadFailed, Completion::NotPersisted] {
            let taken = parked.take(waiter, &Completed::Bucket(other.clone()));
            assert!(taken.is_none(), "{other:?} is not the end of a durable write");
        }
        let end = Completed::Bucket(Completion::SyncWrite(SyncWriteEnd::Ambiguous(
            Ambiguity::TimeIsOver,
        )));
        let taken = parked.take(waiter, &end).unwrap();
        let Kept::Answer(answer) = taken.kept else { panic!("it was an answer") };
        assert_eq!(answer.known, KnownAnswer::Number(5));
        assert!(parked.take(waiter, &end).is_none(), "a write ends once");
    }

    #[test]
    fn orders_about_buckets_wait_on_when_their_connection_loses_its_own() {
        let frame_of = |opcode: Opcode| Kept::Frame(vec![0x80, opcode.byte()]);
        let mut parked = Parked::of_worker(0);
        let opcodes = [Opcode::CreateBucket, Opcode::Get, Opcode::DeleteBucket];
        let waiters = opcodes.map(|opcode| {
            let waiter = parked.next_waiter();
            parked.park(waiter, request(7, frame_of(opcode)));
            waiter
        });
        assert_eq!(parked.take_of(7).len(), 1);
        for (waiter, waits) in waiters.into_iter().zip([true, false, true]) {
            let end = Completed::BucketChanged(Ok(()));
            assert_eq!(parked.take(waiter, &end).is_some(), waits);
        }
    }

    #[test]
    fn what_has_not_begun_does_not_end() {
        for kept in [frame(), Kept::HeadOfInput] {
            let mut parked = Parked::of_worker(0);
            let waiter = parked.next_waiter();
            parked.park(waiter, request(7, kept));
            let end = Completed::Bucket(Completion::SyncWrite(SyncWriteEnd::Ambiguous(
                Ambiguity::TimeIsOver,
            )));
            assert!(parked.take(waiter, &end).is_none());
            assert!(parked.take(waiter, &RETRY).is_some());
        }
    }

    #[test]
    fn a_line_waits_for_the_end_of_a_write_or_a_flush_and_is_never_executed_again() {
        let ends = [
            Completed::Bucket(Completion::SyncWrite(SyncWriteEnd::Ambiguous(
                Ambiguity::TimeIsOver,
            ))),
            Completed::Flushed(Ok(())),
        ];
        for end in ends {
            let mut parked = Parked::of_worker(0);
            let waiter = parked.next_waiter();
            let known = KnownOfLine::Counted { number: 15, computed_from: None };
            let kept = Kept::Line(b"incr n 5".to_vec(), known);
            assert!(kept.held_bytes() >= 8, "the line is held");
            parked.park(waiter, request(7, kept));
            assert!(parked.take(waiter, &RETRY).is_none());
            assert!(parked.take(waiter, &Completed::Bucket(Completion::ReadFailed)).is_none());
            assert!(parked.take(waiter, &end).is_some());
        }
    }
}
