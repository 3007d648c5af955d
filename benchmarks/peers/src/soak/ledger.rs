//! What the node has acknowledged of each document, and so what it has to answer.
//!
//! A document has one request under way at most, so that what is known when it is answered is what
//! the node had to know, in whichever order it carries out the requests of a connection.

use std::time::{Duration, Instant};

use protocol::Status;

use super::documents::Documents;

/// By how much the node's clock, which tells whole seconds, may differ in what expires when.
const EXPIRY_TOLERANCE: Duration = Duration::from_secs(2);

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reads.
    Get,
    /// Writes a version.
    Set,
    /// Writes a version that expires.
    SetExpiring,
    /// Deletes.
    Delete,
    /// Writes a version at the path of an object.
    Mutate,
    /// Writes a version that is to be on disk when it is answered.
    SetDurably,
}

impl Action {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Get, Self::Set, Self::SetExpiring, Self::Delete, Self::Mutate, Self::SetDurably];
}

/// A request that is under way.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    /// What it does.
    pub action: Action,
    /// To which document.
    pub index: usize,
    /// What it writes, if it writes.
    pub version: u32,
    /// After which time that expires, if it does.
    pub lifetime: Option<Duration>,
    /// When it was to be sent.
    pub due: Instant,
    /// When it was.
    pub sent: Instant,
}

/// What is to be said of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is what the node had to answer.
    Right,
    /// The node did not do it.
    Refused(u16),
    /// It contradicts what the node had acknowledged before.
    Wrong(String),
}

/// What is known of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Absent,
    Stored {
        version: u32,
        /// When it expires, at the earliest and at the latest.
        expiry: Option<(Instant, Instant)>,
    },
    /// Not even the node says.
    Unknown,
}

/// What is known of all documents.
pub struct Ledger {
    documents: Documents,
    known: Vec<Known>,
    /// Whether a request is under way.
    is_busy: Vec<bool>,
    last_version: u32,
    /// Where a value is made for a comparison.
    expected: Vec<u8>,
}

impl Ledger {
    /// Of a node without any.
    pub fn new(documents: Documents) -> Self {
        let count = documents.count();
        let (known, is_busy) = (vec![Known::Absent; count], vec![false; count]);
        Self { documents, known, is_busy, last_version: 0, expected: Vec::new() }
    }

    /// The documents.
    pub fn documents(&self) -> &Documents {
        &self.documents
    }

    /// Whether no request is under way.
    pub fn is_idle(&self, index: usize) -> bool {
        !self.is_busy[index]
    }

    /// Whether it is there, and does not expire.
    pub fn is_stored(&self, index: usize) -> bool {
        matches!(self.known[index], Known::Stored { expiry: None, .. })
    }

    /// Whether it was never there, or is deleted.
    pub fn is_absent(&self, index: usize) -> bool {
        self.known[index] == Known::Absent
    }

    /// A version that no document has had.
    pub fn next_version(&mut self) -> u32 {
        self.last_version += 1;
        self.last_version
    }

    /// A request is on its way.
    pub fn begin(&mut self, index: usize) {
        assert!(self.is_idle(index), "a document has one request under way");
        self.is_busy[index] = true;
    }

    /// Its answer is there.
    pub fn settle(&mut self, flight: &Flight, status: u16, value: &[u8], now: Instant) -> Verdict {
        self.is_busy[flight.index] = false;
        let status_is = |expected: Status| status == expected.code();
        if flight.action == Action::Get {
            return match () {
                () if status_is(Status::Success) => self.check_value(flight, value),
                () if status_is(Status::KeyEnoent) => self.check_absence(flight, now),
                () => Verdict::Refused(status),
            };
        }
        if status_is(Status::Success) {
            self.known[flight.index] = written(flight, now);
            return Verdict::Right;
        }
        if status_is(Status::KeyEnoent) {
            // Only what is there is deleted or changed at a path.
            let verdict = self.check_absence(flight, now);
            self.known[flight.index] = Known::Absent;
            return verdict;
        }
        if !NOT_DONE.iter().any(|&refusal| status_is(refusal)) {
            self.known[flight.index] = Known::Unknown;
        }
        Verdict::Refused(status)
    }

    fn check_value(&mut self, flight: &Flight, value: &[u8]) -> Verdict {
        let index = flight.index;
        match self.known[index] {
            Known::Absent => Verdict::Wrong(format!("document {index} is there, and was deleted")),
            Known::Stored { expiry: Some((_, latest)), .. } if flight.sent > latest => {
                let age = (flight.sent - latest).as_secs();
                Verdict::Wrong(format!("document {index} is there {age} s after its expiry"))
            }
            Known::Stored { version, .. } => {
                self.documents.write(index, version, &mut self.expected);
                if self.expected == value {
                    return Verdict::Right;
                }
                let beginning = value[..value.len().min(30)].escape_ascii();
                let size = value.len();
                Verdict::Wrong(format!(
                    "document {index} is not of version {version}: {size} bytes, {beginning}"
                ))
            }
            Known::Unknown => Verdict::Right,
        }
    }

    fn check_absence(&self, flight: &Flight, now: Instant) -> Verdict {
        match self.known[flight.index] {
            Known::Stored { version, expiry }
                if expiry.is_none_or(|(earliest, _)| now < earliest) =>
            {
                let index = flight.index;
                Verdict::Wrong(format!("document {index} of version {version} is not there"))
            }
            _ => Verdict::Right,
        }
    }
}

