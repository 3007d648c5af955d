//! Which keys of a collection.

use std::ops::Bound;

use document::CollectionId;
use document::key::encode_collection;

/// Encoded keys of one collection, from the first to in front of the second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    pub(super) collection: CollectionId,
    pub(super) from: Vec<u8>,
    pub(super) to: Vec<u8>,
}

impl KeyRange {
    /// All keys of a collection.
    pub fn of_collection(collection: CollectionId) -> Self {
        let from = encode_collection(collection);
        Self { collection, to: least_behind_prefix(&from), from }
    }

    /// The keys whose names lie between `start` and `end`; `None` when none can.
    pub fn between(
        collection: CollectionId,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
    ) -> Option<Self> {
        let whole = Self::of_collection(collection);
        let key = |name: &[u8]| [whole.from.as_slice(), name].concat();
        let behind = |name: &[u8]| [whole.from.as_slice(), name, &[0]].concat();
        let from = match start {
            Bound::Included(name) => key(name),
            Bound::Excluded(name) => behind(name),
            Bound::Unbounded => whole.from.clone(),
        };
        let to = match end {
            Bound::Included(name) => behind(name),
            Bound::Excluded(name) => key(name),
            Bound::Unbounded => whole.to,
        };
        (from < to).then_some(Self { collection, from, to })
    }
}

/// The least bytes behind all those that begin with an encoded collection. The last byte of one
/// has its uppermost bit clear.
fn least_behind_prefix(prefix: &[u8]) -> Vec<u8> {
    let mut bytes = prefix.to_vec();
    let last = bytes.last_mut().expect("an encoded collection is not empty");
    *last += 1;
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn included(name: &str) -> Bound<&[u8]> {
        Bound::Included(name.as_bytes())
    }

    fn excluded(name: &str) -> Bound<&[u8]> {
        Bound::Excluded(name.as_bytes())
    }

    #[test]
    fn a_range_holds_the_keys_between_its_ends() {
        for (start, end, expected) in [
            (included("a"), included("b"), &["a", "a\0", "b"][..]),
            (included("a"), excluded("b"), &["a", "a\0"]),
            (excluded("a"), included("b"), &["a\0", "b"]),
            (excluded("a"), excluded("b"), &["a\0"]),
            (included("a"), included("a"), &["a"]),
            (Bound::Unbounded, included("a"), &["a"]),
            (included("b"), Bound::Unbounded, &["b", "b\0", "\u{10ffff}"]),
        ] {
            for collection in [0, 8, 127, 128, u32::MAX] {
                let collection = CollectionId(collection);
                let range = KeyRange::between(collection, start, end).unwrap();
                let held = |name: &&str| {
                    let key = [encode_collection(collection), name.as_bytes().to_vec()].concat();
                    range.from <= key && key < range.to
                };
                let names = ["a", "a\0", "b", "b\0", "\u{10ffff}"];
                let names: Vec<&str> = names.into_iter().filter(held).collect();
                assert_eq!(names, expected, "{start:?} {end:?}");
            }
        }
        for (start, end) in [
            (included("b"), included("a")),
            (included("a"), excluded("a")),
            (excluded("a"), included("a")),
            (included(""), excluded("")),
        ] {
            assert_eq!(KeyRange::between(CollectionId::DEFAULT, start, end), None);
        }
    }

    #[test]
    fn ranges_of_collections_do_not_meet() {
        let ids = [0, 1, 8, 127, 128, 129, 300, 16_384, u32::MAX];
        for one in ids {
            for other in ids {
                let range = KeyRange::of_collection(CollectionId(one));
                let key = [encode_collection(CollectionId(other)), vec![0xff]].concat();
                assert_eq!(range.from <= key && key < range.to, one == other, "{one} {other}");
            }
        }
    }
}
