//! Opening buckets: those that a start names, those that are there, and new ones.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use bucket::{Bucket, DirectoryState};
use cluster::{BucketPlan, ClusterPlan};
use platform::Files;
use server::Mailboxes;

use crate::bucket_settings::BucketSettings;
use crate::buckets::{NodeBucket, surroundings};
use crate::config::{MakesBuckets, NodeConfig};
use crate::data_directory::{BucketPlaces, DataDirectory};
use crate::document_access::Waiters;
use crate::kept_files::KeptFiles;
use crate::quota_shares::part_of_rest;
use crate::remembered_map::Remembered;
use crate::world::World;

/// Memory for documents of a bucket that is made without saying how much. Source:
/// docs/specification/engine.md, section 9, `max_size`.
const NEW_BUCKET_BYTES: u64 = 100 << 20;

/// The plans of a start.
#[derive(Clone, Copy, Default)]
pub(crate) struct Planned<'a> {
    /// What the node has carried out last, if it has.
    pub(crate) before: Option<&'a Remembered>,
    /// The one that it starts with, unless it is alone.
    pub(crate) now: Option<&'a ClusterPlan>,
}

impl Planned<'_> {
    /// The buckets that the node has had and that are deleted by now.
    fn deleted(&self) -> impl Iterator<Item = &str> {
        let both = self.before.zip(self.now);
        both.into_iter().flat_map(|(before, now)| {
            let goes_on = now.changes >= before.plan.changes;
            let removed = before.removed.iter().filter(move |_| goes_on);
            let has_deleted = |(name, known): &(&String, &BucketPlan)| {
                let planned = now.buckets.get(*name);
                let is_same = planned.is_some_and(|planned| planned.uuid == known.uuid);
                now.is_deleted(name, known.uuid) && !is_same
            };
            let known = before.plan.buckets.iter().filter(has_deleted).map(|(name, _)| name);
            removed.chain(known).map(String::as_str).collect::<Vec<_>>()
        })
    }

    /// Whether a bucket that a start names is not to be made, as one of that name was deleted; or
    /// is made from the plan, which says what it is.
    pub(crate) fn withholds(&self, name: &str) -> bool {
        let Some(now) = self.now else { return false };
        match now.buckets.get(name) {
            Some(planned) => planned.settings.is_some(),
            None => now.deleted.iter().any(|deleted| deleted.name == name),
        }
    }
}

/// Refuses a start that would make a bucket beside others that it does not name.
pub(crate) fn check_names(
    files: &dyn Files,
    places: &BucketPlaces,
    config: &NodeConfig,
    planned: Planned<'_>,
) -> anyhow::Result<()> {
    if config.makes_buckets != MakesBuckets::AtEachStart {
        return Ok(());
    }
    let names = config.buckets.iter().map(|bucket| bucket.name.as_str());
    let names: Vec<&str> = names.filter(|name| !planned.withholds(name)).collect();
    places.check_buckets(files, &names)
}

/// Opens buckets in a node's directory.
pub(crate) struct BucketOpener {
    pub(crate) world: World,
    /// Writes what is kept of buckets' settings.
    pub(crate) kept: Arc<KeptFiles>,
    pub(crate) places: BucketPlaces,
    waiters: Arc<Waiters>,
    /// Files of one bucket that are kept open.
    open_files_max: usize,
    /// What is not said of a bucket.
    template: BucketSettings,
}

impl BucketOpener {
    pub(crate) fn new(
        world: &World,
        kept: &Arc<KeptFiles>,
        config: &NodeConfig,
        directory: &DataDirectory,
        mailboxes: &Mailboxes,
        open_files_max: usize,
    ) -> Self {
        Self {
            world: world.clone(),
            kept: Arc::clone(kept),
            places: directory.places(),
            waiters: Arc::new(Waiters::new(mailboxes.clone())),
            open_files_max,
            template: config.template(),
        }
    }

