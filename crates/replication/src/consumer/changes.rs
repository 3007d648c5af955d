//! What a producer says about a vBucket, made ready outside the vBucket's lock and carried out
//! under it. Source: docs/specification/protocol.md, sections 20.7 and 20.8.

use std::fmt;

use document::item::U48_MAX;
use document::{Deletion, ItemBuilder, ItemMeta, Key, Operation, Seqno};
use protocol::FeatureSet;
use protocol::dcp::{self, DeletionForm, Marker, MarkerFlags, Message};
use protocol::request::DocumentKey;
use vbucket::{
    Effect, Now, ReceiveError, Received, ReceivedEvent, ReceivedSnapshot, Vbucket, event_builder,
};

use super::error::ConsumerError;
use crate::system_event;

/// What is received ends here: a replica that becomes active needs seqnos of its own, and seqnos
/// have 48 bits.
const SEQNO_MAX: u64 = U48_MAX - (1 << 44);

/// A change to a vBucket.
pub(super) enum Change {
    Snapshot(ReceivedSnapshot),
    Version(Box<Received>),
    Commit { key: Box<[u8]>, prepare: Seqno, seqno: Seqno },
    Abort { key: Box<[u8]>, prepare: Seqno, seqno: Seqno },
    Event(Box<ReceivedEvent>),
    Advanced(Seqno),
}

/// A change without its content.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    kind: &'static str,
    /// Its own, of a snapshot the last one.
    seqno: Seqno,
    /// What it ends.
    prepare: Option<Seqno>,
}

impl fmt::Display for Told {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, seqno, prepare } = self;
        write!(formatter, "{kind} {seqno}")?;
        prepare.map_or(Ok(()), |prepare| write!(formatter, " of {prepare}"))
    }
}

impl Change {
    /// What a message changes; none if it changes nothing. `wall_seconds` is when a deletion
    /// happened that does not say it.
    pub(super) fn of(
        message: &Message<'_>,
        features: FeatureSet,
        wall_seconds: u32,
    ) -> Result<Option<Self>, ConsumerError> {
        if highest_seqno(message).0 > SEQNO_MAX {
            return Err(ConsumerError::Protocol("a seqno leaves no room for what follows it"));
        }
        Ok(Some(match message {
            Message::SnapshotMarker(marker) => Self::Snapshot(snapshot(marker)),
            Message::Mutation(document) => version(document, None, Operation::Mutation, features)?,
            Message::Prepare(prepare) => {
                let deletion = prepare.is_deletion.then_some((Deletion::Explicit, wall_seconds));
                let operation = Operation::Prepare(prepare.level);
                version(&prepare.document, deletion, operation, features)?
            }
            Message::Deletion(deletion) => {
                tombstone(deletion, Deletion::Explicit, features, wall_seconds)?
            }
            Message::Expiration(deletion) => {
                tombstone(deletion, Deletion::Expired, features, wall_seconds)?
            }
            Message::Commit(end) => Self::Commit {
                key: key(end.key, features)?.as_key().encoded().into(),
                prepare: end.prepare,
                seqno: end.seqno,
            },
            Message::Abort(end) => Self::Abort {
                key: key(end.key, features)?.as_key().encoded().into(),
                prepare: end.prepare,
                seqno: end.seqno,
            },
            Message::SeqnoAdvanced { seqno } => Self::Advanced(*seqno),
            Message::SystemEvent(event) => {
                let said = system_event::read(event).ok_or(ConsumerError::Protocol(
                    "what is said of a collection is not understood",
                ))?;
                let builder = event_builder(&said, wall_seconds);
                Self::Event(Box::new(ReceivedEvent { builder, seqno: event.seqno }))
            }
            _ => return Ok(None),
        }))
    }

    /// What it is, for the log: without anything of a document.
    pub(super) fn told(&self) -> Told {
        let (kind, seqno, prepare) = match self {
            Self::Snapshot(snapshot) => ("snapshot", snapshot.end, None),
            Self::Version(version) => ("version", version.seqno, None),
            Self::Commit { prepare, seqno, .. } => ("commit", *seqno, Some(*prepare)),
            Self::Abort { prepare, seqno, .. } => ("abort", *seqno, Some(*prepare)),
            Self::Event(event) => ("event", event.seqno, None),
            Self::Advanced(seqno) => ("advance", *seqno, None),
        };
        Told { kind, seqno, prepare }
    }

