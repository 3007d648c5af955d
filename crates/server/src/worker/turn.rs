//! One connection's turn: what waits is sent, what has come is executed, and answered.

use std::io::{self, Write};

use tls::Arrival;

use super::handshake;
use super::peer::{Afterwards, Peer};
use super::socket::Socket;
use crate::client_memory::Holder;
use crate::connection::Turn;
use crate::statistics::{count, count_many};

/// Bytes read from a stranger in a turn: none of its requests may be larger.
const STRANGER_TURN_BYTES: usize = 16 << 10;

/// What a connection may do in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnKind {
    /// Everything.
    Whole,
    /// It reads nothing: something that it has waited for has come, and there may be a thousand
    /// such for a connection, each of which would bring it as many bytes as a whole turn.
    AnswersAlone,
}

/// Sends what waits, executes what was kept, reads what has arrived, and sends the answers.
pub(super) fn turn_of(
    peer: &mut Peer,
    turn: &mut Turn<'_>,
    read_buffer: &mut [u8],
    kind: TurnKind,
) -> Afterwards {
    // First: what the reader takes now makes room for answers, without which nothing is executed.
    if send(peer, turn).is_err() {
        return Afterwards::Close;
    }
    // Before anything is executed: rights that were taken away are not used any more.
    peer.connection.renew_rights(turn);
    peer.connection.on_room(turn);
    let (mut budget, read_buffer) = match peer.connection.holder() {
        Holder::Client | Holder::Guest => (turn.shared.options.limits.turn_bytes_max, read_buffer),
        Holder::Stranger => (STRANGER_TURN_BYTES, &mut read_buffer[..STRANGER_TURN_BYTES]),
    };
    if kind == TurnKind::AnswersAlone {
        budget = 0;
    }
    while budget > 0 && may_read(peer, turn) {
        match read(peer, turn, read_buffer) {
            Ok(0) => break,
            Ok(count) => budget = budget.saturating_sub(count),
            Err(_) => return Afterwards::Close,
        }
    }
    peer.connection.send_streams(turn);
    let was_full = turn.is_output_full();
    if send(peer, turn).is_err() {
        return Afterwards::Close;
    }
    // Whole requests may have been kept because of the answers before them. When those have been
    // sent at once no edge will say so.
    if was_full && !turn.is_output_full() && peer.has_sent_all() && !peer.connection.is_closing {
        return Afterwards::AnotherTurn;
    }
    afterwards(peer, turn)
}

fn afterwards(peer: &mut Peer, turn: &Turn<'_>) -> Afterwards {
    peer.note_rest(turn);
    let has_sent_all = peer.has_sent_all();
    if peer.connection.is_closing && has_sent_all {
        return close_when_sent(peer);
    }
    let limits = turn.shared.options.limits;
    let is_waiting = peer.connection.is_waiting(limits.parked_requests_max);
    // Whoever has only stopped asking still gets the answers that it waits for.
    if peer.is_at_end && has_sent_all && !peer.connection.has_parked() {
        return close_when_sent(peer);
    }
    let has_room = !turn.is_output_full();
    if peer.is_readable && !is_waiting && !peer.is_at_end && has_room && !peer.connection.is_closing
    {
        return Afterwards::AnotherTurn;
    }
    Afterwards::Idle
}

/// What the socket has taken may wait for the next call that sends. Then its edge brings a turn.
fn close_when_sent(peer: &Peer) -> Afterwards {
    if peer.socket.has_sent() { Afterwards::Close } else { Afterwards::Idle }
}

/// Nothing is read for a connection that waits: what its peer sends stays with the peer.
fn may_read(peer: &Peer, turn: &Turn<'_>) -> bool {
    let limits = turn.shared.options.limits;
    if turn.is_output_full() {
        count(&turn.counters.slow_reader_pauses);
        return false;
    }
    peer.is_readable
        && !peer.is_at_end
        && !peer.connection.is_closing
        && !peer.connection.is_waiting(limits.parked_requests_max)
}

/// Reads once and executes what that completes. 0 when nothing more can be read now.
fn read(peer: &mut Peer, turn: &mut Turn<'_>, read_buffer: &mut [u8]) -> io::Result<usize> {
    if let Socket::Tls(stream) = &mut peer.socket
        && stream.is_shaking_hands()
    {
        return handshake::go_on(peer, turn);
    }
    let target = peer.connection.receive_target();
    let is_direct = target.is_some();
    let target = target.unwrap_or(read_buffer);
    let target_size = target.len();
    let Arrival { bytes: size, has_more, is_end } = peer.socket.read(target)?;
    assert!(size <= target_size, "a read fills no more than its place");
    peer.is_at_end |= is_end;
    if size == 0 {
        peer.is_readable = has_more;
        return Ok(0);
    }
    // An end that came together with these brings no edge of its own.
    peer.is_readable = has_more || peer.is_ending;
    count_many(&turn.bucket.commands.bytes_read, size);
    turn.moved_bytes += size;
    peer.note_received();
    turn.read_clocks();
    if is_direct {
        peer.connection.received(size, turn);
    } else {
        peer.connection.on_bytes(&read_buffer[..size], turn);
    }
    Ok(size)
}

fn send(peer: &mut Peer, turn: &mut Turn<'_>) -> io::Result<()> {
    if turn.output.bytes() == 0 && peer.has_sent_all() {
        // The rest may have left by itself.
        peer.note_all_sent();
        return Ok(());
    }
    let before = turn.output.bytes() + peer.unsent.bytes();
    let before_on_socket = before + peer.socket.unsent_bytes();
    // What waits there may have to go although nothing is added.
    let flushed = peer.socket.flush();
    let result = flushed.and_then(|()| turn.output.send(&mut peer.socket, &mut peer.unsent));
    assert!(peer.unsent.bytes() <= before, "sending adds nothing to what waits");
    let sent = before - peer.unsent.bytes();
    count_many(&turn.bucket.commands.bytes_written, sent);
    turn.moved_bytes += sent;
    if let Some(metered) = &peer.connection.metered {
        metered.note_sent(sent, turn.now.monotonic);
    }
    peer.note_sent(before_on_socket, turn);
    turn.unsent_bytes = peer.unsent_bytes();
    // The output is the worker's: what is left there would go to the next connection.
    if result.is_err() {
        turn.output.discard();
    }
    result
}
