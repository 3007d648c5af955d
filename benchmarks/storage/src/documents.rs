//! The documents: keys of 24 bytes, bodies of 512 random bytes.

use document::{Cas, Item, ItemBuilder, ItemMeta, KeyBuf, RevSeqno, Seqno};
use platform::Random;

/// Bytes of a key.
pub const KEY_SIZE: usize = 24;
/// Bytes of a body.
pub const BODY_SIZE: usize = 512;
/// Bytes that a user hands over for a document.
pub const DOCUMENT_SIZE: usize = KEY_SIZE + BODY_SIZE;

/// A key, by its number.
pub fn key(number: u64) -> [u8; KEY_SIZE] {
    let mut key = *b"key-00000000000000000000";
    let mut rest = number;
    for digit in key[4..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

/// A new version of a document.
#[derive(Clone)]
pub struct Document {
    /// The number of its key.
    pub number: u64,
    /// Its content.
    pub body: [u8; BODY_SIZE],
}

impl Document {
    /// Its key as the store knows it.
    pub fn key(&self) -> KeyBuf {
        KeyBuf::in_default_collection(&key(self.number)).expect("24 bytes are a key")
    }

    /// It as an item of this seqno.
    pub fn item(&self, seqno: Seqno) -> Item {
        let key = self.key();
        let builder = ItemBuilder::new(key.as_key(), ItemMeta::default(), &self.body);
        builder.finish(Cas(seqno.0 + 1), seqno, RevSeqno(seqno.0))
    }
}

/// Draws documents. The same seed draws the same ones, for every engine.
pub struct Documents {
    random: Random,
    count: u64,
    /// When a key was drawn last, in draws of batches.
    drawn_in: Vec<u32>,
    batches: u32,
}

impl Documents {
    /// Of so many keys.
    pub fn new(count: u64, seed: u64) -> Self {
        let size = usize::try_from(count).unwrap_or(usize::MAX);
        Self { random: Random::from_seed(seed), count, drawn_in: vec![0; size], batches: 0 }
    }

    /// A batch of new versions of different random documents.
    pub fn draw(&mut self, size: usize) -> Vec<Document> {
        assert!(size as u64 <= self.count, "a batch has each key once");
        self.batches += 1;
        (0..size)
            .map(|_| {
                let number = self.draw_number();
                self.document(number)
            })
            .collect()
    }

    /// A version of this document.
    pub fn document(&mut self, number: u64) -> Document {
        let mut body = [0; BODY_SIZE];
        self.random.fill(&mut body);
        Document { number, body }
    }

    fn draw_number(&mut self) -> u64 {
        loop {
            let number = self.random.below(self.count);
            let drawn_in = &mut self.drawn_in[number as usize];
            if *drawn_in != self.batches {
                *drawn_in = self.batches;
                return number;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_order_of_their_numbers() {
        assert_eq!(&key(0), b"key-00000000000000000000");
        assert_eq!(&key(1_234), b"key-00000000000000001234");
        assert!(key(99) < key(100));
    }

    #[test]
    fn a_batch_has_each_key_once_and_repeats_with_the_seed() {
        let (mut one, mut other) = (Documents::new(100, 7), Documents::new(100, 7));
        for _ in 0..3 {
            let batch = one.draw(100);
            let mut numbers: Vec<u64> = batch.iter().map(|document| document.number).collect();
            let same = other.draw(100);
            assert!(batch.iter().zip(&same).all(|(a, b)| a.number == b.number && a.body == b.body));
            numbers.sort_unstable();
            assert_eq!(numbers, (0..100).collect::<Vec<u64>>());
        }
    }
}
