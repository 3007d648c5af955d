//! What a scan finds, as it is sent.

use std::borrow::Cow;

use bucket::{PortionEnd, ScanContent, ScanSink, ScanTurn, body_of, inflated};
use document::{Datatype, Item};
use protocol::range_scan::{ScannedDocument, encode_scanned_document, encode_scanned_name};

/// Bytes of results behind which the next one begins a response
/// (`range_scan_read_buffer_send_size`).
const FRAME_BYTES: usize = 8192;

/// What was read of a scan.
#[derive(Debug)]
pub(crate) struct ScanPortion {
    pub(crate) scan: ScanTurn,
    pub(crate) results: ScanResults,
    pub(crate) end: PortionEnd,
}

/// Results on their way to a client.
#[derive(Debug)]
pub(crate) struct ScanResults {
    content: ScanContent,
    accepts_compression: bool,
    accepts_json: bool,
    /// The values of responses.
    frames: Vec<Vec<u8>>,
    /// That of the last one, so far.
    frame: Vec<u8>,
}

impl ScanResults {
    pub(crate) fn new(content: ScanContent, accepts_compression: bool, accepts_json: bool) -> Self {
        let (frames, frame) = (Vec::new(), Vec::new());
        Self { content, accepts_compression, accepts_json, frames, frame }
    }

    /// The values of responses. None of them is empty.
    pub(crate) fn into_frames(mut self) -> Vec<Vec<u8>> {
        if !self.frame.is_empty() {
            self.frames.push(self.frame);
        }
        self.frames
    }

    /// Bytes of them.
    pub(crate) fn bytes(&self) -> usize {
        self.frames.iter().map(Vec::len).sum::<usize>() + self.frame.len()
    }

    fn end_frame(&mut self) {
        if self.frame.len() >= FRAME_BYTES {
            self.frames.push(std::mem::take(&mut self.frame));
        }
    }

    /// What a client reads of a document, and what that is.
    fn value_of<'a>(&self, item: &'a Item) -> (Cow<'a, [u8]>, Datatype) {
        if self.content != ScanContent::DocumentsWithXattrs {
            return body_of(item, self.accepts_compression);
        }
        if self.accepts_compression {
            return (Cow::Borrowed(item.value()), item.datatype());
        }
        (inflated(item), item.datatype().without(Datatype::SNAPPY))
    }
}

impl ScanSink for ScanResults {
    fn key(&mut self, name: &[u8]) -> usize {
        if self.frame.capacity() == 0 {
            self.frame.reserve(FRAME_BYTES + name.len());
        }
        let before = self.frame.len();
        encode_scanned_name(name, &mut self.frame);
        let size = self.frame.len() - before;
        self.end_frame();
        size
    }

    fn document(&mut self, item: &Item) -> usize {
        let (value, datatype) = self.value_of(item);
        let datatype = if self.accepts_json { datatype } else { datatype.without(Datatype::JSON) };
        let document = ScannedDocument {
            flags: item.flags(),
            expiry: item.expiry(),
            seqno: item.seqno(),
            cas: item.cas(),
            datatype,
            name: item.key().name(),
            value: &value,
        };
        let before = self.frame.len();
        encode_scanned_document(&document, &mut self.frame);
        let size = self.frame.len() - before;
        self.end_frame();
        size
    }
}
