//! The documents, each of which can be made again from its number and version.

use platform::Random;

/// Bytes of a value, at least and at most.
const SIZE_MIN: usize = 50;
const SIZE_MAX: usize = 4000;
/// One document out of so many is a JSON object.
const JSON_DISTANCE: usize = 16;
const NOISE_BYTES: usize = 1 << 16;
/// The path whose value is the version, in a JSON object.
pub const PATH: &str = "field";

/// Which documents there are: lasting ones, of which some are JSON objects, and sessions, which
/// expire.
pub struct Documents {
    lasting: usize,
    sessions: usize,
    /// Bytes that do not compress.
    noise: Vec<u8>,
    /// The same as lower-case letters.
    letters: Vec<u8>,
}

impl Documents {
    /// So many of both kinds; lasting ones come first.
    pub fn new(lasting: usize, sessions: usize) -> Self {
        let mut noise = vec![0; NOISE_BYTES + SIZE_MAX];
        Random::from_seed(3).fill(&mut noise);
        let letters = noise.iter().map(|byte| b'a' + byte % 26).collect();
        Self { lasting, sessions, noise, letters }
    }

    /// How many never expire.
    pub fn lasting(&self) -> usize {
        self.lasting
    }

    /// How many expire.
    pub fn sessions(&self) -> usize {
        self.sessions
    }

    /// Of both kinds.
    pub fn count(&self) -> usize {
        self.lasting + self.sessions
    }

    /// The lasting document from `index` on downwards that is an object.
    pub fn object_before(&self, index: usize) -> usize {
        index - index % JSON_DISTANCE
    }

    /// The object behind that one, in a circle.
    pub fn object_after(&self, object: usize) -> usize {
        let next = object + JSON_DISTANCE;
        if next < self.lasting { next } else { 0 }
    }

    fn is_object(&self, index: usize) -> bool {
        index < self.lasting && index.is_multiple_of(JSON_DISTANCE)
    }

    /// Puts a document's value into `value`, in the place of what is there. Objects keep their
    /// size: one path of theirs changes.
    pub fn write(&self, index: usize, version: u32, value: &mut Vec<u8>) {
        value.clear();
        if self.is_object(index) {
            let mut random = Random::from_seed(index as u64);
            let (size, place) = size_and_place(&mut random);
            let (field, rest) = (field(version), &self.letters[place..place + size]);
            value.extend_from_slice(format!("{{\"{PATH}\":{field},\"rest\":\"").as_bytes());
            value.extend_from_slice(rest);
            value.extend_from_slice(b"\"}");
            return;
        }
        let mut random = Random::from_seed((index as u64) << 32 | u64::from(version));
        let (size, place) = size_and_place(&mut random);
        value.extend_from_slice(&(index as u64).to_be_bytes());
        value.extend_from_slice(&version.to_be_bytes());
        value.extend_from_slice(&self.noise[place..place + size - value.len()]);
    }
}

/// What is at [`PATH`] of an object, as JSON.
pub fn field(version: u32) -> String {
    format!("\"{version:010}\"")
}

fn size_and_place(random: &mut Random) -> (usize, usize) {
    let size = SIZE_MIN + random.below((SIZE_MAX - SIZE_MIN) as u64 + 1) as usize;
    (size, random.below(NOISE_BYTES as u64) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_of_its_document_and_version() {
        let documents = Documents::new(100, 10);
        let value = |index, version| {
            let mut value = b"what was there".to_vec();
            documents.write(index, version, &mut value);
            value
        };
        assert_eq!(value(5, 1), value(5, 1));
        assert_ne!(value(5, 1), value(5, 2));
        assert_ne!(value(5, 1), value(6, 1));
        let sizes: Vec<usize> = (0..1000).map(|version| value(105, version).len()).collect();
        assert!(sizes.iter().all(|size| (SIZE_MIN..=SIZE_MAX).contains(size)));
        let mean = sizes.iter().sum::<usize>() / sizes.len();
        assert!((1900..2150).contains(&mean), "{mean}");
    }

    #[test]
    fn an_object_changes_at_its_path_alone() {
        let documents = Documents::new(100, 10);
        let [mut first, mut second] = [Vec::new(), Vec::new()];
        documents.write(32, 7, &mut first);
        documents.write(32, 8, &mut second);
        let object: serde_json::Value = serde_json::from_slice(&first).expect("an object");
        assert_eq!(object[PATH], "0000000007");
        let text = String::from_utf8(first).expect("JSON is text");
        assert_eq!(text.replace(&field(7), &field(8)).into_bytes(), second);
    }

    #[test]
    fn objects_follow_each_other_in_a_circle() {
        let documents = Documents::new(40, 10);
        assert_eq!(documents.object_before(39), 32);
        assert_eq!((documents.object_after(16), documents.object_after(32)), (32, 0));
        assert!(documents.is_object(32) && !documents.is_object(33) && !documents.is_object(48));
    }
}
