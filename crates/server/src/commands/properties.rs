//! IOCTL_GET and IOCTL_SET: properties of the process. Source: docs/specification/protocol.md,
//! section 18.3.

use protocol::Status;

use crate::adjustable::Adjustable;
use crate::connection::{Connection, Content, Done, Payload, Request, Turn};

/// What there is to be said of a property, or of all that begin so.
struct Property {
    /// All of its name, or the beginning where it ends in a point.
    name: &'static str,
    /// What it is, where it can be told.
    value: Option<&'static str>,
    /// Why it cannot be set, and cannot be told either where it has no value.
    why_not: &'static str,
}

const NO_TRACER: &str = "there is no tracer; durations are in the STAT group `timings` and in \
                         GET_CMD_TIMER";
const NO_PROFILER: &str = "the allocator is mimalloc, which has no profiler of jemalloc's";

/// The properties that tools know. Those of the same beginning are in the order in which they are
/// looked for.
const PROPERTIES: [Property; 6] = [
    // So tools see that there is nothing to be fetched.
    Property { name: "trace.status", value: Some("disabled"), why_not: NO_TRACER },
    Property { name: "trace.", value: None, why_not: NO_TRACER },
    Property { name: "jemalloc.prof.active", value: Some("false"), why_not: NO_PROFILER },
    Property { name: "jemalloc.", value: None, why_not: NO_PROFILER },
    Property {
        name: "serverless.",
        value: None,
        why_not: "clients are not charged or throttled; limits of connections are settings of \
                  the node",
    },
    Property {
        name: "release_free_memory",
        value: None,
        why_not: "memory goes back to the system by itself a second after it was freed",
    },
];

/// IOCTL_GET.
pub(super) fn get(connection: &Connection, request: &Request<'_>, turn: &mut Turn<'_>) -> Done {
    if let Some(named) = Adjustable::named(request.frame.key) {
        let reply = request.reply(connection);
        match named.and_then(|adjustable| adjustable.get(turn.shared)) {
            Ok(value) => {
                let payload = Payload::Bytes(value.as_bytes());
                reply.send(turn, Content { payload, ..Content::default() });
            }
            Err(context) => reply.fail(turn, Status::Einval, context),
        }
        return Done::Answered;
    }
    let Some(property) = named(connection, request, turn) else { return Done::Answered };
    let reply = request.reply(connection);
    match property.value {
        Some(value) => {
            let payload = Payload::Bytes(value.as_bytes());
            reply.send(turn, Content { payload, ..Content::default() });
        }
        None => reply.fail(turn, Status::NotSupported, property.why_not),
    }
    Done::Answered
}

/// IOCTL_SET.
pub(super) fn set(connection: &Connection, request: &Request<'_>, turn: &mut Turn<'_>) -> Done {
    if let Some(named) = Adjustable::named(request.frame.key) {
        let reply = request.reply(connection);
        let value = request.frame.value;
        match named.and_then(|adjustable| adjustable.set(value, turn.shared)) {
            Ok(()) => reply.done(turn),
            Err(context) => reply.fail(turn, Status::Einval, context),
        }
        return Done::Answered;
    }
    let Some(property) = named(connection, request, turn) else { return Done::Answered };
    request.reply(connection).fail(turn, Status::NotSupported, property.why_not);
    Done::Answered
}

/// The property that a request names; answered when nobody knows it.
fn named(
    connection: &Connection,
    request: &Request<'_>,
    turn: &mut Turn<'_>,
) -> Option<&'static Property> {
    let key = request.frame.key;
    let is_it = |property: &&Property| match property.name {
        name if name.ends_with('.') => key.starts_with(name.as_bytes()),
        name => key == name.as_bytes(),
    };
    let found = PROPERTIES.iter().find(is_it);
    if found.is_none() {
        let told = PROPERTIES.iter().filter(|property| property.value.is_some());
        let names: Vec<&str> = told.map(|property| property.name).collect();
        let context = format!("there is no such property; there are: {}", names.join(", "));
        request.reply(connection).fail(turn, Status::Einval, &context);
    }
    found
}
