//! DROP_PRIVILEGE, RBAC_REFRESH, ISASL_REFRESH. Source: docs/specification/protocol.md, section
//! 18.3.

use std::sync::Arc;

use auth::Privilege;
use executor::TaskKind;
use protocol::Status;

use crate::completed::Completed;
use crate::connection::{Connection, Done, Request, Turn};

/// DROP_PRIVILEGE: the connection does without it until it is another user's.
pub(super) fn give_up(
    connection: &mut Connection,
    request: &Request<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let name = std::str::from_utf8(request.frame.key).ok();
    match name.and_then(Privilege::from_name) {
        Some(privilege) => {
            connection.give_up(privilege, turn.shared);
            request.reply(connection).done(turn);
        }
        None => {
            let context = "the key is the name of a privilege, such as Upsert";
            request.reply(connection).fail(turn, Status::Einval, context);
        }
    }
    Done::Answered
}

/// RBAC_REFRESH and ISASL_REFRESH: users are read again from where they are kept, passwords and
/// roles in one.
pub(super) fn refresh(connection: &Connection, request: &Request<'_>, turn: &mut Turn<'_>) -> Done {
    let (waiter, mailboxes) = (turn.session.waiter, turn.shared.mailboxes.clone());
    let users = Arc::clone(&turn.shared.users);
    let added = turn.shared.pool.add(&turn.shared.owner, TaskKind::AuxIo, move || {
        let result = users.reload();
        if let Err(error) = &result {
            tracing::error!(%error, "users could not be read again");
        }
        mailboxes.complete_with(waiter, Completed::UsersRead(result));
    });
    if added.is_err() {
        request.reply(connection).fail(turn, Status::Etmpfail, "the node is stopping");
        return Done::Answered;
    }
    Done::Parked
}

/// Users have been read again, or not.
pub(super) fn refreshed(
    connection: &Connection,
    request: &Request<'_>,
    result: &Result<(), String>,
    turn: &mut Turn<'_>,
) {
    let reply = request.reply(connection);
    match result {
        Ok(()) => reply.done(turn),
        Err(_) => {
            reply.fail(turn, Status::Etmpfail, "users could not be read; see the node's log");
        }
    }
}
