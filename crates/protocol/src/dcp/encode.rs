//! Writing messages.

use document::{Cas, Datatype, Vbid};

use super::document::{DcpDeletion, DeletionForm, Document};
use super::message::Message;
use crate::frame::{Header, Magic};

/// What the header of a message says beside its content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Envelope {
    /// The opaque of the stream, or of the exchange.
    pub opaque: u32,
    /// The vBucket.
    pub vbid: Vbid,
    /// Which of several streams of the vBucket.
    pub stream_id: Option<u16>,
    /// Whether the other end knows collections: it also knows more reasons of an end.
    pub has_collections: bool,
}

/// The first byte of the frame info that names a stream: id 2, two bytes.
const STREAM_ID_TAG: u8 = 0x22;

impl<'a> Message<'a> {
    /// Appends the frame.
    pub fn encode(&self, envelope: Envelope, out: &mut Vec<u8>) {
        self.encode_head(envelope, out);
        out.extend_from_slice(self.document_value());
    }

    /// Appends the frame but for [`Message::document_value`], which the caller sends behind it: a
    /// large one leaves from where it lies.
    pub fn encode_head(&self, envelope: Envelope, out: &mut Vec<u8>) {
        let (mut extras, mut small_value) = (Vec::with_capacity(48), Vec::new());
        let reason_for_collections = envelope.has_collections;
        self.encode_extras(reason_for_collections, &mut extras, &mut small_value);
        let value_size = small_value.len().saturating_add(self.document_value().len());
        let framing = envelope.stream_id.map(|id| {
            let [high, low] = id.to_be_bytes();
            [STREAM_ID_TAG, high, low]
        });
        let framing = framing.as_ref().map_or(&[][..], |framing| framing);
        let key = self.key();
        let sections = [framing, &extras, key];
        let body_size =
            sections.iter().fold(value_size, |sum, section| sum.saturating_add(section.len()));
        let (cas, datatype) = self.header_fields();
        let is_flexible = !framing.is_empty();
        let header = Header {
            magic: if is_flexible { Magic::AltClientRequest } else { Magic::ClientRequest },
            opcode: self.opcode().byte(),
            framing_extras_size: u8::try_from(framing.len()).expect("a stream id has three bytes"),
            extras_size: u8::try_from(extras.len()).expect("extras have at most 48 bytes"),
            key_size: u16::try_from(key.len()).expect("a key has at most 65535 bytes"),
            datatype: datatype.bits(),
            vbucket_or_status: envelope.vbid.0,
            body_size: u32::try_from(body_size).expect("a body has less than 4 GiB"),
            opaque: envelope.opaque,
            cas: cas.0,
        };
        out.extend_from_slice(&header.encode());
        for section in sections {
            out.extend_from_slice(section);
        }
        out.extend_from_slice(&small_value);
    }

