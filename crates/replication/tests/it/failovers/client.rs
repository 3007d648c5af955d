//! A client that goes on where it is, and back when it is told to.

use std::collections::BTreeMap;

use document::{Seqno, VbUuid};
use protocol::dcp::{EndReason, StreamFlags, StreamRequest, parse_failover_log};
use protocol::{Feature, Status};
use replication::Answer;

use crate::consumer::{Consumer, Received};
use crate::support::{Machine, VBID};

pub(super) type Documents = BTreeMap<Vec<u8>, (Vec<u8>, Seqno)>;

/// A client, which knows what it had at the ends of snapshots.
pub(super) struct Client {
    /// What it negotiates.
    pub(super) features: &'static [Feature],
    pub(super) consumer: Consumer,
    /// The branches of what it has.
    log: Vec<(VbUuid, Seqno)>,
    pub(super) ends: Vec<(Seqno, Documents)>,
    pub(super) rollbacks: u64,
}

pub(super) fn open(machine: &Machine, name: &str, features: &[Feature]) -> Consumer {
    Consumer::open(machine, name, 0x25, features)
}

/// The history that `answer` names, or where to go back to; nothing where it is to be asked again.
pub(super) fn heard(answer: &Answer) -> Option<Result<Vec<(VbUuid, Seqno)>, Seqno>> {
    match answer {
        Answer::Value(log) => Some(Ok(parse_failover_log(log).unwrap())),
        Answer::Rollback(seqno) => Some(Err(*seqno)),
        Answer::Fail(Status::Etmpfail, _) => None,
        other => panic!("{other:?}"),
    }
}

impl Client {
    pub(super) fn new(machine: &Machine, features: &'static [Feature]) -> Self {
        let nothing = (Seqno(0), Documents::new());
        let consumer = open(machine, "client", features);
        Self { features, consumer, log: Vec::new(), ends: vec![nothing], rollbacks: 0 }
    }

    /// Goes on with what this node has.
    pub(super) fn connect(&mut self, machine: &mut Machine) {
        let streams = std::mem::take(&mut self.consumer.streams);
        self.consumer = open(machine, "client", self.features);
        self.consumer.streams = streams;
        loop {
            let answer = self.consumer.request(machine, VBID, self.request());
            match heard(&answer) {
                Some(Ok(log)) => {
                    self.log = log;
                    return;
                }
                Some(Err(seqno)) => self.go_back(seqno),
                None => machine.run(),
            }
        }
    }

    fn request(&self) -> StreamRequest<'static> {
        let received = self.consumer.streams.get(&VBID);
        let start = received.map_or(Seqno(0), |received| received.seqno);
        let marker = received.and_then(|received| received.markers.last());
        let within = marker.filter(|marker| marker.start <= start && start < marker.end);
        let (snapshot_start, snapshot_end) =
            within.map_or((start, start), |marker| (marker.start, marker.end));
        let branch = self.log.iter().find(|(_, seqno)| *seqno <= start);
        let uuid = branch.map_or(VbUuid(0), |(uuid, _)| *uuid);
        let (flags, end) = (StreamFlags(0), Seqno(u64::MAX));
        StreamRequest { flags, start, end, uuid, snapshot_start, snapshot_end, value: b"" }
    }

    /// Only at the end of a snapshot it has what there was at one moment.
    fn go_back(&mut self, seqno: Seqno) {
        self.rollbacks += 1;
        self.ends.retain(|(end, _)| *end <= seqno);
        let (seqno, documents) = self.ends.last().expect("nothing is an end, too").clone();
        let received = self.consumer.streams.entry(VBID).or_default();
        *received = Received::default();
        (received.seqno, received.documents) = (seqno, documents);
    }

    /// Takes some messages, one at a time.
    pub(super) fn take(&mut self, machine: &Machine, count: u64) {
        for _ in 0..count {
            if self.consumer.take(machine, 1, 1) == 0 {
                return;
            }
            self.note_end();
        }
    }

    /// Its stream has ended, though the vBucket is where it was: since it began, tombstones were
    /// purged that it lacks.
    pub(super) fn is_to_ask_anew(&self) -> bool {
        let received = self.consumer.streams.get(&VBID);
        received.is_some_and(|received| received.end == Some(EndReason::StateChanged))
    }

    fn note_end(&mut self) {
        let Some(received) = self.consumer.streams.get(&VBID) else { return };
        let is_new = self.ends.last().is_none_or(|(end, _)| *end < received.seqno);
        if received.is_whole() && is_new {
            self.ends.push((received.seqno, received.documents.clone()));
        }
    }

    pub(super) fn documents(&self) -> Documents {
        self.consumer.streams.get(&VBID).map_or_else(Documents::new, |it| it.documents.clone())
    }
}