/// Answers of which the protocol says that nothing was done.
const NOT_DONE: [Status; 4] =
    [Status::Etmpfail, Status::Enomem, Status::SyncWriteInProgress, Status::DurabilityImpossible];

fn written(flight: &Flight, now: Instant) -> Known {
    if flight.action == Action::Delete {
        return Known::Absent;
    }
    let expiry = flight.lifetime.map(|lifetime| {
        (flight.sent + lifetime - EXPIRY_TOLERANCE, now + lifetime + EXPIRY_TOLERANCE)
    });
    Known::Stored { version: flight.version, expiry }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUCCESS: u16 = 0;
    const MISSING: u16 = 1;
    const INTERNAL: u16 = 0x84;
    const TEMPORARY: u16 = 0x86;
    const AMBIGUOUS: u16 = 0xa3;

    fn flight(action: Action, index: usize, version: u32) -> Flight {
        let now = Instant::now();
        Flight { action, index, version, lifetime: None, due: now, sent: now }
    }

    fn settle(ledger: &mut Ledger, flight: &Flight, status: u16) -> Verdict {
        ledger.begin(flight.index);
        ledger.settle(flight, status, &[], flight.sent)
    }

    fn read(ledger: &mut Ledger, index: usize, version: u32) -> Verdict {
        let mut value = Vec::new();
        ledger.documents().write(index, version, &mut value);
        ledger.begin(index);
        let flight = flight(Action::Get, index, 0);
        ledger.settle(&flight, SUCCESS, &value, flight.sent)
    }

    fn is_wrong(verdict: &Verdict) -> bool {
        matches!(verdict, Verdict::Wrong(_))
    }

    #[test]
    fn a_document_has_its_last_acknowledged_version() {
        let mut ledger = Ledger::new(Documents::new(32, 4));
        let missing = |ledger: &mut Ledger| settle(ledger, &flight(Action::Get, 3, 0), MISSING);
        assert_eq!(missing(&mut ledger), Verdict::Right);
        assert!(is_wrong(&read(&mut ledger, 3, 1)));
        for (action, status, version) in [
            (Action::Set, SUCCESS, 1),
            (Action::Set, TEMPORARY, 1),
            (Action::SetDurably, SUCCESS, 3),
            (Action::Delete, TEMPORARY, 3),
        ] {
            let number = if status == SUCCESS { version } else { 9 };
            settle(&mut ledger, &flight(action, 3, number), status);
            assert_eq!(read(&mut ledger, 3, version), Verdict::Right, "{action:?} {status}");
            assert!(is_wrong(&read(&mut ledger, 3, version + 1)));
            assert!(is_wrong(&missing(&mut ledger)));
        }
        assert_eq!(settle(&mut ledger, &flight(Action::Delete, 3, 0), SUCCESS), Verdict::Right);
        assert_eq!(missing(&mut ledger), Verdict::Right);
        assert!(ledger.is_absent(3) && ledger.is_idle(3));
    }

    #[test]
    fn an_ambiguous_write_makes_nothing_wrong_until_the_next() {
        let mut ledger = Ledger::new(Documents::new(32, 4));
        for status in [AMBIGUOUS, INTERNAL] {
            let verdict = settle(&mut ledger, &flight(Action::SetDurably, 3, 5), status);
            assert_eq!(verdict, Verdict::Refused(status));
            assert_eq!(read(&mut ledger, 3, 4), Verdict::Right);
            assert_eq!(read(&mut ledger, 3, 5), Verdict::Right);
            settle(&mut ledger, &flight(Action::Set, 3, 6), SUCCESS);
            assert!(is_wrong(&read(&mut ledger, 3, 5)));
        }
    }

    #[test]
    fn what_is_missing_cannot_be_deleted_or_changed() {
        let mut ledger = Ledger::new(Documents::new(32, 4));
        for action in [Action::Delete, Action::Mutate] {
            settle(&mut ledger, &flight(Action::Set, 16, 1), SUCCESS);
            assert!(is_wrong(&settle(&mut ledger, &flight(action, 16, 2), MISSING)));
        }
    }

    #[test]
    fn a_session_is_there_until_its_expiry_and_not_afterwards() {
        let mut ledger = Ledger::new(Documents::new(32, 4));
        let lifetime = Duration::from_secs(30);
        let set = Flight { lifetime: Some(lifetime), ..flight(Action::SetExpiring, 33, 1) };
        settle(&mut ledger, &set, SUCCESS);
        assert!(!ledger.is_stored(33), "not for ever");
        let mut value = Vec::new();
        ledger.documents().write(33, 1, &mut value);
        for (seconds, may_be_there, may_be_missing) in
            [(0, true, false), (27, true, false), (30, true, true), (33, false, true)]
        {
            let at = set.sent + Duration::from_secs(seconds);
            let get = Flight { due: at, sent: at, ..flight(Action::Get, 33, 0) };
            ledger.begin(33);
            let found = ledger.settle(&get, SUCCESS, &value, at);
            ledger.begin(33);
            let missing = ledger.settle(&get, MISSING, &[], at);
            assert_eq!(found == Verdict::Right, may_be_there, "{seconds} s");
            assert_eq!(missing == Verdict::Right, may_be_missing, "{seconds} s");
        }
    }
}