    /// The part of the frame that can be large: the value of a document or of a request.
    pub fn document_value(&self) -> &'a [u8] {
        match self {
            Self::Mutation(document) => document.value,
            Self::Prepare(prepare) => prepare.document.value,
            Self::Deletion(deletion) | Self::Expiration(deletion) => deletion.value,
            Self::SystemEvent(event) => event.value,
            Self::Open(open) => open.value,
            Self::StreamRequest(request) => request.value,
            Self::Control { value, .. } => value,
            _ => &[],
        }
    }

    fn key(&self) -> &'a [u8] {
        match self {
            Self::Mutation(document) => document.key,
            Self::Prepare(prepare) => prepare.document.key,
            Self::Deletion(deletion) | Self::Expiration(deletion) => deletion.key,
            Self::Commit(resolution) | Self::Abort(resolution) => resolution.key,
            Self::SystemEvent(event) => event.name,
            Self::Open(open) => open.name,
            Self::Control { key, .. } => key,
            _ => &[],
        }
    }

    fn header_fields(&self) -> (Cas, Datatype) {
        match self {
            Self::Mutation(document) => (document.cas, document.datatype),
            Self::Prepare(prepare) => (prepare.document.cas, prepare.document.datatype),
            Self::Deletion(deletion) | Self::Expiration(deletion) => {
                (deletion.cas, deletion.datatype)
            }
            Self::StreamRequest(request) if !request.value.is_empty() => (Cas(0), Datatype::JSON),
            Self::Open(open) if !open.value.is_empty() => (Cas(0), Datatype::JSON),
            _ => (Cas(0), Datatype::RAW),
        }
    }

    fn encode_extras(&self, has_collections: bool, extras: &mut Vec<u8>, value: &mut Vec<u8>) {
        match self {
            Self::Open(open) => {
                extras.extend([0; 4]);
                extras.extend(open.flags.0.to_be_bytes());
            }
            Self::AddStream { flags } => extras.extend(flags.to_be_bytes()),
            Self::StreamRequest(request) => request.encode(extras),
            Self::StreamEnd(reason) => extras.extend(reason.code(has_collections).to_be_bytes()),
            Self::SnapshotMarker(marker) => marker.encode(extras, value),
            Self::Mutation(document) => {
                put_document(document, extras);
                extras.extend([0, 0, document.heat]);
            }
            Self::Prepare(prepare) => {
                put_document(&prepare.document, extras);
                let heat = prepare.document.heat;
                extras.extend([heat, u8::from(prepare.is_deletion), prepare.level as u8]);
            }
            Self::Deletion(deletion) => put_deletion(deletion, extras),
            Self::Expiration(deletion) => put_expiration(deletion, extras),
            Self::SystemEvent(event) => {
                extras.extend(event.seqno.0.to_be_bytes());
                extras.extend(event.event.to_be_bytes());
                extras.push(event.version);
            }
            Self::Commit(resolution) | Self::Abort(resolution) => {
                extras.extend(resolution.prepare.0.to_be_bytes());
                extras.extend(resolution.seqno.0.to_be_bytes());
            }
            Self::SeqnoAcknowledged { seqno } | Self::SeqnoAdvanced { seqno } => {
                extras.extend(seqno.0.to_be_bytes());
            }
            Self::SetVbucketState { state } => extras.push(*state as u8),
            Self::OsoSnapshot { is_start } => {
                extras.extend(if *is_start { 1_u32 } else { 2 }.to_be_bytes());
            }
            Self::BufferAck { bytes } => extras.extend(bytes.to_be_bytes()),
            Self::CloseStream | Self::GetFailoverLog | Self::Noop | Self::Control { .. } => {}
        }
    }
}

fn put_document(document: &Document<'_>, extras: &mut Vec<u8>) {
    extras.extend(document.seqno.0.to_be_bytes());
    extras.extend(document.revision.0.to_be_bytes());
    extras.extend(document.flags);
    extras.extend(document.expiry.to_be_bytes());
    extras.extend(document.lock_seconds.to_be_bytes());
}

fn put_deletion(deletion: &DcpDeletion<'_>, extras: &mut Vec<u8>) {
    extras.extend(deletion.seqno.0.to_be_bytes());
    extras.extend(deletion.revision.0.to_be_bytes());
    match deletion.form {
        DeletionForm::WithoutTime => extras.extend([0; 2]),
        DeletionForm::WithTime(seconds) => {
            extras.extend(seconds.to_be_bytes());
            extras.push(0);
        }
    }
}

fn put_expiration(deletion: &DcpDeletion<'_>, extras: &mut Vec<u8>) {
    let seconds = match deletion.form {
        DeletionForm::WithoutTime => 0,
        DeletionForm::WithTime(seconds) => seconds,
    };
    extras.extend(deletion.seqno.0.to_be_bytes());
    extras.extend(deletion.revision.0.to_be_bytes());
    extras.extend(seconds.to_be_bytes());
}
