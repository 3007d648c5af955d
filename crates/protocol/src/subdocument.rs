//! Requests and responses about parts of a document. Sources: docs/specification/protocol.md,
//! sections 12.3 and 12.4.
//!
//! Only the form is looked at: which commands and flags there are, and may stand together, is
//! decided where they are carried out. As in [`request`](crate::request), `None` is EINVAL.

use crate::fields::Fields;
use crate::status::Status;

/// The extras of a request with one path: path size:2 path flags:1, and for mutations expiry:4 and
/// flags:4; with the document's flags:1 at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathExtras {
    /// Bytes of the path, with which the value begins.
    pub path_size: u16,
    /// The path's flags.
    pub path_flags: u8,
    /// What the request says of the document.
    pub document: PathDocumentExtras,
}

/// What a request about parts of a document says of the document itself: the extras of a multi
/// request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathDocumentExtras {
    /// As the client sent it: 0, seconds from now, or seconds since the epoch. `None` is 0, too,
    /// but for lookups.
    pub expiry: Option<u32>,
    /// The client's own; `None`: those of the document stay.
    pub flags: Option<[u8; 4]>,
    /// The document's flags.
    pub document_flags: u8,
}

/// One path of a multi request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSpec<'a> {
    /// The command, or any other byte.
    pub opcode: u8,
    /// The path's flags.
    pub path_flags: u8,
    /// The path.
    pub path: &'a [u8],
    /// The value; of lookups always empty.
    pub value: &'a [u8],
}

/// Which of two forms the paths of a multi request have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathSpecForm {
    /// { opcode:1 flags:1 path size:2 path }
    Lookup,
    /// { opcode:1 flags:1 path size:2 value size:4 path value }
    Mutation,
}

impl PathExtras {
    /// Decodes the extras.
    pub fn parse(extras: &[u8]) -> Option<Self> {
        let mut fields = Fields::new(extras);
        let (path_size, path_flags) = (fields.u16()?, fields.u8()?);
        let document = PathDocumentExtras::parse(fields.rest())?;
        Some(Self { path_size, path_flags, document })
    }

    /// The path and the value in the value of the request.
    pub fn split<'a>(&self, value: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        value.split_at_checked(self.path_size.into())
    }
}

impl PathDocumentExtras {
    /// Decodes the extras of a multi request.
    pub fn parse(extras: &[u8]) -> Option<Self> {
        let mut fields = Fields::new(extras);
        let expiry = if extras.len() >= 4 { Some(fields.u32()?) } else { None };
        let flags = if extras.len() >= 8 { Some(fields.array()?) } else { None };
        let document_flags = if fields.is_empty() { 0 } else { fields.u8()? };
        fields.finish(Self { expiry, flags, document_flags })
    }
}

impl<'a> PathSpec<'a> {
    /// Appends the path to the value of a multi request.
    pub fn encode(&self, form: PathSpecForm, out: &mut Vec<u8>) {
        let path_size = u16::try_from(self.path.len()).expect("a path has at most 65535 bytes");
        out.extend([self.opcode, self.path_flags]);
        out.extend(path_size.to_be_bytes());
        if form == PathSpecForm::Mutation {
            let value_size = u32::try_from(self.value.len()).expect("a value is below 4 GiB");
            out.extend(value_size.to_be_bytes());
        }
        out.extend_from_slice(self.path);
        out.extend_from_slice(self.value);
    }

    fn parse(form: PathSpecForm, fields: &mut Fields<'a>) -> Option<Self> {
        let (opcode, path_flags) = (fields.u8()?, fields.u8()?);
        let path_size = fields.u16()?;
        let value_size = match form {
            PathSpecForm::Lookup => 0,
            PathSpecForm::Mutation => usize::try_from(fields.u32()?).ok()?,
        };
        let path = fields.bytes(path_size.into())?;
        Some(Self { opcode, path_flags, path, value: fields.bytes(value_size)? })
    }
}

/// The paths in the value of a multi request. An item `None` says that the last one is cut off.
pub fn path_specs(form: PathSpecForm, value: &[u8]) -> impl Iterator<Item = Option<PathSpec<'_>>> {
    let mut fields = Fields::new(value);
    std::iter::from_fn(move || {
        if fields.is_empty() {
            return None;
        }
        let spec = PathSpec::parse(form, &mut fields);
        // Where another one would begin is not known: this was the last.
        if spec.is_none() {
            fields = Fields::new(&[]);
        }
        Some(spec)
    })
}

/// Appends the result of one path to the value of MULTI_LOOKUP's response: status:2 size:4 result.
pub fn put_lookup_result(out: &mut Vec<u8>, status: Status, result: &[u8]) {
    put_result(out, status.code(), result);
}

/// Appends the result of one path, counted from 0, to the value of MULTI_MUTATION's response, which
/// has only results that are not empty: index:1 status:2 size:4 result.
pub fn put_mutation_result(out: &mut Vec<u8>, index: u8, result: &[u8]) {
    out.push(index);
    put_result(out, Status::Success.code(), result);
}

/// The value of MULTI_MUTATION's response when a path, counted from 0, has failed: nothing else,
/// since nothing is changed.
pub fn mutation_failure(index: u8, status: Status) -> [u8; 3] {
    let [high, low] = status.code().to_be_bytes();
    [index, high, low]
}

fn put_result(out: &mut Vec<u8>, status: u16, result: &[u8]) {
    let size = u32::try_from(result.len()).expect("a result is a piece of a document");
    out.extend(status.to_be_bytes());
    out.extend(size.to_be_bytes());
    out.extend_from_slice(result);
}

#[cfg(test)]
mod tests;
