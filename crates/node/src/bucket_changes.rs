//! Which buckets the node has, changed while it runs.

mod deletion;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use auth::RolePlace;
use bucket::MEMORY_QUOTA_BYTES_MIN;
use cluster::{BucketPlan, Uuid};
use document::limits::BUCKET_NAME_SIZE_MAX;
use executor::{Owner, Shutdown};
use server::{
    BUCKET_COUNT_MAX, BucketAdministrator, BucketRefusal, BucketWords, Followers, Server,
};

use crate::bucket_opener::BucketOpener;
use crate::bucket_settings::BucketSettings;
use crate::bucket_steps::BucketKeeper;
use crate::bucket_words::Moment;
use crate::buckets::{NodeBucket, NodeBuckets};
use crate::closing::Leaving;
use crate::membership::{Membership, PlanOrder};
use crate::quota_shares::{least_bytes, part_of_rest};

/// Called when nothing of a bucket is left.
type Done = Box<dyn FnOnce() + Send>;

/// Makes, changes and deletes buckets, one at a time: those of a node that is alone itself, those
/// of a cluster by its plan. Calls may wait for files and other nodes.
pub struct BucketChanges {
    opener: BucketOpener,
    buckets: Arc<NodeBuckets>,
    membership: Arc<Membership>,
    server: Arc<Server>,
    /// For whom buckets are closed.
    owner: Owner,
    leaving: Leaving,
    /// Memory for documents of all buckets, at most.
    buckets_bytes_max: u64,
    /// Held while a bucket of a cluster is deleted from here.
    deleting: Mutex<()>,
    /// Who hears of the end of the one that is.
    ending: Mutex<Option<(String, Done)>>,
}

impl BucketChanges {
    pub(crate) fn new(
        opener: BucketOpener,
        buckets: &Arc<NodeBuckets>,
        membership: &Arc<Membership>,
        server: &Arc<Server>,
        buckets_bytes_max: u64,
    ) -> Self {
        Self {
            owner: opener.world.pool.register_owner("buckets"),
            opener,
            buckets: Arc::clone(buckets),
            membership: Arc::clone(membership),
            server: Arc::clone(server),
            leaving: Leaving::default(),
            buckets_bytes_max,
            deleting: Mutex::default(),
            ending: Mutex::default(),
        }
    }

    /// Memory for documents of all buckets, at most.
    pub fn buckets_bytes_max(&self) -> u64 {
        self.buckets_bytes_max
    }

    /// Whether a bucket is on its way out that was deleted less than `age` ago.
    pub fn has_leaving(&self, age: Duration) -> bool {
        self.leaving.has_younger(age, self.opener.world.clock.now())
    }

    /// Says whether there could be such a bucket now.
    ///
    /// # Errors
    /// There could not.
    pub fn check_new(&self, name: &str, words: &BucketWords) -> Result<(), BucketRefusal> {
        self.check_likeness(name)?;
        self.checked_new(name, words).map(drop)
    }

    /// Names that differ in case alone are one: people and some file systems take them for that.
    /// What a plan has already is made all the same.
    fn check_likeness(&self, name: &str) -> Result<(), BucketRefusal> {
        let is_like = |known: &NodeBucket| known.name().eq_ignore_ascii_case(name);
        if self.buckets.all().iter().any(is_like) { Err(BucketRefusal::Exists) } else { Ok(()) }
    }

