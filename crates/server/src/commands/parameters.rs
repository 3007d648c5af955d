//! SET_PARAM: what changes until the node stops. Source: docs/specification/protocol.md,
//! section 18.1.

use bucket::Bucket;
use document::Cas;
use protocol::Status;
use protocol::request::Parameter;

use super::refusals::refuse;
use crate::connection::{Connection, Done, Request, Turn};
use crate::parameters::{PARAMETERS, RuntimeParameter};

/// The original sorts its parameters by groups: persistence 1, checkpoints 3, DCP 4 and
/// configuration 6. Here the name says enough.
const GROUPS: [u32; 4] = [1, 3, 4, 6];
/// What replicas of old had; nobody has it.
const REPLICATION_GROUP: u32 = 2;
/// What is a single vBucket's, or of the clocks of all.
const VBUCKET_GROUP: u32 = 5;
/// Where a vBucket's clock goes on.
const MAX_CAS: &str = "max_cas";

/// SET_PARAM.
pub(super) fn set_parameter(
    connection: &mut Connection,
    request: &Request<'_>,
    bucket: &Bucket,
    turn: &mut Turn<'_>,
) -> Done {
    let reply = request.reply(connection);
    let Some(asked) = Parameter::parse(&request.frame) else {
        reply.fail(turn, Status::Einval, "names and values of parameters are UTF-8");
        return Done::Answered;
    };
    match asked.group {
        VBUCKET_GROUP if asked.name == MAX_CAS => {
            return set_max_cas(connection, request, asked.value, bucket, turn);
        }
        VBUCKET_GROUP if asked.name.starts_with("hlc_") => {}
        REPLICATION_GROUP => {
            reply.fail(turn, Status::KeyEnoent, "there are no parameters in group 2");
            return Done::Answered;
        }
        group if GROUPS.contains(&group) => {}
        _ => {
            reply.fail(turn, Status::Einval, &unknown());
            return Done::Answered;
        }
    }
    let result = match RuntimeParameter::named(asked.name) {
        Some(parameter) => parameter.set(asked.value, bucket, &turn.shared.pool),
        None => Err(RuntimeParameter::why_unavailable(asked.name).unwrap_or_else(unknown)),
    };
    match result {
        Ok(()) => reply.done(turn),
        Err(context) => reply.fail(turn, Status::Einval, &context),
    }
    Done::Answered
}

/// Has the clock of the request's vBucket go on from a CAS, back as well.
fn set_max_cas(
    connection: &mut Connection,
    request: &Request<'_>,
    value: &str,
    bucket: &Bucket,
    turn: &mut Turn<'_>,
) -> Done {
    let reply = request.reply(connection);
    let Some(cas) = value.parse().ok().map(Cas).filter(|cas| *cas != Cas::LOCKED) else {
        reply.fail(turn, Status::Einval, "the value is a CAS, as a decimal number");
        return Done::Answered;
    };
    match bucket.set_max_cas(request.vbid(), cas) {
        Ok(()) => reply.done(turn),
        Err(refused) => return refuse(connection, request, refused, turn),
    }
    Done::Answered
}

fn unknown() -> String {
    let names: Vec<&str> = PARAMETERS.iter().map(|parameter| parameter.name).collect();
    format!("there is no such parameter; there are: {}", names.join(", "))
}
