//! SET_PARAM: what changes until the node stops. Source: docs/specification/protocol.md,
//! section 18.1.

use bucket::Bucket;
use protocol::Status;
use protocol::request::Parameter;

use crate::connection::{Connection, Done, Request, Turn};
use crate::parameters::{PARAMETERS, RuntimeParameter};

/// The group of parameters that the original calls "flush".
const FLUSH_GROUP: u32 = 1;

/// SET_PARAM.
pub(super) fn set_parameter(
    connection: &mut Connection,
    request: &Request<'_>,
    bucket: &Bucket,
    turn: &mut Turn<'_>,
) -> Done {
    let reply = request.reply(connection);
    if connection.is_anonymous {
        reply.fail(turn, Status::Eaccess, "parameters are set by administrators, not anonymously");
        return Done::Answered;
    }
    let asked = Parameter::parse(&request.frame).filter(|asked| asked.group == FLUSH_GROUP);
    let found = asked.and_then(|asked| Some((RuntimeParameter::named(asked.name)?, asked.value)));
    let result = match found {
        Some((parameter, value)) => parameter.set(value, bucket, &turn.shared.pool),
        None => Err(unknown()),
    };
    match result {
        Ok(()) => reply.done(turn),
        Err(context) => reply.fail(turn, Status::Einval, &context),
    }
    Done::Answered
}

fn unknown() -> String {
    let names: Vec<&str> = PARAMETERS.iter().map(|parameter| parameter.name).collect();
    format!("there is no such parameter; in group {FLUSH_GROUP} there are: {}", names.join(", "))
}
