//! Values on their way in and out: compression, JSON, xattrs.

use std::borrow::Cow;

use document::compression::{inflate, is_too_large};
use document::datatype::is_json;
use document::limits::VALUE_SIZE_MAX;
use document::{Datatype, Item, ItemBuilder, ItemMeta, Operation, xattr};

use crate::core::Refused;
use crate::memory::{Compression, inflated};

/// A body as a client sent it.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// The bytes.
    pub body: &'a [u8],
    /// Whether they are compressed. The client's word on JSON is not asked for: the server looks.
    pub is_compressed: bool,
}

impl<'a> Incoming<'a> {
    /// A body that is not compressed.
    pub fn plain(body: &'a [u8]) -> Self {
        Self { body, is_compressed: false }
    }

    /// Checks the body and says how it is to be stored.
    pub(crate) fn checked(
        self,
        compression: &Compression,
    ) -> Result<(Cow<'a, [u8]>, Datatype), Refused> {
        if !self.is_compressed {
            check_size(self.body.len())?;
            return Ok((Cow::Borrowed(self.body), json_bit(self.body)));
        }
        let inflated = inflate_sent(self.body)?;
        check_size(inflated.len())?;
        let datatype = json_bit(&inflated);
        let is_worth_it = compression.is_worth_it(inflated.len(), self.body.len());
        if compression.keeps_compressed() && is_worth_it {
            return Ok((Cow::Borrowed(self.body), datatype.with(Datatype::SNAPPY)));
        }
        Ok((Cow::Owned(inflated), datatype))
    }
}

/// The body of `item` for a client, without xattrs, and its datatype. Compressed only if the stored
/// value is and `accepts_compression`.
pub fn body_of(item: &Item, accepts_compression: bool) -> (Cow<'_, [u8]>, Datatype) {
    let datatype = item.datatype();
    let has_xattrs = datatype.contains(Datatype::XATTR);
    if datatype.contains(Datatype::SNAPPY) && accepts_compression && !has_xattrs {
        return (Cow::Borrowed(item.value()), datatype);
    }
    let plain = datatype.without(Datatype::SNAPPY).without(Datatype::XATTR);
    let value = inflated(item);
    if !has_xattrs {
        return (value, plain);
    }
    let body = match &value {
        Cow::Borrowed(value) => Cow::Borrowed(split_xattrs(value).1),
        Cow::Owned(value) => Cow::Owned(split_xattrs(value).1.to_vec()),
    };
    (body, plain)
}

/// A new version of `existing` with another body, its xattrs kept. Body and xattrs of users are
/// together no larger than a document may be.
pub(crate) fn with_body(
    existing: &Item,
    body: &[u8],
    meta: ItemMeta,
    operation: Operation,
    compression: &Compression,
) -> Result<ItemBuilder, Refused> {
    let json = json_bit(body);
    if !existing.datatype().contains(Datatype::XATTR) {
        let meta = ItemMeta { datatype: json, ..meta };
        return Ok(compressed_like(existing, meta, operation, body, compression));
    }
    let value = inflated(existing);
    let (section, _) = split_xattrs(&value);
    let entries = section.get(4..).unwrap_or_default();
    check_size(body.len() + entries.len().saturating_sub(xattr::system_size(entries)))?;
    let whole = [section, body].concat();
    let meta = ItemMeta { datatype: json.with(Datatype::XATTR), ..meta };
    Ok(compressed_like(existing, meta, operation, &whole, compression))
}

/// Bodies that a client sent compressed stay so when the server changes them.
pub(super) fn compressed_like(
    existing: &Item,
    meta: ItemMeta,
    operation: Operation,
    value: &[u8],
    compression: &Compression,
) -> ItemBuilder {
    let key = existing.key();
    let was_compressed = existing.datatype().contains(Datatype::SNAPPY);
    if was_compressed
        && compression.keeps_compressed()
        && let Some(compressed) = compression.compressed(value)
    {
        let meta = ItemMeta { datatype: meta.datatype.with(Datatype::SNAPPY), ..meta };
        return ItemBuilder::step(key, meta, operation, &compressed);
    }
    ItemBuilder::step(key, meta, operation, value)
}

/// The xattr section and the body. A section that lies about its length counts as part of the body.
pub(crate) fn split_xattrs(value: &[u8]) -> (&[u8], &[u8]) {
    xattr::split(value).unwrap_or((&[], value))
}

pub(crate) fn check_size(size: usize) -> Result<(), Refused> {
    if size > VALUE_SIZE_MAX { Err(Refused::TooLarge) } else { Ok(()) }
}

pub(crate) fn json_bit(body: &[u8]) -> Datatype {
    if is_json(body) { Datatype::JSON } else { Datatype::RAW }
}

/// The value of an item that is not stored yet, inflated.
pub(crate) fn inflated_builder(builder: &ItemBuilder) -> Cow<'_, [u8]> {
    if builder.meta().datatype.contains(Datatype::SNAPPY) {
        Cow::Owned(inflate(builder.value()).unwrap_or_default())
    } else {
        Cow::Borrowed(builder.value())
    }
}

/// The body that a client sent, inflated.
pub(crate) fn inflated_incoming(incoming: Incoming<'_>) -> Result<Cow<'_, [u8]>, Refused> {
    if incoming.is_compressed {
        return inflate_sent(incoming.body).map(Cow::Owned);
    }
    Ok(Cow::Borrowed(incoming.body))
}

/// What a client has compressed, as it was before.
pub(super) fn inflate_sent(sent: &[u8]) -> Result<Vec<u8>, Refused> {
    inflate(sent).ok_or_else(|| match is_too_large(sent) {
        true => Refused::TooLarge,
        false => Refused::BadCompression,
    })
}
