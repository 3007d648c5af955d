//! Events of a vBucket's collections as streams carry them. Source: docs/specification/protocol.md,
//! section 20.8.
//!
//! ```text
//! version 0   u64 manifest uid, u32 scope, of collections u32 id; numbers are big-endian
//! version 1   a created collection that limits lives: the same, and u32 seconds
//! version 2   the FlatBuffer of the files
//! ```

use document::flat_buffer::FlatBuffer;
use document::manifest_event::EventCollection;
use document::{CollectionId, Item, ManifestEvent, ScopeId, Seqno};
use protocol::dcp::SystemEvent;

const COLLECTION_CREATED: u32 = 0;
const COLLECTION_DROPPED: u32 = 1;
const SCOPE_CREATED: u32 = 3;
const SCOPE_DROPPED: u32 = 4;
const COLLECTION_CHANGED: u32 = 5;

/// The event that an item is.
pub(crate) fn event_of(item: &Item) -> Option<ManifestEvent<'_>> {
    ManifestEvent::decode(item.key().encoded(), item.is_deleted(), item.value())
}

/// The value of an event for those who do not read FlatBuffers.
pub(crate) fn plain_value(event: &ManifestEvent<'_>) -> Vec<u8> {
    let mut value = event.uid().to_be_bytes().to_vec();
    value.extend(event.scope().0.to_be_bytes());
    if let Some(collection) = event.collection() {
        value.extend(collection.0.to_be_bytes());
    }
    if let ManifestEvent::CollectionCreated(EventCollection { max_ttl: Some(seconds), .. }) = event
    {
        value.extend(seconds.to_be_bytes());
    }
    value
}

/// The message that carries `event` with `value`.
pub(crate) fn message<'a>(
    event: &ManifestEvent<'a>,
    seqno: Seqno,
    has_flat_buffers: bool,
    value: &'a [u8],
) -> SystemEvent<'a> {
    let (number, limits_lives) = match event {
        ManifestEvent::CollectionCreated(it) => (COLLECTION_CREATED, it.max_ttl.is_some()),
        ManifestEvent::CollectionChanged(_) => (COLLECTION_CHANGED, false),
        ManifestEvent::CollectionDropped { .. } => (COLLECTION_DROPPED, false),
        ManifestEvent::ScopeCreated { .. } => (SCOPE_CREATED, false),
        ManifestEvent::ScopeDropped { .. } => (SCOPE_DROPPED, false),
    };
    let version = if has_flat_buffers { 2 } else { u8::from(limits_lives) };
    SystemEvent { seqno, event: number, version, name: event.name().as_bytes(), value }
}

/// What a message says; `None` if it is not understood.
pub(crate) fn read<'a>(message: &SystemEvent<'a>) -> Option<ManifestEvent<'a>> {
    let name = std::str::from_utf8(message.name).ok()?;
    let of_collection =
        matches!(message.event, COLLECTION_CREATED | COLLECTION_DROPPED | COLLECTION_CHANGED);
    let mut said = EventCollection {
        uid: 0,
        scope: ScopeId::DEFAULT,
        id: CollectionId::DEFAULT,
        name,
        max_ttl: None,
        history: false,
    };
    if message.version == 2 {
        let buffer = FlatBuffer(message.value);
        let table = buffer.root()?;
        said.uid = buffer.field_u64(table, 0)?;
        said.scope = ScopeId(buffer.field_u32(table, 1)?);
        if of_collection {
            said.id = CollectionId(buffer.field_u32(table, 2)?);
        }
        if of_collection && message.event != COLLECTION_DROPPED {
            let seconds = buffer.field_u32(table, 4)?;
            said.max_ttl = buffer.field_bool(table, 3)?.then_some(seconds);
            said.history = buffer.field_bool(table, 6)?;
        }
    } else {
        let (uid, rest) = message.value.split_first_chunk()?;
        let (scope, mut rest) = rest.split_first_chunk()?;
        (said.uid, said.scope) = (u64::from_be_bytes(*uid), ScopeId(u32::from_be_bytes(*scope)));
        if of_collection {
            let (id, behind) = rest.split_first_chunk()?;
            said.id = CollectionId(u32::from_be_bytes(*id));
            rest = behind;
        }
        if message.version == 1 {
            let (seconds, behind) = rest.split_first_chunk()?;
            said.max_ttl = Some(u32::from_be_bytes(*seconds));
            rest = behind;
        }
        if !rest.is_empty() {
            return None;
        }
    }
    let EventCollection { uid, scope, id: collection, .. } = said;
    Some(match message.event {
        COLLECTION_CREATED => ManifestEvent::CollectionCreated(said),
        COLLECTION_CHANGED => ManifestEvent::CollectionChanged(said),
        COLLECTION_DROPPED => ManifestEvent::CollectionDropped { uid, scope, collection },
        SCOPE_CREATED => ManifestEvent::ScopeCreated { uid, scope, name },
        SCOPE_DROPPED => ManifestEvent::ScopeDropped { uid, scope },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_read_back_in_each_form_and_no_damage_panics() {
        let (uid, scope, id) = (7, ScopeId(8), CollectionId(9));
        let created =
            |max_ttl| EventCollection { uid, scope, id, name: "c", max_ttl, history: false };
        for event in [
            ManifestEvent::CollectionCreated(created(None)),
            ManifestEvent::CollectionCreated(created(Some(60))),
            ManifestEvent::CollectionDropped { uid, scope, collection: id },
            ManifestEvent::ScopeCreated { uid, scope, name: "s" },
            ManifestEvent::ScopeDropped { uid, scope },
            ManifestEvent::CollectionChanged(created(Some(5))),
        ] {
            let is_change = matches!(event, ManifestEvent::CollectionChanged(_));
            for has_flat_buffers in [true, false] {
                if is_change && !has_flat_buffers {
                    continue;
                }
                let value = if has_flat_buffers { event.encode() } else { plain_value(&event) };
                let sent = message(&event, Seqno(3), has_flat_buffers, &value);
                assert_eq!(read(&sent), Some(event));
                for length in 0..value.len() {
                    let _ = read(&SystemEvent { value: &value[..length], ..sent });
                }
            }
        }
    }
}
