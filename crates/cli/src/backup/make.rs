//! Making a backup.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use platform::{Clock, Files};

use super::BackupArguments;
use super::checked::{Checked, check};
use super::crew::{self, Moved};
use super::dates;
use super::held_backup::{Catalogue, Listed};
use super::manifest::{self, FORMAT, Manifest, VbucketPart};
use super::parts::{HeldParts, Job};
use super::spool::{SpoolFile, Written, remove_if_there};
use super::target::{Object, Target};
use crate::node_port::NodePort;

/// What a backup came to.
pub(super) struct Made {
    pub(super) manifest: Manifest,
    /// vBuckets that an interrupted run had stored already.
    pub(super) reused: usize,
    pub(super) seconds: f64,
}

/// What the threads share.
struct Work {
    parts: Vec<(NodePort, Catalogue)>,
    jobs: Vec<Job>,
    target: Arc<dyn Target>,
    /// The backup's name.
    name: String,
    /// What an interrupted run has stored.
    stored: BTreeMap<u16, Stored>,
    moved: Moved,
}

/// An object that is there.
#[derive(Clone, Debug)]
struct Stored {
    object: String,
    state: String,
    sha256: String,
}

/// Backs a bucket up.
pub(super) fn make(
    arguments: &BackupArguments,
    files: Arc<dyn Files>,
    clock: &Clock,
) -> anyhow::Result<Made> {
    let target = arguments.target.open(files)?;
    let (node, bucket) = NodePort::find(&arguments.server, arguments.management.as_deref())?;
    let began = (clock.now(), clock.wall_time());
    // Before the node has work: a target that takes nothing says so here.
    drop(target.spool_path("probe.part")?);
    let held = HeldParts::begin(&node, &bucket, arguments.server.time_to_wait()?)?;
    let (whole, parts) = (held.whole.clone(), held.parts());
    let (name, there) = choose_name(arguments, &*target, &bucket, began.1.seconds())?;
    let stored = there.iter().filter_map(Stored::parse).collect();
    let bytes_expected = whole.jobs.iter().map(|job| job.listed.bytes).sum();
    let nodes = parts.iter().map(|(port, _)| port.url.clone()).collect();
    let (moved, jobs) = (Moved::default(), whole.jobs);
    let job_count = jobs.len();
    let work = Work { parts, jobs, target, name, stored, moved: moved.clone() };
    let (name, target) = (work.name.clone(), Arc::clone(&work.target));
    let job = move |index| work.back_up(index);
    let check = || held.check();
    let done = crew::run(job_count, arguments.parallel, &moved, bytes_expected, check, job);
    let done = done.with_context(|| {
        format!(
            "the backup {name} is not complete, and cannot be restored; run the same command again \
             to go on with it"
        )
    })?;
    let (mut vbuckets, is_reused): (Vec<_>, Vec<_>) = done.into_iter().unzip();
    vbuckets.sort_unstable_by_key(|vbucket: &VbucketPart| vbucket.vbid);
    let manifest = Manifest {
        format: FORMAT,
        name,
        bucket: whole.bucket,
        node: whole.version,
        nodes,
        began_at: u64::from(began.1.seconds()),
        ended_at: u64::from(clock.wall_time().seconds()),
        cut_milliseconds: u64::try_from(whole.cut.as_millis()).unwrap_or(u64::MAX),
        vbuckets,
        deleted: whole.deleted,
        empty: whole.empty,
        collections: whole.collections,
        settings: whole.settings,
    };
    manifest.check().context("the nodes do not say what became of each vBucket")?;
    manifest.put(&*target).context("the backup is not complete: its manifest is not stored")?;
    remove_left_over(&*target, &manifest, &there);
    let seconds = clock.now().since(began.0).as_secs_f64();
    Ok(Made { manifest, reused: is_reused.iter().filter(|is| **is).count(), seconds })
}

/// The name of the new backup, and what is stored under it: the name that the user says, or that of
/// an interrupted one of this bucket, or a new one.
fn choose_name(
    arguments: &BackupArguments,
    target: &dyn Target,
    bucket: &str,
    now_seconds: u32,
) -> anyhow::Result<(String, Vec<Object>)> {
    if let Some(name) = &arguments.name {
        ensure!(is_name(name), "--name is of letters, digits, '.', '_' and '-'");
        let there = target.list(&format!("{name}/"))?;
        let manifest = manifest::object_name(name);
        if there.iter().any(|object| object.name == manifest) {
            bail!("there is a backup {name} already; give another --name");
        }
        return Ok((name.clone(), there));
    }
    let prefix = format!("{bucket}-");
    let mut by_name: BTreeMap<String, Vec<Object>> = BTreeMap::new();
    for object in target.list(&prefix)? {
        if let Some((name, _)) = object.name.split_once('/') {
            by_name.entry(name.to_owned()).or_default().push(object);
        }
    }
    let interrupted = by_name.into_iter().rev().find(|(name, there)| {
        let manifest = manifest::object_name(name);
        dates::is_compact(&name[prefix.len()..])
            && there.iter().all(|object| object.name != manifest)
    });
    let fresh = || (format!("{prefix}{}", dates::compact(u64::from(now_seconds))), Vec::new());
    Ok(interrupted.unwrap_or_else(fresh))
}

