//! An item as a message: what of it a consumer wants. Source: docs/specification/protocol.md,
//! section 20.8.

use std::borrow::Cow;

use document::{Datatype, Deletion, Item, Operation, compression, xattr};
use protocol::Feature;
use protocol::dcp::{DcpDeletion, DeletionForm, Document, Message, OpenFlags, Prepare, Resolution};

use super::controls::Settings;
use crate::system_event::{self, event_of, plain_value};

/// The value that a consumer gets.
pub(super) struct Content<'a> {
    pub(super) value: Cow<'a, [u8]>,
    datatype: Datatype,
}

impl Content<'_> {
    /// Whether the value is the item's own, so that it can be sent from there.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.value, Cow::Borrowed(value) if !value.is_empty())
    }
}

/// What of the item's value is sent.
pub(super) fn content<'a>(item: &'a Item, settings: &Settings) -> Content<'a> {
    if item.key().is_of_event() {
        let plain = event_of(item).filter(|_| !settings.has_flat_buffers);
        let value = plain.map_or(Cow::Borrowed(item.value()), |event| plain_value(&event).into());
        return Content { value, datatype: Datatype::RAW };
    }
    if matches!(item.operation(), Operation::Abort { .. }) {
        return Content { value: Cow::Borrowed(&[]), datatype: Datatype::RAW };
    }
    let flags = settings.flags;
    let content = Content { value: Cow::Borrowed(item.value()), datatype: item.datatype() };
    if item.is_deleted() {
        return compressed(tombstone(content, flags), settings);
    }
    let keeps_datatype = flags.contains(OpenFlags::NO_VALUE_UNDERLYING_DATATYPE);
    if flags.contains(OpenFlags::NO_VALUE) || keeps_datatype {
        let underlying = item.datatype();
        let left = without_body(content, flags.contains(OpenFlags::XATTRS));
        if !keeps_datatype {
            return left;
        }
        // What is left of a compressed value is not compressed.
        let is_compressed = left.value.is_empty() && settings.features.contains(Feature::Snappy);
        let datatype =
            if is_compressed { underlying } else { underlying.without(Datatype::SNAPPY) };
        return Content { datatype, ..left };
    }
    let content = if flags.contains(OpenFlags::XATTRS) { content } else { without_xattrs(content) };
    compressed(content, settings)
}

fn inflated(content: Content<'_>) -> Content<'_> {
    if !content.datatype.contains(Datatype::SNAPPY) {
        return content;
    }
    let value = compression::inflate(&content.value).unwrap_or_default();
    Content { value: Cow::Owned(value), datatype: content.datatype.without(Datatype::SNAPPY) }
}

fn without_xattrs(content: Content<'_>) -> Content<'_> {
    if !content.datatype.contains(Datatype::XATTR) {
        return content;
    }
    let Content { value, datatype } = inflated(content);
    let body = xattr::split(&value).map_or(&[][..], |(_, body)| body).to_vec();
    Content { value: Cow::Owned(body), datatype: datatype.without(Datatype::XATTR) }
}

fn without_body(content: Content<'_>, with_xattrs: bool) -> Content<'_> {
    if !with_xattrs || !content.datatype.contains(Datatype::XATTR) {
        return Content { value: Cow::Borrowed(&[]), datatype: Datatype::RAW };
    }
    let value = inflated(content).value;
    let section = xattr::split(&value).map_or(&[][..], |(section, _)| section).to_vec();
    Content { value: Cow::Owned(section), datatype: Datatype::XATTR }
}

/// A tombstone has xattrs or nothing: those of the system, or those of users as well.
fn tombstone(content: Content<'_>, flags: OpenFlags) -> Content<'_> {
    let nothing = Content { value: Cow::Borrowed(&[]), datatype: Datatype::RAW };
    if !flags.contains(OpenFlags::XATTRS) || !content.datatype.contains(Datatype::XATTR) {
        return nothing;
    }
    let value = inflated(content).value;
    let kept = if flags.contains(OpenFlags::DELETED_USER_XATTRS) {
        xattr::split(&value).map_or(&[][..], |(section, _)| section).to_vec()
    } else {
        xattr::system_only(&value)
    };
    if kept.is_empty() {
        return nothing;
    }
    Content { value: Cow::Owned(kept), datatype: Datatype::XATTR }
}

/// Compressed or not, as the consumer wants it.
fn compressed<'a>(content: Content<'a>, settings: &Settings) -> Content<'a> {
    if !settings.features.contains(Feature::Snappy) {
        return inflated(content);
    }
    let is_compressed = content.datatype.contains(Datatype::SNAPPY);
    if !settings.compresses_values || is_compressed || content.value.is_empty() {
        return content;
    }
    let smaller = compression::deflate(&content.value);
    if smaller.len() >= content.value.len() {
        return content;
    }
    Content { value: Cow::Owned(smaller), datatype: content.datatype.with(Datatype::SNAPPY) }
}

/// The message that carries `item` with `content`. `is_from_disk`: commits come as what they have
/// committed.
pub(super) fn message<'a>(
    item: &'a Item,
    content: &'a Content<'_>,
    is_from_disk: bool,
    settings: &Settings,
) -> Message<'a> {
    let key = key_of(item, settings);
    let seqno = item.seqno();
    if item.key().is_of_event()
        && let Some(event) = event_of(item)
    {
        let has_flat_buffers = settings.has_flat_buffers;
        let said = system_event::message(&event, seqno, has_flat_buffers, &content.value);
        return Message::SystemEvent(said);
    }
    match item.operation() {
        Operation::Abort { prepare } => Message::Abort(Resolution { key, prepare, seqno }),
        Operation::Commit { prepare } if settings.has_sync_writes && !is_from_disk => {
            Message::Commit(Resolution { key, prepare, seqno })
        }
        Operation::Prepare(level) => {
            let document = document(item, content, key);
            Message::Prepare(Prepare { document, is_deletion: item.is_deleted(), level })
        }
        Operation::Mutation | Operation::Commit { .. } => match item.deletion() {
            None => Message::Mutation(document(item, content, key)),
            Some(kind) => deletion(item, content, key, kind, settings),
        },
    }
}

fn key_of<'a>(item: &'a Item, settings: &Settings) -> &'a [u8] {
    if settings.has_collections() { item.key().encoded() } else { item.key().name() }
}

fn document<'a>(item: &Item, content: &'a Content<'_>, key: &'a [u8]) -> Document<'a> {
    Document {
        key,
        value: &content.value,
        datatype: content.datatype,
        cas: item.cas(),
        seqno: item.seqno(),
        revision: item.revision(),
        flags: item.flags(),
        expiry: item.expiry(),
        lock_seconds: 0,
        heat: item.heat(),
    }
}

fn deletion<'a>(
    item: &Item,
    content: &'a Content<'_>,
    key: &'a [u8],
    kind: Deletion,
    settings: &Settings,
) -> Message<'a> {
    let has_time = settings.has_delete_times();
    let form =
        if has_time { DeletionForm::WithTime(item.expiry()) } else { DeletionForm::WithoutTime };
    let deletion = DcpDeletion {
        key,
        value: &content.value,
        datatype: content.datatype,
        cas: item.cas(),
        seqno: item.seqno(),
        revision: item.revision(),
        form,
    };
    if kind == Deletion::Expired && settings.has_expirations {
        Message::Expiration(deletion)
    } else {
        Message::Deletion(deletion)
    }
}

#[cfg(test)]
mod tests;
