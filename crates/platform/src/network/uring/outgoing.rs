//! What goes out on one connection.
//!
//! Where the kernel receives ahead, a small write is copied and sent with the next wait, without a
//! call of its own: it counts as taken. One such send is under way at a time. Everything else is
//! written by a call, as with epoll.

use std::io::{self, ErrorKind, IoSlice, Write};

use io_uring::opcode::{PollAdd, Send};
use io_uring::types::Fd;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

use super::link::Link;
use super::operation::{Operation, Place};
use super::work::{News, SEND_BYTES_MAX, Work};

/// One connection's.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    pending: Pending,
    /// What is being sent. The kernel reads it until the operation is complete: until then it is
    /// neither changed nor freed.
    buffer: Vec<u8>,
    /// Bytes of it that the system has taken.
    sent: usize,
    /// The system has not taken all at once: what is left waits for the peer.
    is_blocked: bool,
    /// Somebody wants to know when it is sent.
    is_awaited: bool,
    failure: Option<Errno>,
}

/// What the kernel has been asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pending {
    #[default]
    Nothing,
    /// To say when there is room.
    Room,
    /// To send what is in the buffer.
    Sending,
    /// The same, or nothing of it.
    Cancelled,
}

impl Outgoing {
    /// Whether the kernel has nothing to do for it.
    pub(super) fn is_idle(&self) -> bool {
        self.pending == Pending::Nothing
    }

    /// Takes as much of `slices` as there is room for. `is_ahead` allows it to be sent later.
    pub(super) fn write(
        &mut self,
        slices: &[IoSlice<'_>],
        is_ahead: bool,
        (link, place): (&Link, Place),
        work: &mut Work,
    ) -> io::Result<usize> {
        if let Some(errno) = self.failure {
            return Err(errno.into());
        }
        // Behind what is being sent: a call would have its bytes overtake that.
        if matches!(self.pending, Pending::Sending | Pending::Cancelled) {
            self.is_awaited = true;
            return Err(ErrorKind::WouldBlock.into());
        }
        let size = slices.iter().map(|slice| slice.len()).sum();
        let is_small = (1..=SEND_BYTES_MAX).contains(&size);
        if is_ahead && is_small && self.pending == Pending::Nothing && !work.is_over {
            self.buffer = work.take_buffer(size);
            slices.iter().for_each(|slice| self.buffer.extend_from_slice(slice));
            // What of it is left after the first try counts as unsent (`after_try`).
            work.tried.push(place.slot);
            self.ask_to_send(link, place, work);
            return Ok(size);
        }
        let written = match slices {
            [slice] => (&link.socket).write(slice),
            slices => (&link.socket).write_vectored(slices),
        };
        let is_full = match &written {
            Ok(count) => *count < size,
            // The second of one that is being made.
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected),
        };
        if is_full {
            self.expect_room(link, place, work);
        }
        written
    }

    /// Whether the system has taken all that was written. If not, its news come as room.
    pub(super) fn has_sent(&mut self) -> bool {
        self.is_awaited |= self.is_sending();
        !self.is_sending()
    }

    fn is_sending(&self) -> bool {
        matches!(self.pending, Pending::Sending | Pending::Cancelled)
    }

    /// Has the kernel say when there is room.
    pub(super) fn expect_room(&mut self, link: &Link, place: Place, work: &mut Work) {
        if self.pending == Pending::Nothing && !work.is_over {
            self.pending = Pending::Room;
            let entry = PollAdd::new(Fd(link.descriptor()), EventFlags::OUT.bits()).build();
            work.ask(entry, Operation::AwaitWritable(place));
        }
    }

    fn ask_to_send(&mut self, link: &Link, place: Place, work: &mut Work) {
        let rest = &self.buffer[self.sent..];
        assert!(!rest.is_empty(), "something is sent");
        self.pending = Pending::Sending;
        let entry = Send::new(Fd(link.descriptor()), rest.as_ptr(), rest.len() as u32).build();
        work.ask(entry, Operation::Send(place));
    }

    /// There is room, or that cannot be waited for, which writing tells.
    pub(super) fn on_room(&mut self, result: i32) -> News {
        assert!(self.pending == Pending::Room, "what was not asked for is not answered");
        self.pending = Pending::Nothing;
        let ending = EventFlags::HUP | EventFlags::ERR;
        match u32::try_from(result) {
            Ok(events) if events & ending.bits() == 0 => News::Room,
            _ => News::Ending,
        }
    }

    /// The system has taken `sent` bytes of what is sent, or none.
    pub(super) fn on_sent(
        &mut self,
        sent: Result<usize, Errno>,
        (link, place): (&Link, Place),
        work: &mut Work,
    ) -> News {
        assert!(self.is_sending(), "what was not asked for is not answered");
        match sent {
            // Something is sent each time, so that taking none of it is no progress that could be
            // waited for.
            Ok(0) => self.failure = Some(Errno::PIPE),
            Ok(count) => {
                self.sent += count;
                assert!(self.sent <= self.buffer.len(), "no more is sent than there is");
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(errno) => self.failure = Some(errno),
        }
        let is_done = self.sent == self.buffer.len();
        if !is_done && self.failure.is_none() && self.pending == Pending::Sending {
            self.block(link);
            self.ask_to_send(link, place, work);
            return News::Room;
        }
        let is_news = self.is_blocked || self.is_awaited;
        work.put_buffer(std::mem::take(&mut self.buffer));
        *self = Self { failure: self.failure, ..Self::default() };
        link.set_unsent(0);
        match self.failure {
            Some(_) => News::Ending,
            None if is_news => News::Room,
            None => News::Nothing,
        }
    }

    /// Why nothing more can be sent.
    pub(super) fn failure(&self) -> Option<Errno> {
        self.failure
    }

    /// Sending was tried. What is left waits for the peer from now on, and counts as unsent; of a
    /// connection that is closed it is dropped.
    pub(super) fn after_try(&mut self, (link, place): (&Link, Place), work: &mut Work) -> News {
        if !self.is_sending() || self.is_blocked {
            return News::Nothing;
        }
        self.block(link);
        if self.pending == Pending::Cancelled {
            work.cancel(Operation::Send(place));
        }
        News::Room
    }

    fn block(&mut self, link: &Link) {
        self.is_blocked = true;
        link.set_unsent(self.buffer.len() - self.sent);
    }

    /// Nobody writes any more. What was taken is tried once, as a call would have.
    pub(super) fn close(&mut self, place: Place, work: &mut Work) {
        match self.pending {
            Pending::Nothing | Pending::Cancelled => {}
            Pending::Room => work.cancel(Operation::AwaitWritable(place)),
            Pending::Sending => {
                self.pending = Pending::Cancelled;
                if self.is_blocked {
                    work.cancel(Operation::Send(place));
                }
            }
        }
    }

    /// The kernel does nothing any more; or it may, and what it reads stays for ever.
    pub(super) fn end_operations(&mut self, is_certain: bool) {
        if !is_certain {
            std::mem::take(&mut self.buffer).leak();
        }
        *self = Self::default();
    }
}
