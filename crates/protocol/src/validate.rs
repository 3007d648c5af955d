//! Whether a request has the form of its command. Source: docs/specification/protocol.md,
//! section 3.1, step 3. What the frame's bytes mean is for later steps.

use document::Datatype;
use document::limits::ENCODED_KEY_SIZE_MAX;

use crate::frame::{Frame, Header};
use crate::hello::{Feature, FeatureSet};
use crate::opcode::{Class, Opcode};
use crate::shape::{CasRule, Presence, Shape};
use crate::status::Status;

/// A request that is answered with an error before anything is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// What the client hears.
    pub status: Status,
    /// What a person reads.
    pub context: &'static str,
}

impl Invalid {
    /// EINVAL, because of `context`.
    pub const fn argument(context: &'static str) -> Self {
        Self { status: Status::Einval, context }
    }
}

/// Checks extras, key, value, CAS, vBucket and datatype of a request. The value itself need not
/// have arrived: only its size is looked at.
pub fn request(opcode: Opcode, frame: &Frame<'_>, features: FeatureSet) -> Result<(), Invalid> {
    let info = opcode.info();
    if info.class == Class::Retired {
        let context = "the command was retired";
        return Err(Invalid { status: Status::NotSupported, context });
    }
    let header = &frame.header;
    match offence(&info.shape, header).or_else(|| key_offence(&info.shape, header, features)) {
        Some(context) => Err(Invalid::argument(context)),
        None => {
            datatype(header.datatype, info.shape.datatypes, features).map_err(Invalid::argument)
        }
    }
}

fn offence(shape: &Shape, header: &Header) -> Option<&'static str> {
    if shape.extras_sizes.is_some_and(|sizes| !sizes.contains(&header.extras_size)) {
        return Some("the extras have the wrong size");
    }
    match (shape.key, header.key_size) {
        (Presence::Required, 0) => return Some("the request must have a key"),
        (Presence::Forbidden, 1..) => return Some("the request must not have a key"),
        _ => {}
    }
    match (shape.value, header.value_size()) {
        (Presence::Required, 0) => return Some("the request must have a value"),
        (Presence::Forbidden, 1..) => return Some("the request must not have a value"),
        _ => {}
    }
    match (shape.cas, header.cas) {
        (CasRule::Zero, 1..) => return Some("the CAS must be zero"),
        (CasRule::NonZero, 0) => return Some("the CAS must not be zero"),
        _ => {}
    }
    (shape.is_vbucket_zero && header.vbucket_or_status != 0).then_some("the vBucket must be zero")
}

fn key_offence(shape: &Shape, header: &Header, features: FeatureSet) -> Option<&'static str> {
    if !shape.is_document_key {
        return None;
    }
    let size = usize::from(header.key_size);
    let has_collection = features.contains(Feature::Collections);
    let size_max = ENCODED_KEY_SIZE_MAX.saturating_sub(usize::from(!has_collection));
    if size > size_max {
        return Some("the key is too long");
    }
    (has_collection && size < 2).then_some("the key is too short")
}

fn datatype(bits: u8, allowed: u8, features: FeatureSet) -> Result<(), &'static str> {
    let datatype = Datatype::from_bits(bits).ok_or("the datatype has undefined bits")?;
    if bits & !allowed != 0 {
        return Err("the datatype is not allowed for this command");
    }
    for (bit, feature) in [
        (Datatype::JSON, Feature::Json),
        (Datatype::SNAPPY, Feature::Snappy),
        (Datatype::XATTR, Feature::Xattr),
    ] {
        if datatype.contains(bit) && !features.contains(feature) {
            return Err("the datatype was not negotiated");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
