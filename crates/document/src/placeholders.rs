//! Places in a value that are written once the document has its place in history: CAS and seqno
//! are known no earlier, and whoever gives them knows nothing else of the value. Source:
//! docs/specification/protocol.md, section 12.8.

use crate::ids::{Cas, Seqno};

/// Hexadecimal digits of a place; until they are written they are zeros.
pub const PLACEHOLDER_SIZE: usize = 16;

/// The same with `0x` in front.
pub const PLACEHOLDER_TEXT_SIZE: usize = PLACEHOLDER_SIZE + 2;

/// The places of one value. They are those of the value as it was made: it must not be compressed
/// before they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placeholders(Vec<(PlaceholderKind, usize)>);

/// What is written into a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceholderKind {
    /// The CAS, its last byte first, as clients read it.
    Cas,
    /// The seqno.
    Seqno,
}

impl Placeholders {
    /// One more, whose digits begin at the offset `at`.
    pub fn push(&mut self, kind: PlaceholderKind, at: usize) {
        self.0.push((kind, at));
    }

    /// Makes places of texts in `value`, `0x` and hexadecimal digits, that begin at these offsets:
    /// the digits become zeros. `None` if one of them is no such text, or is named twice.
    pub fn in_place_of(
        value: &mut [u8],
        texts: impl IntoIterator<Item = (PlaceholderKind, usize)>,
    ) -> Option<Self> {
        let mut places = Self::default();
        for (kind, at) in texts {
            let text = value.get_mut(at..at.checked_add(PLACEHOLDER_TEXT_SIZE)?)?;
            let (_, digits) =
                text.split_at_mut_checked(2).filter(|(prefix, _)| *prefix == b"0x")?;
            let at = at + PLACEHOLDER_TEXT_SIZE - PLACEHOLDER_SIZE;
            let is_known = places.0.iter().any(|(_, known)| *known == at);
            if is_known || !digits.iter().all(u8::is_ascii_hexdigit) {
                return None;
            }
            digits.fill(b'0');
            places.push(kind, at);
        }
        Some(places)
    }

    /// Whether there is nothing to be written.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those of a value that stands `size` bytes further on in another.
    #[must_use]
    pub fn moved_by(mut self, size: usize) -> Self {
        self.0.iter_mut().for_each(|(_, at)| *at += size);
        self
    }

    /// Writes CAS and seqno.
    ///
    /// # Panics
    /// If the value is not the one that came with these places, or they were written already.
    pub fn fill(&self, value: &mut [u8], cas: Cas, seqno: Seqno) {
        for &(kind, at) in &self.0 {
            let number = match kind {
                PlaceholderKind::Cas => cas.0.swap_bytes(),
                PlaceholderKind::Seqno => seqno.0,
            };
            let place = value.get_mut(at..).and_then(<[u8]>::first_chunk_mut);
            let place: &mut [u8; PLACEHOLDER_SIZE] = place.expect("a place lies in its value");
            assert!(place.iter().all(|digit| *digit == b'0'), "a place is written once");
            place.copy_from_slice(format!("{number:016x}").as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cas_and_seqno_are_written_where_they_belong() {
        let mut value = [&b"0x"[..], &[b'0'; 16], b" 0x", &[b'0'; 16], b"!"].concat();
        let mut placeholders = Placeholders::default();
        assert!(placeholders.is_empty());
        placeholders.push(PlaceholderKind::Cas, 0);
        placeholders.push(PlaceholderKind::Seqno, 19);
        let placeholders = placeholders.moved_by(2);
        placeholders.fill(&mut value, Cas(0x15d3_0000_0000_00ab), Seqno(0x12));
        assert_eq!(value, b"0xab0000000000d315 0x0000000000000012!");
    }

    #[test]
    fn texts_become_places_if_they_are_such_texts() {
        use PlaceholderKind::{Cas as OfCas, Seqno as OfSeqno};
        let text = *b"\"0x0123456789abcdef\"\"0xFFFFFFFFFFFFFFFF\"";
        for (texts, is_taken) in [
            (&[(OfCas, 1), (OfSeqno, 21)][..], true),
            (&[(OfSeqno, 21)], true),
            (&[], true),
            (&[(OfCas, 0)], false),
            (&[(OfCas, 2)], false),
            (&[(OfCas, 22)], false),
            (&[(OfCas, usize::MAX)], false),
            (&[(OfCas, 1), (OfCas, 1)], false),
            (&[(OfCas, 1), (OfSeqno, 1)], false),
        ] {
            let mut value = text;
            let places = Placeholders::in_place_of(&mut value, texts.iter().copied());
            assert_eq!(places.is_some(), is_taken, "{texts:?}");
            let Some(places) = places else { continue };
            places.fill(&mut value, Cas(0xab00_0000_0000_0001), Seqno(5));
            let written = |at: usize| &value[at..at + PLACEHOLDER_TEXT_SIZE];
            for &(kind, at) in texts {
                let expected: &[u8] = match kind {
                    OfCas => b"0x01000000000000ab",
                    OfSeqno => b"0x0000000000000005",
                };
                assert_eq!(written(at), expected);
            }
        }
    }

    #[test]
    #[should_panic(expected = "a place is written once")]
    fn what_is_not_zeros_is_no_place() {
        let mut placeholders = Placeholders::default();
        placeholders.push(PlaceholderKind::Cas, 0);
        placeholders.fill(&mut [b'1'; 16], Cas(1), Seqno(1));
    }
}
