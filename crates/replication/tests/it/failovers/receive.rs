//! A replica receives one message.

use document::manifest_event::EventCollection;
use document::{
    CollectionId, Deletion, ItemBuilder, ItemMeta, Key, ManifestEvent, Operation, ScopeId,
};
use protocol::dcp::{Document, MarkerFlags, Message, SystemEvent};
use vbucket::{Effect, Now, ReceiveError, ReceivedEvent, ReceivedSnapshot, Vbucket, event_builder};

pub(super) fn receive(
    vbucket: &mut Vbucket,
    message: &Message<'_>,
    now: Now,
    effects: &mut Vec<Effect>,
) -> Result<(), ReceiveError> {
    let version = |document: &Document<'_>, operation, deletion| {
        let (flags, expiry, datatype) = (document.flags, document.expiry, document.datatype);
        let meta = ItemMeta { flags, expiry, datatype, deletion };
        let key = Key::from_trusted(document.key);
        let builder = ItemBuilder::step(key, meta, operation, document.value);
        let (cas, seqno, revision) = (document.cas, document.seqno, document.revision);
        vbucket::Received { builder, cas, seqno, revision }
    };
    match message {
        Message::SnapshotMarker(marker) => {
            let received = ReceivedSnapshot {
                start: marker.start,
                end: marker.end,
                is_disk: marker.flags.contains(MarkerFlags::DISK),
                begins_checkpoint: marker.flags.contains(MarkerFlags::CHECKPOINT),
                max_visible: marker.max_visible,
                high_completed: marker.high_completed,
                high_prepared: marker.high_prepared.filter(|&seqno| seqno >= marker.start),
                purge_seqno: marker.purge,
            };
            vbucket.receive_snapshot(received, effects)
        }
        Message::Mutation(document) => {
            vbucket.receive(version(document, Operation::Mutation, None), now, effects)
        }
        Message::Prepare(prepare) => {
            let operation = Operation::Prepare(prepare.level);
            let deletion = prepare.is_deletion.then_some(Deletion::Explicit);
            let document = if prepare.is_deletion {
                Document { expiry: 1, ..prepare.document }
            } else {
                prepare.document
            };
            vbucket.receive(version(&document, operation, deletion), now, effects)
        }
        Message::Commit(end) => {
            let key = Key::from_trusted(end.key);
            vbucket.receive_commit(key, end.prepare, end.seqno, now, effects)
        }
        Message::Abort(end) => {
            let key = Key::from_trusted(end.key);
            vbucket.receive_abort(key, end.prepare, end.seqno, now, effects)
        }
        Message::Deletion(deletion) => {
            let document = Document {
                key: deletion.key,
                value: deletion.value,
                datatype: deletion.datatype,
                cas: deletion.cas,
                seqno: deletion.seqno,
                revision: deletion.revision,
                flags: [0; 4],
                expiry: 1,
                lock_seconds: 0,
                heat: 0,
            };
            let deletion = Some(Deletion::Explicit);
            vbucket.receive(version(&document, Operation::Mutation, deletion), now, effects)
        }
        Message::SeqnoAdvanced { seqno } => vbucket.receive_seqno_advanced(*seqno, effects),
        Message::SystemEvent(event) => {
            let (builder, seqno) = (event_builder(&read_event(event), 1), event.seqno);
            vbucket.receive_event(ReceivedEvent { builder, seqno }, now, effects)
        }
        other => panic!("{other:?} is not expected"),
    }
}

fn read_event<'a>(event: &SystemEvent<'a>) -> ManifestEvent<'a> {
    let number = |at: usize| u32::from_be_bytes(event.value[at..at + 4].try_into().unwrap());
    let uid = u64::from_be_bytes(event.value[..8].try_into().unwrap());
    let (scope, name) = (ScopeId(number(8)), std::str::from_utf8(event.name).unwrap());
    match event.event {
        0 => {
            let (id, max_ttl, history) = (CollectionId(number(12)), None, false);
            let it = EventCollection { uid, scope, id, name, max_ttl, history };
            ManifestEvent::CollectionCreated(it)
        }
        1 => ManifestEvent::CollectionDropped { uid, scope, collection: CollectionId(number(12)) },
        3 => ManifestEvent::ScopeCreated { uid, scope, name },
        4 => ManifestEvent::ScopeDropped { uid, scope },
        other => panic!("{other} is not expected"),
    }
}
