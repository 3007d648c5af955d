//! Every message there is.

use document::{Seqno, VbucketState};

use super::document::{DcpDeletion, Document, Prepare, Resolution};
use super::marker::Marker;
use super::open::Open;
use super::stream_request::StreamRequest;
use crate::opcode::Opcode;

/// The content of a frame with a DCP opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// The connection becomes one of replication.
    Open(Open<'a>),
    /// A manager has a consumer open a stream, with these flags of a stream request.
    AddStream {
        /// See [`super::StreamFlags`].
        flags: u32,
    },
    /// The consumer wants no more of a stream.
    CloseStream,
    /// The consumer wants a stream.
    StreamRequest(StreamRequest<'a>),
    /// Asks for the branches of a vBucket's history.
    GetFailoverLog,
    /// Nothing follows in this stream.
    StreamEnd(EndReason),
    /// What follows belongs to one snapshot.
    SnapshotMarker(Marker),
    /// A document.
    Mutation(Document<'a>),
    /// A tombstone.
    Deletion(DcpDeletion<'a>),
    /// The tombstone of a document whose time was over.
    Expiration(DcpDeletion<'a>),
    /// A collection or a scope has come or gone.
    SystemEvent(SystemEvent<'a>),
    /// The first half of a durable write.
    Prepare(Prepare<'a>),
    /// The consumer holds all prepares up to this seqno.
    SeqnoAcknowledged {
        /// The seqno of a prepare, or of the end of a snapshot.
        seqno: Seqno,
    },
    /// A durable write has succeeded.
    Commit(Resolution<'a>),
    /// A durable write has failed.
    Abort(Resolution<'a>),
    /// Up to here there is nothing that this stream would carry.
    SeqnoAdvanced {
        /// The seqno.
        seqno: Seqno,
    },
    /// The consumer's vBucket is to take up this role.
    SetVbucketState {
        /// The role.
        state: VbucketState,
    },
    /// A snapshot in the order of keys begins or ends.
    OsoSnapshot {
        /// Whether it begins.
        is_start: bool,
    },
    /// Is anybody there?
    Noop,
    /// The consumer has room for so much more.
    BufferAck {
        /// Bytes by the rule of [`Message::flow_control_bytes`].
        bytes: u32,
    },
    /// An agreement about the connection.
    Control {
        /// What.
        key: &'a [u8],
        /// How.
        value: &'a [u8],
    },
}

/// Why a stream has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// Its end seqno was reached.
    Ok,
    /// The consumer closed it.
    Closed,
    /// The vBucket has another role, or is gone.
    StateChanged,
    /// The connection is closing.
    Disconnected,
    /// The consumer was too slow.
    TooSlow,
    /// The file could not be read.
    BackfillFailed,
    /// The vBucket was rolled back. Sent as [`EndReason::StateChanged`].
    RolledBack,
    /// The last collection of the filter is gone.
    FilterEmpty,
    /// The user may not read it any more.
    LostPrivileges,
}

/// What happened to a collection or a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemEvent<'a> {
    /// Its place in history.
    pub seqno: Seqno,
    /// 0 and 1: a collection was created, dropped; 3 and 4: a scope; 5: a collection was changed.
    pub event: u32,
    /// The form of the value.
    pub version: u8,
    /// The name of the collection or scope.
    pub name: &'a [u8],
    /// The rest.
    pub value: &'a [u8],
}

impl EndReason {
    /// The number on the wire. A client without collections does not know the last two.
    pub fn code(self, has_collections: bool) -> u32 {
        match self {
            Self::Ok => 0,
            Self::Closed => 1,
            Self::StateChanged | Self::RolledBack => 2,
            Self::Disconnected => 3,
            Self::TooSlow => 4,
            Self::BackfillFailed => 5,
            Self::FilterEmpty if has_collections => 7,
            Self::LostPrivileges if has_collections => 8,
            Self::FilterEmpty | Self::LostPrivileges => 0,
        }
    }

    /// The reason with this number.
    pub fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            0 => Self::Ok,
            1 => Self::Closed,
            2 => Self::StateChanged,
            3 => Self::Disconnected,
            4 => Self::TooSlow,
            5 => Self::BackfillFailed,
            6 => Self::RolledBack,
            7 => Self::FilterEmpty,
            8 => Self::LostPrivileges,
            _ => return None,
        })
    }
}

impl Message<'_> {
    /// The command.
    pub fn opcode(&self) -> Opcode {
        match self {
            Self::Open(_) => Opcode::DcpOpen,
            Self::AddStream { .. } => Opcode::DcpAddStream,
            Self::CloseStream => Opcode::DcpCloseStream,
            Self::StreamRequest(_) => Opcode::DcpStreamReq,
            Self::GetFailoverLog => Opcode::DcpGetFailoverLog,
            Self::StreamEnd(_) => Opcode::DcpStreamEnd,
            Self::SnapshotMarker(_) => Opcode::DcpSnapshotMarker,
            Self::Mutation(_) => Opcode::DcpMutation,
            Self::Deletion(_) => Opcode::DcpDeletion,
            Self::Expiration(_) => Opcode::DcpExpiration,
            Self::SystemEvent(_) => Opcode::DcpSystemEvent,
            Self::Prepare(_) => Opcode::DcpPrepare,
            Self::SeqnoAcknowledged { .. } => Opcode::DcpSeqnoAcknowledged,
            Self::Commit(_) => Opcode::DcpCommit,
            Self::Abort(_) => Opcode::DcpAbort,
            Self::SeqnoAdvanced { .. } => Opcode::DcpSeqnoAdvanced,
            Self::SetVbucketState { .. } => Opcode::DcpSetVbucketState,
            Self::OsoSnapshot { .. } => Opcode::DcpOsoSnapshot,
            Self::Noop => Opcode::DcpNoop,
            Self::BufferAck { .. } => Opcode::DcpBufferAck,
            Self::Control { .. } => Opcode::DcpControl,
        }
    }
}
