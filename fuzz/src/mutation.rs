//! New inputs from old ones.

use platform::Random;

const CHANGES_MAX: u64 = 6;
/// Bytes that one change inserts or copies at most.
const PIECE_MAX: u64 = 64;

/// Values at which lengths and signs go wrong.
const INTERESTING: [u32; 10] =
    [0, 1, 0x7f, 0x80, 0xff, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff];

/// One of the corpus, changed in a few places; now and then unchanged.
pub(crate) fn mutate(corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = pick(corpus, random).clone();
    for _ in 0..random.below(CHANGES_MAX + 1) {
        change(&mut bytes, corpus, random);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut Random) {
    match random.below(7) {
        0 => flip_bit(bytes, random),
        1 => overwrite(bytes, &[random.next_u64() as u8], random),
        2 => {
            let value = INTERESTING[random.below(INTERESTING.len() as u64) as usize];
            let width = 1 << random.below(3);
            overwrite(bytes, &value.to_be_bytes()[4 - width..], random);
        }
        3 => {
            let mut piece = vec![0; 1 + random.below(PIECE_MAX) as usize];
            random.fill(&mut piece);
            insert(bytes, &piece, random);
        }
        4 => {
            let (start, end) = range(bytes, random);
            bytes.drain(start..end);
        }
        5 => {
            let (start, end) = range(bytes, random);
            let piece = bytes[start..end].to_vec();
            insert(bytes, &piece, random);
        }
        _ => {
            let other = pick(corpus, random);
            let (start, end) = range(other, random);
            insert(bytes, &other[start..end], random);
        }
    }
}

fn pick<'a>(corpus: &'a [Vec<u8>], random: &mut Random) -> &'a Vec<u8> {
    &corpus[random.below(corpus.len() as u64) as usize]
}

/// A place in `bytes`, its end included.
fn place(bytes: &[u8], random: &mut Random) -> usize {
    random.below(bytes.len() as u64 + 1) as usize
}

/// A short range of `bytes`, possibly empty.
fn range(bytes: &[u8], random: &mut Random) -> (usize, usize) {
    let start = place(bytes, random);
    let end = start + random.below(PIECE_MAX + 1) as usize;
    (start, end.min(bytes.len()))
}

fn flip_bit(bytes: &mut [u8], random: &mut Random) {
    let at = place(bytes, random);
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << random.below(8);
    }
}

fn overwrite(bytes: &mut [u8], with: &[u8], random: &mut Random) {
    let at = place(bytes, random);
    bytes[at..].iter_mut().zip(with).for_each(|(byte, &new)| *byte = new);
}

fn insert(bytes: &mut Vec<u8>, piece: &[u8], random: &mut Random) {
    let at = place(bytes, random);
    bytes.splice(at..at, piece.iter().copied());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_input_and_others_make_others() {
        let corpus = [b"first".to_vec(), Vec::new(), vec![7; 300]];
        let make = |seed| mutate(&corpus, &mut Random::from_seed(seed));
        let inputs: std::collections::BTreeSet<Vec<u8>> = (0..2_000).map(make).collect();
        assert!(inputs.len() > 1_000, "{} different inputs", inputs.len());
        assert!((0..2_000).all(|seed| make(seed) == make(seed)));
    }
}
