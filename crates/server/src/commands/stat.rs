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
mod key_groups;
mod range_scans;
mod slow_groups;
mod task_groups;
mod timing_groups;
mod vbucket_groups;

pub(super) use timing_groups::coarser;

use auth::{Privilege, PrivilegeSet};
use bucket::Refused;
use protocol::Status;
use protocol::request::Stat;

use super::range_scan::in_background;
use super::refusals::refuse;
use crate::buckets::BucketPart;
use crate::connection::{Connection, Done, Reply, Request, Turn};
use crate::privileges::{Need, NeededIn};
use emitter::Emitter;

pub(super) use emitter::{Form, Listener, NoGroup};

/// What a group tells of the node; of the bucket, too, if one is selected.
type OfNode = fn(&mut Emitter<'_, '_>, Option<&BucketPart>);

/// What a group tells of the bucket that is selected.
type OfBucket = fn(&mut Emitter<'_, '_>, &BucketPart, argument: &str) -> Result<(), NoGroup>;

/// Groups that need no bucket.
const NODE_GROUPS: [(&str, OfNode); 4] = [
    ("clocks", general::clocks),
    ("connections", general::connections),
    ("settings", general::settings),
    ("tasks-all", task_groups::tasks_all),
];

/// All others.
const BUCKET_GROUPS: [(&str, OfBucket); 47] = [
    ("", general::all),
    ("checkpoint", vbucket_groups::checkpoint),
    ("clustermap", clustermap::clustermap),
    ("collections", collection_groups::collections),
    ("collections-byid", collection_groups::collections_by_id),
    ("collections-details", collection_groups::details),
    ("compaction", compaction::compaction),
    ("config", bucket_groups::config),
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
    ("key", key_groups::key),
    ("key-byid", key_groups::key_by_id),
    ("kvstore", bucket_groups::kvstore),
    ("kvtimings", timing_groups::kvtimings),
    ("memory", bucket_groups::memory),
    ("prev-vbucket", vbucket_groups::states),
    ("range-scans", range_scans::range_scans),
    ("reset", classic::reset),
    ("runtimes", task_groups::runtimes),
    ("scheduler", task_groups::scheduler),
    ("scopes", collection_groups::scopes),
    ("scopes-byid", collection_groups::scopes_by_id),
    ("scopes-details", collection_groups::scopes_details),
    ("sizes", classic::sizes),
    ("slabs", classic::slabs),
    ("slow-operations", slow_groups::slow_operations),
    ("tasks", task_groups::tasks),
    ("timings", timing_groups::timings),
    ("uuid", general::uuid),
    ("vbucket", vbucket_groups::states),
    ("vbucket-details", vbucket_groups::details),
    ("vbucket-durability-state", durability_groups::states),
    ("vbucket-seqno", vbucket_groups::seqnos),
    ("vkey", key_groups::checked_key),
    ("vkey-byid", key_groups::checked_key_by_id),
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
    turn: &mut Turn<'_>,
) -> Done {
    let reply = request.reply(connection);
    let part = connection.bucket.clone();
    let told = match Stat::parse(&request.frame) {
        Some(Stat { group, argument, .. }) => {
            if !may_hear(connection, request, (group, argument), turn) {
                return Done::Answered;
            }
            tell(listener(connection, reply), part.as_deref(), (group, argument), turn)
        }
        None => Err(NoGroup::Unknown),
    };
    match told {
        Ok(()) => reply.done(turn),
        Err(nothing) => return say_why(connection, request, nothing, turn),
    }
    Done::Answered
}

fn listener(connection: &Connection, reply: Reply) -> Listener {
    let (sight, is_anonymous) = (connection.sight(), connection.is_anonymous);
    Listener { form: Form::Response(reply), sight, is_anonymous }
}

/// A document has been held against its file.
pub(super) fn checked(
    connection: &Connection,
    request: &Request<'_>,
    told: Vec<(&'static str, String)>,
    turn: &mut Turn<'_>,
) {
    let reply = request.reply(connection);
    let mut emitter = Emitter { listener: listener(connection, reply), turn };
    for (name, value) in told {
        emitter.emit(name, value);
    }
    reply.done(turn);
}

/// Answers that a group has nothing to say, or waits with it.
fn say_why(
    connection: &mut Connection,
    request: &Request<'_>,
    nothing: NoGroup,
    turn: &mut Turn<'_>,
) -> Done {
    let reply = request.reply(connection);
    match nothing {
        NoGroup::Unknown => reply.fail(turn, Status::KeyEnoent, &known_groups()),
        NoGroup::NoBucket => reply.fail(turn, Status::NoBucket, "select a bucket first"),
        NoGroup::BadArgument => {
            reply.fail(turn, Status::Einval, "the group does not know this argument");
        }
        NoGroup::NotInManifest => reply.fail(turn, Status::KeyEnoent, NOT_IN_MANIFEST),
        NoGroup::NoSuchVbucket => {
            return refuse(connection, request, Refused::NotMyVbucket, turn);
        }
        NoGroup::TooMuch => reply.fail(turn, Status::E2big, TOO_MUCH),
        NoGroup::Waits => return Done::Parked,
        NoGroup::InFile(document) => {
            let bucket = document.bucket.clone();
            let work = move || key_groups::check(*document);
            return in_background(connection, request, (&bucket, &key_groups::CHECK), turn, work);
        }
        NoGroup::Refused(refused) => return refuse(connection, request, refused, turn),
    }
    Done::Answered
}

/// Whether the user may hear of a group; answered when it may not.
fn may_hear(
    connection: &mut Connection,
    request: &Request<'_>,
    (group, argument): (&str, &str),
    turn: &mut Turn<'_>,
) -> bool {
    if let Some(collection) = key_groups::collection_of(group, argument) {
        // Without a bucket the group says so.
        return connection.bucket.is_none()
            || connection.has_in(collection, Privilege::Read, request, turn);
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
    listener: Listener,
    part: Option<&BucketPart>,
    (group, argument): (&str, &str),
    turn: &mut Turn<'_>,
) -> Result<(), NoGroup> {
    let mut emitter = Emitter { listener, turn };
    if let Some(tell) = of_name(&NODE_GROUPS, group) {
        tell(&mut emitter, part);
        return Ok(());
    }
    let part = part.ok_or(NoGroup::NoBucket)?;
    let tell = of_name(&BUCKET_GROUPS, group).ok_or(NoGroup::Unknown)?;
    tell(&mut emitter, part, argument)
}

fn of_name<T: Copy>(groups: &[(&str, T)], name: &str) -> Option<T> {
    groups.iter().find(|(known, _)| *known == name).map(|(_, group)| *group)
}

fn known_groups() -> String {
    let of_node = NODE_GROUPS.iter().map(|(name, _)| *name);
    let of_bucket = BUCKET_GROUPS.iter().map(|(name, _)| *name);
    let mut names: Vec<&str> = of_bucket.chain(of_node).collect();
    names.sort_unstable();
    format!("there is no such group; there are:{}", names.join(" "))
}