fn is_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !name.is_empty() && !name.starts_with('.') && name.bytes().all(is_part)
}

/// What an interrupted run has stored, and this one has not used. What cannot be removed now stays
/// where nothing refers to it.
fn remove_left_over(target: &dyn Target, manifest: &Manifest, there: &[Object]) {
    for object in there {
        let used = |part: &VbucketPart| object.name == format!("{}/{}", manifest.name, part.object);
        if Stored::parse(object).is_some() && !manifest.vbuckets.iter().any(used) {
            // What stays is in nobody's way: a restore fetches what the manifest names.
            drop(target.delete(&object.name));
        }
    }
}

impl Stored {
    /// `<backup>/<vbid>.<state>.<sha256>.couch`
    fn parse(object: &Object) -> Option<(u16, Self)> {
        let (_, object) = object.name.split_once('/')?;
        let mut parts = object.strip_suffix(".couch")?.split('.');
        let (vbid, state, sha256) = (parts.next()?, parts.next()?, parts.next()?);
        let stored =
            Self { object: object.to_owned(), state: state.to_owned(), sha256: sha256.to_owned() };
        parts.next().is_none().then_some((vbid.parse().ok()?, stored))
    }
}

impl Work {
    /// Backs one vBucket up, unless it is stored. Says whether it was.
    fn back_up(&self, index: usize) -> anyhow::Result<(VbucketPart, bool)> {
        let job = self.jobs.get(index).context("a job is one of the list")?;
        let listed = &job.listed;
        let done = match self.reuse(listed)? {
            Some(part) => Ok((part, true)),
            None => self.store(job).map(|part| (part, false)),
        };
        done.with_context(|| format!("vBucket {}", listed.vbid))
    }

    /// The object of the same state, if it is what its name says.
    fn reuse(&self, listed: &Listed) -> anyhow::Result<Option<VbucketPart>> {
        let stored = self.stored.get(&listed.vbid).filter(|stored| stored.state == listed.state);
        let Some(stored) = stored else { return Ok(None) };
        let path = self.target.spool_path(&format!("{}.part", listed.vbid))?;
        let mut file = SpoolFile::create(self.target.files(), &path, &self.moved)?;
        let name = format!("{}/{}", self.name, stored.object);
        let is_there = self.target.get(&name, &mut |bytes| {
            self.moved.add(bytes.len());
            file.write(bytes)
        })?;
        let written = file.finish()?;
        // The name says what was stored; what the target has by now is looked at.
        let is_it = is_there && written.sha256 == stored.sha256;
        let checked = is_it.then(|| check(self.target.files(), &path, &self.moved));
        let checked = checked.and_then(Result::ok);
        remove_if_there(self.target.files(), &path)?;
        Ok(checked.map(|checked| part_of(listed, stored.object.clone(), written, checked)))
    }

    fn store(&self, job: &Job) -> anyhow::Result<VbucketPart> {
        let path = self.target.spool_path(&format!("{}.part", job.listed.vbid))?;
        let stored = self.store_through(job, &path);
        if stored.is_err() {
            // The error says more than this could.
            drop(remove_if_there(self.target.files(), &path));
        }
        stored
    }

    fn store_through(&self, job: &Job, path: &Path) -> anyhow::Result<VbucketPart> {
        let listed = &job.listed;
        let (node, catalogue) = self.parts.get(job.part).context("a job is of one of the parts")?;
        let mut file = SpoolFile::create(self.target.files(), path, &self.moved)?;
        catalogue.read(node, listed.vbid, |bytes| {
            self.moved.add(bytes.len());
            file.write(bytes)
        })?;
        let written = file.finish()?;
        // Both ends have checked it then, and the network and the disk between them.
        let checked = check(self.target.files(), path, &self.moved);
        let checked = checked.context("it did not arrive as it is")?;
        let object = format!("{}.{}.{}.couch", listed.vbid, listed.state, written.sha256);
        self.target.put_file(&format!("{}/{object}", self.name), path, &self.moved)?;
        Ok(part_of(listed, object, written, checked))
    }
}

fn part_of(listed: &Listed, object: String, written: Written, checked: Checked) -> VbucketPart {
    VbucketPart {
        vbid: listed.vbid,
        object,
        bytes: written.bytes,
        sha256: written.sha256,
        high_seqno: checked.high_seqno,
        documents: checked.documents.saturating_add(checked.system_events),
        system_events: Some(checked.system_events),
        tombstones: checked.tombstones,
        failover_table: checked.failover_table,
        late: listed.late,
    }
}
