//! Reading messages.

use document::{Cas, Datatype, DurabilityLevel, RevSeqno, Seqno, VbucketState};

use super::document::{DcpDeletion, DeletionForm, Document, Prepare, Resolution};
use super::marker::Marker;
use super::message::{EndReason, Message, SystemEvent};
use super::open::Open;
use super::stream_request::StreamRequest;
use crate::fields::Fields;
use crate::frame::Frame;
use crate::opcode::Opcode;
use crate::validate::Invalid;

const WRONG_EXTRAS: Invalid = Invalid {
    status: crate::status::Status::Einval,
    context: "the extras have the wrong size or content",
};

impl<'a> Message<'a> {
    /// Reads the content of a request whose form was checked with [`crate::validate::request`]. An
    /// opcode that is none of DCP's is invalid.
    pub fn parse(frame: &Frame<'a>) -> Result<Self, Invalid> {
        let opcode = Opcode::from_byte(frame.header.opcode).filter(|opcode| opcode.is_dcp());
        let opcode = opcode.ok_or(Invalid::argument("this is no message of replication"))?;
        match opcode {
            Opcode::DcpOpen => return Open::parse(frame).map(Self::Open),
            Opcode::DcpStreamReq => {
                return StreamRequest::parse(frame.extras, frame.value).map(Self::StreamRequest);
            }
            Opcode::DcpSnapshotMarker => {
                return Marker::parse(frame.extras, frame.value).map(Self::SnapshotMarker);
            }
            _ => {}
        }
        Self::read(opcode, frame).ok_or(WRONG_EXTRAS)
    }

    fn read(opcode: Opcode, frame: &Frame<'a>) -> Option<Self> {
        let mut fields = Fields::new(frame.extras);
        let message = match opcode {
            Opcode::DcpMutation => Self::Mutation(mutation(frame, &mut fields)?),
            Opcode::DcpPrepare => Self::Prepare(prepare(frame, &mut fields)?),
            Opcode::DcpDeletion => Self::Deletion(deletion(frame, &mut fields)?),
            Opcode::DcpExpiration => Self::Expiration(expiration(frame, &mut fields)?),
            Opcode::DcpCommit => Self::Commit(resolution(frame, &mut fields)?),
            Opcode::DcpAbort => Self::Abort(resolution(frame, &mut fields)?),
            Opcode::DcpSystemEvent => Self::SystemEvent(SystemEvent {
                seqno: seqno(&mut fields)?,
                event: fields.u32()?,
                version: fields.u8()?,
                name: frame.key,
                value: frame.value,
            }),
            Opcode::DcpAddStream => Self::AddStream { flags: fields.u32()? },
            Opcode::DcpCloseStream => Self::CloseStream,
            Opcode::DcpGetFailoverLog => Self::GetFailoverLog,
            Opcode::DcpStreamEnd => Self::StreamEnd(EndReason::from_code(fields.u32()?)?),
            Opcode::DcpSeqnoAcknowledged => Self::SeqnoAcknowledged { seqno: seqno(&mut fields)? },
            Opcode::DcpSeqnoAdvanced => Self::SeqnoAdvanced { seqno: seqno(&mut fields)? },
            Opcode::DcpSetVbucketState => {
                Self::SetVbucketState { state: VbucketState::from_number(fields.u8()?)? }
            }
            Opcode::DcpOsoSnapshot => Self::OsoSnapshot { is_start: is_oso_start(fields.u32()?)? },
            Opcode::DcpNoop => Self::Noop,
            Opcode::DcpBufferAck => Self::BufferAck { bytes: fields.u32()? },
            Opcode::DcpControl => Self::Control { key: frame.key, value: frame.value },
            _ => return None,
        };
        fields.finish(message)
    }
}

/// The place in history of something that has one.
fn seqno(fields: &mut Fields<'_>) -> Option<Seqno> {
    fields.u64().filter(|seqno| *seqno != 0).map(Seqno)
}

fn is_oso_start(flags: u32) -> Option<bool> {
    match flags {
        1 => Some(true),
        2 => Some(false),
        _ => None,
    }
}

fn document<'a>(frame: &Frame<'a>, fields: &mut Fields<'_>) -> Option<Document<'a>> {
    Some(Document {
        key: frame.key,
        value: frame.value,
        datatype: Datatype::from_bits(frame.header.datatype)?,
        cas: Cas(frame.header.cas),
        seqno: seqno(fields)?,
        revision: RevSeqno(fields.u64()?),
        flags: fields.array()?,
        expiry: fields.u32()?,
        lock_seconds: fields.u32()?,
        heat: 0,
    })
}

fn mutation<'a>(frame: &Frame<'a>, fields: &mut Fields<'_>) -> Option<Document<'a>> {
    let document = document(frame, fields)?;
    let metadata_size = fields.u16()?;
    let heat = fields.u8()?;
    (metadata_size == 0).then_some(Document { heat, ..document })
}

fn prepare<'a>(frame: &Frame<'a>, fields: &mut Fields<'_>) -> Option<Prepare<'a>> {
    let document = document(frame, fields)?;
    let heat = fields.u8()?;
    let is_deletion = match fields.u8()? {
        0 => false,
        1 => true,
        _ => return None,
    };
    let level = DurabilityLevel::from_byte(fields.u8()?)?;
    Some(Prepare { document: Document { heat, ..document }, is_deletion, level })
}

fn tombstone<'a>(
    frame: &Frame<'a>,
    fields: &mut Fields<'_>,
    form: impl FnOnce(&mut Fields<'_>) -> Option<DeletionForm>,
) -> Option<DcpDeletion<'a>> {
    Some(DcpDeletion {
        key: frame.key,
        value: frame.value,
        datatype: Datatype::from_bits(frame.header.datatype)?,
        cas: Cas(frame.header.cas),
        seqno: seqno(fields)?,
        revision: RevSeqno(fields.u64()?),
        form: form(fields)?,
    })
}

fn deletion<'a>(frame: &Frame<'a>, fields: &mut Fields<'_>) -> Option<DcpDeletion<'a>> {
    let has_time = frame.extras.len() == 21;
    tombstone(frame, fields, |fields| {
        if !has_time {
            return (fields.u16()? == 0).then_some(DeletionForm::WithoutTime);
        }
        let seconds = fields.u32()?;
        fields.u8()?;
        Some(DeletionForm::WithTime(seconds))
    })
}

fn expiration<'a>(frame: &Frame<'a>, fields: &mut Fields<'_>) -> Option<DcpDeletion<'a>> {
    tombstone(frame, fields, |fields| fields.u32().map(DeletionForm::WithTime))
}

fn resolution<'a>(frame: &Frame<'a>, fields: &mut Fields<'_>) -> Option<Resolution<'a>> {
    let (prepare, seqno) = (seqno(fields)?, seqno(fields)?);
    Some(Resolution { key: frame.key, prepare, seqno })
}
