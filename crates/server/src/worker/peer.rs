//! A connection with its socket.

use platform::Instant;

use super::socket::Socket;
use crate::client_memory::{Held, Holder};
use crate::connection::{Connection, Turn, Unsent};
use crate::limits::ServerLimits;

/// One connection of a worker.
pub(super) struct Peer {
    pub(super) socket: Socket,
    pub(super) connection: Connection,
    pub(super) unsent: Unsent,
    /// The socket may hold bytes that were not read: edges are reported once.
    pub(super) is_readable: bool,
    /// The end has been announced: there is no edge to wait for, so read until it is met.
    pub(super) is_ending: bool,
    /// The peer has said all it will say.
    pub(super) is_at_end: bool,
    /// When it was accepted.
    pub(super) opened: Instant,
    /// Since when nobody knows who it is: a client that logs in anew is a stranger again meanwhile,
    /// and a young one. Says nothing of who is known.
    pub(super) stranger_since: Instant,
    /// What its client leaves the node with.
    stall: Option<Stall>,
    /// Whether it stands in the line of those that want another turn: once, however often it has
    /// asked, or the turns of a few would grow with each round.
    pub(super) is_in_line: bool,
    /// Whether its last turn was a long one.
    pub(super) takes_long: bool,
    /// What waited for it when that was last looked at.
    unsent_noted: usize,
    /// Whether somebody looks after its deadlines.
    pub(super) is_watched: bool,
    /// What the node's budget knows of: bytes, and as whose. Apart, so that a peer stays small.
    settled_bytes: usize,
    settled_holder: Holder,
}

/// What a client leaves the node with, and since when nothing has come of it. Who takes no answers
/// is not looked at for the rest of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stall {
    /// Answers that it does not take.
    Answers(Instant),
    /// A request of which it does not send the rest.
    Rest(Instant),
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

/// How a connection stands to its deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It has none.
    Free,
    /// It has one that has not passed.
    InTime,
    /// Nobody has said in time who it is.
    LoginIsOverdue,
    /// Its client has taken nothing for too long.
    ReaderIsOverdue,
    /// Its client has sent nothing of the rest of a request for too long, while memory is short.
    RestIsOverdue,
}

impl Peer {
    /// A connection that was accepted at `opened`.
    pub(super) fn new(socket: Socket, connection: Connection, opened: Instant) -> Self {
        Self {
            socket,
            connection,
            unsent: Unsent::default(),
            is_readable: true,
            is_ending: false,
            is_at_end: false,
            opened,
            stranger_since: opened,
            stall: None,
            is_in_line: false,
            takes_long: false,
            unsent_noted: 0,
            is_watched: false,
            settled_bytes: 0,
            settled_holder: Holder::default(),
        }
    }

    /// Bytes that wait for its reader, those that are encrypted already among them.
    pub(super) fn unsent_bytes(&self) -> usize {
        self.unsent.bytes() + self.socket.unsent_bytes()
    }

    /// Whether nothing waits for its reader.
    pub(super) fn has_sent_all(&self) -> bool {
        self.unsent.is_empty() && self.socket.unsent_bytes() == 0
    }

    /// Of `before` bytes some may have been sent, and some of those that waited before.
    pub(super) fn note_sent(&mut self, before: usize, turn: &Turn<'_>) {
        let unsent = self.unsent_bytes();
        let has_sent = unsent < before.max(self.unsent_noted);
        self.unsent_noted = unsent;
        if self.has_sent_all() {
            self.note_all_sent();
        } else if has_sent || !matches!(self.stall, Some(Stall::Answers(_))) {
            self.stall = Some(Stall::Answers(turn.shared.clock.now()));
        }
    }

    /// Nothing waits for its reader.
    pub(super) fn note_all_sent(&mut self) {
        self.stall = self.stall.filter(|stall| matches!(stall, Stall::Rest(_)));
    }

    /// Something has come from its client.
    pub(super) fn note_received(&mut self) {
        self.stall = self.stall.filter(|stall| matches!(stall, Stall::Answers(_)));
    }

    /// Its turn is over: what came was executed as far as it is whole and does not have to wait.
    pub(super) fn note_rest(&mut self, turn: &Turn<'_>) {
        match (self.connection.awaits_rest(), self.stall) {
            (true, None) => self.stall = Some(Stall::Rest(turn.shared.clock.now())),
            (false, Some(Stall::Rest(_))) => self.stall = None,
            _ => {}
        }
    }

    /// What the node's budget knows of.
    pub(super) fn settled(&self) -> Held {
        Held { holder: self.settled_holder, bytes: self.settled_bytes }
    }

    /// The node's budget knows of this now; returns what it knew of before.
    pub(super) fn settle(&mut self, held: Held) -> Held {
        let before = self.settled();
        (self.settled_holder, self.settled_bytes) = (held.holder, held.bytes);
        before
    }

    /// What it makes the node hold.
    pub(super) fn held(&self) -> Held {
        let holder = self.connection.holder();
        let bytes = self.connection.held_bytes() + self.unsent_bytes();
        Held { holder, bytes: bytes + self.socket.held_bytes(holder) }
    }

    /// When it was accepted, if it has a deadline from now on and nobody looks after it.
    pub(super) fn begins_to_be_watched(&mut self) -> Option<Instant> {
        let has_deadline = !self.connection.is_authenticated() || self.stall.is_some();
        if !has_deadline || self.is_watched {
            return None;
        }
        self.is_watched = true;
        Some(self.opened)
    }

    /// How it stands to its deadlines at `now`. Connections of replication have others: a replica
    /// that is paused is not to begin anew. One that is to be closed does not wait for its reader
    /// for ever, with its streams, what they hold and its place. The rest of a request is waited
    /// for until memory for those like it is short.
    pub(super) fn standing(
        &self,
        now: Instant,
        limits: &ServerLimits,
        memory_is_short: bool,
    ) -> Standing {
        if !self.connection.is_authenticated() {
            let is_overdue = now.since(self.stranger_since) >= limits.login_time_max;
            return if is_overdue { Standing::LoginIsOverdue } else { Standing::InTime };
        }
        let is_of_replication = self.connection.is_of_replication();
        let is_overdue = |since| now.since(since) >= limits.stalled_time_max;
        match self.stall {
            Some(Stall::Answers(since)) if !is_of_replication || self.connection.is_closing => {
                if is_overdue(since) {
                    Standing::ReaderIsOverdue
                } else {
                    Standing::InTime
                }
            }
            Some(Stall::Rest(since)) if !is_of_replication => {
                let has_to_go = memory_is_short && is_overdue(since);
                if has_to_go { Standing::RestIsOverdue } else { Standing::InTime }
            }
            _ => Standing::Free,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What one takes that lies by itself; the next larger block of the allocator has 448.
    const PEER_BYTES_MAX: usize = 384;

    #[test]
    fn an_idle_connection_takes_a_block_of_384_bytes() {
        assert!(size_of::<Peer>() <= PEER_BYTES_MAX, "{}", size_of::<Peer>());
    }
}
