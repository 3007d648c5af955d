//! NOOP, VERSION, VERBOSITY, QUIT, FLUSH, EVICT_KEY, GET_VBUCKET, SET_PARAM.

use bucket::{Bucket, MemoryParameter, Refused};
use executor::{TaskKind, ThreadCounts, ThreadSetting};
use protocol::Status;
use protocol::request::Parameter;

use super::Completed;
use super::documents::Document;
use super::refusals::refuse;
use crate::connection::{Connection, Content, Done, Payload, Request, Turn};

/// NOOP.
pub(super) fn noop(connection: &Connection, request: &Request<'_>, turn: &mut Turn<'_>) -> Done {
    request.reply(connection).done(turn);
    Done::Answered
}

/// VERSION.
pub(super) fn version(connection: &Connection, request: &Request<'_>, turn: &mut Turn<'_>) -> Done {
    let version = turn.shared.options.version.as_bytes();
    let content = Content { payload: Payload::Bytes(version), ..Content::default() };
    request.reply(connection).send(turn, content);
    Done::Answered
}

/// VERBOSITY: accepted, as clients expect; the log's level is the operator's business.
pub(super) fn verbosity(
    connection: &Connection,
    request: &Request<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    request.reply(connection).done(turn);
    Done::Answered
}

/// QUIT.
pub(super) fn quit(connection: &Connection, request: &Request<'_>, turn: &mut Turn<'_>) -> Done {
    if !request.is_quiet {
        request.reply(connection).done(turn);
    }
    Done::Close
}

/// FLUSH: empties the bucket, where the operator has enabled that. A thread that may wait for files
/// does it.
pub(super) fn flush(
    connection: &mut Connection,
    request: &Request<'_>,
    bucket: &Bucket,
    turn: &mut Turn<'_>,
) -> Done {
    let reply = request.reply(connection);
    if !matches!(request.frame.extras, [] | [0, 0, 0, 0]) {
        reply.fail(turn, Status::NotSupported, "the bucket can be emptied now, not later");
        return Done::Answered;
    }
    let waiter = turn.session.waiter;
    let bucket = bucket.clone();
    let mailboxes = turn.shared.mailboxes.clone();
    let added = turn.shared.pool.add(&turn.shared.owner, TaskKind::AuxIo, move || {
        let result = bucket.flush_all();
        if let Err(error) = &result {
            tracing::error!(%error, "the bucket could not be emptied");
        }
        mailboxes.complete_with(waiter, Completed::Flushed(result.is_ok()));
    });
    match added {
        Ok(_) => Done::Parked,
        Err(_) => {
            reply.fail(turn, Status::Etmpfail, "the node is stopping");
            Done::Answered
        }
    }
}

/// The bucket is empty, or could not be emptied.
pub(super) fn flushed(
    connection: &Connection,
    request: &Request<'_>,
    is_empty: bool,
    turn: &mut Turn<'_>,
) {
    let reply = request.reply(connection);
    match (is_empty, request.is_quiet) {
        (true, true) => {}
        (true, false) => reply.done(turn),
        (false, _) => {
            reply.fail(turn, Status::Etmpfail, "a file could not be removed; see the node's log");
        }
    }
}

/// EVICT_KEY.
pub(super) fn evict(
    connection: &mut Connection,
    request: &Request<'_>,
    document: &Document<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let Document { bucket, key } = document;
    match bucket.evict(turn.session, request.vbid(), key.as_key()) {
        Ok(()) => {
            request.reply(connection).done(turn);
            Done::Answered
        }
        Err(refused) => refuse(connection, request, refused, turn),
    }
}

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

/// Parameters of the first group, and the kind of task whose threads they count.
const THREAD_PARAMETERS: [(&str, TaskKind); 4] = [
    ("num_reader_threads", TaskKind::Reader),
    ("num_writer_threads", TaskKind::Writer),
    ("num_auxio_threads", TaskKind::AuxIo),
    ("num_nonio_threads", TaskKind::NonIo),
];
/// Parameters of the first group that are parts of the memory quota.
const MEMORY_PARAMETERS: [(&str, MemoryParameter); 3] = [
    ("mem_low_wat_percent", MemoryParameter::LowWatermark),
    ("mem_high_wat_percent", MemoryParameter::HighWatermark),
    ("mutation_mem_ratio", MemoryParameter::MutationRatio),
];
/// The parameter of the first group that is the memory quota, in bytes.
const QUOTA_PARAMETER: &str = "max_size";
const PARAMETER_GROUP: u32 = 1;

/// SET_PARAM: numbers of threads and limits of memory, until the node stops.
pub(super) fn set_parameter(
    connection: &Connection,
    request: &Request<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let reply = request.reply(connection);
    if connection.is_anonymous {
        reply.fail(turn, Status::Eaccess, "parameters are set by administrators, not anonymously");
        return Done::Answered;
    }
    let parameter = Parameter::parse(&request.frame);
    let Some(parameter) = parameter.filter(|asked| asked.group == PARAMETER_GROUP) else {
        reply.fail(turn, Status::Einval, NO_PARAMETER);
        return Done::Answered;
    };
    match set(connection, &parameter, turn) {
        Ok(()) => reply.done(turn),
        Err(context) => reply.fail(turn, Status::Einval, &context),
    }
    Done::Answered
}

const NO_PARAMETER: &str =
    "no such parameter; numbers of threads, max_size and parts of it can be set";

fn set(connection: &Connection, parameter: &Parameter<'_>, turn: &Turn<'_>) -> Result<(), String> {
    let Parameter { name, value, .. } = *parameter;
    if let Some((_, kind)) = THREAD_PARAMETERS.iter().find(|(known, _)| *known == name) {
        return set_threads(*kind, value, turn);
    }
    let bucket = connection.bucket.as_ref().ok_or("select a bucket first")?;
    if name == QUOTA_PARAMETER {
        let bytes = value.parse().map_err(|_| format!("{name} is a number of bytes"))?;
        return bucket.set_memory_quota(bytes).map_err(|error| error.to_string());
    }
    let known = MEMORY_PARAMETERS.iter().find(|(known, _)| *known == name);
    let (_, memory_parameter) = known.ok_or(NO_PARAMETER)?;
    let ratio = value.parse().map_err(|_| format!("{name} is a part between 0 and 1"))?;
    bucket.set_memory_ratio(*memory_parameter, ratio).map_err(|error| error.to_string())
}

fn set_threads(kind: TaskKind, value: &str, turn: &Turn<'_>) -> Result<(), String> {
    let setting: ThreadSetting = value.parse()?;
    let pool = &turn.shared.pool;
    let normal = setting.normal_threads(kind, platform::threads::available_cpus());
    let counts = ThreadCounts { normal, ..pool.threads(kind) };
    pool.set_threads(kind, counts)
        .map_err(|error| format!("a thread cannot be started: {error}"))?;
    tracing::info!(kind = kind.name(), threads = normal, "the number of threads was set");
    Ok(())
}
