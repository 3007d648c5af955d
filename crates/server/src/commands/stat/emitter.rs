//! What all groups need to answer.

use bucket::{Bucket, Refused};
use document::{Item, Vbid};
use protocol::text::answer::statistic;

use crate::connection::{Content, Payload, Reply, Sight, Turn};
use crate::parameters::{PARAMETERS, ShownIn};
use crate::statistic::Statistic;

/// How a statistic is answered.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    /// A response of the binary protocol.
    Response(Reply),
    /// A line of the text protocol.
    Line,
}

/// Who is told statistics.
pub(crate) struct Listener {
    pub(crate) form: Form,
    /// Of which scopes and collections it may hear.
    pub(crate) sight: Sight,
    /// It came by the memcached port.
    pub(crate) is_anonymous: bool,
}

/// Where a group's statistics go.
pub(crate) struct Emitter<'a, 'b> {
    pub(super) listener: Listener,
    pub(super) turn: &'a mut Turn<'b>,
}

impl Emitter<'_, '_> {
    /// Answers one statistic.
    pub(super) fn emit(&mut self, name: &str, value: impl std::fmt::Display) {
        let value = value.to_string();
        let reply = match self.listener.form {
            Form::Response(reply) => reply,
            Form::Line => return statistic(&mut self.turn.output.buffer, name, &value),
        };
        let content = Content {
            key: name.as_bytes(),
            payload: Payload::Bytes(value.as_bytes()),
            ..Content::default()
        };
        reply.send(self.turn, content);
    }
}

/// A document of which the file's version is asked for.
pub(crate) struct Checked {
    pub(crate) bucket: Bucket,
    pub(crate) vbid: Vbid,
    pub(crate) item: Item,
    /// What is told of it whatever the file has.
    pub(crate) told: Vec<(&'static str, String)>,
}

/// Why a group has nothing to say.
pub(crate) enum NoGroup {
    /// There is none of this name.
    Unknown,
    /// It tells of a bucket, and none is selected.
    NoBucket,
    /// It does not know the argument.
    BadArgument,
    /// The bucket has no such collection or scope.
    NotInManifest,
    /// The vBucket is not here.
    NoSuchVbucket,
    /// It has more to say than one answer may: its argument asks for a part.
    TooMuch,
    /// The bucket does not say, or not yet.
    Refused(Refused),
    /// It waits for the file.
    Waits,
    /// What the file has of a document is to be held against this.
    InFile(Box<Checked>),
}

/// The statistics of a table that a group shows.
pub(super) fn statistics<S>(
    emitter: &mut Emitter<'_, '_>,
    group: &'static str,
    table: &[Statistic<S>],
    of: &S,
) {
    for statistic in table {
        for name in statistic.names_in(group) {
            emitter.emit(name, (statistic.read)(of));
        }
    }
}

/// The parameters that a group shows, of those that the bucket has.
pub(super) fn parameters(emitter: &mut Emitter<'_, '_>, bucket: &Bucket, group: ShownIn) {
    for parameter in PARAMETERS.iter().filter(|parameter| parameter.is_shown_in(group, bucket)) {
        if let Some(value) = parameter.read(bucket) {
            emitter.emit(&format!("ep_{}", parameter.name), value);
        }
    }
}

/// The vBucket that an argument names; `None` for all.
pub(super) fn vbucket_argument(argument: &str) -> Result<Option<Vbid>, NoGroup> {
    match argument {
        "" => Ok(None),
        number => number.parse().map(|vbid| Some(Vbid(vbid))).map_err(|_| NoGroup::BadArgument),
    }
}

/// The id of a collection or scope: hexadecimal, as the original tells it, with `0x` before it.
pub(super) fn id_argument(argument: &str) -> Result<u32, NoGroup> {
    let digits = argument.strip_prefix("0x").unwrap_or(argument);
    // A sign is no digit.
    let has_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let id = u32::from_str_radix(digits, 16).ok().filter(|_| has_digits);
    id.ok_or(NoGroup::BadArgument)
}
