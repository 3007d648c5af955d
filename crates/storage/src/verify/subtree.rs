//! What is known about a subtree once it was read, to be compared with what points to it.
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

use crate::couchstore::DocumentInfo;
use crate::couchstore::node::{Pointer, Totals};

/// A subtree whose nodes are all whole.
#[derive(Clone, Debug, Default)]
pub(super) struct Subtree {
    /// Disk bytes of its nodes.
    pub(super) size: u64,
    pub(super) totals: Totals,
    pub(super) item_count: u64,
    pub(super) first_key: Box<[u8]>,
    pub(super) last_key: Box<[u8]>,
    /// The highest seqno in it.
    pub(super) high_seqno: u64,
    /// The highest position of a body in it.
    pub(super) body_position_max: u64,
    /// The sum of the fingerprints of its documents. The two trees of documents hold the same
    /// ones exactly if the sums agree, but for a chance of 2^-128.
    pub(super) fingerprint: u128,
}

impl Subtree {
    /// Takes what a child adds. Keys are the caller's.
    pub(super) fn add(&mut self, child: &Self) {
        self.size = self.size.saturating_add(child.size);
        self.totals.add(child.totals);
        self.item_count = self.item_count.saturating_add(child.item_count);
        self.high_seqno = self.high_seqno.max(child.high_seqno);
        self.body_position_max = self.body_position_max.max(child.body_position_max);
        self.fingerprint = self.fingerprint.wrapping_add(child.fingerprint);
    }

    /// Takes a document.
    pub(super) fn add_document(&mut self, info: &DocumentInfo<'_>) {
        self.high_seqno = self.high_seqno.max(info.seqno);
        self.body_position_max = self.body_position_max.max(info.body_position);
        self.fingerprint = self.fingerprint.wrapping_add(fingerprint(info));
    }

    /// What a pointer says that is not so.
    pub(super) fn contradiction(&self, pointer: &Pointer) -> Option<&'static str> {
        if pointer.subtree_size != self.size {
            Some("a subtree of another size than its parent says")
        } else if pointer.reduction.totals() != self.totals {
            Some("the counts of a subtree are not those that its parent says")
        } else {
            None
        }
    }
}

/// A number for everything that the trees say about a document.
pub(super) fn fingerprint(info: &DocumentInfo<'_>) -> u128 {
    let mut hash = Hash(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
    hash.word(info.seqno);
    hash.word(info.rev_seqno);
    hash.word(info.body_position);
    hash.word(u64::from(info.body_size));
    hash.word(u64::from(info.content_meta) << 8 | u64::from(info.deleted));
    hash.bytes(info.id);
    hash.bytes(info.rev_meta);
    hash.finish()
}

/// FNV-1a over 64-bit words instead of bytes, mixed at the end so that sums keep its quality.
struct Hash(u128);

impl Hash {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

    fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ u128::from(word)).wrapping_mul(Self::PRIME);
        self.0 ^= self.0 >> 67;
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        for piece in bytes.chunks(8) {
            self.word(piece.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
        }
    }

    fn finish(mut self) -> u128 {
        self.word(0x9e37_79b9_7f4a_7c15);
        self.word(0xbf58_476d_1ce4_e5b9);
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_changes_with_every_field() {
        let info = DocumentInfo {
            id: b"\x00key",
            seqno: 1,
            rev_seqno: 2,
            deleted: false,
            content_meta: 3,
            body_position: 4,
            body_size: 5,
            rev_meta: b"0123456789abcdef",
        };
        let others = [
            DocumentInfo { id: b"\x00kez", ..info },
            DocumentInfo { seqno: 2, ..info },
            DocumentInfo { rev_seqno: 1, ..info },
            DocumentInfo { deleted: true, ..info },
            DocumentInfo { content_meta: 0x83, ..info },
            DocumentInfo { body_position: 5, ..info },
            DocumentInfo { body_size: 4, ..info },
            DocumentInfo { rev_meta: b"0123456789abcdeg", ..info },
            DocumentInfo { id: b"\x00key0", rev_meta: b"123456789abcdef", ..info },
        ];
        for other in others {
            assert_ne!(fingerprint(&other), fingerprint(&info), "{other:?}");
        }
        assert_eq!(fingerprint(&info), fingerprint(&info.clone()));
    }
}
