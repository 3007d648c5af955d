//! What a request asks for, and whether it may: everything that is checked before the document is
//! looked at. Source: docs/specification/protocol.md, section 12.3.

use document::Cas;

use crate::attribute_key::AttributeKey;
use crate::command::Command;
use crate::failure::Failure;
use crate::flags::{DocumentFlags, PathFlags};
use crate::macros::Macro;
use crate::path::PATH_SIZE_MAX;

/// Paths of one request.
pub const SPECS_MAX: usize = 16;

/// One path of a request, and what is to be done there.
#[derive(Clone, Copy, Debug)]
pub struct Spec<'a> {
    /// What is to be done.
    pub command: Command,
    /// The path's flags.
    pub flags: PathFlags,
    /// The path.
    pub path: &'a [u8],
    /// The value; empty for commands that have none.
    pub value: &'a [u8],
}

/// A path as it stands in the request.
#[derive(Clone, Copy, Debug)]
pub struct RawSpec<'a> {
    /// The command, or any other byte.
    pub opcode: u8,
    /// The path's flags.
    pub path_flags: u8,
    /// The path.
    pub path: &'a [u8],
    /// The value; empty if there is none.
    pub value: &'a [u8],
}

/// The paths of one request, in their order.
#[derive(Clone, Debug)]
pub struct Specs<'a> {
    specs: [Spec<'a>; SPECS_MAX],
    count: usize,
}

/// Whether a request has one path, or says how many it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestForm {
    /// The opcode is that of the command.
    Single,
    /// MULTI_LOOKUP or MULTI_MUTATION.
    Multi,
}

/// What a request says beside its paths.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead {
    /// How it says its paths.
    pub form: RequestForm,
    /// The flags of the document.
    pub flags: DocumentFlags,
    /// The version that the document must have; 0 for any.
    pub cas: Cas,
}

/// What a client has agreed on, and may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientRights {
    /// The feature Xattr.
    pub has_attributes: bool,
    /// The feature SubdocBinaryXattr.
    pub has_binary_attributes: bool,
    /// Whether it may read attributes of the system.
    pub reads_system_attributes: bool,
    /// Whether it may change them.
    pub writes_system_attributes: bool,
}

impl<'a> Spec<'a> {
    const NONE: Self =
        Self { command: Command::Get, flags: PathFlags::from_bits(0), path: b"", value: b"" };

    /// Whether the path is one of the attributes.
    pub(crate) fn is_of_attribute(&self) -> bool {
        self.flags.contains(PathFlags::XATTR)
    }

    /// Whether the value is bytes.
    pub(crate) fn is_binary(&self) -> bool {
        self.flags.contains(PathFlags::BINARY)
    }

    /// The macro that the value is.
    pub(crate) fn macro_of_value(&self) -> Result<Option<Macro<'a>>, Failure> {
        let is_macro = self.flags.contains(PathFlags::EXPAND_MACROS);
        is_macro.then(|| Macro::parse(self.value)).transpose()
    }
}

impl<'a> Specs<'a> {
    /// No path yet.
    pub fn new() -> Self {
        Self { specs: [Spec::NONE; SPECS_MAX], count: 0 }
    }

    /// One more.
    pub fn push(&mut self, raw: RawSpec<'a>) -> Result<(), Failure> {
        let command = Command::from_opcode(raw.opcode).ok_or(Failure::InvalidCombination)?;
        let place = self.specs.get_mut(self.count).ok_or(Failure::InvalidCombination)?;
        let flags = PathFlags::from_bits(raw.path_flags);
        *place = Spec { command, flags, path: raw.path, value: raw.value };
        self.count += 1;
        Ok(())
    }

    /// The paths.
    pub fn as_slice(&self) -> &[Spec<'a>] {
        self.specs.get(..self.count).expect("what is counted is there")
    }
}

impl Default for Specs<'_> {
    fn default() -> Self {
        Self::new()
    }
}

/// Checks a request of which all paths must be mutations, or lookups.
pub(crate) fn check(
    are_mutations: bool,
    head: &RequestHead,
    specs: &[Spec<'_>],
    rights: ClientRights,
) -> Result<(), Failure> {
    if specs.is_empty() {
        return Err(Failure::InvalidCombination);
    }
    check_document_flags(head)?;
    let mut in_body = 0;
    for spec in specs {
        if spec.command.traits().is_mutation != are_mutations {
            return Err(Failure::InvalidCombination);
        }
        check_spec(head, spec, rights)?;
        if !spec.is_of_attribute() {
            in_body += 1;
        } else if in_body > 0 {
            return Err(Failure::AttributesComeFirst);
        }
    }
    let deletes = specs.iter().any(|spec| spec.command == Command::DeleteBody);
    if deletes && in_body > 1 { Err(Failure::InvalidCombination) } else { Ok(()) }
}

fn check_document_flags(head: &RequestHead) -> Result<(), Failure> {
    let has = |flag| head.flags.contains(flag);
    let is_add = has(DocumentFlags::ADD);
    let creates_deleted = has(DocumentFlags::CREATE_AS_DELETED);
    let revives = has(DocumentFlags::REVIVE) && head.form == RequestForm::Multi;
    let is_wrong = is_add && (has(DocumentFlags::MKDOC) || head.cas != Cas::ANY)
        // Transactions of the C++ SDKs send it with the CAS of a tombstone: nothing is made then.
        || creates_deleted && !head.flags.creates() && head.cas == Cas::ANY
        || revives && (creates_deleted || !has(DocumentFlags::ACCESS_DELETED));
    if is_wrong { Err(Failure::InvalidArgument) } else { Ok(()) }
}

fn check_spec(head: &RequestHead, spec: &Spec<'_>, rights: ClientRights) -> Result<(), Failure> {
    let traits = spec.command.traits();
    let is_single = head.form == RequestForm::Single;
    let is_well_formed = traits.path_flags.contains(spec.flags)
        && traits.document_flags.contains(head.flags)
        && traits.path.is_met_by(spec.path.len())
        && spec.path.len() <= PATH_SIZE_MAX
        && traits.value.is_met_by(spec.value.len())
        && !(is_single && spec.command.is_of_body());
    if !is_well_formed {
        return Err(Failure::InvalidArgument);
    }
    let is_macro = spec.flags.contains(PathFlags::EXPAND_MACROS);
    if !spec.is_of_attribute() {
        return check_body_spec(head, spec, is_macro);
    }
    if is_macro && spec.is_binary() {
        return Err(Failure::InvalidFlagCombination);
    }
    if !rights.has_attributes || spec.is_binary() && !rights.has_binary_attributes {
        return Err(Failure::NotSupported);
    }
    check_attribute(spec)
}

fn check_body_spec(head: &RequestHead, spec: &Spec<'_>, is_macro: bool) -> Result<(), Failure> {
    if is_macro || spec.is_binary() {
        return Err(Failure::InvalidFlagCombination);
    }
    let needs_attribute = spec.command == Command::ReplaceBodyWithXattr
        || head.form == RequestForm::Single
            && head.flags.contains(DocumentFlags::CREATE_AS_DELETED);
    if needs_attribute { Err(Failure::InvalidArgument) } else { Ok(()) }
}

fn check_attribute(spec: &Spec<'_>) -> Result<(), Failure> {
    let (key, _) = AttributeKey::split(spec.path)?;
    if key.is_virtual() && spec.command.traits().is_mutation {
        return Err(Failure::VirtualAttribute);
    }
    // SDKs write macros of the document without having agreed on SubdocDocumentMacroSupport.
    spec.macro_of_value().map(|_| ())
}

#[cfg(test)]
mod tests;
