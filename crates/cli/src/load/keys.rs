//! Which document comes next, and what it is called.

use platform::Random;

use super::zipf::Zipf;

/// Digits of a name: every 64-bit number has room.
pub(super) const DIGITS: usize = 20;

/// A prime above all counts of documents that are in use: ranks become numbers by it, each another.
const SPREAD: u64 = 1_000_000_000_039;

/// Documents with consecutive numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ItemRange {
    pub(super) first: u64,
    pub(super) count: u64,
}

/// Where a client's documents come from.
#[derive(Clone, Debug)]
pub(super) enum KeySource {
    /// Each of the range once.
    Once { range: ItemRange, done: u64 },
    /// The range again and again.
    Cycle { range: ItemRange, done: u64 },
    /// Any of the range.
    Random { range: ItemRange },
    /// Any of the range, some more often than others.
    Zipf { range: ItemRange, zipf: Zipf },
}

impl ItemRange {
    /// The part of one client of `clients`. Together the parts are the whole, and their sizes
    /// differ by at most one.
    pub(super) fn share(self, client: u64, clients: u64) -> Self {
        let cut = |client: u64| {
            let offset = u128::from(self.count) * u128::from(client) / u128::from(clients);
            u64::try_from(offset).expect("a part is no larger than the whole")
        };
        let (start, end) = (cut(client), cut(client + 1));
        Self { first: self.first + start, count: end - start }
    }

    /// The same where there are more clients than documents: nobody goes without.
    pub(super) fn share_of_some(self, client: u64, clients: u64) -> Self {
        if self.count >= clients {
            return self.share(client, clients);
        }
        Self { first: self.first + client % self.count, count: 1 }
    }
}

impl KeySource {
    /// The next document; `None` when there is no more.
    pub(super) fn next(&mut self, random: &mut Random) -> Option<u64> {
        match self {
            Self::Random { range } => Some(range.first + random.below(range.count)),
            Self::Zipf { range, zipf } => {
                let rank = u128::from(zipf.draw(random));
                // Popular documents lie apart.
                let spread = rank * u128::from(SPREAD) % u128::from(range.count);
                Some(range.first + u64::try_from(spread).ok()?)
            }
            Self::Once { range, done } => {
                let item = (*done < range.count).then(|| range.first + *done)?;
                *done += 1;
                Some(item)
            }
            Self::Cycle { range, done } => {
                let item = range.first + *done;
                *done = if *done + 1 == range.count { 0 } else { *done + 1 };
                Some(item)
            }
        }
    }
}

/// Names: a prefix and the number in 20 digits. One piece of memory that every name is written to.
#[derive(Clone, Debug)]
pub(super) struct NameWriter {
    name: Vec<u8>,
    prefix_size: usize,
}

impl NameWriter {
    pub(super) fn new(prefix: &str) -> Self {
        let mut name = prefix.as_bytes().to_vec();
        name.resize(prefix.len() + DIGITS, b'0');
        Self { name, prefix_size: prefix.len() }
    }

    /// Bytes of every name.
    pub(super) fn size(&self) -> usize {
        self.name.len()
    }

    /// The name of a document.
    pub(super) fn write(&mut self, item: u64) -> &[u8] {
        let mut rest = item;
        for digit in self.name[self.prefix_size..].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        &self.name
    }

    /// The name that was written last.
    pub(super) fn last(&self) -> &[u8] {
        &self.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_cover_every_document_once() {
        for (count, clients) in [(1, 1), (10, 3), (3, 10), (1_000, 7), (2_000, 2_000), (5, 5)] {
            let whole = ItemRange { first: 17, count };
            let mut seen = Vec::new();
            for client in 0..clients {
                let range = whole.share(client, clients);
                let mut source = KeySource::Once { range, done: 0 };
                let mut random = Random::from_seed(1);
                seen.extend(std::iter::from_fn(|| source.next(&mut random)));
                let some = whole.share_of_some(client, clients);
                assert!(some.count > 0 && some.first >= 17 && some.first < 17 + count);
            }
            assert_eq!(seen, (17..17 + count).collect::<Vec<_>>(), "{count} by {clients}");
        }
        let huge = ItemRange { first: 0, count: u64::MAX };
        assert_eq!(huge.share(9, 10).first + huge.share(9, 10).count, u64::MAX);
    }

    #[test]
    fn a_cycle_starts_over_and_random_keys_reach_every_document() {
        let range = ItemRange { first: 5, count: 3 };
        let mut random = Random::from_seed(1);
        let mut cycle = KeySource::Cycle { range, done: 0 };
        let items: Vec<_> = (0..7).filter_map(|_| cycle.next(&mut random)).collect();
        assert_eq!(items, [5, 6, 7, 5, 6, 7, 5]);
        for seed in platform::seeds::seeds(5) {
            let range = ItemRange { first: 100, count: 50 };
            let mut random = Random::from_seed(seed);
            let mut source = KeySource::Random { range };
            let mut seen = [false; 50];
            for _ in 0..2_000 {
                let item = source.next(&mut random).unwrap();
                seen[usize::try_from(item - 100).unwrap()] = true;
            }
            assert!(seen.iter().all(|seen| *seen), "seed {seed}");
        }
    }

    #[test]
    fn names_are_a_prefix_and_twenty_digits() {
        let mut names = NameWriter::new("k-");
        for item in [0, 7, 1_234_567_890, u64::MAX, 3] {
            let expected = format!("k-{item:020}");
            assert_eq!(names.write(item), expected.as_bytes());
        }
        assert_eq!((names.size(), NameWriter::new("").write(42).len()), (22, 20));
    }
}
