//! The bodies of documents, cut from one pool: nothing is made per operation.

use std::sync::Arc;

use platform::Random;

/// Bytes of the pool beyond the largest document, so that random bodies differ.
const POOL_SLACK: usize = 1 << 20;
const JSON_HEAD: &[u8] = b"{\"body\":\"";
const JSON_TAIL: &[u8] = b"\"}";
/// 64 characters that JSON takes as they are.
const JSON_LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// What bodies look like.
#[derive(Clone, Copy, Debug)]
pub(super) struct ValueShape {
    pub(super) size_min: usize,
    pub(super) size_max: usize,
    pub(super) is_random: bool,
    pub(super) is_json: bool,
}

/// Makes bodies. Clones share the pool.
#[derive(Clone, Debug)]
pub(super) struct ValueSource {
    shape: ValueShape,
    pool: Arc<[u8]>,
}

impl ValueSource {
    pub(super) fn new(shape: ValueShape, random: &mut Random) -> Self {
        assert!(shape.size_min <= shape.size_max, "bodies have a range of sizes");
        let mut pool = vec![b'#'; shape.size_max];
        if shape.is_random {
            pool.resize(shape.size_max + POOL_SLACK, 0);
            random.fill(&mut pool);
            if shape.is_json {
                pool.iter_mut().for_each(|byte| *byte = JSON_LETTERS[usize::from(*byte & 63)]);
            }
        }
        Self { shape, pool: pool.into() }
    }

    /// Appends a body. JSON has at least the size of its punctuation.
    pub(super) fn append(&self, random: &mut Random, out: &mut Vec<u8>) {
        let ValueShape { size_min, size_max, is_random, is_json } = self.shape;
        let span = (size_max - size_min) as u64;
        let size = size_min + if span == 0 { 0 } else { random.below(span + 1) as usize };
        let slack = self.pool.len() - size_max;
        let offset = if is_random { random.below(slack as u64 + 1) as usize } else { 0 };
        if is_json {
            let size = size.saturating_sub(JSON_HEAD.len() + JSON_TAIL.len());
            out.extend_from_slice(JSON_HEAD);
            out.extend_from_slice(&self.pool[offset..offset + size]);
            out.extend_from_slice(JSON_TAIL);
        } else {
            out.extend_from_slice(&self.pool[offset..offset + size]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_have_the_sizes_and_the_form_that_were_asked_for() {
        for seed in platform::seeds::seeds(3) {
            let mut random = Random::from_seed(seed);
            for (is_random, is_json) in [(false, false), (true, false), (false, true), (true, true)]
            {
                let shape = ValueShape { size_min: 20, size_max: 24, is_random, is_json };
                let values = ValueSource::new(shape, &mut random);
                let mut sizes = [0; 5];
                let mut bodies = std::collections::BTreeSet::new();
                for _ in 0..200 {
                    let mut body = Vec::new();
                    values.append(&mut random, &mut body);
                    sizes[body.len() - 20] += 1;
                    assert_eq!(document::datatype::is_json(&body), is_json, "seed {seed}");
                    bodies.insert(body);
                }
                assert!(sizes.iter().all(|count| *count > 0), "seed {seed}: {sizes:?}");
                assert_eq!(bodies.len() > 5, is_random, "seed {seed}");
            }
        }
    }

    #[test]
    fn the_smallest_json_is_still_json() {
        let shape = ValueShape { size_min: 0, size_max: 0, is_random: true, is_json: true };
        let mut random = Random::from_seed(1);
        let mut body = Vec::new();
        ValueSource::new(shape, &mut random).append(&mut random, &mut body);
        assert_eq!(body, b"{\"body\":\"\"}");
    }
}
