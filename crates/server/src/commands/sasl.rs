//! SASL_LIST_MECHS, SASL_AUTH, SASL_STEP.

use auth::{Actor, Checked, MECHANISMS, Noted, Outcome, PlainAttempt, TooManyLogins};
use platform::redaction::UserData;
use protocol::Status;
use protocol::request::Sasl;

use crate::completed::Completed;
use crate::connection::{Connection, Content, Done, LoginEnd, Payload, Request, Turn};
use crate::statistics::count;

/// SASL_LIST_MECHS.
pub(super) fn list(connection: &Connection, request: &Request<'_>, turn: &mut Turn<'_>) -> Done {
    let payload = Payload::Bytes(MECHANISMS.as_bytes());
    request.reply(connection).send(turn, Content { payload, ..Content::default() });
    Done::Answered
}

/// SASL_AUTH: whoever the connection was, it is nobody now, or anybody where that is enough.
pub(super) fn start(
    connection: &mut Connection,
    request: &Request<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    if connection.is_of_replication() {
        return refuse_replication(connection, request, turn);
    }
    let Some(sasl) = Sasl::parse(&request.frame) else {
        request.reply(connection).fail(turn, Status::Einval, "the mechanism is not text");
        return Done::Answered;
    };
    connection.log_out(turn);
    let address = connection.peer.map(|peer| peer.ip());
    let now = turn.now.monotonic;
    // Before the exchange begins: guesses from there are not even checked.
    let refusal = |address| turn.shared.users.refusal_of_logins_from(address, now);
    if let Some(refusal) = address.and_then(refusal) {
        let seconds = refusal.as_secs() + 1;
        let context =
            format!("too many logins from this address have failed; try again in {seconds} s");
        request.reply(connection).fail(turn, Status::Etmpfail, &context);
        return Done::Answered;
    }
    let exchange = connection.exchange.get_or_insert_default();
    let outcome = exchange.start(&turn.shared.users, sasl.mechanism, sasl.data);
    answer(connection, request, outcome, turn)
}

/// SASL_STEP.
pub(super) fn step(
    connection: &mut Connection,
    request: &Request<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    if connection.is_of_replication() {
        return refuse_replication(connection, request, turn);
    }
    let Some(sasl) = Sasl::parse(&request.frame) else {
        request.reply(connection).fail(turn, Status::Einval, "the mechanism is not text");
        return Done::Answered;
    };
    let exchange = connection.exchange.get_or_insert_default();
    let outcome = exchange.step(&turn.shared.users, sasl.mechanism, sasl.data);
    answer(connection, request, outcome, turn)
}

/// A connection of replication stays whose it is.
fn refuse_replication(connection: &Connection, request: &Request<'_>, turn: &mut Turn<'_>) -> Done {
    let context = "a connection of replication keeps its user";
    request.reply(connection).fail(turn, Status::NotSupported, context);
    Done::Answered
}

/// The password has been checked.
pub(super) fn finish_plain(
    connection: &mut Connection,
    request: &Request<'_>,
    result: Checked,
    turn: &mut Turn<'_>,
) -> Done {
    connection.password_check = None;
    let outcome = match result {
        Ok(Some(user)) => Outcome::Done { user, server_final: Vec::new() },
        Ok(None) => Outcome::Failed,
        Err(too_many) => return turn_away(connection, request, too_many, turn),
    };
    answer(connection, request, outcome, turn)
}

fn answer(
    connection: &mut Connection,
    request: &Request<'_>,
    outcome: Outcome,
    turn: &mut Turn<'_>,
) -> Done {
    let reply = request.reply(connection);
    match outcome {
        Outcome::Continue(challenge) => {
            let payload = Payload::Bytes(&challenge);
            let content = Content { status: Status::AuthContinue, payload, ..Content::default() };
            reply.send(turn, content);
        }
        Outcome::Check(attempt) => return check(connection, request, attempt, turn),
        Outcome::Done { user, server_final } => {
            match connection.log_in(user, turn) {
                LoginEnd::LetIn => {}
                // It was removed since its password was looked up.
                LoginEnd::NoUser => return answer(connection, request, Outcome::Failed, turn),
                LoginEnd::TooManyConnections => {
                    let why = "the user has as many connections as it may; close others";
                    reply.fail(turn, Status::RateLimitedMaxConnections, why);
                    return Done::Answered;
                }
            }
            count(&turn.counters.auth_successes);
            let payload = Payload::Bytes(&server_final);
            reply.send(turn, Content { payload, ..Content::default() });
        }
        Outcome::Failed => {
            count(&turn.counters.auth_errors);
            log_failure(connection, turn);
            let context = if connection.is_anonymous {
                "authentication failed; this port needs none"
            } else {
                "authentication failed"
            };
            reply.fail(turn, Status::AuthError, context);
            // SCRAM has clients hash: by one connection somebody would guess as fast as it reads.
            if connection.exchange.as_mut().is_some_and(|exchange| exchange.note_failure()) {
                return Done::Close;
            }
        }
        Outcome::OutOfPlace(context) => reply.fail(turn, Status::Einval, context),
    }
    Done::Answered
}

fn log_failure(connection: &Connection, turn: &Turn<'_>) {
    let exchange = connection.exchange.as_ref();
    let user = exchange.and_then(|exchange| exchange.claimed_user()).unwrap_or_default();
    let actor = Actor { user, address: connection.peer.map(|peer| peer.ip()) };
    turn.shared.users.note(actor, Noted::LoginFailed { door: "data" });
    if let Some(peer) = connection.peer {
        turn.shared.users.note_failure_from(peer.ip(), turn.now.monotonic);
    }
    let Some(unlogged) = turn.shared.failed_logins.passes(turn.now.monotonic) else { return };
    let user = UserData(user);
    let (peer, agent) = (connection.peer_name(), UserData(&connection.agent));
    tracing::warn!(%user, peer, %agent, unlogged, "a login failed");
}

/// Checks a password on a thread that has the milliseconds which that takes.
fn check(
    connection: &mut Connection,
    request: &Request<'_>,
    attempt: PlainAttempt,
    turn: &mut Turn<'_>,
) -> Done {
    let waiter = turn.session.waiter;
    let mailboxes = turn.shared.mailboxes.clone();
    let address = connection.peer.map(|peer| peer.ip());
    let asked = turn.shared.passwords.check(attempt, address, move |checked| {
        mailboxes.complete_with(waiter, Completed::Plain(checked));
    });
    match asked {
        Ok(asked) => {
            connection.password_check = Some(asked);
            Done::Parked
        }
        Err(too_many) => turn_away(connection, request, too_many, turn),
    }
}

/// The password was not looked at.
fn turn_away(
    connection: &Connection,
    request: &Request<'_>,
    too_many: TooManyLogins,
    turn: &mut Turn<'_>,
) -> Done {
    request.reply(connection).fail(turn, Status::Etmpfail, &too_many.to_string());
    Done::Answered
}
