//! What comes on one connection.
//!
//! Either the loop reads the socket when it is told that it can be read, as with epoll; or the
//! kernel receives ahead, into buffers of the loop, and reading takes what has come. The second
//! saves a call for each small request. It is for those who may make the node hold what they send,
//! and who are read at once: who sends much, or is left unread, goes back to the first.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read};
use std::iter;

use io_uring::opcode::{PollAdd, RecvMulti};
use io_uring::types::Fd;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

use super::buffer_ring::{BUFFER_BYTES, GROUP, Lent};
use super::link::Link;
use super::operation::{Operation, Place};
use super::work::{News, Work};

/// Small reads of the socket in a row after which more of them are expected.
const SMALL_READS_MIN: u8 = 4;
/// What a small one is below: a request of some KiB is one, many of them at once are not.
const SMALL_READ_BYTES: usize = 4 * BUFFER_BYTES;
/// Buffers that came at once from which on it is no traffic of small requests.
const ARRIVALS_MAX: usize = 8;

/// One connection's.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    pending: Pending,
    /// Received and not read: of small requests there is one buffer at a time.
    first: Option<Lent>,
    /// The same where there is more.
    backlog: Option<Box<Backlog>>,
    unread_bytes: usize,
    /// What reading meets when all is read that has come.
    end: Option<End>,
    /// Whether the kernel may receive ahead.
    is_ahead_allowed: bool,
    small_reads: u8,
}

/// What was received and not read where that is more than one buffer, or older than a wait. Never
/// empty.
#[derive(Debug, Default)]
struct Backlog {
    /// Received before a wait, which nobody's buffers outlast.
    kept: Vec<u8>,
    kept_read: usize,
    /// Behind what is kept, and behind the first buffer.
    arrived: VecDeque<Lent>,
}

/// What the kernel has been asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pending {
    #[default]
    Nothing,
    /// To say when the socket can be read.
    Readable,
    /// To receive.
    Receiving,
    /// To receive no more.
    Cancelled,
}

/// What the kernel says of receiving.
#[derive(Debug)]
pub(super) struct Received {
    /// Bytes; none are the end.
    pub(super) size: Result<usize, Errno>,
    /// Where they are.
    pub(super) lent: Option<Lent>,
    /// Whether it receives on.
    pub(super) goes_on: bool,
}

#[derive(Clone, Copy, Debug)]
enum End {
    /// The peer says no more.
    Closed,
    Failed(Errno),
}

impl Incoming {
    /// Whether the kernel may receive ahead from now on.
    pub(super) fn allow_ahead(&mut self, is_allowed: bool, place: Place, work: &mut Work) {
        self.is_ahead_allowed = is_allowed;
        if !is_allowed {
            self.fall_back(place, work);
        }
    }

    /// Whether the kernel receives ahead.
    #[inline]
    pub(super) fn is_ahead(&self) -> bool {
        self.pending == Pending::Receiving
    }

    /// Whether the kernel has nothing to do for it.
    pub(super) fn is_idle(&self) -> bool {
        self.pending == Pending::Nothing
    }

    /// Reads what has come. What reads less than it could has read all, and is told of more.
    pub(super) fn read(
        &mut self,
        target: &mut [u8],
        link: &Link,
        place: Place,
        work: &mut Work,
    ) -> io::Result<usize> {
        if self.unread_bytes > 0 {
            let count = self.take(target, work);
            link.set_unread(self.unread_bytes);
            if count < target.len() {
                self.expect_more(link, place, work);
            }
            return Ok(count);
        }
        match (self.end, self.pending) {
            (Some(End::Closed), _) => Ok(0),
            (Some(End::Failed(errno)), _) => Err(errno.into()),
            (None, Pending::Receiving | Pending::Cancelled) => Err(ErrorKind::WouldBlock.into()),
            (None, Pending::Nothing | Pending::Readable) => {
                self.read_socket(target, link, place, work)
            }
        }
    }

