//! Waiting for the operating system's sockets, through io_uring: one call for each turn of a loop
//! sends what was written, receives what has come, and waits.
//!
//! A ring is used by the thread of its loop alone. What streams want of it is collected under the
//! lock of `State` and handed over by the next wait; what has come is sorted there, too. Memory
//! that the kernel reads and writes belongs to `State`, and is kept until nothing is under way any
//! more.

mod buffer_ring;
mod incoming;
mod link;
mod operation;
mod outgoing;
mod slot;
mod state;
mod stream;
mod work;

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use io_uring::opcode::AsyncCancel2;
use io_uring::types::{CancelBuilder, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, cqueue};
use rustix::event::EventfdFlags;
use rustix::io::Errno;

use super::readiness::{Readiness, Token};
pub(super) use state::Shared;
pub(super) use stream::Stream;

/// Requests handed over by one call.
const ENTRIES: u32 = 512;
/// Completions that there is room for. More wait in the kernel.
const COMPLETIONS: u32 = 4096;
/// How often the end of a loop asks whether the kernel is done, and how long each time.
const DRAIN_ROUNDS: usize = 20;
const DRAIN_PATIENCE: Duration = Duration::from_millis(50);
/// How long a loop that is tried may take to notice that it is woken.
const PROBE_PATIENCE: Duration = Duration::from_secs(2);

/// A ring, and what its loop's streams share. Handles of that outlast it.
pub(super) struct Poll {
    ring: IoUring,
    shared: Shared,
    /// The first wait says which thread's ring it is.
    is_enabled: bool,
    /// Requests that the kernel has and has not completed for the last time.
    under_way: usize,
}

/// Ends a wait.
#[derive(Debug)]
pub(super) struct Waker(OwnedFd);

