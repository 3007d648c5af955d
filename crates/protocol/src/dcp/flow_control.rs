//! What a message counts in flow control. Source: docs/specification/protocol.md, section 20.10.

use super::document::DeletionForm;
use super::message::Message;
use crate::frame::HEADER_SIZE;

/// Bytes of the framing extras that name a stream.
const STREAM_ID_SIZE: usize = 3;

impl Message<'_> {
    /// Bytes that the message counts on both sides; 0 for what is not counted.
    pub fn flow_control_bytes(&self, has_stream_id: bool) -> usize {
        let framing = if has_stream_id { STREAM_ID_SIZE } else { 0 };
        match self.counted_bytes() {
            0 => 0,
            bytes => bytes.saturating_add(framing),
        }
    }

    fn counted_bytes(&self) -> usize {
        let sum = |fixed: usize, key: &[u8], value: &[u8]| {
            fixed.saturating_add(key.len()).saturating_add(value.len())
        };
        match self {
            Self::Mutation(document) => sum(55, document.key, document.value),
            Self::Deletion(deletion) => match deletion.form {
                DeletionForm::WithoutTime => sum(42, deletion.key, deletion.value),
                DeletionForm::WithTime(_) => sum(45, deletion.key, deletion.value),
            },
            Self::Expiration(deletion) => sum(44, deletion.key, deletion.value),
            // Two more than are sent; both sides count so.
            Self::Prepare(prepare) => sum(57, prepare.document.key, prepare.document.value),
            Self::Commit(resolution) | Self::Abort(resolution) => sum(40, resolution.key, &[]),
            Self::SystemEvent(event) => sum(37, event.name, event.value),
            Self::SnapshotMarker(marker) => HEADER_SIZE.saturating_add(marker.body_size()),
            Self::StreamEnd(_) | Self::OsoSnapshot { .. } => 28,
            Self::SetVbucketState { .. } => 25,
            Self::SeqnoAdvanced { .. } => 32,
            Self::Open(_)
            | Self::AddStream { .. }
            | Self::CloseStream
            | Self::StreamRequest(_)
            | Self::GetFailoverLog
            | Self::SeqnoAcknowledged { .. }
            | Self::Noop
            | Self::BufferAck { .. }
            | Self::Control { .. } => 0,
        }
    }
}
