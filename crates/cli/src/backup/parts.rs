//! The parts of a backup: each node of a cluster has what is active on it, and together they have
//! the bucket, or there is no backup.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context, ensure};
use platform::Clock;
use serde_json::Value;

use super::held_backup::{Catalogue, HeldBackup, Listed};
use super::manifest::BucketPart;
use super::map::BucketMap;
use super::watch::Watch;
use crate::node_port::NodePort;

/// How often a backup begins, while the map keeps changing.
const ATTEMPTS_MAX: u32 = 5;
/// Between two of them. Nodes let go of the parts of the one before meanwhile.
const PAUSE: Duration = Duration::from_secs(1);
/// Between two looks at whether the nodes that begin their parts still answer.
const LOOK: Duration = Duration::from_millis(250);
/// Why nothing is stored.
const NO_PART: &str = "a node that has vBuckets active gives no part, and nothing is stored";

/// All parts of a backup; the nodes hold them as long as this lives.
pub(super) struct HeldParts {
    pub(super) whole: Whole,
    held: Vec<HeldPart>,
    /// Of the nodes that hold them.
    watch: Watch,
}

/// What one node holds.
struct HeldPart {
    node: usize,
    port: NodePort,
    held: HeldBackup,
}

/// What all parts have together.
#[derive(Clone, Debug)]
pub(super) struct Whole {
    pub(super) bucket: BucketPart,
    /// The version of the node that has the first part.
    pub(super) version: String,
    /// The vBuckets that have files, in an order in which all nodes have work at a time.
    pub(super) jobs: Vec<Job>,
    pub(super) deleted: Vec<u16>,
    pub(super) empty: Vec<u16>,
    /// The newest manifest of scopes and collections.
    pub(super) collections: Option<Value>,
    /// The settings that nodes keep of the bucket.
    pub(super) settings: BTreeMap<String, String>,
    /// How far the moments of the files lie apart, at most.
    pub(super) cut: Duration,
}

/// A vBucket to be read.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// The index of the part that has it.
    pub(super) part: usize,
    pub(super) listed: Listed,
}

/// Why a backup is to begin anew: the nodes do not agree about who has what active.
type Unsettled = String;

impl HeldParts {
    /// Has each node hold what is active on it, by the map of the node at `port`. Nodes that are
    /// asked for what they have at hand are waited for as long as `patience`.
    ///
    /// # Errors
    /// A node cannot be reached or gives no part, or they do not settle on a map. Nothing is held.
    pub(super) fn begin(port: &NodePort, bucket: &str, patience: Duration) -> anyhow::Result<Self> {
        let mut attempts = 1;
        loop {
            let why = match begin_once(port, bucket, patience)? {
                Ok(held) => return Ok(held),
                Err(why) => why,
            };
            ensure!(
                attempts < ATTEMPTS_MAX,
                "{why}; this did not end in {ATTEMPTS_MAX} attempts, and nothing is stored: try \
                 again when the cluster's map stays as it is"
            );
            attempts += 1;
            platform::threads::pause(PAUSE);
        }
    }

    /// # Errors
    /// A node that holds a part does not answer any more.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        self.watch.check()
    }

    /// Who has each part, and what is in it.
    pub(super) fn parts(&self) -> Vec<(NodePort, Catalogue)> {
        self.held.iter().map(|part| (part.port.clone(), part.held.catalogue.clone())).collect()
    }
}

fn begin_once(
    port: &NodePort,
    bucket: &str,
    patience: Duration,
) -> anyhow::Result<Result<HeldParts, Unsettled>> {
    let map = BucketMap::ask(port, bucket, patience)?;
    if let Err(why) = check_nodes(port, &map, bucket, patience)? {
        return Ok(Err(why));
    }
    let clock = Clock::real();
    let began = clock.now();
    let owning = map.owning_nodes().into_iter();
    let ports = owning.map(|node| Ok((node, port.at(map.url(node)?.to_owned()))));
    let ports = ports.collect::<anyhow::Result<Vec<_>>>()?;
    let watch = Watch::begin(ports.iter().map(|(_, port)| port.clone()), bucket, patience)?;
    let held = match begin_parts(ports, bucket, &watch)? {
        Ok(held) => held,
        Err(why) => return Ok(Err(why)),
    };
    let took = clock.now().since(began);
    let parts: Vec<_> = held.iter().map(|part| (part.node, &part.held.catalogue)).collect();
    Ok(merge(&map, &parts, took)?.map(|whole| HeldParts { whole, held, watch }))
}

