//! Asking for streams, and what the producer answers: its history, or how far the vBucket has to go
//! back. Source: docs/specification/protocol.md, section 20.15.

use document::{FailoverEntry, Seqno, VbUuid, Vbid, VbucketState};
use protocol::client::{Request, Response};
use protocol::dcp::{Message, StreamRequest};
use protocol::dcp::{parse_failover_log, parse_rollback_seqno};
use protocol::{Opcode, Status};
use vbucket::{Now, StreamPosition};

use super::Consumer;
use super::rollbacks::Rollback;
use super::stream::{Stream, StreamState};

impl Consumer {
    /// Asks for the streams whose time has come.
    pub(super) fn request_due(&mut self, now: Now, out: &mut Vec<u8>) {
        if self.opening.is_some() || self.next_request.is_none_or(|at| at > now.monotonic) {
            return;
        }
        let due = self.streams.iter().filter(|(_, stream)| stream.is_due(now.monotonic));
        let due: Vec<Vbid> = due.map(|(&vbid, _)| vbid).collect();
        for vbid in due {
            let opaque = self.next_opaque;
            // 0 is what messages have that are of no stream.
            self.next_opaque = opaque.wrapping_add(1).max(1);
            if let Some(stream) = self.streams.get_mut(&vbid) {
                stream.opaque = opaque;
            }
            self.request(vbid, 0, now, out);
        }
        self.next_request = self.streams.values().filter_map(Stream::waits_until).min();
    }

    /// Asks for a stream, naming an entry of the vBucket's failover table.
    fn request(&mut self, vbid: Vbid, entry: usize, now: Now, out: &mut Vec<u8>) {
        let is_relayed_elsewhere = self.relayed.is_none() && self.reservations.is_relayed(vbid);
        if is_relayed_elsewhere {
            self.wait(vbid, now);
            return;
        }
        let is_going_back = self.reservations.is_rolling_back(vbid);
        // One that goes back already is not asked for that once more: it waits below.
        if !is_going_back && self.bucket.needs_rebuild(vbid) {
            // The producer answers, and has everything.
            if let Some(stream) = self.streams.get_mut(&vbid) {
                stream.state = StreamState::RollingBack;
                self.wanted_rollbacks.push(Rollback { vbid, from: None, seqno: Seqno(0) });
            }
            return;
        }
        let place = self.place(vbid).filter(|_| !is_going_back);
        let envelope = self.envelope(vbid);
        let Some((position, entries)) = place else {
            self.wait(vbid, now);
            return;
        };
        let Some(stream) = self.streams.get_mut(&vbid) else { return };
        assert!(stream.opaque != 0, "answers are told apart by opaques");
        let uuid = match entries.get(entry) {
            Some(other) if entry > 0 => other.uuid,
            _ => position.uuid,
        };
        let request = StreamRequest {
            flags: stream.flags,
            start: position.start,
            end: Seqno(u64::MAX),
            uuid,
            snapshot_start: position.snapshot_start,
            snapshot_end: position.snapshot_end,
            value: &[],
        };
        Message::StreamRequest(request).encode(envelope, out);
        stream.state = StreamState::Requested(entry);
        stream.asked_from = Some(position);
    }

    /// Where the vBucket is, if it may receive.
    pub(super) fn place(&self, vbid: Vbid) -> Option<(StreamPosition, Vec<FailoverEntry>)> {
        let place = self.bucket.on_vbucket(vbid, |vbucket, _, _| {
            let receives = matches!(vbucket.state(), VbucketState::Replica | VbucketState::Pending);
            receives.then(|| (vbucket.stream_position(), vbucket.failover_entries().to_vec()))
        });
        place.flatten()
    }

    /// An answer to something that was said about a stream.
    pub(super) fn on_stream_response(
        &mut self,
        response: &Response<'_>,
        now: Now,
        out: &mut Vec<u8>,
    ) {
        match Opcode::from_byte(response.opcode) {
            Some(Opcode::DcpStreamReq) => self.on_stream_answer(response, now, out),
            Some(Opcode::ObserveSeqno) => self.on_high_seqno(response, now, out),
            // Everything else that is answered needs no reaction: a stream that is closed is
            // closed, and one that is not known any more ends by itself.
            _ => {}
        }
    }

