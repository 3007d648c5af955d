//! A connection with its socket.

use platform::network::TcpStream;

use crate::connection::{Connection, Unsent};

/// One connection of a worker.
pub(super) struct Peer {
    pub(super) socket: TcpStream,
    pub(super) connection: Connection,
    pub(super) unsent: Unsent,
    /// The socket may hold bytes that were not read: edges are reported once.
    pub(super) is_readable: bool,
    /// The end has been announced: there is no edge to wait for, so read until it is met.
    pub(super) is_ending: bool,
    /// The peer has said all it will say.
    pub(super) is_at_end: bool,
}

/// What a connection's turn leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Afterwards {
    /// It waits for its socket or for a completion.
    Idle,
    /// It has used up its turn and wants another.
    AnotherTurn,
    /// It is over.
    Close,
}