    /// Opens the buckets that the configuration names, and those that are there beside; not those
    /// that a cluster has deleted meanwhile.
    pub(crate) fn open_all(
        &self,
        config: &NodeConfig,
        planned: Planned<'_>,
    ) -> anyhow::Result<Vec<NodeBucket>> {
        let files = &*self.world.files;
        for name in planned.deleted() {
            if self.places.has_bucket(files, name)? {
                tracing::info!(bucket = name, "the cluster has deleted the bucket");
                // The mark first, the files behind it: a removal that is cut off is ended by the
                // next start.
                bucket::mark_deleted(files, &self.places.bucket(files, name)?)?;
            }
        }
        self.places.sweep(files);
        let mut settings = Vec::new();
        for named in &config.buckets {
            let is_wanted = match config.makes_buckets {
                MakesBuckets::AtEachStart => true,
                MakesBuckets::Once => !self.places.have_been_used(files)?,
                MakesBuckets::Never => false,
            };
            let is_wanted = is_wanted && !planned.withholds(&named.name);
            if is_wanted || self.places.has_bucket(files, &named.name)? {
                self.cleared_place(&named.name)?;
                settings.push(named.clone());
            }
        }
        for name in self.places.own_buckets(files)? {
            if settings.iter().all(|known| known.name != name) {
                settings.push(config.found_bucket(&name));
            }
        }
        let settings: Vec<BucketSettings> =
            settings.iter().map(|it| self.with_kept(it)).collect::<anyhow::Result<_>>()?;
        let part = part_of_rest(settings.iter(), config.buckets_bytes_max);
        let with_part = |settings: BucketSettings| match settings.has_part_of_rest {
            true => BucketSettings { memory_quota_bytes: part, ..settings },
            false => settings,
        };
        let settings: Vec<BucketSettings> = settings.into_iter().map(with_part).collect();
        warn_of_quotas(&settings, config.buckets_bytes_max);
        settings.into_iter().map(|settings| self.open(settings)).collect()
    }

    /// The settings that are kept in the bucket's directory, and these for the rest.
    fn with_kept(&self, settings: &BucketSettings) -> anyhow::Result<BucketSettings> {
        let files = &*self.world.files;
        let kept = settings.with_kept(files, &self.places.bucket(files, &settings.name)?);
        kept.with_context(|| format!("the settings of the bucket `{}`", settings.name))
    }

    /// Opens a bucket; makes it if it is not there.
    fn open(&self, settings: BucketSettings) -> anyhow::Result<NodeBucket> {
        let path = self.places.bucket(&*self.world.files, &settings.name)?;
        self.open_at(&path, settings)
    }

    fn open_at(&self, path: &Path, settings: BucketSettings) -> anyhow::Result<NodeBucket> {
        let surroundings = surroundings(&self.world, &self.waiters);
        let bucket = Bucket::open(surroundings, settings.bucket_config(self.open_files_max), path)
            .with_context(|| format!("the bucket `{}`", settings.name))?;
        Ok(NodeBucket::new(bucket, settings, &self.waiters))
    }

    /// Where a bucket of that name may be made. What is left there of one that was deleted is
    /// removed first: its documents would be the new one's, and its mark would have the next start
    /// delete that one.
    fn cleared_place(&self, name: &str) -> anyhow::Result<PathBuf> {
        let files = &*self.world.files;
        let place = self.places.bucket(files, name)?;
        if bucket::directory_state(files, &place)? != DirectoryState::Deleted {
            return Ok(place);
        }
        bucket::remove_remains(files, &place).with_context(|| {
            format!(
                "what is left of the bucket `{name}` that was deleted cannot be removed from {}",
                place.display()
            )
        })?;
        // One of the original's leaves its place to those of this node.
        self.cleared_place(name)
    }

    /// What a new bucket is where nobody says anything.
    pub(crate) fn new_settings(&self, name: &str) -> BucketSettings {
        let defaults = BucketSettings::default();
        BucketSettings {
            enable_flush: false,
            name: name.to_owned(),
            uuid: None,
            replica_count: 1,
            bucket_type: None,
            conflict_resolution: None,
            memory_quota_bytes: NEW_BUCKET_BYTES,
            has_part_of_rest: false,
            durability_min_level: defaults.durability_min_level,
            durability_impossible_fallback: defaults.durability_impossible_fallback,
            ephemeral_full_policy: defaults.ephemeral_full_policy,
            eviction_policy: defaults.eviction_policy,
            compression: defaults.compression,
            max_ttl_seconds: defaults.max_ttl_seconds,
            ..self.template.clone()
        }
    }

