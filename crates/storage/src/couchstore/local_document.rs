//! Local documents: named bytes beside the documents, without seqno and never streamed.

use crate::couchstore::btree_write::Edits;

/// A change to one local document.
#[derive(Clone, Debug)]
pub(crate) struct LocalEdit {
    /// Its name, such as `_local/vbstate`.
    pub(crate) id: Vec<u8>,
    /// Its new content; `None` removes it.
    pub(crate) content: Option<Vec<u8>>,
}

/// Edits of the local tree, sorted by name.
pub(crate) struct LocalEdits<'a>(pub(crate) &'a [LocalEdit]);

impl Edits for LocalEdits<'_> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn key(&self, index: usize) -> &[u8] {
        &self.0[index].id
    }

    fn put_value(&self, index: usize, value: &mut Vec<u8>) -> bool {
        match &self.0[index].content {
            Some(content) => value.extend_from_slice(content),
            None => return false,
        }
        true
    }

    fn on_old_value(&mut self, _index: usize, _old: Option<&[u8]>) -> Result<(), &'static str> {
        Ok(())
    }
}
