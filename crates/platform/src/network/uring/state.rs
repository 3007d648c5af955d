//! What a loop and its streams share: its connections, and what came of them.

use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use io_uring::cqueue;
use io_uring::opcode::PollAdd;
use io_uring::types::Fd;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

use super::incoming::Received;
use super::link::Link;
use super::operation::{Operation, Place};
use super::slot::Slot;
use super::work::{News, Work};
use crate::network::readiness::{Readiness, Token};
use crate::network::real;

/// A handle. One thread uses it, that of the loop; the lock is what lets streams move to it.
#[derive(Clone, Debug)]
pub(in crate::network) struct Shared(Arc<Mutex<State>>);

/// What is under the lock.
#[derive(Debug)]
pub(super) struct State {
    pub(super) work: Work,
    /// Each lies by itself: the list stays small, and who goes leaves no room behind.
    slots: Vec<Option<Box<Slot>>>,
    /// Places of slots that can be used again.
    free: Vec<Place>,
    watched: Vec<Watched>,
    /// Slots into which something was received since the last wait.
    received: Vec<u32>,
    ready: Vec<Readiness>,
}

/// What has news again and again, for as long as the loop is there.
#[derive(Debug)]
enum Watched {
    /// A duplicate: its number is not used for anything else while the kernel is asked about it.
    Waker(OwnedFd, Token),
    /// All listeners, behind one epoll. The kernel ends a ring some time after its process is
    /// gone, and until then keeps what it was asked about: a listener of its own would still have
    /// its port then, take connections for nobody, and not let the next process have it.
    Listeners(real::Poll),
}

impl Watched {
    fn descriptor(&self) -> RawFd {
        match self {
            Self::Waker(descriptor, _) => descriptor.as_raw_fd(),
            Self::Listeners(epoll) => epoll.as_raw_fd(),
        }
    }
}