    /// Makes a bucket. After a crash at any step it is there, with these settings, or nothing of it
    /// is.
    ///
    /// # Errors
    /// Nothing of it is there, or after the next start.
    pub(crate) fn make(&self, settings: BucketSettings) -> anyhow::Result<NodeBucket> {
        let files = &*self.world.files;
        let path = self.cleared_place(&settings.name)?;
        files.create_directories(&path)?;
        // The description, which makes it a bucket, comes last.
        let made = settings.keep(&self.kept, &path).map_err(anyhow::Error::new);
        let made = made.and_then(|()| self.open_at(&path, settings));
        if made.is_err()
            && let Err(error) = bucket::mark_deleted(files, &path)
                .and_then(|()| bucket::remove_remains(files, &path))
        {
            tracing::warn!(%error, "what was begun of a bucket is left to the next start");
        }
        made
    }
}

/// Quotas come with directories: those of another node, or of a larger `--memory-quota`. They are
/// kept, and whoever watches is told.
fn warn_of_quotas(settings: &[BucketSettings], quota_bytes: u64) {
    let quotas = settings.iter().map(|settings| settings.memory_quota_bytes);
    let sum_bytes = quotas.fold(0, u64::saturating_add);
    if sum_bytes > quota_bytes {
        tracing::warn!(
            sum_bytes,
            quota_bytes,
            "the buckets' quotas are more together than --memory-quota: give them less with \
             `settee bucket edit NAME --quota-mib N`, or the node more"
        );
    }
}

#[cfg(test)]
mod tests {
    use bucket::EvictionPolicy;
    use executor::DeterministicPool;
    use platform::files::remove_content;
    use platform::simulated::{Call, Fault, FaultError, SimulatedFiles, SimulatedNetwork};
    use platform::{Clock, Entropy, WallTime};

    use super::*;
    use crate::peer_copies::{Copies, PeerLogin, Peers};

    const DATA: &str = "/data";
    const BUCKET: &str = "orders";

    struct Nobody;

    impl Peers for Nobody {
        fn copies(&self, _: &cluster::NodeAddress, _: &PeerLogin) -> anyhow::Result<Copies> {
            anyhow::bail!("there is no other node")
        }

        fn exchange_manifest(
            &self,
            _: &cluster::NodeAddress,
            _: &PeerLogin,
            _: &str,
        ) -> anyhow::Result<String> {
            anyhow::bail!("there is no other node")
        }
    }

    /// What opens buckets on a machine with this disk.
    struct Machine {
        opener: BucketOpener,
        config: NodeConfig,
        _directory: DataDirectory,
        _pool: DeterministicPool,
    }

    fn boot(files: &SimulatedFiles) -> Machine {
        let clock = Clock::simulated(WallTime(1_700_000_000_000_000_000));
        let pool = DeterministicPool::new(clock.clone(), 1);
        let world = World {
            network: SimulatedNetwork::new(clock.clone(), 1).host([10, 0, 0, 1].into()).into(),
            clock,
            files: Arc::new(files.clone()),
            entropy: Entropy::simulated(1),
            pool: pool.pool().clone(),
            peers: Arc::new(Nobody),
        };
        let directory = DataDirectory::open(files, &world.entropy, Path::new(DATA), &[]).unwrap();
        let kept = Arc::new(KeptFiles::new(Arc::clone(&world.files)));
        let template = BucketSettings {
            vbuckets: Some(4),
            memory_quota_bytes: 64 << 20,
            journal_size_bytes: 64 << 20,
            ..BucketSettings::default()
        };
        let config = NodeConfig {
            buckets: vec![template],
            makes_buckets: MakesBuckets::Once,
            ..NodeConfig::default()
        };
        let mailboxes = Mailboxes::for_workers(1);
        let opener = BucketOpener::new(&world, &kept, &config, &directory, &mailboxes, 16);
        Machine { opener, config, _directory: directory, _pool: pool }
    }

    /// What a start finds of a bucket.
    #[derive(Debug, PartialEq, Eq)]
    struct Facts {
        name: String,
        flush_enabled: bool,
        eviction_policy: EvictionPolicy,
    }

    fn facts(eviction_policy: EvictionPolicy) -> Facts {
        Facts { name: BUCKET.to_owned(), flush_enabled: true, eviction_policy }
    }

    impl Machine {
        fn settings(&self) -> BucketSettings {
            BucketSettings { enable_flush: true, ..self.opener.new_settings(BUCKET) }
        }

