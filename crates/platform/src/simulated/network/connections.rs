//! The connections of a simulated network: two ends each, and what is on its way to them.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};

use super::state::{PollNumber, Watch};
use crate::clock::Instant;
use crate::network::readiness::{Readiness, Token};

/// Bytes that may be on their way to an end, or wait there to be read.
const ROOM_BYTES: usize = 256 << 10;

/// An end of a connection. The ends of a connection differ in the lowest bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EndNumber(u64);

/// All connections that somebody holds an end of.
#[derive(Debug, Default)]
pub(super) struct Connections {
    ends: BTreeMap<EndNumber, End>,
    next_number: u64,
}

/// One end, as long as somebody holds it.
#[derive(Debug)]
struct End {
    local: SocketAddr,
    peer: SocketAddr,
    /// In the order in which it was sent.
    incoming: VecDeque<Delivery>,
    incoming_bytes: usize,
    /// Nothing that is sent later arrives before this.
    last_arrival: Instant,
    watch: Option<Watch>,
    /// It could not write for want of room, and has not heard of any since.
    waits_for_room: bool,
    /// When it hears that there is room again.
    room_arrival: Option<Instant>,
}

/// Something that the peer has sent.
#[derive(Debug)]
struct Delivery {
    /// `None` while a cut holds it back.
    arrival: Option<Instant>,
    content: Content,
    /// Whether it has ended a wait.
    is_told: bool,
}

#[derive(Debug)]
enum Content {
    /// Those from this index on are not read yet.
    Bytes(Vec<u8>, usize),
    End,
    Reset,
}

impl EndNumber {
    fn peer(self) -> Self {
        Self(self.0 ^ 1)
    }
}

impl Delivery {
    fn has_arrived(&self, now: Instant) -> bool {
        self.arrival.is_some_and(|arrival| arrival <= now)
    }
}

impl End {
    fn new(local: SocketAddr, peer: SocketAddr) -> Self {
        Self {
            local,
            peer,
            incoming: VecDeque::new(),
            incoming_bytes: 0,
            last_arrival: Instant::default(),
            watch: None,
            waits_for_room: false,
            room_arrival: None,
        }
    }

    fn push(&mut self, content: Content, arrival: Option<Instant>) {
        if let Content::Bytes(bytes, _) = &content {
            self.incoming_bytes += bytes.len();
        }
        let arrival = arrival.map(|arrival| arrival.max(self.last_arrival));
        self.last_arrival = arrival.unwrap_or(self.last_arrival);
        self.incoming.push_back(Delivery { arrival, content, is_told: false });
    }

    fn has_news(&self, now: Instant) -> bool {
        let has_room = self.room_arrival.is_some_and(|arrival| arrival <= now);
        has_room || self.incoming.iter().any(|one| !one.is_told && one.has_arrived(now))
    }

    /// Takes the bytes that have arrived.
    fn read(&mut self, target: &mut [u8], now: Instant) -> io::Result<usize> {
        let mut count = 0;
        while count < target.len() {
            let Some(next) = self.incoming.front_mut().filter(|next| next.has_arrived(now)) else {
                break;
            };
            match &mut next.content {
                Content::Bytes(bytes, start) => {
                    let part = (bytes.len() - *start).min(target.len() - count);
                    target[count..count + part].copy_from_slice(&bytes[*start..*start + part]);
                    *start += part;
                    count += part;
                    if *start == bytes.len() {
                        self.incoming.pop_front();
                    }
                }
                _ if count > 0 => break,
                Content::End => return Ok(0),
                Content::Reset => return Err(io::ErrorKind::ConnectionReset.into()),
            }
        }
        if count == 0 && !target.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.incoming_bytes -= count;
        Ok(count)
    }
}

impl Connections {
    /// Makes a connection. Gives the end at `from`, and that at `to`.
    pub(super) fn add(&mut self, from: SocketAddr, to: SocketAddr) -> (EndNumber, EndNumber) {
        let number = EndNumber(self.next_number);
        self.next_number += 2;
        self.ends.insert(number, End::new(from, to));
        self.ends.insert(number.peer(), End::new(to, from));
        (number, number.peer())
    }

    /// The addresses of the machines of an end and of its peer, if somebody holds it.
    pub(super) fn machines(&self, number: EndNumber) -> Option<(IpAddr, IpAddr)> {
        self.ends.get(&number).map(|end| (end.local.ip(), end.peer.ip()))
    }

    /// Where the peer is; nowhere once the end is gone.
    pub(super) fn peer_address(&self, number: EndNumber) -> SocketAddr {
        let end = self.ends.get(&number);
        end.map_or_else(|| SocketAddr::new([0, 0, 0, 0].into(), 0), |end| end.peer)
    }

