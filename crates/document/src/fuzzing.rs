//! Entrances for the fuzzers: any bytes, no panic, and what is read says the same of itself.

use crate::key::{Key, decode_collection, encode_collection};
use crate::manifest_event::{ManifestEvent, collection_dropped_by};
use crate::xattr;

/// Reads `bytes` as an encoded key, and as that of an event with its value.
pub fn collection_id(bytes: &[u8]) {
    if let Ok((collection, name)) = decode_collection(bytes) {
        let again = [&encode_collection(collection), name].concat();
        assert_eq!(again, bytes, "a collection's id has one form");
    }
    if let Ok(key) = Key::from_encoded(bytes) {
        assert!(!key.is_of_event() && !key.name().is_empty(), "a client's key is a document's");
        let is_default = key.collection().0 == 0;
        assert_eq!(key.is_in_default_collection(), is_default, "one look tells the collection");
    }
    let key_size = bytes.first().map_or(0, |size| usize::from(*size)).min(bytes.len());
    let (key, value) = bytes.split_at(key_size);
    for is_deleted in [false, true] {
        if let Some(event) = ManifestEvent::decode(key, is_deleted, value) {
            let encoded = event.encode();
            let again = ManifestEvent::decode(&event.key(), event.is_deletion(), &encoded);
            assert_eq!(again, Some(event), "an event that is written is read again");
        }
    }
    std::hint::black_box(collection_dropped_by(bytes));
}

/// Reads `bytes` as a value that begins with extended attributes.
pub fn attributes(bytes: &[u8]) {
    let Some((section, body)) = xattr::split(bytes) else {
        assert!(!xattr::is_well_formed(bytes), "without a section nothing is well formed");
        return;
    };
    assert_eq!(section.len() + body.len(), bytes.len(), "a value is its section and its body");
    let entries = xattr::entries(&section[4..]).collect::<Vec<_>>();
    let size = entries.iter().map(|entry| entry.size).sum::<usize>();
    assert!(size <= section.len() - 4, "entries lie in their section");
    let of_system = xattr::system_only(bytes);
    if xattr::is_well_formed(bytes) {
        assert_eq!(size, section.len() - 4, "a section that can be stored is all entries");
        let system_size = xattr::system_size(&section[4..]);
        assert_eq!(of_system.len(), system_size + 4 * usize::from(system_size > 0));
        assert!(of_system.is_empty() || xattr::is_well_formed(&of_system), "what survives");
    }
    let at = bytes.first().map_or(0, |at| usize::from(*at));
    let is_text = xattr::is_within_text(bytes, at, 1);
    assert!(!is_text || at < bytes.len(), "what lies within a value is a part of it");
}
