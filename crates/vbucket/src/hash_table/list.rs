//! A list that grows and shrinks at its end without long copies: chunks of 64 elements.

use platform::allocator::rounded_size;

/// The smallest capacity but none.
const CAPACITY_MIN: usize = 4;

/// Elements of a full chunk, a power of two.
const CHUNK: usize = 64;

/// A list of chunks. All but the last are full.
#[derive(Debug)]
pub(super) struct List<T> {
    chunks: Vec<Vec<T>>,
    count: usize,
    /// Bytes that the chunks and the list of them take from the allocator.
    bytes: usize,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), count: 0, bytes: 0 }
    }
}

impl<T> List<T> {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn get(&self, index: usize) -> &T {
        &self.chunks[index / CHUNK][index % CHUNK]
    }

    pub(super) fn get_mut(&mut self, index: usize) -> &mut T {
        &mut self.chunks[index / CHUNK][index % CHUNK]
    }

    pub(super) fn push(&mut self, element: T) {
        if self.count.is_multiple_of(CHUNK) {
            let capacity = capacity_for(self.chunks.len() + 1).max(self.chunks.capacity());
            resize(&mut self.chunks, capacity, &mut self.bytes);
            self.chunks.push(Vec::new());
        }
        let chunk = self.chunks.last_mut().expect("there is a chunk with room");
        let capacity = capacity_for(chunk.len() + 1).max(chunk.capacity());
        resize(chunk, capacity, &mut self.bytes);
        chunk.push(element);
        self.count += 1;
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        let chunk = self.chunks.last_mut()?;
        let element = chunk.pop();
        self.count -= 1;
        if chunk.len() * 2 <= chunk.capacity() {
            let capacity = capacity_for(chunk.len());
            resize(chunk, capacity, &mut self.bytes);
        }
        if chunk.is_empty() {
            self.chunks.pop();
            if self.chunks.len() * 2 <= self.chunks.capacity() {
                let capacity = capacity_for(self.chunks.len());
                resize(&mut self.chunks, capacity, &mut self.bytes);
            }
        }
        element
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }

    /// Bytes that the list takes from the allocator, what its elements point to left out.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The smallest size class of the allocator with `count` elements or more: none, or 4, 5, 6 or 7
/// times a power of two.
fn capacity_for(count: usize) -> usize {
    if count == 0 {
        return 0;
    }
    let above = (count.max(CAPACITY_MIN) - 1).max(CAPACITY_MIN);
    let unit = 1 << (above.ilog2() - CAPACITY_MIN.ilog2());
    count.max(CAPACITY_MIN).next_multiple_of(unit)
}

/// Moves to a new array of another capacity, and counts its bytes. Resizing the old one in place
/// would leave the allocator holding up to twice what is counted.
fn resize<T>(array: &mut Vec<T>, capacity: usize, bytes: &mut usize) {
    if capacity == array.capacity() {
        return;
    }
    let size = |capacity| if capacity == 0 { 0 } else { rounded_size(capacity * size_of::<T>()) };
    *bytes += size(capacity);
    *bytes -= size(array.capacity());
    let mut resized = Vec::with_capacity(capacity);
    resized.append(array);
    *array = resized;
}

#[cfg(test)]
mod tests {
    use super::{List, capacity_for};

    #[test]
    fn capacities_are_size_classes_of_the_allocator() {
        let mut capacities: Vec<usize> = (0..=160).map(capacity_for).collect();
        assert!((0..=160).zip(&capacities).all(|(count, &capacity)| count <= capacity));
        capacities.dedup();
        let expected =
            [0, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128];
        assert_eq!(capacities[..expected.len()], expected);
        assert_eq!(capacities[expected.len()..], [160]);
    }

    #[test]
    fn pushes_and_pops_leave_what_a_vector_would_hold_and_no_memory_once_it_is_empty() {
        let mut list = List::default();
        for number in 0..1_000_usize {
            list.push(number);
            assert_eq!(list.len(), number + 1);
        }
        *list.get_mut(64) += 1;
        assert_eq!((*list.get(0), *list.get(63), *list.get(64)), (0, 63, 65));
        assert_eq!(list.iter().filter(|&&number| number < 64).count(), 64);
        assert!(
            list.bytes() < 1_000 * size_of::<usize>() * 5 / 4 + 1_000,
            "{} bytes",
            list.bytes()
        );
        for number in (0..1_000).rev() {
            assert!(list.pop().is_some());
            assert_eq!(list.len(), number);
            assert!(list.bytes() <= (number + 64) * 32, "{} bytes at {number}", list.bytes());
        }
        assert!(list.is_empty() && list.pop().is_none());
        assert_eq!(list.bytes(), 0);
    }
}