    fn checked_new(
        &self,
        name: &str,
        words: &BucketWords,
    ) -> Result<BucketSettings, BucketRefusal> {
        let refuse = |what: &str, why: String| BucketRefusal::Invalid(what.to_owned(), why);
        if !is_bucket_name(name) {
            let why = format!(
                "Bucket name can only contain characters in range A-Z, a-z, 0-9 as well as \
                 underscore, period, dash and percent, up to {BUCKET_NAME_SIZE_MAX}, and does not \
                 begin with a period"
            );
            return Err(refuse("name", why));
        }
        if self.buckets.get(name).is_some() {
            return Err(BucketRefusal::Exists);
        }
        if self.leaving.contains(name) {
            // Its directory is marked as deleted, so that the look at the disk below would find
            // none.
            let why = "the bucket that had this name is still being deleted; try again";
            return Err(BucketRefusal::Failed(why.to_owned()));
        }
        let files = &*self.opener.world.files;
        let is_there = self.opener.places.has_bucket(files, name);
        if is_there.map_err(|error| BucketRefusal::Failed(error.to_string()))? {
            return Err(BucketRefusal::Exists);
        }
        if self.buckets.all().len() + self.leaving.count() >= BUCKET_COUNT_MAX {
            let why = format!("Cannot create more than {BUCKET_COUNT_MAX} buckets");
            return Err(refuse("_", why));
        }
        let settings = self.opener.new_settings(name).with_words(words, Moment::Making)?;
        self.check_quota(name, settings.memory_quota_bytes, 0)?;
        Ok(settings)
    }

    /// Whether the bucket of that name, which has `own_bytes` now, may have so many.
    fn check_quota(&self, name: &str, bytes: u64, own_bytes: u64) -> Result<(), BucketRefusal> {
        let refuse = |why: String| Err(BucketRefusal::Invalid("max_size".to_owned(), why));
        if bytes < MEMORY_QUOTA_BYTES_MIN {
            let least = MEMORY_QUOTA_BYTES_MIN >> 20;
            return refuse(format!("RAM quota cannot be less than {least} MiB"));
        }
        let all = self.buckets.all();
        let others = all.iter().filter(|other| other.name() != name);
        let others: u64 = others.map(claimed_bytes).sum();
        let free = self.buckets_bytes_max.saturating_sub(others);
        // A bucket may always have less than it has.
        if bytes > free && bytes > own_bytes {
            return refuse(format!(
                "RAM quota specified is too large to be provisioned into this cluster: {} MiB of \
                 the node's {} MiB are free",
                free >> 20,
                self.buckets_bytes_max >> 20
            ));
        }
        Ok(())
    }

    /// Changes a bucket, or only says whether it could be: in a cluster on all nodes, and on those
    /// that do not answer, which are named, when they do.
    ///
    /// # Errors
    /// It is as it was.
    pub fn change(
        &self,
        name: &str,
        words: &BucketWords,
        is_trial: bool,
    ) -> Result<Vec<String>, BucketRefusal> {
        let held = self.membership.hold_buckets();
        let known = self.buckets.get(name).ok_or(BucketRefusal::NotFound)?;
        let settings = known.settings().with_words(words, Moment::Running)?;
        let is_alone = self.membership.is_alone();
        self.apply(&known, settings, is_trial || !is_alone)?;
        if is_trial || is_alone {
            return Ok(Vec::new());
        }
        // The order asks other nodes, and carries out a plan, which takes the same lock.
        drop(held);
        let before = known.settings().planned_words();
        // A bucket that is deleted meanwhile is gone only when nobody has a handle any more.
        drop(known);
        let (name, words) = (name.to_owned(), words.clone());
        self.membership.order_change(&PlanOrder::Change { name, before, words })
    }