    /// Carries the change out.
    pub(super) fn apply(
        self,
        vbucket: &mut Vbucket,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> Result<(), ReceiveError> {
        match self {
            Self::Snapshot(snapshot) => vbucket.receive_snapshot(snapshot, effects),
            Self::Version(received) => vbucket.receive(*received, now, effects),
            // The keys of commits and aborts were checked when these were read from their messages.
            Self::Commit { key, prepare, seqno } => {
                vbucket.receive_commit(Key::from_trusted(&key), prepare, seqno, now, effects)
            }
            Self::Abort { key, prepare, seqno } => {
                vbucket.receive_abort(Key::from_trusted(&key), prepare, seqno, now, effects)
            }
            Self::Event(event) => vbucket.receive_event(*event, now, effects),
            Self::Advanced(seqno) => vbucket.receive_seqno_advanced(seqno, effects),
        }
    }
}

fn highest_seqno(message: &Message<'_>) -> Seqno {
    match message {
        Message::SnapshotMarker(marker) => marker.end,
        Message::Mutation(document) => document.seqno,
        Message::Prepare(prepare) => prepare.document.seqno,
        Message::Deletion(deletion) | Message::Expiration(deletion) => deletion.seqno,
        Message::Commit(end) | Message::Abort(end) => end.seqno.max(end.prepare),
        Message::SeqnoAdvanced { seqno } => *seqno,
        Message::SystemEvent(event) => event.seqno,
        _ => Seqno(0),
    }
}

fn snapshot(marker: &Marker) -> ReceivedSnapshot {
    ReceivedSnapshot {
        start: marker.start,
        end: marker.end,
        is_disk: marker.flags.contains(MarkerFlags::DISK),
        begins_checkpoint: marker.flags.contains(MarkerFlags::CHECKPOINT),
        max_visible: marker.max_visible,
        high_completed: marker.high_completed,
        // A producer that does not know it says one that lies before.
        high_prepared: marker.high_prepared.filter(|&seqno| seqno >= marker.start),
        purge_seqno: marker.purge,
    }
}

fn version(
    document: &dcp::Document<'_>,
    deletion: Option<(Deletion, u32)>,
    operation: Operation,
    features: FeatureSet,
) -> Result<Change, ConsumerError> {
    let key = key(document.key, features)?;
    let meta = ItemMeta {
        flags: document.flags,
        // A tombstone has the time of the deletion in the place of an expiry.
        expiry: deletion.map_or(document.expiry, |(_, seconds)| seconds),
        datatype: document.datatype,
        deletion: deletion.map(|(deletion, _)| deletion),
    };
    let builder = ItemBuilder::step(key.as_key(), meta, operation, document.value);
    let builder = builder.with_heat(document.heat);
    Ok(Change::Version(Box::new(Received {
        builder,
        cas: document.cas,
        seqno: document.seqno,
        revision: document.revision,
    })))
}

fn tombstone(
    deletion: &dcp::DcpDeletion<'_>,
    kind: Deletion,
    features: FeatureSet,
    wall_seconds: u32,
) -> Result<Change, ConsumerError> {
    let seconds = match deletion.form {
        DeletionForm::WithTime(seconds) => seconds,
        DeletionForm::WithoutTime => wall_seconds,
    };
    let document = dcp::Document {
        key: deletion.key,
        value: deletion.value,
        datatype: deletion.datatype,
        cas: deletion.cas,
        seqno: deletion.seqno,
        revision: deletion.revision,
        flags: [0; 4],
        expiry: 0,
        lock_seconds: 0,
        heat: 0,
    };
    version(&document, Some((kind, seconds)), Operation::Mutation, features)
}

fn key<'a>(bytes: &'a [u8], features: FeatureSet) -> Result<DocumentKey<'a>, ConsumerError> {
    DocumentKey::parse(bytes, features)
        .map_err(|_| ConsumerError::Protocol("a key is malformed, empty or too long"))
}