        /// Which buckets there are now, without those that are made anew.
        fn open(&self) -> Vec<Facts> {
            let opened = self.opener.open_all(&self.config, Planned::default()).unwrap();
            let facts = opened.iter().map(|it| Facts {
                name: it.name().to_owned(),
                flush_enabled: it.flush_enabled(),
                eviction_policy: it.bucket().eviction_policy(),
            });
            let facts = facts.collect();
            opened.iter().for_each(|it| it.bucket().discard());
            facts
        }
    }

    /// Has the disk fail from the `number`th call on.
    fn fail_from(files: &SimulatedFiles, number: u64) {
        let error = FaultError::Io;
        files.fail(Fault { call: None, number, error, from_then_on: true });
    }

    /// Runs `change` on a disk that `prepare` has left, cut off after any number of calls, and
    /// gives what a start then finds, with whether `change` said that it was done.
    fn cut_off(
        prepare: impl Fn(&Machine),
        change: impl Fn(&Machine) -> bool,
        check: impl Fn(bool, &[Facts]),
    ) {
        for number in 1.. {
            assert!(number < 1000, "the change ends");
            let mut was_done = false;
            for seed in [0, 7, 11] {
                let files = SimulatedFiles::new();
                let machine = boot(&files);
                files.create_directories(&Path::new(DATA).join("buckets")).unwrap();
                prepare(&machine);
                fail_from(&files, number);
                was_done = change(&machine);
                drop(machine);
                files.power_cut(seed);
                files.heal();
                check(was_done, &boot(&files).open());
                // What is left over does not come back, and keeps nobody from making it again.
                let machine = boot(&files);
                let found = machine.open();
                check(was_done, &found);
                if found.is_empty() {
                    let places = files.list(&Path::new(DATA).join("buckets")).unwrap();
                    assert!(places.is_empty(), "{places:?}");
                    machine.opener.make(machine.settings()).unwrap().bucket().discard();
                }
            }
            if was_done {
                return;
            }
        }
    }

    #[test]
    fn a_bucket_that_is_made_is_there_with_its_settings_or_not_at_all() {
        cut_off(
            |_| {},
            |machine| {
                let made = machine.opener.make(machine.settings());
                made.is_ok_and(|bucket| {
                    bucket.bucket().discard();
                    true
                })
            },
            |was_done, found| {
                let is_whole = *found == [facts(EvictionPolicy::ValueOnly)];
                assert!(is_whole || (found.is_empty() && !was_done), "{was_done} {found:?}");
            },
        );
    }

    #[test]
    fn a_bucket_that_is_deleted_is_there_or_not_and_never_comes_back() {
        let path = |machine: &Machine| {
            machine.opener.places.bucket(&*machine.opener.world.files, BUCKET).unwrap()
        };
        cut_off(
            |machine| machine.opener.make(machine.settings()).unwrap().bucket().discard(),
            |machine| {
                let (files, path) = (&*machine.opener.world.files, path(machine));
                bucket::mark_deleted(files, &path).is_ok()
            },
            |was_done, found| assert!(!was_done || found.is_empty(), "{found:?}"),
        );
        cut_off(
            |machine| {
                machine.opener.make(machine.settings()).unwrap().bucket().discard();
                let files = &*machine.opener.world.files;
                bucket::mark_deleted(files, &path(machine)).unwrap();
            },
            |machine| {
                let (files, path) = (&*machine.opener.world.files, path(machine));
                bucket::remove_remains(files, &path).is_ok()
            },
            |_, found| assert!(found.is_empty(), "{found:?}"),
        );
    }

    #[test]
    fn a_bucket_whose_settings_change_has_all_of_the_old_ones_or_of_the_new_ones() {
        cut_off(
            |machine| machine.opener.make(machine.settings()).unwrap().bucket().discard(),
            |machine| {
                let files = &*machine.opener.world.files;
                let path = machine.opener.places.bucket(files, BUCKET).unwrap();
                let eviction_policy = EvictionPolicy::Full;
                let settings = BucketSettings { eviction_policy, ..machine.settings() };
                settings.keep(&machine.opener.kept, &path).is_ok()
            },
            |was_done, found| {
                let [old, new] = [EvictionPolicy::ValueOnly, EvictionPolicy::Full].map(facts);
                let is_one = *found == [new] || (!was_done && *found == [old]);
                assert!(is_one, "{was_done} {found:?}");
            },
        );
    }

