//! Writing what waits in a stream to where there is room for it.

use document::Item;
use protocol::dcp::{Envelope, Message};

use super::content;
use super::controls::Settings;
use super::sink::MessageSink;
use super::snapshots::Outgoing;

/// Values of this many bytes and more are sent from where they lie.
const LARGE_VALUE_BYTES_MIN: usize = 4096;

/// Writes a message. Returns the bytes that it counts in flow control.
pub(super) fn write(
    outgoing: &Outgoing,
    envelope: Envelope,
    settings: &Settings,
    sink: &mut dyn MessageSink,
) -> usize {
    let message = match outgoing {
        Outgoing::Item(item) => return write_item(item, false, envelope, settings, sink),
        Outgoing::DiskItem(item) => return write_item(item, true, envelope, settings, sink),
        Outgoing::Marker(marker) => Message::SnapshotMarker(*marker),
        Outgoing::SeqnoAdvanced(seqno) => Message::SeqnoAdvanced { seqno: *seqno },
        Outgoing::VbucketState(state) => Message::SetVbucketState { state: *state },
        Outgoing::OsoSnapshot { is_start } => Message::OsoSnapshot { is_start: *is_start },
        Outgoing::End(reason) => Message::StreamEnd(*reason),
    };
    message.encode(envelope, sink.buffer());
    message.flow_control_bytes(envelope.stream_id.is_some())
}

fn write_item(
    item: &Item,
    is_from_disk: bool,
    envelope: Envelope,
    settings: &Settings,
    sink: &mut dyn MessageSink,
) -> usize {
    let content = content::content(item, settings);
    let message = content::message(item, &content, is_from_disk, settings);
    message.encode_head(envelope, sink.buffer());
    let value = message.document_value();
    if content.is_whole() && value.len() >= LARGE_VALUE_BYTES_MIN {
        sink.push_value(item.clone());
    } else {
        sink.buffer().extend_from_slice(value);
    }
    message.flow_control_bytes(envelope.stream_id.is_some())
}
