//! Numbers that must not be mixed up, each a type of its own.

use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }
    };
}

number! {
    /// The index of a vBucket.
    Vbid(u16)
}
number! {
    /// The position of a mutation in its vBucket's history: 1, 2, 3, ... (48 bits on disk).
    Seqno(u64)
}
number! {
    /// The version of a document, unique in its vBucket: a hybrid logical clock value. 0 means
    /// "any" in requests and is never stored.
    Cas(u64)
}
number! {
    /// How often a document has changed, deletions included (48 bits on disk).
    RevSeqno(u64)
}
number! {
    /// A collection. 0 is `_default`; 1 to 7 are reserved.
    CollectionId(u32)
}
number! {
    /// A scope. 0 is `_default`; 1 to 7 are reserved.
    ScopeId(u32)
}
number! {
    /// The name of one branch of a vBucket's history. Never 0; 48 random bits.
    VbUuid(u64)
}

impl Seqno {
    /// The seqno after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl Cas {
    /// In requests: any version. In responses: no version.
    pub const ANY: Self = Self(0);
    /// What readers of a locked document see instead of its CAS; never stored.
    pub const LOCKED: Self = Self(u64::MAX);
}

impl CollectionId {
    /// The collection that every bucket has.
    pub const DEFAULT: Self = Self(0);
}

impl ScopeId {
    /// The scope that every bucket has.
    pub const DEFAULT: Self = Self(0);
}

impl Vbid {
    /// The vBucket of a document name: CRC-32 (IEEE) of the name without its collection prefix,
    /// as every Couchbase client computes it. `vbucket_count` is a power of two, at most 32768.
    pub fn of_name(name: &[u8], vbucket_count: u16) -> Self {
        assert!(vbucket_count.is_power_of_two(), "vBucket counts are powers of two");
        let hash = (crc32fast::hash(name) >> 16) & 0x7fff;
        Self(u16::try_from(hash).unwrap_or(0) & (vbucket_count - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_map_to_the_vbuckets_that_clients_compute() {
        // crc32("hello") = 0x3610a686, crc32("foo") = 0x8c736521.
        assert_eq!(Vbid::of_name(b"hello", 1024), Vbid(0x3610 & 1023));
        assert_eq!(Vbid::of_name(b"foo", 1024), Vbid(0x0c73 & 1023));
        assert_eq!(Vbid::of_name(b"anything", 1), Vbid(0));
    }
}
