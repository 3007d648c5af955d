//! What a wait brings.

/// The name that a loop gives one of its sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub usize);

/// Something has changed about a socket since it was said last: edges, not levels. Who was told
/// that it can be read is told again when more has come, not as long as there is something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// Which.
    pub token: Token,
    /// It can be read, or a listener has somebody to accept.
    pub is_readable: bool,
    /// The peer says no more, or the connection is broken: reading meets that.
    pub is_ending: bool,
}