    fn read_socket(
        &mut self,
        target: &mut [u8],
        link: &Link,
        place: Place,
        work: &mut Work,
    ) -> io::Result<usize> {
        let read = (&link.socket).read(target);
        match &read {
            Ok(0) => {}
            Ok(count) => {
                let is_small = *count < SMALL_READ_BYTES;
                self.small_reads = if is_small { self.small_reads.saturating_add(1) } else { 0 };
                if *count < target.len() {
                    self.expect_more(link, place, work);
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.expect_more(link, place, work);
            }
            Err(_) => {}
        }
        read
    }

    /// Takes what the kernel has received.
    fn take(&mut self, target: &mut [u8], work: &mut Work) -> usize {
        let mut filled = self.backlog.as_mut().map_or(0, |backlog| backlog.take_kept(target));
        while filled < target.len()
            && let Some(mut lent) = self.first.take()
        {
            let count = lent.size().min(target.len() - filled);
            target[filled..filled + count].copy_from_slice(&work.buffers.bytes(&lent)[..count]);
            filled += count;
            lent.advance(count);
            if lent.size() > 0 {
                self.first = Some(lent);
            } else {
                work.buffers.give_back(lent);
                self.first = self.backlog.as_mut().and_then(|backlog| backlog.arrived.pop_front());
            }
        }
        self.backlog.take_if(|backlog| backlog.is_empty());
        assert!(filled <= self.unread_bytes, "no more is read than has come");
        self.unread_bytes -= filled;
        filled
    }

    /// Has the kernel say when there is more, or receive it.
    pub(super) fn expect_more(&mut self, link: &Link, place: Place, work: &mut Work) {
        if self.pending != Pending::Nothing || self.end.is_some() || work.is_over {
            return;
        }
        let socket = Fd(link.descriptor());
        if self.is_ahead_allowed && self.small_reads >= SMALL_READS_MIN {
            self.pending = Pending::Receiving;
            work.ask(RecvMulti::new(socket, GROUP).build(), Operation::Receive(place));
        } else {
            self.pending = Pending::Readable;
            let events = EventFlags::IN | EventFlags::RDHUP;
            let entry = PollAdd::new(socket, events.bits()).build();
            work.ask(entry, Operation::AwaitReadable(place));
        }
    }

    /// The socket can be read, or that cannot be waited for, which reading tells.
    pub(super) fn on_readable(&mut self, result: i32) -> News {
        assert!(self.pending == Pending::Readable, "what was not asked for is not answered");
        self.pending = Pending::Nothing;
        let ending = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        match u32::try_from(result) {
            Ok(events) if events & ending.bits() == 0 => News::Readable,
            _ => News::Ending,
        }
    }

    /// The kernel has received something, or does not receive any more.
    pub(super) fn on_received(
        &mut self,
        received: Received,
        link: &Link,
        place: Place,
        work: &mut Work,
    ) -> News {
        self.note_whether_it_goes_on(&received);
        let Received { size, lent, .. } = received;
        match (size, lent) {
            (Ok(1..), Some(lent)) => {
                self.unread_bytes += lent.size();
                link.set_unread(self.unread_bytes);
                if self.add(lent) > ARRIVALS_MAX {
                    // Large values are copied twice on this way, and take the buffers of others.
                    self.fall_back(place, work);
                }
                return News::Readable;
            }
            (Ok(1..), None) => panic!("what is received is in a buffer"),
            (_, Some(empty)) => work.buffers.give_back(empty),
            (_, None) => {}
        }
        match size {
            Ok(_) => self.end = Some(End::Closed),
            // The buffers are lent out, or it was cancelled: the socket says how it stands.
            Err(Errno::NOBUFS | Errno::CANCELED | Errno::INTR | Errno::AGAIN) => {
                return News::Readable;
            }
            Err(errno) => self.end = Some(End::Failed(errno)),
        }
        News::Ending
    }

    /// Adds what has come. How many buffers that are now.
    fn add(&mut self, lent: Lent) -> usize {
        if self.first.is_none() {
            self.first = Some(lent);
            return 1;
        }
        let backlog = self.backlog.get_or_insert_default();
        backlog.arrived.push_back(lent);
        1 + backlog.arrived.len()
    }

    /// The same when nobody reads any more.
    pub(super) fn on_received_in_vain(&mut self, received: Received, work: &mut Work) -> News {
        self.note_whether_it_goes_on(&received);
        if let Some(lent) = received.lent {
            work.buffers.give_back(lent);
        }
        News::Nothing
    }

    fn note_whether_it_goes_on(&mut self, received: &Received) {
        let is_receiving = matches!(self.pending, Pending::Receiving | Pending::Cancelled);
        assert!(is_receiving, "what was not asked for is not answered");
        if !received.goes_on {
            self.pending = Pending::Nothing;
        }
    }

    /// Sending has failed: the connection is broken.
    pub(super) fn fail(&mut self, errno: Errno) {
        self.end.get_or_insert(End::Failed(errno));
    }

    /// Gives the buffers back that were not read in time. Whoever reads so slowly is not received
    /// from ahead.
    pub(super) fn keep_unread(&mut self, place: Place, work: &mut Work) {
        let Some(first) = self.first.take() else { return };
        let backlog = self.backlog.get_or_insert_default();
        for lent in iter::once(first).chain(backlog.arrived.drain(..)) {
            backlog.kept.extend_from_slice(work.buffers.bytes(&lent));
            work.buffers.give_back(lent);
        }
        assert_eq!(backlog.kept_bytes(), self.unread_bytes, "what is unread is kept");
        self.fall_back(place, work);
    }

    /// No more is received ahead, for some time.
    fn fall_back(&mut self, place: Place, work: &mut Work) {
        self.small_reads = 0;
        if self.pending == Pending::Receiving {
            self.pending = Pending::Cancelled;
            work.cancel(Operation::Receive(place));
        }
    }

    /// Nobody reads any more.
    pub(super) fn close(&mut self, place: Place, work: &mut Work) {
        let arrived = self.backlog.take().map(|backlog| backlog.arrived).unwrap_or_default();
        self.first.take().into_iter().chain(arrived).for_each(|lent| work.buffers.give_back(lent));
        self.unread_bytes = 0;
        if self.pending == Pending::Readable {
            work.cancel(Operation::AwaitReadable(place));
        }
        self.fall_back(place, work);
    }

    /// The kernel does nothing any more.
    pub(super) fn end_operations(&mut self) {
        self.pending = Pending::Nothing;
    }
}

impl Backlog {
    /// Takes what is kept as far as there is room: how many bytes.
    fn take_kept(&mut self, target: &mut [u8]) -> usize {
        let rest = &self.kept[self.kept_read..];
        let count = rest.len().min(target.len());
        target[..count].copy_from_slice(&rest[..count]);
        self.kept_read += count;
        if self.kept_read == self.kept.len() {
            (self.kept, self.kept_read) = (Vec::new(), 0);
        }
        count
    }

    fn kept_bytes(&self) -> usize {
        self.kept.len() - self.kept_read
    }

    fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.arrived.is_empty()
    }
}
