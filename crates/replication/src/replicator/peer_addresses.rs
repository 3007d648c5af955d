//! Where a node's name leads: found out apart from the loop, and kept.
//!
//! The system's resolver waits for servers that may not answer, for tens of seconds, and all nodes
//! of all buckets are followed on one thread: a name that cannot be resolved must not keep the
//! others' prepares unacknowledged. A thread of its own waits instead, one a node at a time.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::Duration;

use platform::{Instant, threads};

/// An answer that takes longer is not waited for where an earlier one is known. Before that it is:
/// a node that has moved is not looked for where it was.
const PATIENCE: Duration = Duration::from_secs(1);

type Answer = io::Result<Vec<SocketAddr>>;
type Resolve = dyn Fn(&str, u16) -> Answer + Send + Sync;

/// How names are resolved, and how the loop hears that one was.
#[derive(Clone)]
pub(super) struct Resolver {
    resolve: Arc<Resolve>,
    tell: Arc<dyn Fn() + Send + Sync>,
}

/// What is known of the addresses of one node.
#[derive(Default)]
pub(super) struct PeerAddresses {
    /// The last ones that were found.
    known: Vec<SocketAddr>,
    /// How many have not led to the node one after the other: each is tried in its turn.
    passed_count: usize,
    /// An answer that has not been taken.
    search: Option<Search>,
}

struct Search {
    answer: Receiver<Answer>,
    began: Instant,
}

/// Where a node is to be looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Known(SocketAddr),
    /// That is being found out; to be asked for again then, if nobody is told before.
    Sought(Instant),
}

impl Resolver {
    pub(super) fn new(
        resolve: impl Fn(&str, u16) -> Answer + Send + Sync + 'static,
        tell: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        Self { resolve: Arc::new(resolve), tell: Arc::new(tell) }
    }

    fn begin(&self, host: &str, port: u16, now: Instant) -> io::Result<Search> {
        let (sender, answer) = mpsc::sync_channel(1);
        let (resolver, host) = (self.clone(), host.to_owned());
        threads::spawn("Resolver", move || {
            // Nobody takes it where the node is not followed any more.
            sender.send((resolver.resolve)(&host, port)).ok();
            (resolver.tell)();
        })?;
        Ok(Search { answer, began: now })
    }
}