    fn on_stream_answer(&mut self, response: &Response<'_>, now: Now, out: &mut Vec<u8>) {
        let mut streams = self.streams.iter();
        let asked = streams.find_map(|(&vbid, stream)| match stream.state {
            StreamState::Requested(entry) if stream.opaque == response.opaque => {
                Some((vbid, entry))
            }
            _ => None,
        });
        let Some((vbid, entry)) = asked else { return };
        match response.status() {
            Some(Status::Success) => self.on_accepted(vbid, response.value, now, out),
            Some(Status::Rollback) => match parse_rollback_seqno(response.value) {
                Some(seqno) => self.on_rollback(vbid, entry, seqno, now, out),
                None => self.wait(vbid, now),
            },
            _ => {
                let status = response.status_code;
                tracing::debug!(vbucket = vbid.0, status, "a stream was refused");
                self.wait_because(vbid, response.status().unwrap_or(Status::Etmpfail), now);
            }
        }
    }

    fn on_accepted(&mut self, vbid: Vbid, value: &[u8], now: Now, out: &mut Vec<u8>) {
        let log = parse_failover_log(value).unwrap_or_default();
        let log: Vec<FailoverEntry> =
            log.into_iter().map(|(uuid, seqno)| FailoverEntry { uuid, seqno }).collect();
        let Some(stream) = self.streams.get_mut(&vbid) else { return };
        let (opaque, asked_from) = (stream.opaque, stream.asked_from);
        // Open first: what the vBucket holds is acknowledged from here on.
        stream.open();
        let added_by = stream.added_by.take();
        // A history without a branch names none that the replica could be of.
        let begun = asked_from.filter(|_| !log.is_empty()).map(|asked_from| {
            self.bucket.on_vbucket(vbid, |vbucket, _, effects| {
                vbucket.begin_receiving(asked_from, &log, effects).map(|()| vbucket.is_whole())
            })
        });
        self.tell_added(added_by, matches!(begun, Some(Some(Ok(_)))), opaque);
        match begun {
            Some(Some(Ok(true))) => {}
            // A manager passes on what is said about streams, and nothing else.
            Some(Some(Ok(false))) if self.relayed.is_some() => {}
            Some(Some(Ok(false))) => {
                let uuid = log.first().map_or(VbUuid(0), |entry| entry.uuid);
                ask_for_high_seqno(vbid, opaque, uuid, out);
            }
            _ => {
                tracing::warn!(vbucket = vbid.0, "a stream was accepted that cannot be received");
                // The producer has granted it and sends.
                self.close(vbid, opaque, out);
                self.wait(vbid, now);
            }
        }
    }

    /// The producer says how far its vBucket is, which was asked when the stream had begun.
    fn on_high_seqno(&mut self, response: &Response<'_>, now: Now, out: &mut Vec<u8>) {
        let opaque = response.opaque;
        let mut streams = self.streams.iter();
        let is_asked =
            |stream: &Stream| stream.state == StreamState::Open && stream.opaque == opaque;
        let Some(vbid) = streams.find_map(|(&vbid, it)| is_asked(it).then_some(vbid)) else {
            return;
        };
        let told = response.is_success().then(|| response.observe_seqno()).flatten();
        if let Some(told) = told {
            self.bucket.on_vbucket(vbid, |vbucket, _, effects| {
                vbucket.note_whole_from(told.current_seqno, effects);
            });
            return;
        }
        let status = response.status_code;
        tracing::debug!(vbucket = vbid.0, status, "how far a producer is was not told");
        // Of a producer that cannot tell there is a copy all the same, which is not whole.
        if response.status() == Some(Status::Etmpfail) {
            self.close(vbid, opaque, out);
            self.wait(vbid, now);
        }
    }

