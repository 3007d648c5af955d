//! The beginning of a TLS session, and who the client is by its certificate.

use std::io;

use platform::redaction::UserData;
use tls::{Claim, Handshake};

use super::peer::Peer;
use super::socket::Socket;
use crate::connection::{LoginEnd, Turn};
use crate::statistics::count;

/// Goes on with a session's handshake; logs the client in that has shown whose it is. Returns what
/// a read would: how much of the turn was used, 0 when nothing more can be read now.
///
/// # Errors
/// The session is over.
pub(super) fn go_on(peer: &mut Peer, turn: &mut Turn<'_>) -> io::Result<usize> {
    let Socket::Tls(stream) = &mut peer.socket else { panic!("a session begins on its socket") };
    turn.read_clocks();
    match stream.shake_hands() {
        Ok(Handshake::Waits) => {
            peer.is_readable = false;
            return Ok(0);
        }
        // Others have their turn first.
        Ok(Handshake::GoesOn) => return Ok(turn.shared.options.limits.turn_bytes_max),
        Ok(Handshake::Done) => {}
        Err(error) => {
            count(&turn.counters.tls_failures);
            log_failure(peer, turn, &error.to_string());
            return Err(error);
        }
    }
    let acceptor = turn.shared.tls.as_ref().expect("who made the session is there");
    let claim = acceptor.claim_of(stream.peer_chain());
    match claim {
        Claim::None => {}
        Claim::User(user) => {
            match peer.connection.log_in_by_certificate(user.clone(), turn) {
                LoginEnd::LetIn => {}
                LoginEnd::NoUser => {
                    return refuse(peer, turn, &format!("there is no user {}", UserData(&user)));
                }
                LoginEnd::TooManyConnections => {
                    let why =
                        format!("the user {} has as many connections as it may", UserData(&user));
                    return refuse(peer, turn, &why);
                }
            }
            count(&turn.counters.auth_successes);
        }
        Claim::Nameless => return refuse(peer, turn, "no rule finds a user in it"),
    }
    Ok(1)
}

fn refuse(peer: &Peer, turn: &Turn<'_>, why: &str) -> io::Result<usize> {
    count(&turn.counters.auth_errors);
    log_failure(peer, turn, &format!("the client's certificate is refused: {why}"));
    Err(io::ErrorKind::PermissionDenied.into())
}

fn log_failure(peer: &Peer, turn: &Turn<'_>, why: &str) {
    let Some(unlogged) = turn.shared.failed_handshakes.passes(turn.now.monotonic) else { return };
    let peer = peer.connection.peer_name();
    tracing::warn!(peer, unlogged, "a TLS session has not begun: {why}");
}