    /// Gives a bucket other settings, or only says whether it could have them. The caller holds the
    /// buckets.
    fn apply(
        &self,
        known: &NodeBucket,
        settings: BucketSettings,
        is_trial: bool,
    ) -> Result<(), BucketRefusal> {
        let (name, before) = (known.name(), known.settings());
        if settings.memory_quota_bytes != before.memory_quota_bytes {
            self.check_quota(name, settings.memory_quota_bytes, before.memory_quota_bytes)?;
        }
        if is_trial {
            return Ok(());
        }
        let files = &*self.opener.world.files;
        let path = self.opener.places.bucket(files, name);
        let path = path.map_err(|error| BucketRefusal::Failed(error.to_string()))?;
        settings.keep(&self.opener.kept, &path)?;
        // Behind the file: what the disk does not take changes nothing. A start finds the one or
        // the other, whenever it comes.
        let bucket = known.bucket();
        if settings.memory_quota_bytes != bucket.memory_quota_bytes() {
            let set = bucket.set_memory_quota(settings.memory_quota_bytes);
            set.map_err(|error| BucketRefusal::Invalid("max_size".to_owned(), error.to_string()))?;
        }
        bucket.set_eviction_policy(settings.eviction_policy);
        bucket.set_full_policy(settings.ephemeral_full_policy);
        bucket.set_compression_mode(settings.compression);
        bucket.set_durability_min_level(settings.durability_min_level);
        bucket.set_max_ttl_seconds(settings.max_ttl_seconds);
        self.server.enable_flush(name, settings.enable_flush);
        tracing::info!(bucket = name, "the bucket was changed");
        self.buckets.put(known.with_settings(settings));
        self.share_rest(None);
        Ok(())
    }

    /// Gives those buckets whose quota nobody has said what the others leave, of which `coming` is
    /// one that is not there yet.
    fn share_rest(&self, coming: Option<&BucketSettings>) {
        let all = self.buckets.all();
        let settings = all.iter().map(NodeBucket::settings).chain(coming);
        let part = part_of_rest(settings, self.buckets_bytes_max);
        for known in all.iter().filter(|known| known.settings().has_part_of_rest) {
            if known.settings().memory_quota_bytes == part {
                continue;
            }
            if let Err(error) = known.bucket().set_memory_quota(part) {
                tracing::warn!(%error, bucket = known.name(), part, "the quota stays as it was");
                continue;
            }
            let settings = BucketSettings { memory_quota_bytes: part, ..known.settings().clone() };
            self.buckets.put(known.with_settings(settings));
        }
    }

    /// Ends the closing of buckets: what is left of them is for the next start.
    pub(crate) fn stop(&self) {
        self.owner.unregister(Shutdown::Force);
    }

    /// Makes a bucket that nobody knows of yet. The caller holds the buckets.
    fn make_here(&self, settings: BucketSettings) -> Result<NodeBucket, BucketRefusal> {
        // The others give memory up before the new one takes any.
        self.share_rest(Some(&settings));
        let made = self.opener.make(settings);
        if made.is_err() {
            self.share_rest(None);
        }
        let bucket = made.map_err(|error| BucketRefusal::Failed(format!("{error:#}")))?;
        self.buckets.put(bucket.clone());
        let uuid = bucket.bucket().uuid();
        tracing::info!(bucket = bucket.name(), uuid, "the bucket was made");
        Ok(bucket)
    }

    fn create_everywhere(&self, settings: &BucketSettings) -> Result<(), BucketRefusal> {
        let said = settings.uuid.as_deref().and_then(Uuid::parse);
        let uuid = said.unwrap_or_else(|| Uuid::random(&self.opener.world.entropy));
        let ordered = self.membership.order_change(&PlanOrder::Make {
            name: settings.name.clone(),
            uuid,
            settings: settings.planned_words(),
            replicas_wanted: settings.replica_count,
            vbucket_count: settings.bucket_config(1).vbucket_count,
        });
        ordered.map(drop)
    }

    fn lock_ending(&self) -> MutexGuard<'_, Option<(String, Done)>> {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BucketAdministrator for BucketChanges {
    fn create(&self, name: &str, words: &BucketWords) -> Result<(), BucketRefusal> {
        let held = self.membership.hold_buckets();
        self.check_likeness(name)?;
        let settings = self.checked_new(name, words)?;
        if !self.membership.is_alone() {
            // Other nodes are asked, and the plan is carried out under the same lock.
            drop(held);
            return self.create_everywhere(&settings);
        }
        let bucket = self.make_here(settings)?;
        self.membership.add_bucket(&bucket);
        Ok(())
    }