impl Shared {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(Mutex::new(State {
            work: Work::new()?,
            slots: Vec::new(),
            free: Vec::new(),
            watched: Vec::new(),
            received: Vec::new(),
            ready: Vec::new(),
        }))))
    }

    /// Has a listener's arrivals come as `token`.
    pub(in crate::network) fn watch_listener(
        &self,
        listener: &mut mio::net::TcpListener,
        token: Token,
    ) -> io::Result<()> {
        let mut state = self.lock();
        let epoll = state.listeners()?;
        epoll.registry().register(listener, mio::Token(token.0), mio::Interest::READABLE)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Has a waker's wakes come as `token`, for as long as the loop is there.
    pub(super) fn watch_waker(&mut self, descriptor: OwnedFd, token: Token) {
        self.watch(Watched::Waker(descriptor, token));
    }

    /// What listeners are watched by. It is watched itself from the first of them on.
    fn listeners(&mut self) -> io::Result<&mut real::Poll> {
        let is_listeners = |watched: &Watched| matches!(watched, Watched::Listeners(_));
        if !self.watched.iter().any(is_listeners) {
            self.watch(Watched::Listeners(real::Poll::new()?));
        }
        let mut all = self.watched.iter_mut();
        let epoll = all.find_map(|watched| match watched {
            Watched::Listeners(epoll) => Some(epoll),
            Watched::Waker(..) => None,
        });
        Ok(epoll.expect("it was put there"))
    }

    fn watch(&mut self, watched: Watched) {
        self.watched.push(watched);
        self.ask_to_watch(self.watched.len() - 1);
    }

    fn ask_to_watch(&mut self, index: usize) {
        let Some(watched) = self.watched.get(index) else { return };
        let descriptor = Fd(watched.descriptor());
        let entry = PollAdd::new(descriptor, EventFlags::IN.bits()).multi(true).build();
        self.work.ask(entry, Operation::Watch(index as u32));
    }

    /// Takes a connection in.
    pub(super) fn adopt(&mut self, link: Arc<Link>, token: Token) -> Place {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            Place { slot: (self.slots.len() - 1) as u32, generation: 0 }
        });
        let slot = &mut self.slots[place.slot as usize];
        assert!(slot.is_none(), "a place has one connection");
        *slot = Some(Box::new(Slot::new(place, link, token, &mut self.work)));
        place
    }

    /// The connection at `place`, which is there until its stream is closed, and what it works
    /// with.
    fn at(&mut self, place: Place) -> (&mut Slot, &mut Work) {
        let slot = self.slots[place.slot as usize].as_mut().expect("a stream has its slot");
        assert!(slot.place == place, "a slot is used again when nobody asks for its last one");
        (slot, &mut self.work)
    }

    #[inline]
    pub(super) fn read(&mut self, place: Place, target: &mut [u8]) -> io::Result<usize> {
        let (slot, work) = self.at(place);
        slot.incoming.read(target, &slot.link, place, work)
    }

    #[inline]
    pub(super) fn write(&mut self, place: Place, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let (slot, work) = self.at(place);
        let is_ahead = slot.incoming.is_ahead();
        slot.outgoing.write(slices, is_ahead, (&slot.link, place), work)
    }

    pub(super) fn has_sent(&mut self, place: Place) -> bool {
        self.at(place).0.outgoing.has_sent()
    }

    pub(super) fn allow_ahead(&mut self, place: Place, is_allowed: bool) {
        let (slot, work) = self.at(place);
        slot.incoming.allow_ahead(is_allowed, place, work);
    }

    pub(super) fn forget(&mut self, place: Place) {
        self.at(place).0.forget();
    }

    pub(super) fn close(&mut self, place: Place) {
        let (slot, work) = self.at(place);
        slot.close(work);
        self.free_if_over(place);
    }

    fn free_if_over(&mut self, place: Place) {
        let slot = &mut self.slots[place.slot as usize];
        if slot.as_ref().is_some_and(|slot| slot.is_over()) {
            *slot = None;
            // Another generation: a completion of the last one would be noticed.
            self.free.push(place.next());
        }
    }

    /// Before a wait: buffers of the ring that were not read come back to it.
    pub(super) fn keep_unread(&mut self) {
        if self.work.buffers.is_any_lent() {
            for index in &self.received {
                if let Some(slot) = &mut self.slots[*index as usize] {
                    slot.incoming.keep_unread(slot.place, &mut self.work);
                }
            }
        }
        assert!(!self.work.buffers.is_any_lent(), "between two waits all buffers come back");
        self.received.clear();
    }

    /// What completes from now on are news of another round.
    pub(super) fn begin_round(&self) {
        assert!(self.ready.is_empty(), "the news of the last round were taken");
    }

    /// Takes over what the kernel has done.
    pub(super) fn on_completion(&mut self, completion: &cqueue::Entry) -> io::Result<()> {
        let (result, flags) = (completion.result(), completion.flags());
        let lent = cqueue::buffer_select(flags).map(|id| {
            // With an end or an error comes an empty one, or none.
            self.work.buffers.lend(id, usize::try_from(result).unwrap_or(0))
        });
        let goes_on = cqueue::more(flags);
        let operation = Operation::from_bits(completion.user_data());
        let place = match operation {
            Operation::Cancel => return Ok(()),
            Operation::Watch(index) => return self.on_watched(index, result, goes_on),
            Operation::AwaitReadable(place)
            | Operation::Receive(place)
            | Operation::AwaitWritable(place)
            | Operation::Send(place) => place,
        };
        let (slot, work) = self.at(place);
        let news = match operation {
            Operation::Receive(_) => {
                let received = Received { size: succeeded(result), lent, goes_on };
                if slot.is_closed {
                    slot.incoming.on_received_in_vain(received, work)
                } else {
                    slot.incoming.on_received(received, &slot.link, place, work)
                }
            }
            Operation::AwaitReadable(_) => slot.incoming.on_readable(result),
            Operation::AwaitWritable(_) => slot.outgoing.on_room(result),
            _ => {
                let news = slot.outgoing.on_sent(succeeded(result), (&slot.link, place), work);
                if let Some(errno) = slot.outgoing.failure() {
                    // What failed has counted as taken, and its writer need not write again:
                    // reading tells of it.
                    slot.incoming.fail(errno);
                }
                news
            }
        };
        if matches!(operation, Operation::Receive(_)) {
            self.received.push(place.slot);
        }
        self.tell(place.slot, news);
        self.free_if_over(place);
        Ok(())
    }

    fn on_watched(&mut self, index: u32, result: i32, goes_on: bool) -> io::Result<()> {
        let index = index as usize;
        let Some(watched) = self.watched.get_mut(index) else { return Ok(()) };
        match watched {
            _ if result < 0 => {}
            Watched::Waker(_, token) => {
                let token = *token;
                self.ready.push(Readiness { token, is_readable: true, is_ending: false });
            }
            Watched::Listeners(epoll) => epoll.wait(&mut self.ready, Some(Duration::ZERO))?,
        }
        let is_cancelled = result == -Errno::CANCELED.raw_os_error();
        if !goes_on && !is_cancelled && !self.work.is_over {
            self.ask_to_watch(index);
        }
        Ok(())
    }

    /// Adds to what is said of a connection this round.
    fn tell(&mut self, index: u32, news: News) {
        let Some(slot) = &mut self.slots[index as usize] else { return };
        let Some(token) = slot.token().filter(|_| news != News::Nothing) else { return };
        let (is_readable, is_ending) = (news >= News::Readable, news == News::Ending);
        // Where it was told of in an earlier round, somebody else may be now.
        let told = self.ready.get_mut(slot.told_at as usize);
        if let Some(told) = told.filter(|told| told.token == token) {
            told.is_readable |= is_readable;
            told.is_ending |= is_ending;
        } else {
            slot.told_at = self.ready.len() as u32;
            self.ready.push(Readiness { token, is_readable, is_ending });
        }
    }

    /// Everything has been tried. Puts the round's news into `ready`.
    pub(super) fn end_round(&mut self, ready: &mut Vec<Readiness>) {
        while let Some(index) = self.work.tried.pop() {
            let Some(slot) = &mut self.slots[index as usize] else { continue };
            let news = slot.outgoing.after_try((&slot.link, slot.place), &mut self.work);
            self.tell(index, news);
        }
        ready.append(&mut self.ready);
    }

    /// There are no more waits. `is_certain` says that the kernel does nothing any more; otherwise
    /// it may, and keeps what it may read and write.
    pub(super) fn end(&mut self, is_certain: bool) {
        self.work.is_over = true;
        self.work.queued = Vec::new();
        self.watched = Vec::new();
        if !is_certain {
            self.work.buffers.leak();
        }
        for place in 0..self.slots.len() {
            let Some(slot) = &mut self.slots[place] else { continue };
            slot.incoming.end_operations();
            slot.outgoing.end_operations(is_certain);
            let place = slot.place;
            self.free_if_over(place);
        }
    }
}

fn succeeded(result: i32) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| Errno::from_raw_os_error(-result))
}
