//! The paths of a request, and how a failure is told.

use auth::{Privilege, PrivilegeSet};
use protocol::subdocument::{PathDocumentExtras, PathExtras, PathSpecForm, path_specs};
use protocol::{Feature, FeatureSet, Opcode, Status};
use subdocument::{
    ClientRights, DocumentFlags, Failure, RawSpec, RequestForm, RequestHead, Spec, Specs,
};

use crate::connection::{Connection, Done, Request, Turn};

/// What a request says, in whichever form.
pub(super) struct PathsRequest<'a> {
    pub(super) form: RequestForm,
    pub(super) specs: Specs<'a>,
    pub(super) document: PathDocumentExtras,
}

impl<'a> PathsRequest<'a> {
    /// Collects the paths of a request.
    pub(super) fn parse(request: &Request<'a>) -> Result<Self, Failure> {
        match request.opcode {
            Opcode::SubdocMultiLookup => Self::parse_multi(PathSpecForm::Lookup, request),
            Opcode::SubdocMultiMutation => Self::parse_multi(PathSpecForm::Mutation, request),
            opcode => Self::parse_single(opcode, request),
        }
    }

    fn parse_single(opcode: Opcode, request: &Request<'a>) -> Result<Self, Failure> {
        let extras = PathExtras::parse(request.frame.extras).ok_or(Failure::InvalidArgument)?;
        let split = extras.split(request.frame.value);
        let (path, value) = split.ok_or(Failure::InvalidArgument)?;
        let mut specs = Specs::new();
        let (opcode, path_flags) = (opcode.byte(), extras.path_flags);
        specs.push(RawSpec { opcode, path_flags, path, value })?;
        Ok(Self { form: RequestForm::Single, specs, document: extras.document })
    }

    fn parse_multi(form: PathSpecForm, request: &Request<'a>) -> Result<Self, Failure> {
        let document = PathDocumentExtras::parse(request.frame.extras);
        let document = document.ok_or(Failure::InvalidArgument)?;
        let mut specs = Specs::new();
        for spec in path_specs(form, request.frame.value) {
            let spec = spec.ok_or(Failure::InvalidArgument)?;
            specs.push(RawSpec {
                opcode: spec.opcode,
                path_flags: spec.path_flags,
                path: spec.path,
                value: spec.value,
            })?;
        }
        Ok(Self { form: RequestForm::Multi, specs, document })
    }

    /// What the request says beside its paths.
    pub(super) fn head(&self, request: &Request<'_>) -> RequestHead {
        RequestHead { form: self.form, flags: self.flags(), cas: request.cas() }
    }

    /// The flags of the document.
    pub(super) fn flags(&self) -> DocumentFlags {
        DocumentFlags::from_bits(self.document.document_flags)
    }

    /// The path of a request that has one.
    pub(super) fn single(&self) -> Option<&Spec<'a>> {
        match self.form {
            RequestForm::Single => self.specs.as_slice().first(),
            RequestForm::Multi => None,
        }
    }
}

/// What a client may do that has these privileges in the document's collection.
pub(super) fn rights(features: FeatureSet, privileges: PrivilegeSet) -> ClientRights {
    ClientRights {
        has_attributes: features.contains(Feature::Xattr),
        has_binary_attributes: features.contains(Feature::SubdocBinaryXattr),
        reads_system_attributes: privileges.contains(Privilege::SystemXattrRead),
        writes_system_attributes: privileges.contains(Privilege::SystemXattrWrite),
    }
}

/// The status of a failure: their numbers are the same.
pub(super) fn status_of(failure: Failure) -> Status {
    Status::from_code(failure.code()).expect("a failure has the number of a status")
}

/// Answers that the whole request failed.
pub(super) fn fail(
    connection: &Connection,
    request: &Request<'_>,
    failure: Failure,
    turn: &mut Turn<'_>,
) -> Done {
    let reply = request.reply(connection);
    match context(failure) {
        Some(context) => reply.fail(turn, status_of(failure), context),
        None => reply.fail_with(turn, status_of(failure), Default::default()),
    }
    Done::Answered
}

/// What a person reads where the status does not say it.
fn context(failure: Failure) -> Option<&'static str> {
    Some(match failure {
        Failure::InvalidArgument => {
            "a path, its value or flags are malformed, or do not go with the document's flags"
        }
        Failure::NotSupported => "the client has not agreed on these attributes",
        Failure::AttributeInvalid => "the attribute's key or its binary value is malformed",
        Failure::InvalidCombination => "there are 1 to 16 paths, all lookups or all mutations",
        Failure::InvalidFlagCombination => "macros and binary values are for attributes",
        Failure::TooBig => "a document holds at most 20 MiB, and 1 MiB of system attributes",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_has_its_status() {
        for (failure, status) in [
            (Failure::DocumentNotFound, Status::KeyEnoent),
            (Failure::DocumentExists, Status::KeyEexists),
            (Failure::TooBig, Status::E2big),
            (Failure::InvalidArgument, Status::Einval),
            (Failure::AccessDenied, Status::Eaccess),
            (Failure::NotSupported, Status::NotSupported),
            (Failure::AttributeInvalid, Status::XattrEinval),
            (Failure::PathNotFound, Status::SubdocPathEnoent),
            (Failure::PathMismatch, Status::SubdocPathMismatch),
            (Failure::PathInvalid, Status::SubdocPathEinval),
            (Failure::PathTooLong, Status::SubdocPathE2big),
            (Failure::DocumentTooDeep, Status::SubdocDocE2deep),
            (Failure::CannotInsert, Status::SubdocValueCantinsert),
            (Failure::NotJson, Status::SubdocDocNotjson),
            (Failure::NumberOutOfRange, Status::SubdocNumErange),
            (Failure::DeltaInvalid, Status::SubdocDeltaEinval),
            (Failure::PathExists, Status::SubdocPathEexists),
            (Failure::ValueTooDeep, Status::SubdocValueEtoodeep),
            (Failure::InvalidCombination, Status::SubdocInvalidCombo),
            (Failure::InvalidFlagCombination, Status::SubdocXattrInvalidFlagCombo),
            (Failure::UnknownMacro, Status::SubdocXattrUnknownMacro),
            (Failure::UnknownVirtualAttribute, Status::SubdocXattrUnknownVattr),
            (Failure::VirtualAttribute, Status::SubdocXattrCantModifyVattr),
            (Failure::AttributesComeFirst, Status::SubdocInvalidXattrOrder),
            (Failure::UnknownDocumentMacro, Status::SubdocXattrUnknownVattrMacro),
            (Failure::DocumentIsAlive, Status::SubdocCanOnlyReviveDeletedDocuments),
            (Failure::DeletedHasBody, Status::SubdocDeletedDocumentCantHaveValue),
            (Failure::NotBinary, Status::SubdocFieldNotBinaryValue),
        ] {
            assert_eq!(status_of(failure), status, "{failure:?}");
        }
    }
}