/// Whether each vBucket has a node, and the nodes have this very map. One that hangs is heard of
/// here, and not after what a backup may take to begin.
fn check_nodes(
    port: &NodePort,
    map: &BucketMap,
    bucket: &str,
    patience: Duration,
) -> anyhow::Result<Result<(), Unsettled>> {
    if let Some(vbid) = (0..map.vbucket_count()).find(|vbid| map.owner(*vbid).is_none()) {
        return Ok(Err(format!("the map has vBucket {vbid} active on no node")));
    }
    let owning = map.owning_nodes();
    for node in 0..map.node_count() {
        let ask = |url: &str| BucketMap::ask(&port.at(url.to_owned()), bucket, patience);
        match map.url(node).and_then(ask) {
            Ok(other) if other.revision != map.revision => {
                let (ours, theirs, url) = (map.revision, other.revision, map.url(node)?);
                let first = &port.url;
                let why = format!("{first} has revision {ours} of the map, and {url} has {theirs}");
                return Ok(Err(why));
            }
            Err(error) if owning.contains(&node) => {
                return Err(error.context(NO_PART));
            }
            // Nothing is missing without one that has nothing active.
            Ok(_) | Err(_) => {}
        }
    }
    Ok(Ok(()))
}

/// Has all nodes hold their parts at a time, so that their moments lie close together.
fn begin_parts(
    ports: Vec<(usize, NodePort)>,
    bucket: &str,
    watch: &Watch,
) -> anyhow::Result<Result<Vec<HeldPart>, Unsettled>> {
    let (sender, begun) = mpsc::channel();
    for (node, port) in ports {
        let (sender, bucket) = (sender.clone(), bucket.to_owned());
        let begin = move || {
            let held = HeldBackup::begin(&port, &bucket);
            let url = port.url.clone();
            let part = held.map(|held| held.map(|held| HeldPart { node, port, held }));
            let part = part.with_context(|| format!("the part of {url}"));
            // Nobody waits for it any more: it is let go of here.
            drop(sender.send(part));
        };
        platform::threads::spawn("BackupBegin", begin).context("no thread can be started")?;
    }
    // Only threads have senders from here on.
    drop(sender);
    let (mut parts, mut unsettled) = (Vec::new(), None);
    loop {
        match begun.recv_timeout(LOOK) {
            Ok(part) => match part? {
                Ok(part) => parts.push(part),
                // The others are waited for: a node holds few parts at a time, and the next attempt
                // wants one, too.
                Err(why) => unsettled = Some(why),
            },
            // One may take long to bring its files up to date, as long as it answers.
            Err(RecvTimeoutError::Timeout) => watch.check().context(NO_PART)?,
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    parts.sort_by_key(|part| part.node);
    Ok(unsettled.map_or(Ok(parts), Err))
}

/// Puts the catalogues of nodes together, which were begun within `took`.
///
/// # Errors
/// They never will be one backup.
fn merge(
    map: &BucketMap,
    parts: &[(usize, &Catalogue)],
    took: Duration,
) -> anyhow::Result<Result<Whole, Unsettled>> {
    let (_, first) = parts.first().context("nobody has a part")?;
    for (node, catalogue) in parts {
        check_kind(map, *node, first, catalogue)?;
        if catalogue.revision.is_some_and(|revision| revision != map.revision) {
            return Ok(Err(format!("the map has changed on {}", map.url(*node)?)));
        }
    }
    if let Err(why) = check_owners(map, parts) {
        return Ok(Err(why));
    }
    let all = |of: fn(&Catalogue) -> &Vec<u16>| {
        let mut vbids: Vec<u16> = parts.iter().flat_map(|(_, part)| of(part)).copied().collect();
        vbids.sort_unstable();
        vbids
    };
    let own_cut = Duration::try_from_secs_f64(first.cut_seconds).unwrap_or_default();
    Ok(Ok(Whole {
        bucket: first.bucket.clone(),
        version: first.node.clone(),
        jobs: jobs_of(parts),
        deleted: all(|part| &part.deleted),
        empty: all(|part| &part.empty),
        collections: newest_collections(parts),
        settings: settings_of(parts),
        cut: if parts.len() == 1 { own_cut } else { took },
    }))
}

/// The settings that are kept of the bucket: all nodes have the same, but those of older versions
/// do not tell them.
fn settings_of(parts: &[(usize, &Catalogue)]) -> BTreeMap<String, String> {
    let told = parts.iter().map(|(_, part)| &part.settings).find(|settings| !settings.is_empty());
    told.cloned().unwrap_or_default()
}

/// Whether a part is one of this bucket, and of what is active alone.
fn check_kind(
    map: &BucketMap,
    node: usize,
    first: &Catalogue,
    part: &Catalogue,
) -> anyhow::Result<()> {
    let url = map.url(node)?;
    ensure!(
        map.node_count() == 1 || part.revision.is_some(),
        "{url} is of an older version ({}), which does not say what is active on it: upgrade it",
        part.node
    );
    let (one, other) = (&first.bucket, &part.bucket);
    let is_alike = usize::from(other.vbucket_count) == map.vbucket_count()
        && other.bucket_type == one.bucket_type
        && other.conflict_resolution == one.conflict_resolution;
    ensure!(is_alike, "the bucket is another one on {url}");
    Ok(())
}

/// Each vBucket is in one part, which is that of the node where the map has it active.
fn check_owners(map: &BucketMap, parts: &[(usize, &Catalogue)]) -> Result<(), Unsettled> {
    let mut found: Vec<Option<usize>> = vec![None; map.vbucket_count()];
    for (node, part) in parts {
        let stored = part.vbuckets.iter().map(|listed| listed.vbid);
        for vbid in stored.chain(part.deleted.iter().chain(&part.empty).copied()) {
            let place = found.get_mut(usize::from(vbid));
            let place = place.ok_or_else(|| format!("the bucket has no vBucket {vbid}"))?;
            if place.replace(*node).is_some() {
                return Err(format!("vBucket {vbid} is active on two nodes"));
            }
        }
    }
    for (vbid, node) in found.iter().enumerate() {
        if node.is_none() {
            return Err(format!("vBucket {vbid} is active on no node"));
        }
        if *node != map.owner(vbid) {
            return Err(format!("vBucket {vbid} is not active where the map says"));
        }
    }
    Ok(())
}

fn jobs_of(parts: &[(usize, &Catalogue)]) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (part, (_, catalogue)) in parts.iter().enumerate() {
        let listed = catalogue.vbuckets.iter().cloned().enumerate();
        jobs.extend(listed.map(|(rank, listed)| (rank, Job { part, listed })));
    }
    // By turns, and not node after node.
    jobs.sort_by_key(|(rank, job)| (*rank, job.part));
    jobs.into_iter().map(|(_, job)| job).collect()
}

fn newest_collections(parts: &[(usize, &Catalogue)]) -> Option<Value> {
    let uid_of = |manifest: &&Value| {
        let uid = manifest.get("uid").and_then(Value::as_str)?;
        u64::from_str_radix(uid, 16).ok()
    };
    let manifests = parts.iter().filter_map(|(_, part)| part.collections.as_ref());
    manifests.max_by_key(uid_of).cloned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::map::tests::{map, revision};
    use super::super::watch::tests::{PATIENCE, node};
    use super::*;

    const TOOK: Duration = Duration::from_secs(3);

    fn part(stored: &[u16], deleted: &[u16], empty: &[u16]) -> Catalogue {
        let listed = |vbid: &u16| json!({"vbid": vbid, "state": "s", "bytes": 1, "late": false});
        let catalogue = json!({
            "backup": "b",
            "bucket": {"name": "n", "uuid": "u", "type": "couchbase", "vbuckets": 4},
            "node": "1.0",
            "rev": 7, "revEpoch": 1,
            "cut_seconds": 0.5,
            "vbuckets": stored.iter().map(listed).collect::<Vec<_>>(),
            "deleted": deleted,
            "empty": empty,
            "elsewhere": [],
            "collections": {"uid": "a"},
        });
        serde_json::from_value(catalogue).unwrap()
    }

    fn merged(parts: &[&Catalogue]) -> anyhow::Result<Result<Whole, Unsettled>> {
        let map = map(&[&[0, 1], &[0, 1], &[1, 0], &[1, 0]], "http://h:1");
        let parts: Vec<_> = parts.iter().enumerate().map(|(node, part)| (node, *part)).collect();
        merge(&map, &parts, TOOK)
    }

    #[test]
    fn the_parts_of_all_nodes_are_the_bucket() {
        let other = Catalogue { collections: Some(json!({"uid": "10"})), ..part(&[2], &[], &[3]) };
        let whole = merged(&[&part(&[0, 1], &[], &[]), &other]).unwrap().unwrap();
        let jobs: Vec<_> = whole.jobs.iter().map(|job| (job.part, job.listed.vbid)).collect();
        assert_eq!(jobs, [(0, 0), (1, 2), (0, 1)]);
        assert_eq!((whole.deleted, whole.empty, whole.cut), (vec![], vec![3], TOOK));
        assert_eq!(whole.collections, Some(json!({"uid": "10"})));
    }

    #[test]
    fn what_is_active_on_no_node_or_on_two_or_elsewhere_is_no_backup() {
        let first = part(&[0, 1], &[], &[]);
        for (other, word) in [
            (part(&[2], &[], &[]), "vBucket 3 is active on no node"),
            (part(&[1, 2, 3], &[], &[]), "vBucket 1 is active on two nodes"),
            (part(&[2, 3], &[], &[3]), "vBucket 3 is active on two nodes"),
            (part(&[2, 3], &[4], &[]), "no vBucket 4"),
            (Catalogue { revision: Some(revision(8)), ..part(&[2, 3], &[], &[]) }, "has changed"),
        ] {
            let why = merged(&[&first, &other]).unwrap().unwrap_err();
            assert!(why.contains(word), "{why}");
        }
        let swapped = merged(&[&part(&[2, 3], &[], &[]), &part(&[0, 1], &[], &[])]);
        assert!(swapped.unwrap().unwrap_err().contains("not active where the map says"));
        merged(&[]).unwrap_err();
    }

    #[test]
    fn a_node_that_hangs_while_it_begins_its_part_is_heard_of() {
        let port = node(0);
        let watch = Watch::begin([port.clone()], "b", PATIENCE).unwrap();
        let begun = begin_parts(vec![(0, port)], "b", &watch);
        let Err(why) = begun else { panic!("a node that hangs has no part") };
        let why = format!("{why:#}");
        assert!(why.contains(NO_PART) && why.contains("does not answer any more"), "{why}");
    }

    #[test]
    fn nodes_that_do_not_say_what_is_active_make_a_backup_of_a_node_alone() {
        let old = Catalogue { revision: None, ..part(&[0, 1, 2, 3], &[], &[]) };
        assert!(merged(&[&old]).unwrap_err().to_string().contains("upgrade"));
        let other_bucket = BucketPart { conflict_resolution: "lww".to_owned(), ..old.bucket };
        let other = Catalogue { bucket: other_bucket, ..part(&[2, 3], &[], &[]) };
        assert!(merged(&[&part(&[0, 1], &[], &[]), &other]).is_err());
    }
}