impl Poll {
    /// A loop that nobody waits at yet, on whatever thread it will be.
    ///
    /// # Errors
    /// The kernel is older than 6.1, or it or a sandbox forbids rings.
    pub(super) fn new() -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_r_disabled()
            .setup_submit_all()
            .setup_cqsize(COMPLETIONS)
            .build(ENTRIES)?;
        let shared = Shared::new()?;
        shared.lock().work.buffers.register(&ring.submitter())?;
        Ok(Self { ring, shared, is_enabled: false, under_way: 0 })
    }

    /// Whether loops work here: one is woken.
    pub(super) fn probe() -> io::Result<()> {
        const TOKEN: Token = Token(1);
        let mut poll = Self::new()?;
        poll.waker(TOKEN)?.wake();
        let mut ready = Vec::new();
        poll.wait(&mut ready, Some(PROBE_PATIENCE))?;
        if ready.iter().all(|readiness| readiness.token != TOKEN) {
            return Err(io::Error::other("a ring does not notice what happens"));
        }
        Ok(())
    }

    /// What streams and listeners are watched through.
    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// A waker whose wakes come as `token`.
    pub(super) fn waker(&self, token: Token) -> io::Result<Waker> {
        let descriptor = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        self.shared.lock().watch_waker(descriptor.try_clone()?, token);
        Ok(Waker(descriptor))
    }

    /// A signal ends a wait, too.
    pub(super) fn wait(
        &mut self,
        ready: &mut Vec<Readiness>,
        patience: Option<Duration>,
    ) -> io::Result<()> {
        if !self.is_enabled {
            self.ring.submitter().register_enable_rings()?;
            self.is_enabled = true;
        }
        // First: the buffers come back before the kernel fills any, and the cancellations that this
        // asks for are handed over with the rest.
        self.shared.lock().keep_unread();
        self.hand_over()?;
        self.enter(patience)?;
        self.take_completions(ready)
    }

    /// Hands everything over that was asked for, all but the last of it by calls of its own.
    fn hand_over(&mut self) -> io::Result<()> {
        loop {
            let mut state = self.shared.lock();
            let queued = &mut state.work.queued;
            let mut submission = self.ring.submission();
            let room = submission.capacity() - submission.len();
            let count = queued.len().min(room);
            // SAFETY: every entry comes from `Work::ask`. What its operation reads or writes, the
            // buffer of `Outgoing` or those of `BufferRing`, stays where it is until its last
            // completion was taken, or for ever (`State::end`). Descriptors are held by the slot or
            // by `Watched`.
            let pushed = unsafe { submission.push_multiple(&queued[..count]) };
            assert!(pushed.is_ok(), "there is room for what was counted");
            queued.drain(..count);
            self.under_way += count;
            let is_all = queued.is_empty();
            drop(submission);
            drop(state);
            // Where the kernel takes none for now (`tolerate`), the rest stays queued for the next
            // wait.
            if is_all || tolerate(self.ring.submit())? == 0 {
                return Ok(());
            }
        }
    }

    /// Submits, and waits for the first completion.
    fn enter(&mut self, patience: Option<Duration>) -> io::Result<()> {
        let entered = match patience {
            None => self.ring.submit_and_wait(1),
            Some(Duration::ZERO) => {
                let count = self.ring.submission().len() as u32;
                let submitter = self.ring.submitter();
                // With deferred task work the kernel completes nothing for who does not ask for
                // events, which a plain submission does not.
                let flags = EnterFlags::GETEVENTS.bits();
                // SAFETY: as many entries are submitted as there are, and no argument is given.
                unsafe { submitter.enter::<()>(count, 0, flags, None) }
            }
            Some(patience) => {
                let time = Timespec::from(patience);
                self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&time))
            }
        };
        tolerate(entered).map(drop)
    }

    fn take_completions(&mut self, ready: &mut Vec<Readiness>) -> io::Result<()> {
        let mut state = self.shared.lock();
        state.begin_round();
        for completion in self.ring.completion() {
            if !cqueue::more(completion.flags()) {
                assert!(self.under_way > 0, "what completes was asked for");
                self.under_way -= 1;
            }
            state.on_completion(&completion)?;
        }
        state.end_round(ready);
        Ok(())
    }

    /// Has everything end that is under way. Whether it has.
    fn drain(&mut self) -> io::Result<bool> {
        if !self.is_enabled {
            // Nobody has waited at it yet, so nothing was handed over.
            return Ok(self.under_way == 0);
        }
        let mut ready = Vec::new();
        // What was written is tried first.
        self.wait(&mut ready, Some(Duration::ZERO))?;
        for _ in 0..DRAIN_ROUNDS {
            if self.under_way == 0 {
                return Ok(true);
            }
            let entry = AsyncCancel2::new(CancelBuilder::any()).build();
            self.shared.lock().work.ask(entry, operation::Operation::Cancel);
            self.wait(&mut ready, Some(DRAIN_PATIENCE))?;
        }
        Ok(false)
    }
}

impl Drop for Poll {
    /// Streams that outlast it read and write nothing ahead any more.
    fn drop(&mut self) {
        let is_certain = self.drain().unwrap_or(false);
        self.shared.lock().end(is_certain);
    }
}

impl std::fmt::Debug for Poll {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Poll").field("under_way", &self.under_way).finish_non_exhaustive()
    }
}

impl Waker {
    pub(super) fn wake(&self) {
        // The one failure is a full counter, and then there is a wake.
        rustix::io::write(&self.0, &1_u64.to_ne_bytes()).unwrap_or_default();
    }
}

/// What a call has submitted. That nothing has come in time is no error, nor is what passes: a
/// signal, too many completions that wait, no memory for more requests right now.
fn tolerate(entered: io::Result<usize>) -> io::Result<usize> {
    const PASSING: [Errno; 4] = [Errno::TIME, Errno::INTR, Errno::BUSY, Errno::AGAIN];
    match entered {
        Err(error)
            if Errno::from_io_error(&error).is_some_and(|errno| PASSING.contains(&errno)) =>
        {
            Ok(0)
        }
        entered => entered,
    }
}