    /// The vBucket has something that the producer does not: it has to go back, unless only the
    /// name of its newest branch, which has brought nothing, is unknown there.
    fn on_rollback(&mut self, vbid: Vbid, entry: usize, seqno: Seqno, now: Now, out: &mut Vec<u8>) {
        let Some((position, entries)) = self.place(vbid) else {
            self.wait(vbid, now);
            return;
        };
        let newest = entries.get(entry);
        let is_empty_branch = newest.is_some_and(|newest| newest.seqno >= position.start);
        if seqno == Seqno(0) && is_empty_branch && entry + 1 < entries.len() {
            self.request(vbid, entry + 1, now, out);
            return;
        }
        let Some(stream) = self.streams.get_mut(&vbid) else { return };
        assert_eq!(stream.state, StreamState::Requested(entry), "who is refused has asked");
        let from = stream.asked_from.expect("who is refused has asked from somewhere");
        stream.state = StreamState::RollingBack;
        self.wanted_rollbacks.push(Rollback { vbid, from: Some(from), seqno });
    }

    /// What has to go back now. Whoever takes it says so to all connections of the bucket
    /// ([`super::Reservations`]), and tells when it is done.
    pub fn take_rollbacks(&mut self) -> Vec<Rollback> {
        std::mem::take(&mut self.wanted_rollbacks)
    }

    /// The vBucket goes back no more: it has, or it cannot. It need not be this connection that has
    /// asked for it.
    pub fn rolled_back(&mut self, vbid: Vbid, has_succeeded: bool, now: Now, out: &mut Vec<u8>) {
        let Some(stream) = self.streams.get_mut(&vbid) else { return };
        match stream.state {
            StreamState::RollingBack if has_succeeded => self.request(vbid, 0, now, out),
            StreamState::RollingBack => self.wait(vbid, now),
            StreamState::Waiting(_) => {
                stream.state = StreamState::Waiting(now.monotonic);
                self.next_request = Some(now.monotonic);
                self.request_due(now, out);
            }
            // The reservation ends before this is heard: its time to ask may have come in between.
            StreamState::Requested(_) | StreamState::Open => {}
        }
    }

    /// The vBucket's file is damaged, so that what comes for it cannot be kept: its stream is asked
    /// for again, and before that the vBucket begins anew.
    pub fn file_damaged(&mut self, vbid: Vbid, now: Now, out: &mut Vec<u8>) {
        let Some(stream) = self.streams.get_mut(&vbid) else { return };
        let (state, opaque) = (stream.state, stream.opaque);
        // Whether it has to begin anew is looked at behind the rollback, before it is asked for.
        if state == StreamState::RollingBack {
            return;
        }
        stream.state = StreamState::Waiting(now.monotonic);
        stream.must_answer_marker = false;
        if matches!(state, StreamState::Open | StreamState::Requested(_)) {
            self.close(vbid, opaque, out);
        }
        self.next_request = Some(now.monotonic);
        self.request_due(now, out);
    }

    /// The stream is asked for again a little later. Where a manager says which there are, it ends.
    pub(super) fn wait(&mut self, vbid: Vbid, now: Now) {
        self.wait_because(vbid, Status::Etmpfail, now);
    }

    /// The same, with what a manager hears of a stream that it waits for.
    fn wait_because(&mut self, vbid: Vbid, status: Status, now: Now) {
        if self.relayed.is_some() {
            self.end_relayed(vbid, status);
            return;
        }
        let Some(stream) = self.streams.get_mut(&vbid) else { return };
        stream.wait(now.monotonic);
        self.next_request = self.next_request.into_iter().chain(stream.waits_until()).min();
    }
}

/// Asks how far the producer's vBucket is, on the branch that the stream is of. Source:
/// docs/specification/protocol.md, section 14.2.
fn ask_for_high_seqno(vbid: Vbid, opaque: u32, uuid: VbUuid, out: &mut Vec<u8>) {
    let value = uuid.0.to_be_bytes();
    let request = Request::new(Opcode::ObserveSeqno);
    Request { vbucket: vbid.0, opaque, value: &value, ..request }.encode(out);
}