    /// Who is told of an end's news. What has come before is news.
    pub(super) fn watch(&mut self, number: EndNumber, watch: Option<Watch>) {
        if let Some(end) = self.ends.get_mut(&number) {
            end.watch = watch;
            end.incoming.iter_mut().for_each(|one| one.is_told = false);
        }
    }

    /// Sends bytes to the peer, as many as there is room for, at `arrival`.
    pub(super) fn write(
        &mut self,
        number: EndNumber,
        bytes: &[u8],
        arrival: Option<Instant>,
    ) -> io::Result<usize> {
        if !self.ends.contains_key(&number) {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let Some(peer) = self.ends.get_mut(&number.peer()) else {
            // Nobody is there any more, which is answered.
            self.reset(number, arrival);
            return Ok(bytes.len());
        };
        let size = bytes.len().min(ROOM_BYTES.saturating_sub(peer.incoming_bytes));
        if size == 0 && !bytes.is_empty() {
            self.ends.get_mut(&number).expect("it is there").waits_for_room = true;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        peer.push(Content::Bytes(bytes[..size].to_vec(), 0), arrival);
        Ok(size)
    }

    /// Reads what has arrived; the peer may hear at `room_arrival` that there is room again.
    pub(super) fn read(
        &mut self,
        number: EndNumber,
        target: &mut [u8],
        now: Instant,
        room_arrival: Option<Instant>,
    ) -> io::Result<usize> {
        let end = self.ends.get_mut(&number);
        let end = end.ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionReset))?;
        let count = end.read(target, now)?;
        if count > 0
            && let Some(peer) = self.ends.get_mut(&number.peer())
            && std::mem::take(&mut peer.waits_for_room)
        {
            peer.room_arrival = room_arrival;
        }
        Ok(count)
    }

    /// Nobody holds an end any more; its peer meets that at `arrival`.
    pub(super) fn close(&mut self, number: EndNumber, arrival: Option<Instant>) {
        if self.ends.remove(&number).is_some()
            && let Some(peer) = self.ends.get_mut(&number.peer())
        {
            peer.push(Content::End, arrival);
        }
    }

    /// An end hears that its peer is gone.
    pub(super) fn reset(&mut self, number: EndNumber, arrival: Option<Instant>) {
        if let Some(end) = self.ends.get_mut(&number)
            && !end.incoming.iter().any(|one| matches!(one.content, Content::Reset))
        {
            end.push(Content::Reset, arrival);
        }
    }

    /// The ends on a machine are gone, and nobody is told.
    pub(super) fn power_cut(&mut self, machine: IpAddr) {
        self.ends.retain(|_, end| end.local.ip() != machine);
    }

    /// Gives what was held back a time of arrival, which `draw` draws.
    pub(super) fn release(&mut self, mut draw: impl FnMut() -> Instant) {
        for end in self.ends.values_mut() {
            for one in end.incoming.iter_mut().filter(|one| one.arrival.is_none()) {
                end.last_arrival = end.last_arrival.max(draw());
                one.arrival = Some(end.last_arrival);
            }
        }
    }

    /// Whether a poll's ends have news.
    pub(super) fn have_news(&self, poll: PollNumber, now: Instant) -> bool {
        self.of_poll(poll).any(|(_, end)| end.has_news(now))
    }

    fn of_poll(&self, poll: PollNumber) -> impl Iterator<Item = (Token, &End)> {
        self.ends.values().filter_map(move |end| match end.watch {
            Some((of, token)) if of == poll => Some((token, end)),
            _ => None,
        })
    }

    /// Tells a poll the news of its ends.
    pub(super) fn take_news(&mut self, poll: PollNumber, now: Instant, ready: &mut Vec<Readiness>) {
        for end in self.ends.values_mut() {
            let Some((_, token)) = end.watch.filter(|(of, _)| *of == poll) else { continue };
            if !end.has_news(now) {
                continue;
            }
            let mut news = Readiness { token, is_readable: false, is_ending: false };
            end.room_arrival = end.room_arrival.filter(|arrival| *arrival > now);
            for one in end.incoming.iter_mut().filter(|one| one.has_arrived(now)) {
                news.is_readable |= !one.is_told;
                news.is_ending |= !matches!(one.content, Content::Bytes(..));
                one.is_told = true;
            }
            ready.push(news);
        }
    }

    /// All times at which something arrives after `now`.
    pub(super) fn arrivals_after(&self, now: Instant) -> impl Iterator<Item = Instant> {
        let of_end = |end: &End| {
            let deliveries = end.incoming.iter().filter_map(|one| one.arrival);
            deliveries.chain(end.room_arrival).collect::<Vec<_>>()
        };
        self.ends.values().flat_map(of_end).filter(move |&arrival| arrival > now)
    }
}
