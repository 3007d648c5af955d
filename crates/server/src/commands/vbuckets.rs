//! GET_VBUCKET, SET_VBUCKET, DEL_VBUCKET: which vBuckets there are and which roles they play.

use bucket::{Bucket, LifeError, Refused};
use executor::TaskKind;
use protocol::Status;
use protocol::vbucket::{VbucketChange, is_deletion};

use super::refusals::refuse;
use crate::completed::Completed;
use crate::connection::{Connection, Content, Done, Payload, Request, Turn};

/// Why a vBucket was not changed: what the client hears, and what a person reads.
type Failure = (Status, &'static str);

/// GET_VBUCKET.
pub(super) fn get_vbucket(
    connection: &mut Connection,
    request: &Request<'_>,
    bucket: &Bucket,
    turn: &mut Turn<'_>,
) -> Done {
    let mut state = None;
    bucket.with_vbucket(request.vbid(), |vbucket| state = Some(vbucket.state() as u32));
    let Some(state) = state else {
        return refuse(connection, request, Refused::NotMyVbucket, turn);
    };
    let state = state.to_be_bytes();
    let content = Content { payload: Payload::Bytes(&state), ..Content::default() };
    request.reply(connection).send(turn, content);
    Done::Answered
}

/// SET_VBUCKET. Answered when the role is on disk.
pub(super) fn set_vbucket(
    connection: &mut Connection,
    request: &Request<'_>,
    bucket: &Bucket,
    turn: &mut Turn<'_>,
) -> Done {
    let frame = &request.frame;
    let Some(change) = VbucketChange::parse(frame.extras, frame.value) else {
        let context = "a role is 1 active, 2 replica, 3 pending or 4 dead, and a topology is of \
                       an active vBucket";
        request.reply(connection).fail(turn, Status::Einval, context);
        return Done::Answered;
    };
    if change.uses_snapshot {
        let context = "vBuckets are not made of fetched files yet";
        request.reply(connection).fail(turn, Status::NotSupported, context);
        return Done::Answered;
    }
    let vbid = request.vbid();
    in_background(connection, request, bucket, turn, move |bucket| {
        bucket.set_vbucket_state(vbid, change.state, change.topology)
    })
}

/// DEL_VBUCKET. Answered when the file is gone, whether or not the client would wait for that.
pub(super) fn delete_vbucket(
    connection: &mut Connection,
    request: &Request<'_>,
    bucket: &Bucket,
    turn: &mut Turn<'_>,
) -> Done {
    if !is_deletion(request.frame.value) {
        request.reply(connection).fail(turn, Status::Einval, "the value is nothing, or async=0");
        return Done::Answered;
    }
    let vbid = request.vbid();
    in_background(connection, request, bucket, turn, move |bucket| bucket.delete_vbucket(vbid))
}

/// Has a thread that may wait for files change a vBucket.
fn in_background(
    connection: &Connection,
    request: &Request<'_>,
    bucket: &Bucket,
    turn: &mut Turn<'_>,
    change: impl FnOnce(&Bucket) -> Result<(), LifeError> + Send + 'static,
) -> Done {
    let reply = request.reply(connection);
    let (waiter, vbid) = (turn.session.waiter, request.vbid());
    let (bucket, mailboxes) = (bucket.clone(), turn.shared.mailboxes.clone());
    let mut change = Some(change);
    let added = turn.shared.pool.add(&turn.shared.owner, TaskKind::AuxIo, move || {
        let Some(change) = change.take() else { return };
        let result = change(&bucket);
        if let Err(error @ (LifeError::Storage(_) | LifeError::List(_))) = &result {
            tracing::error!(%error, vbucket = vbid.0, "the vBucket could not be changed");
        }
        let result = result.map_err(|error| failure(&error));
        mailboxes.complete_with(waiter, Completed::VbucketChanged(result));
    });
    match added {
        Ok(_) => Done::Parked,
        Err(_) => {
            reply.fail(turn, Status::Etmpfail, "the node is stopping");
            Done::Answered
        }
    }
}

fn failure(error: &LifeError) -> Failure {
    match error {
        LifeError::OutOfRange => (Status::Erange, "the bucket has fewer vBuckets"),
        LifeError::NotHere => (Status::NotMyVbucket, ""),
        LifeError::Loading => (Status::Etmpfail, "the vBucket is being loaded; try again"),
        LifeError::Damaged { .. } => {
            (Status::Etmpfail, "the vBucket's file is damaged; see `settee reset-vbucket`")
        }
        LifeError::NotDamaged => (Status::Einval, "the vBucket's file is not damaged so far"),
        LifeError::WrongState(_) => (Status::Einval, "only a dead vBucket can be deleted"),
        LifeError::NotPersisted => {
            (Status::Etmpfail, "the role could not be written to disk; it is tried again")
        }
        LifeError::Storage(_) | LifeError::List(_) => {
            (Status::Etmpfail, "a file could not be changed; see the node's log")
        }
    }
}

/// The vBucket has changed, or not.
pub(super) fn changed(
    connection: &mut Connection,
    request: &Request<'_>,
    result: Result<(), Failure>,
    turn: &mut Turn<'_>,
) -> Done {
    match result {
        Ok(()) => request.reply(connection).done(turn),
        Err((Status::NotMyVbucket, _)) => {
            return refuse(connection, request, Refused::NotMyVbucket, turn);
        }
        Err((status, context)) => request.reply(connection).fail(turn, status, context),
    }
    Done::Answered
}