impl PeerAddresses {
    /// Where the node is to be looked for next. Never waits: an address in text form needs nobody,
    /// and a name is asked for anew each time.
    ///
    /// # Errors
    /// The name does not lead anywhere, and never has.
    pub(super) fn place(
        &mut self,
        resolver: &Resolver,
        host: &str,
        port: u16,
        now: Instant,
    ) -> io::Result<Place> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(Place::Known(SocketAddr::new(address, port)));
        }
        let began = match &self.search {
            Some(search) => search.began,
            None => self.search.insert(resolver.begin(host, port, now)?).began,
        };
        let failure = self.take_answer();
        let patience_ends = began.after(PATIENCE);
        match self.known.len() {
            0 => failure.map_or(Ok(Place::Sought(now.after(PATIENCE))), Err),
            _ if self.search.is_some() && now < patience_ends => Ok(Place::Sought(patience_ends)),
            count => Ok(Place::Known(self.known[self.passed_count % count])),
        }
    }

    /// The connection to the node is over, or has not come about. An answer that came meanwhile is
    /// as old as that: what it says is kept, and the name is asked for again.
    pub(super) fn lost(&mut self, was_reached: bool) {
        self.passed_count = if was_reached { self.passed_count } else { self.passed_count + 1 };
        // Why there is none matters to who looks for the node, which nobody does at the moment.
        drop(self.take_answer());
    }

    /// Takes the answer if it has come; why there is none. What was known before stays then.
    fn take_answer(&mut self) -> Option<io::Error> {
        let answer = match self.search.as_ref()?.answer.try_recv() {
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => Err(io::Error::other("nobody resolves the name")),
            Ok(answer) => answer,
        };
        self.search = None;
        match answer {
            Ok(addresses) => {
                self.known = addresses;
                None
            }
            Err(error) => Some(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    const HOST: &str = "node";
    const PORT: u16 = 11210;

    fn address(last: u8) -> SocketAddr {
        ([10, 0, 0, last], PORT).into()
    }

    /// A resolver that waits for what it is to answer, and a way to wait for its answers.
    fn slow_resolver() -> (Resolver, mpsc::Sender<Answer>, Receiver<()>) {
        let (answers, to_give) = mpsc::channel::<Answer>();
        let (told, is_told) = mpsc::channel();
        let to_give = Mutex::new(to_give);
        let resolve = move |host: &str, port: u16| {
            assert_eq!((host, port), (HOST, PORT));
            let nobody_answers = || Err(io::Error::other("the test is over"));
            to_give.lock().unwrap().recv().unwrap_or_else(|_| nobody_answers())
        };
        (Resolver::new(resolve, move || told.send(()).unwrap_or_default()), answers, is_told)
    }

    /// The loop asked the resolver itself, so nothing was received from anybody meanwhile.
    #[test]
    fn nobody_waits_for_a_name_and_what_was_known_of_it_stays() {
        let (resolver, answers, is_told) = slow_resolver();
        let mut addresses = PeerAddresses::default();
        let start = Instant::default();
        let at = |seconds: u64| start.after(Duration::from_secs(seconds));
        let mut place =
            |now| addresses.place(&resolver, HOST, PORT, now).map_err(|error| error.to_string());
        // As long as nothing is known it is asked for, but not by more and more threads.
        for seconds in [0, 1, 30] {
            assert_eq!(place(at(seconds)), Ok(Place::Sought(at(seconds + 1))));
        }
        answers.send(Err(io::Error::other("no server"))).unwrap();
        is_told.recv().unwrap();
        assert_eq!(place(at(31)), Err("no server".to_owned()));
        assert_eq!(place(at(40)), Ok(Place::Sought(at(41))));
        answers.send(Ok(vec![address(1)])).unwrap();
        is_told.recv().unwrap();
        assert_eq!(place(at(40)), Ok(Place::Known(address(1))));
        // Where something is known a new answer has its second.
        assert_eq!(place(at(50)), Ok(Place::Sought(at(51))));
        assert_eq!(place(at(51)), Ok(Place::Known(address(1))));
        answers.send(Err(io::Error::other("no server"))).unwrap();
        is_told.recv().unwrap();
        assert_eq!(place(at(52)), Ok(Place::Known(address(1))));
        assert_eq!(place(at(60)), Ok(Place::Sought(at(61))));
        answers.send(Ok(vec![address(2)])).unwrap();
        is_told.recv().unwrap();
        assert_eq!(place(at(60)), Ok(Place::Known(address(2))));
    }

    #[test]
    fn each_address_is_tried_in_its_turn_until_one_leads_to_the_node() {
        let (resolver, answers, is_told) = slow_resolver();
        let mut addresses = PeerAddresses::default();
        let now = Instant::default();
        let mut tried = Vec::new();
        for was_reached in [false, false, true, true] {
            addresses.place(&resolver, HOST, PORT, now).unwrap();
            answers.send(Ok(vec![address(1), address(2)])).unwrap();
            is_told.recv().unwrap();
            tried.push(addresses.place(&resolver, HOST, PORT, now).unwrap());
            addresses.lost(was_reached);
        }
        assert_eq!(tried, [1, 2, 1, 1].map(|last| Place::Known(address(last))));
    }

    #[test]
    fn an_answer_that_came_while_the_node_was_reached_is_not_taken_for_a_new_one() {
        let (resolver, answers, is_told) = slow_resolver();
        let mut addresses = PeerAddresses { known: vec![address(1)], ..PeerAddresses::default() };
        let start = Instant::default();
        let place = |addresses: &mut PeerAddresses, now| {
            addresses.place(&resolver, HOST, PORT, now).unwrap()
        };
        place(&mut addresses, start);
        let later = start.after(PATIENCE);
        assert_eq!(place(&mut addresses, later), Place::Known(address(1)));
        answers.send(Ok(vec![address(2)])).unwrap();
        is_told.recv().unwrap();
        addresses.lost(true);
        let much_later = start.after(PATIENCE * 1000);
        assert_eq!(place(&mut addresses, much_later), Place::Sought(much_later.after(PATIENCE)));
        answers.send(Ok(vec![address(3)])).unwrap();
        is_told.recv().unwrap();
        assert_eq!(place(&mut addresses, much_later), Place::Known(address(3)));
    }

    #[test]
    fn an_address_in_text_form_needs_no_resolver() {
        let (resolver, ..) = slow_resolver();
        let of_six = ([0, 0, 0, 0, 0, 0, 0, 1], PORT).into();
        for (host, expected) in [("10.0.0.1", address(1)), ("::1", of_six)] {
            let place = PeerAddresses::default().place(&resolver, host, PORT, Instant::default());
            assert_eq!(place.unwrap(), Place::Known(expected));
        }
    }
}
