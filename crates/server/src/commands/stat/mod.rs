//! STAT: one response a statistic, an empty one behind the last. Source: protocol specification,
//! section 17.

mod bucket_groups;
mod classic;
mod clustermap;
mod compaction;
mod damage;
mod dcp_groups;
mod durability_groups;
mod general;
mod journal;
mod task_groups;
mod timing_groups;
mod vbucket_groups;

use bucket::{Bucket, Refused};
use document::Vbid;
use protocol::Status;
use protocol::request::Stat;

use super::refusals::refuse;
use crate::connection::{Connection, Content, Done, Payload, Reply, Request, Turn};

/// Where a group's statistics go.
pub(super) struct Emitter<'a, 'b> {
    reply: Reply,
    turn: &'a mut Turn<'b>,
    pub(super) bucket: Bucket,
}

impl Emitter<'_, '_> {
    /// Answers one statistic.
    fn emit(&mut self, name: &str, value: impl std::fmt::Display) {
        let value = value.to_string();
        let content = Content {
            key: name.as_bytes(),
            payload: Payload::Bytes(value.as_bytes()),
            ..Content::default()
        };
        self.reply.send(self.turn, content);
    }
}

/// Why a group has nothing to say.
enum NoGroup {
    /// It does not know the argument.
    BadArgument,
    /// The vBucket is not here.
    NoSuchVbucket,
    /// The bucket does not say, or not yet.
    Refused(Refused),
}

type Group = fn(&mut Emitter<'_, '_>, argument: &str) -> Result<(), NoGroup>;

/// All groups.
const GROUPS: [(&str, Group); 40] = [
    ("", general::all),
    ("checkpoint", vbucket_groups::checkpoint),
    ("clocks", general::clocks),
    ("clustermap", clustermap::clustermap),
    ("collections", bucket_groups::collections),
    ("compaction", compaction::compaction),
    ("config", bucket_groups::config),
    ("connections", general::connections),
    ("damaged-vbuckets", damage::damaged_vbuckets),
    ("dcp", dcp_groups::dcp),
    ("dcp-vbtakeover", dcp_groups::takeover),
    ("dcpagg", dcp_groups::dcp_aggregated),
    ("diskinfo", bucket_groups::diskinfo),
    ("durability-monitor", durability_groups::monitors),
    ("failovers", vbucket_groups::failovers),
    ("hash", vbucket_groups::hash),
    ("info", general::info),
    ("items", classic::items),
    ("journal", journal::journal),
    ("key", vbucket_groups::key),
    ("kvstore", bucket_groups::kvstore),
    ("kvtimings", timing_groups::kvtimings),
    ("memory", bucket_groups::memory),
    ("prev-vbucket", vbucket_groups::states),
    ("reset", classic::reset),
    ("runtimes", task_groups::runtimes),
    ("scheduler", task_groups::scheduler),
    ("settings", general::settings),
    ("sizes", classic::sizes),
    ("slabs", classic::slabs),
    ("tasks", task_groups::tasks),
    ("tasks-all", task_groups::tasks_all),
    ("timings", timing_groups::timings),
    ("uuid", general::uuid),
    ("vbucket", vbucket_groups::states),
    ("vbucket-details", vbucket_groups::details),
    ("vbucket-durability-state", durability_groups::states),
    ("vbucket-seqno", vbucket_groups::seqnos),
    ("warmup", bucket_groups::warmup),
    ("workload", task_groups::workload),
];

/// STAT.
pub(super) fn stat(
    connection: &mut Connection,
    request: &Request<'_>,
    bucket: &Bucket,
    turn: &mut Turn<'_>,
) -> Done {
    let reply = request.reply(connection);
    let asked = Stat::parse(&request.frame);
    let group = asked.and_then(|asked| {
        let group = GROUPS.iter().find(|(name, _)| *name == asked.group)?;
        Some((group.1, asked.argument))
    });
    let Some((group, argument)) = group else {
        reply.fail(turn, Status::KeyEnoent, &known_groups());
        return Done::Answered;
    };
    match group(&mut Emitter { reply, turn, bucket: bucket.clone() }, argument) {
        Ok(()) => reply.done(turn),
        Err(NoGroup::BadArgument) => {
            reply.fail(turn, Status::Einval, "the group does not know this argument");
        }
        Err(NoGroup::NoSuchVbucket) => {
            reply.fail(turn, Status::NotMyVbucket, "the vBucket is not on this node");
        }
        Err(NoGroup::Refused(refused)) => return refuse(connection, request, refused, turn),
    }
    Done::Answered
}

fn known_groups() -> String {
    let names: Vec<&str> = GROUPS.iter().map(|(name, _)| *name).collect();
    format!("there is no such group; there are:{}", names.join(" "))
}

/// The vBucket that an argument names; `None` for all.
fn vbucket_argument(argument: &str) -> Result<Option<Vbid>, NoGroup> {
    match argument {
        "" => Ok(None),
        number => number.parse().map(|vbid| Some(Vbid(vbid))).map_err(|_| NoGroup::BadArgument),
    }
}
