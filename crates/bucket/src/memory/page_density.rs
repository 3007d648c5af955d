//! How densely documents fill the pages of the allocator, told from their addresses alone.

use document::{Item, Map, Set};
use platform::allocator::{PAGE_BITS, SMALL_BLOCK_MAX, shared_block_size};

/// A page of which documents fill a smaller part is sparse.
const SPARSE_BELOW: f64 = 0.75;

/// Bytes of small documents by the page that they are in.
#[derive(Debug, Default)]
pub(crate) struct PageDensity {
    bytes_by_page: Map<usize, usize>,
}

/// Pages that would be free if their few documents moved elsewhere.
#[derive(Debug, Default)]
pub(crate) struct SparsePages {
    pages: Set<usize>,
    /// What moving their documents would give back.
    reclaimable_bytes: usize,
}

impl PageDensity {
    /// Counts a document. Larger ones have pages of another kind, or of their own.
    pub(crate) fn add(&mut self, item: &Item) {
        if let Some((page, size)) = small(item) {
            *self.bytes_by_page.entry(page).or_default() += size;
        }
    }

    /// The sparse pages, if moving their documents gives back `part_min` of all pages or more.
    pub(crate) fn sparse_pages(&self, part_min: f64) -> Option<SparsePages> {
        const PAGE_BYTES: usize = 1 << PAGE_BITS;
        let mut sparse = SparsePages::default();
        for (&page, &bytes) in &self.bytes_by_page {
            if (bytes as f64) < PAGE_BYTES as f64 * SPARSE_BELOW {
                sparse.pages.insert(page);
                sparse.reclaimable_bytes += PAGE_BYTES - bytes;
            }
        }
        let all_bytes = self.bytes_by_page.len() * PAGE_BYTES;
        let is_worth_it = sparse.reclaimable_bytes as f64 >= all_bytes as f64 * part_min;
        (is_worth_it && !sparse.pages.is_empty()).then_some(sparse)
    }
}

impl SparsePages {
    /// Whether a document is in one of them.
    pub(crate) fn contain(&self, item: &Item) -> bool {
        small(item).is_some_and(|(page, _)| self.pages.contains(&page))
    }

    /// Leaves the page alone that a document has moved to: it is being filled.
    pub(crate) fn keep_page_of(&mut self, moved: &Item) {
        if let Some((page, _)) = small(moved) {
            self.pages.remove(&page);
        }
    }
}

/// The page and the size of a small document.
fn small(item: &Item) -> Option<(usize, usize)> {
    let size = shared_block_size(item.allocation_size());
    (size <= SMALL_BLOCK_MAX).then(|| (item.address() >> PAGE_BITS, size))
}

#[cfg(test)]
mod tests {
    use document::{Cas, ItemBuilder, ItemMeta, KeyBuf, RevSeqno, Seqno};

    use super::*;

    fn items(count: usize, value: &[u8]) -> Vec<Item> {
        let key = KeyBuf::in_default_collection(b"key").unwrap();
        let one = || {
            let builder = ItemBuilder::new(key.as_key(), ItemMeta::default(), value);
            builder.finish(Cas(1), Seqno(1), RevSeqno(1))
        };
        std::iter::repeat_with(one).take(count).collect()
    }

    fn density_of(items: &[Item]) -> PageDensity {
        let mut density = PageDensity::default();
        items.iter().for_each(|item| density.add(item));
        density
    }

    #[test]
    fn what_is_left_of_many_documents_is_in_sparse_pages() {
        let mut items = items(50_000, &[b'v'; 200]);
        let before = density_of(&items).bytes_by_page.len();
        let mut number = 0;
        items.retain(|_| {
            number += 1;
            number % 4 == 0
        });
        let density = density_of(&items);
        assert!(density.bytes_by_page.len() * 10 >= before * 9, "deleting frees hardly a page");
        let sparse = density.sparse_pages(0.1).expect("they are sparse");
        assert!(items.iter().all(|item| sparse.contain(item)));
        assert!(sparse.reclaimable_bytes >= before * (1 << PAGE_BITS) / 2);
    }

    #[test]
    fn large_documents_do_not_count() {
        let density = density_of(&items(10, &[b'v'; 10_000]));
        assert!(density.bytes_by_page.is_empty() && density.sparse_pages(0.0).is_none());
    }
}
