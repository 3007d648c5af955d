//! The key of a document: its collection and its name, in one encoded run of bytes.
//!
//! The encoded form is the one of the wire (collections negotiated) and of the file: the collection
//! id as unsigned LEB128, then the name. Source: docs/specification/protocol.md, section 9.1.

use std::fmt;
use std::ops::Deref;

use crate::ids::CollectionId;
use crate::limits::{COLLECTION_KEY_SIZE_MAX, ENCODED_KEY_SIZE_MAX, KEY_SIZE_MAX};

/// What the keys of events begin with: the id of a collection that no client may address.
pub(crate) const EVENT_PREFIX: u8 = 1;

/// Why bytes are not a document key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// The name is empty.
    Empty,
    /// The name is longer than its collection allows.
    TooLong,
    /// The LEB128 prefix does not end, is longer than needed, or exceeds 32 bits.
    BadCollection,
    /// Collection ids 1 to 7 belong to the server.
    ReservedCollection,
}

/// A borrowed, valid, encoded key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key<'a>(&'a [u8]);

/// An owned encoded key on the stack.
#[derive(Clone)]
pub struct KeyBuf {
    length: u8,
    bytes: [u8; ENCODED_KEY_SIZE_MAX],
}

impl<'a> Key<'a> {
    /// Checks an encoded key that a client sent.
    pub fn from_encoded(encoded: &'a [u8]) -> Result<Self, KeyError> {
        let (collection, name) = decode_collection(encoded)?;
        match collection.0 {
            1..=7 => return Err(KeyError::ReservedCollection),
            _ if name.is_empty() => return Err(KeyError::Empty),
            0 if name.len() > KEY_SIZE_MAX => return Err(KeyError::TooLong),
            0 => {}
            _ if name.len() > COLLECTION_KEY_SIZE_MAX => return Err(KeyError::TooLong),
            _ => {}
        }
        Ok(Self(encoded))
    }

    /// Takes an encoded key that was checked before, as items and files hold it.
    pub fn from_trusted(encoded: &'a [u8]) -> Self {
        Self(encoded)
    }

    /// The encoded form.
    pub fn encoded(self) -> &'a [u8] {
        self.0
    }

    /// The collection.
    pub fn collection(self) -> CollectionId {
        decode_collection(self.0).map_or(CollectionId::DEFAULT, |(collection, _)| collection)
    }

    /// Whether it is one of the default collection, in one look.
    #[inline]
    pub fn is_in_default_collection(self) -> bool {
        self.0.first() == Some(&0)
    }

    /// Whether it is that of an event in the history of the manifest, not of a document.
    #[inline]
    pub fn is_of_event(self) -> bool {
        self.0.first() == Some(&EVENT_PREFIX)
    }

    /// The name without the collection.
    pub fn name(self) -> &'a [u8] {
        decode_collection(self.0).map_or(self.0, |(_, name)| name)
    }
}

impl fmt::Debug for Key<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.collection(), self.name().escape_ascii())
    }
}

impl KeyBuf {
    /// The key of `name` in the default collection, for clients that send plain names.
    pub fn in_default_collection(name: &[u8]) -> Result<Self, KeyError> {
        if name.is_empty() {
            return Err(KeyError::Empty);
        }
        if name.len() > KEY_SIZE_MAX {
            return Err(KeyError::TooLong);
        }
        let mut bytes = [0; ENCODED_KEY_SIZE_MAX];
        bytes[1..=name.len()].copy_from_slice(name);
        let length = u8::try_from(name.len() + 1).expect("a name of 250 bytes fits one byte");
        Ok(Self { length, bytes })
    }

    /// The borrowed key.
    pub fn as_key(&self) -> Key<'_> {
        Key(self)
    }
}

impl Deref for KeyBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// The bytes that the encoded keys of a collection begin with.
pub fn encode_collection(collection: CollectionId) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(5);
    let mut left = collection.0;
    loop {
        let [.., low] = left.to_be_bytes();
        left >>= 7;
        if left == 0 {
            encoded.push(low & 0x7f);
            return encoded;
        }
        encoded.push(low | 0x80);
    }
}

/// Splits an encoded key into its collection and the rest.
pub fn decode_collection(encoded: &[u8]) -> Result<(CollectionId, &[u8]), KeyError> {
    let mut id: u32 = 0;
    for (index, &byte) in encoded.iter().enumerate().take(5) {
        let bits = u32::from(byte & 0x7f);
        if index == 4 && bits > 0x0f {
            return Err(KeyError::BadCollection);
        }
        id |= bits << (7 * index);
        if byte & 0x80 == 0 {
            let superfluous = index > 0 && byte == 0;
            return match encoded.get(index + 1..) {
                Some(name) if !superfluous => Ok((CollectionId(id), name)),
                _ => Err(KeyError::BadCollection),
            };
        }
    }
    Err(KeyError::BadCollection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collections_are_canonical_leb128() {
        let decode = |bytes: &[u8]| decode_collection(bytes).map(|(id, name)| (id.0, name.len()));
        assert_eq!(decode(b"\x00k"), Ok((0, 1)));
        assert_eq!(decode(b"\x08k"), Ok((8, 1)));
        assert_eq!(decode(b"\x80\x01key"), Ok((128, 3)));
        assert_eq!(decode(b"\xff\xff\xff\xff\x0f"), Ok((u32::MAX, 0)));
        assert_eq!(decode(b"\xff\xff\xff\xff\x1f"), Err(KeyError::BadCollection));
        assert_eq!(decode(b"\x80\x00k"), Err(KeyError::BadCollection));
        assert_eq!(decode(b"\x80"), Err(KeyError::BadCollection));
        assert_eq!(decode(b""), Err(KeyError::BadCollection));
        for id in [0, 8, 127, 128, 300, u32::MAX] {
            let encoded = encode_collection(CollectionId(id));
            assert_eq!(decode_collection(&encoded), Ok((CollectionId(id), &b""[..])));
        }
    }

    #[test]
    fn keys_keep_their_limits() {
        let long = [b'x'; 252];
        assert!(KeyBuf::in_default_collection(&long[..250]).is_ok());
        assert_eq!(KeyBuf::in_default_collection(&long[..251]).err(), Some(KeyError::TooLong));
        assert_eq!(KeyBuf::in_default_collection(b"").err(), Some(KeyError::Empty));
        assert_eq!(Key::from_encoded(b"\x00").err(), Some(KeyError::Empty));
        assert_eq!(Key::from_encoded(b"\x01k").err(), Some(KeyError::ReservedCollection));
        let mut encoded = vec![8];
        encoded.extend_from_slice(&long[..246]);
        assert!(Key::from_encoded(&encoded).is_ok());
        encoded.push(b'x');
        assert_eq!(Key::from_encoded(&encoded).err(), Some(KeyError::TooLong));
    }

    #[test]
    fn a_plain_name_lands_in_the_default_collection() {
        let key = KeyBuf::in_default_collection(b"name").unwrap();
        assert_eq!(&*key, b"\x00name");
        assert_eq!(key.as_key().collection(), CollectionId::DEFAULT);
        assert_eq!(key.as_key().name(), b"name");
        assert_eq!(format!("{:?}", key.as_key()), "0:name");
    }
}
