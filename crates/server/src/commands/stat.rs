//! STAT: one response a statistic, an empty one behind the last. Source:
//! docs/specification/protocol.md, section 17.

mod bucket_groups;
mod classic;
mod clustermap;
mod collection_groups;
mod compaction;
mod damage;
mod dcp_groups;
mod durability_groups;
mod emitter;
mod general;
mod journal;
mod range_scans;
mod slow_groups;
mod task_groups;
mod timing_groups;
mod vbucket_groups;

pub(super) use timing_groups::coarser;

use std::sync::Arc;

use auth::{Privilege, PrivilegeSet};
use bucket::Refused;
use document::CollectionId;
use protocol::Status;
use protocol::request::Stat;

use super::refusals::refuse;
use crate::buckets::BucketPart;
use crate::connection::{Connection, Done, Request, Sight, Turn};
use crate::privileges::{Need, NeededIn};
use emitter::Emitter;

pub(super) use emitter::{Form, NoGroup};

type Group = fn(&mut Emitter<'_, '_>, argument: &str) -> Result<(), NoGroup>;

/// All groups.
const GROUPS: [(&str, Group); 45] = [
    ("", general::all),
    ("checkpoint", vbucket_groups::checkpoint),
    ("clocks", general::clocks),
    ("clustermap", clustermap::clustermap),
    ("collections", collection_groups::collections),
    ("collections-details", collection_groups::details),
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
    ("hot-keys", slow_groups::hot_keys),
    ("info", general::info),
    ("items", classic::items),
    ("journal", journal::journal),
    ("key", vbucket_groups::key),
    ("kvstore", bucket_groups::kvstore),
    ("kvtimings", timing_groups::kvtimings),
    ("memory", bucket_groups::memory),
    ("prev-vbucket", vbucket_groups::states),
    ("range-scans", range_scans::range_scans),
    ("reset", classic::reset),
    ("runtimes", task_groups::runtimes),
    ("scheduler", task_groups::scheduler),
    ("scopes", collection_groups::scopes),
    ("settings", general::settings),
    ("sizes", classic::sizes),
    ("slabs", classic::slabs),
    ("slow-operations", slow_groups::slow_operations),
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

/// Groups that tell of the node and of everybody.
const PRIVILEGED_GROUPS: [&str; 5] =
    ["hot-keys", "reset", "settings", "slow-operations", "tasks-all"];

/// What is told of [`NoGroup::TooMuch`].
pub(super) const TOO_MUCH: &str = "there is too much to be told at once; ask for one vBucket";

/// What is told of [`NoGroup::NotInManifest`].
pub(super) const NOT_IN_MANIFEST: &str = "the bucket has no such collection or scope";

/// STAT.
pub(super) fn stat(
    connection: &mut Connection,
    request: &Request<'_>,
    part: &Arc<BucketPart>,
    turn: &mut Turn<'_>,
) -> Done {
    let reply = request.reply(connection);
    let told = match Stat::parse(&request.frame) {
        Some(Stat { group, argument, .. }) => {
            if !may_hear(connection, request, group, turn) {
                return Done::Answered;
            }
            let sight = connection.sight();
            tell(Form::Response(reply), sight, part, group, argument, turn)
        }
        None => Err(NoGroup::Unknown),
    };
    match told {
        Ok(()) => reply.done(turn),
        Err(NoGroup::Unknown) => reply.fail(turn, Status::KeyEnoent, &known_groups()),
        Err(NoGroup::BadArgument) => {
            reply.fail(turn, Status::Einval, "the group does not know this argument");
        }
        Err(NoGroup::NotInManifest) => reply.fail(turn, Status::KeyEnoent, NOT_IN_MANIFEST),
        Err(NoGroup::NoSuchVbucket) => {
            return refuse(connection, request, Refused::NotMyVbucket, turn);
        }
        Err(NoGroup::TooMuch) => reply.fail(turn, Status::E2big, TOO_MUCH),
        Err(NoGroup::Waits) => return Done::Parked,
        Err(NoGroup::Refused(refused)) => return refuse(connection, request, refused, turn),
    }
    Done::Answered
}

/// Whether the user may hear of a group; answered when it may not.
fn may_hear(
    connection: &mut Connection,
    request: &Request<'_>,
    group: &str,
    turn: &mut Turn<'_>,
) -> bool {
    if group == "key" {
        return connection.has_in(CollectionId::DEFAULT, Privilege::Read, request, turn);
    }
    if !PRIVILEGED_GROUPS.contains(&group) || connection.privileges().contains(Privilege::Stats) {
        return true;
    }
    let all = PrivilegeSet::of(&[Privilege::Stats]);
    let need = Need { place: NeededIn::Bucket, all, one: PrivilegeSet::NONE };
    connection.refuse_privilege(&need, request, turn);
    false
}

/// Answers the statistics of a group, one after the other.
pub(super) fn tell(
    form: Form,
    sight: Sight,
    part: &Arc<BucketPart>,
    group: &str,
    argument: &str,
    turn: &mut Turn<'_>,
) -> Result<(), NoGroup> {
    let Some((_, group)) = GROUPS.iter().find(|(name, _)| *name == group) else {
        return Err(NoGroup::Unknown);
    };
    group(&mut Emitter { form, turn, part: Arc::clone(part), sight }, argument)
}

fn known_groups() -> String {
    let names: Vec<&str> = GROUPS.iter().map(|(name, _)| *name).collect();
    format!("there is no such group; there are:{}", names.join(" "))
}