    /// Has the next removal fail, or all of them.
    fn fail_removals(files: &SimulatedFiles, from_then_on: bool) {
        let (call, error) = (Some(Call::Remove), FaultError::Io);
        files.fail(Fault { call, number: 1, error, from_then_on });
    }

    /// A machine with what is left of a bucket that was deleted.
    fn with_remains(files: &SimulatedFiles) -> Machine {
        let machine = boot(files);
        files.create_directories(&Path::new(DATA).join("buckets")).unwrap();
        machine.opener.make(machine.settings()).unwrap().bucket().discard();
        let path = machine.opener.places.bucket(files, BUCKET).unwrap();
        bucket::mark_deleted(files, &path).unwrap();
        machine
    }

    #[test]
    fn a_bucket_is_made_behind_the_remains_of_another_one_and_not_deleted_with_them() {
        let files = SimulatedFiles::new();
        let machine = with_remains(&files);
        let make = || machine.opener.make(machine.settings());
        fail_removals(&files, false);
        let refusal = format!("{:#}", make().err().unwrap());
        assert!(refusal.contains("what is left of the bucket `orders`"), "{refusal}");
        make().unwrap().bucket().discard();
        drop(machine);
        assert_eq!(boot(&files).open(), [facts(EvictionPolicy::ValueOnly)]);
    }

    #[test]
    fn a_start_makes_its_bucket_behind_the_remains_of_another_one_or_says_why_it_cannot() {
        let files = SimulatedFiles::new();
        let mut machine = with_remains(&files);
        machine.config.makes_buckets = MakesBuckets::AtEachStart;
        machine.config.buckets[0].name = BUCKET.to_owned();
        let open = || machine.opener.open_all(&machine.config, Planned::default());
        fail_removals(&files, true);
        let refusal = format!("{:#}", open().err().unwrap());
        assert!(refusal.contains("what is left of the bucket `orders`"), "{refusal}");
        files.heal();
        // The sweep of the start fails, and what comes behind it does not.
        fail_removals(&files, false);
        open().unwrap().iter().for_each(|it| it.bucket().discard());
        drop(machine);
        assert!(boot(&files).open().iter().any(|it| it.name == BUCKET), "it is not deleted");
    }

    #[test]
    fn buckets_that_are_found_have_no_more_together_than_the_node_may_take() {
        let files = SimulatedFiles::new();
        let mut machine = boot(&files);
        files.create_directories(&Path::new(DATA).join("buckets")).unwrap();
        for (name, has_part_of_rest) in [("restored", true), ("said", false), ("other", true)] {
            let new = machine.opener.new_settings(name);
            let settings = BucketSettings { has_part_of_rest, ..new };
            machine.opener.make(settings).unwrap().bucket().discard();
        }
        machine.config.buckets_bytes_max = 1000 << 20;
        for (each, parts_mib) in [(None, 450), (Some(64 << 20), 64)] {
            machine.config.bucket_quota_bytes = each;
            let opened = machine.opener.open_all(&machine.config, Planned::default()).unwrap();
            let facts = opened.iter().map(|it| {
                it.bucket().discard();
                (it.name().to_owned(), it.settings().memory_quota_bytes >> 20)
            });
            let expected = [("other", parts_mib), ("restored", parts_mib), ("said", 100)];
            let expected = expected.map(|(name, mib)| (name.to_owned(), mib));
            assert_eq!(facts.collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn what_somebody_has_put_among_the_buckets_is_left_alone() {
        let files = SimulatedFiles::new();
        let machine = boot(&files);
        let foreign = Path::new(DATA).join("buckets/notes");
        files.create_directories(&foreign).unwrap();
        files.replace_all(&foreign.join("letter.txt"), b"Dear ...").unwrap();
        let stray = Path::new(DATA).join("buckets/stray");
        files.replace_all(&stray, b"").unwrap();
        machine.opener.places.sweep(&files);
        assert_eq!(machine.opener.places.own_buckets(&files).unwrap(), ["notes"]);
        assert!(files.exists(&stray).unwrap());
        assert!(files.content(&foreign.join("letter.txt")).is_some());
        remove_content(&files, &foreign, &[]).unwrap();
        machine.opener.places.sweep(&files);
        assert!(!files.exists(&foreign).unwrap(), "nothing was in it");
    }
}