    fn delete(&self, name: &str, done: Done) -> Result<Vec<String>, BucketRefusal> {
        // Who hears of the end may make another of the name, and give roles in that, at once.
        let [done, without_roles] = halves(done);
        let held = self.membership.hold_buckets();
        let unreached = if self.membership.is_alone() {
            let leaver = self.leaver(name)?;
            self.mark(std::slice::from_ref(&leaver))?;
            self.close(leaver, done, || self.membership.remove_bucket(name));
            drop(held);
            Vec::new()
        } else {
            drop(held);
            self.delete_everywhere(name, done)?
        };
        self.membership.remove_roles_in(vec![RolePlace::of_bucket(name)]);
        without_roles();
        Ok(unreached)
    }

    fn followers(&self, name: &str) -> Followers {
        self.membership.followers(name)
    }
}

impl BucketKeeper for BucketChanges {
    fn make(
        &self,
        name: &str,
        plan: &BucketPlan,
        is_trial: bool,
    ) -> Result<Option<NodeBucket>, BucketRefusal> {
        let mut words: BucketWords =
            plan.settings.clone().unwrap_or_default().into_iter().collect();
        words.push(("max_vbuckets".to_owned(), plan.chains.len().to_string()));
        words.extend(plan.uuid.map(|uuid| ("uuid".to_owned(), uuid.to_string())));
        let settings = self.checked_new(name, &words)?;
        if is_trial {
            return Ok(None);
        }
        let bucket = self.make_here(settings)?;
        // Its vBuckets are to take up roles.
        bucket.load(&self.opener.world.pool);
        Ok(Some(bucket))
    }

    fn remove(&self, names: &[&str]) -> Result<(), BucketRefusal> {
        let leavers: Vec<_> =
            names.iter().map(|name| self.leaver(name)).collect::<Result<_, _>>()?;
        self.mark(&leavers)?;
        for (leaver, name) in leavers.into_iter().zip(names) {
            let done = self.lock_ending().take_if(|(ending, _)| ending == name);
            let done = done.map_or_else(|| Box::new(|| {}) as Done, |(_, done)| done);
            self.close(leaver, done, || self.membership.take_out(name));
        }
        Ok(())
    }

    fn adapt(
        &self,
        name: &str,
        settings: &BTreeMap<String, String>,
        is_trial: bool,
    ) -> Result<(), BucketRefusal> {
        let known = self.buckets.get(name).ok_or(BucketRefusal::NotFound)?;
        let words: BucketWords = settings.clone().into_iter().collect();
        let wanted = known.settings().with_words(&words, Moment::Running)?;
        if wanted.words() == known.settings().words() {
            return Ok(());
        }
        self.apply(&known, wanted, is_trial)
    }
}

/// What calls `done` once both have been called.
fn halves(done: Done) -> [Done; 2] {
    let left = Arc::new(Mutex::new((false, Some(done))));
    [Arc::clone(&left), left].map(|left| {
        Box::new(move || {
            let mut held = left.lock().unwrap_or_else(PoisonError::into_inner);
            let is_second = std::mem::replace(&mut held.0, true);
            let done = held.1.take_if(|_| is_second);
            drop(held);
            if let Some(done) = done {
                done();
            }
        }) as Done
    })
}

/// Bytes that others cannot have because of a bucket.
fn claimed_bytes(bucket: &NodeBucket) -> u64 {
    match bucket.settings().has_part_of_rest {
        true => least_bytes(bucket.bucket()),
        false => bucket.settings().memory_quota_bytes,
    }
}

/// Whether a bucket can be called so.
pub fn is_bucket_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._%-".contains(&byte);
    (1..=BUCKET_NAME_SIZE_MAX).contains(&name.len())
        && name.bytes().all(is_allowed)
        && !name.starts_with('.')
}
