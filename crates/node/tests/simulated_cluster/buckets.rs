//! Buckets that are made, changed and deleted while the cluster runs, some of it on machines that
//! lose power meanwhile.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bucket::EvictionPolicy;
use cluster::ClusterPlan;
use document::ManifestEdit;
use node::OwnSetupError;
use platform::simulated::{Fault, FaultError};
use platform::{Files, Random};
use protocol::Status;
use server::{BucketAdministrator, BucketRefusal};

use crate::{BUCKETS, Client, Cluster, Shared, VBUCKETS, name_of};

const NEW: &str = "orders";

/// A cluster whose buckets clients change.
struct Changed(Shared);

impl Changed {
    fn new(seed: u64, machine_count: u8) -> Self {
        let cluster = Cluster::new(seed, &BUCKETS[..1], machine_count);
        Self(Shared(Arc::new(Mutex::new(cluster))))
    }

    fn create(&self, index: usize) -> Result<(), BucketRefusal> {
        self.create_named(index, NEW)
    }

    fn create_named(&self, index: usize, name: &str) -> Result<(), BucketRefusal> {
        let words = [("max_size", "67108864"), ("num_replicas", "3"), ("flush_enabled", "false")];
        let words = words.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let mut cluster = self.0.lock();
        let created = cluster.node(index).bucket_changes().create(name, &words);
        cluster.adopted = Some(cluster.node(index).membership().plan());
        created
    }

    /// Deletes it; the names of the nodes that do not know of it yet.
    fn delete(&self, index: usize) -> Result<Vec<String>, BucketRefusal> {
        self.delete_named(index, NEW)
    }

    fn delete_named(&self, index: usize, name: &str) -> Result<Vec<String>, BucketRefusal> {
        let mut cluster = self.0.lock();
        let deleted = cluster.node(index).bucket_changes().delete(name, Box::new(|| {}));
        cluster.adopted = Some(cluster.node(index).membership().plan());
        deleted
    }

    fn plan(&self, index: usize) -> ClusterPlan {
        self.0.lock().node(index).membership().plan()
    }

    /// The identity of the bucket on a machine with power, if it is there.
    fn uuid(&self, index: usize) -> Option<String> {
        self.uuid_of(index, NEW)
    }

    fn uuid_of(&self, index: usize, name: &str) -> Option<String> {
        let cluster = self.0.lock();
        let bucket = cluster.node(index).buckets().get(name)?;
        Some(bucket.bucket().uuid().to_owned())
    }

    fn run(&self, seconds: u64) {
        self.0.lock().run(Duration::from_secs(seconds));
    }

    fn restart(&self, index: usize) {
        self.0.lock().power_cut(index);
        self.0.lock().start(index);
    }

    /// Whether files of the bucket are on a machine's disk.
    fn is_on_disk(&self, index: usize) -> bool {
        let cluster = self.0.lock();
        cluster.machines[index].files.exists(&Path::new("/data/buckets").join(NEW)).unwrap()
    }

    fn end(self, machine_count: usize) {
        (0..machine_count).for_each(|index| self.0.lock().power_cut(index));
    }
}

fn keys() -> Vec<Vec<u8>> {
    (0..16_u8).map(|number| vec![b'k', number]).collect()
}

#[test]
fn a_bucket_that_is_made_on_any_node_is_on_all_and_loses_no_durable_write() {
    for seed in platform::seeds::seeds(3) {
        let changed = Changed::new(seed, 2);
        let before = changed.plan(0);
        let made_on = usize::from(seed.is_multiple_of(2));
        changed.create(made_on).unwrap();
        assert_eq!(changed.create(1 - made_on), Err(BucketRefusal::Exists), "seed {seed}");
        let plan = changed.plan(0);
        assert_eq!(plan, changed.plan(1), "seed {seed}");
        assert_eq!(plan.revision.revision, before.revision.revision + 1);
        assert_eq!(plan.buckets[NEW].replica_count, 1, "there are two nodes");
        assert_eq!(plan.buckets[NEW].chains.len(), usize::from(VBUCKETS));
        assert!(changed.uuid(0).is_some() && changed.uuid(0) == changed.uuid(1), "seed {seed}");
        let mut client = Client::new(&changed.0, NEW);
        // Nobody else can hold anything: it serves at once.
        assert_eq!(client.set(b"k0", b"value", false), Some(Status::Success), "seed {seed}");
        keys().iter().for_each(|key| client.write_until_durable(key, b"value"));
        (0..2).for_each(|index| changed.restart(index));
        client.connections.clear();
        client.check();
        drop(client);
        changed.delete(1 - made_on).unwrap();
        changed.run(5);
        for index in 0..2 {
            assert!(changed.uuid(index).is_none() && !changed.is_on_disk(index), "seed {seed}");
            changed.restart(index);
            assert!(changed.uuid(index).is_none(), "seed {seed}");
        }
        assert!(changed.0.connect(0, NEW).is_err());
        // Another one of that name is another one, and empty.
        changed.create(made_on).unwrap();
        let mut client = Client::new(&changed.0, NEW);
        assert_eq!(client.get(&keys()[0]), None, "seed {seed}");
        drop(client);
        changed.end(2);
    }
}

/// Has a client order something, while the disk of a machine fails from the `number`th call on,
/// which loses power then and comes back. Returns how many calls the order made.
fn cut_off(changed: &Changed, index: usize, number: u64, order: impl FnOnce()) -> u64 {
    let files = changed.0.lock().machines[index].files.clone();
    let begun = files.calls().total();
    let error = FaultError::Io;
    files.fail(Fault { call: None, number, error, from_then_on: true });
    order();
    let count = files.calls().total() - begun;
    changed.0.lock().power_cut(index);
    files.heal();
    changed.0.lock().start(index);
    changed.run(6);
    count
}

/// Has `order` order something of a bucket while one of two machines is cut off at some call of its
/// disk; then both have one map, and another bucket has its documents. `check` hears whether the
/// order said that it was done.
fn cut_anywhere(
    prepare: impl Fn(&Changed),
    order: impl Fn(&Changed) -> Result<(), BucketRefusal>,
    check: impl Fn(&Changed, bool),
) {
    let cut = |seed, index, number| {
        let case = format!("seed {seed}: cut {number} of {index}");
        let changed = Changed::new(seed, 2);
        prepare(&changed);
        let mut other = Client::new(&changed.0, BUCKETS[0]);
        keys().iter().for_each(|key| other.write_until_durable(key, b"value"));
        let mut was_done = false;
        let count = cut_off(&changed, index, number, || was_done = order(&changed).is_ok());
        assert!(was_done || number <= count, "{case}: the disk was in order");
        assert_eq!(changed.plan(0), changed.plan(1), "{case}");
        assert_eq!(changed.uuid(0), changed.uuid(1), "{case}");
        check(&changed, was_done);
        other.connections.clear();
        other.check();
        drop(other);
        changed.end(2);
        count
    };
    for seed in platform::seeds::seeds(1) {
        let mut random = Random::from_seed(seed);
        for index in 0..2 {
            let count = cut(seed, index, u64::MAX);
            assert!(count > 0, "an order is durable");
            cut(seed, index, 1 + random.below(count));
        }
    }
}

#[test]
fn a_bucket_is_made_on_all_nodes_or_on_none_wherever_a_machine_loses_power() {
    cut_anywhere(
        |_| {},
        |changed| changed.create(0),
        |changed, was_done| {
            assert!(changed.uuid(0).is_some() || !was_done);
            if changed.uuid(0).is_some() {
                let mut client = Client::new(&changed.0, NEW);
                keys().iter().for_each(|key| client.write_until_durable(key, b"value"));
                client.check();
            }
        },
    );
}

#[test]
fn a_bucket_is_deleted_on_all_nodes_or_on_none_wherever_a_machine_loses_power() {
    cut_anywhere(
        |changed| changed.create(0).unwrap(),
        |changed| changed.delete(0).map(drop),
        |changed, was_done| {
            assert!(changed.uuid(0).is_none() || !was_done);
            for index in 0..2 {
                assert_eq!(changed.uuid(index).is_some(), changed.is_on_disk(index));
            }
        },
    );
}

#[test]
fn what_leaves_memory_changes_on_all_nodes_or_on_none_wherever_a_machine_loses_power() {
    let policy = |changed: &Changed, index| {
        let cluster = changed.0.lock();
        cluster.node(index).buckets().get(NEW).unwrap().bucket().eviction_policy()
    };
    cut_anywhere(
        |changed| {
            changed.create(0).unwrap();
            let mut client = Client::new(&changed.0, NEW);
            keys().iter().for_each(|key| client.write_until_durable(key, b"value"));
        },
        |changed| {
            let said = vec![("item_eviction_policy".to_owned(), "full_eviction".to_owned())];
            let mut cluster = changed.0.lock();
            let ordered = cluster.node(0).bucket_changes().change(NEW, &said, false);
            cluster.adopted = Some(cluster.node(0).membership().plan());
            ordered.map(drop)
        },
        |changed, was_done| {
            assert_eq!(policy(changed, 0), policy(changed, 1));
            assert!(policy(changed, 0) == EvictionPolicy::Full || !was_done);
            let mut client = Client::new(&changed.0, NEW);
            for key in &keys() {
                assert_eq!(client.get(key).as_deref(), Some(&b"value"[..]));
            }
        },
    );
}

#[test]
fn two_nodes_that_changed_buckets_without_each_other_come_to_have_both_changes() {
    let changed = Changed::new(7, 2);
    changed.create(0).unwrap();
    let enable = vec![("flush_enabled".to_owned(), "true".to_owned())];
    changed.0.lock().power_cut(1);
    changed.delete(0).unwrap();
    changed.0.lock().power_cut(0);
    changed.0.lock().start(1);
    changed.0.lock().node(1).bucket_changes().change(BUCKETS[0], &enable, false).unwrap();
    changed.0.lock().start(0);
    changed.run(15);
    assert_eq!(changed.plan(0), changed.plan(1));
    for index in 0..2 {
        assert!(changed.uuid(index).is_none() && !changed.is_on_disk(index));
        let cluster = changed.0.lock();
        assert!(cluster.node(index).buckets().get(BUCKETS[0]).unwrap().flush_enabled());
    }
    changed.end(2);
}

#[test]
fn nothing_is_made_anywhere_while_a_member_is_silent_which_is_named() {
    let changed = Changed::new(1, 3);
    changed.0.lock().power_cut(2);
    let before = changed.plan(0);
    let silent = name_of(&changed.0.lock().machines[2]);
    for index in [0, 1] {
        let refused = changed.create(index).unwrap_err();
        assert!(refused.to_string().contains(&silent), "{refused}");
    }
    for index in [0, 1] {
        assert_eq!(changed.plan(index), before);
        assert!(changed.uuid(index).is_none() && !changed.is_on_disk(index));
    }
    changed.0.lock().start(2);
    changed.create(1).unwrap();
    assert_eq!(changed.plan(0), changed.plan(2));
    changed.end(3);
}

#[test]
fn a_half_made_bucket_is_finished_whoever_loses_power() {
    for lost in [None, Some(0), Some(1)] {
        let changed = Changed::new(2, 2);
        let other = changed.0.lock().machines[1].address.to_string();
        changed.0.lock().others.set_deaf(Some(&other));
        changed.create(0).unwrap();
        assert!(changed.uuid(0).is_some() && changed.uuid(1).is_none());
        if let Some(lost) = lost {
            changed.restart(lost);
        }
        changed.run(1);
        assert!(changed.uuid(1).is_none(), "it has not been told yet");
        changed.0.lock().others.set_deaf(None);
        changed.run(10);
        assert!(changed.uuid(0).is_some() && changed.uuid(0) == changed.uuid(1), "{lost:?}");
        assert_eq!(changed.plan(0), changed.plan(1), "{lost:?}");
        let mut client = Client::new(&changed.0, NEW);
        keys().iter().for_each(|key| client.write_until_durable(key, b"value"));
        client.check();
        drop(client);
        changed.end(2);
    }
}

#[test]
fn a_deletion_reaches_a_member_that_was_silent() {
    for restarted in [None, Some(0)] {
        let changed = Changed::new(3, 2);
        changed.create(0).unwrap();
        changed.0.lock().power_cut(1);
        let silent = name_of(&changed.0.lock().machines[1]);
        assert_eq!(changed.delete(0), Ok(vec![silent]));
        changed.run(1);
        assert!(changed.uuid(0).is_none());
        if let Some(index) = restarted {
            changed.restart(index);
        }
        changed.0.lock().start(1);
        assert!(changed.uuid(1).is_some(), "nobody has told it");
        changed.run(15);
        assert!(changed.uuid(1).is_none() && !changed.is_on_disk(1), "{restarted:?}");
        assert_eq!(changed.plan(0), changed.plan(1), "{restarted:?}");
        changed.end(2);
    }
}

/// Has a node carry out a map that deletes two buckets, while the `number`th call of its disk
/// fails. Returns how many calls that made.
fn delete_two(number: u64) -> u64 {
    let names = [NEW, "travel"];
    let changed = Changed::new(5, 2);
    names.iter().for_each(|name| changed.create_named(0, name).unwrap());
    let other = changed.0.lock().machines[1].address.to_string();
    changed.0.lock().others.set_deaf(Some(&other));
    let deaf = name_of(&changed.0.lock().machines[1]);
    for name in &names {
        assert_eq!(changed.delete_named(0, name), Ok(vec![deaf.clone()]));
    }
    let without = changed.plan(0);
    let files = changed.0.lock().machines[1].files.clone();
    let begun = files.calls().total();
    files.fail(Fault { call: None, number, error: FaultError::Io, from_then_on: false });
    let carried_out = changed.0.lock().node(1).carry_out(&without);
    let count = files.calls().total() - begun;
    files.heal();
    let are_here = names.map(|name| changed.uuid_of(1, name).is_some());
    assert_eq!(are_here, [carried_out.is_err(); 2], "call {number}: {carried_out:?}");
    if carried_out.is_err() {
        // It is told once more.
        changed.0.lock().others.set_deaf(None);
        changed.run(10);
    }
    assert_eq!(changed.plan(1), without, "call {number}");
    assert_eq!(names.map(|name| changed.uuid_of(1, name)), [None, None], "call {number}");
    changed.end(2);
    count
}

#[test]
fn of_two_buckets_that_a_map_deletes_none_goes_or_both_whatever_call_of_the_disk_fails() {
    let count = delete_two(u64::MAX);
    assert!(count > 10, "the map and the marks are durable");
    for number in 1..=count {
        delete_two(number);
    }
}

#[test]
fn a_map_that_lacks_a_bucket_deletes_nothing() {
    let changed = Changed::new(4, 2);
    let mut old = changed.plan(0);
    changed.create(0).unwrap();
    let uuid = changed.uuid(0);
    // However new it says it is.
    old.revision.revision += 10;
    for index in 0..2 {
        let refused = changed.0.lock().node(index).carry_out(&old).unwrap_err();
        assert!(refused.contains("the node has a bucket"), "{refused}");
        changed.restart(index);
        assert_eq!(changed.uuid(index), uuid);
    }
    changed.end(2);
}

#[test]
fn who_has_missed_a_change_takes_it_before_another_is_made() {
    for missed in 0..2 {
        let changed = Changed::new(6, 2);
        changed.0.lock().power_cut(missed);
        let level = vec![("durability_min_level".to_owned(), "majority".to_owned())];
        let other = 1 - missed;
        changed.0.lock().node(other).bucket_changes().change(BUCKETS[0], &level, false).unwrap();
        changed.0.lock().start(missed);
        let plan = changed.plan(other);
        assert!(changed.plan(missed).revision < plan.revision, "nobody has told it yet");
        changed.create(missed).unwrap();
        assert_eq!(changed.plan(missed), changed.plan(other));
        assert_eq!(changed.plan(missed).revision.revision, plan.revision.revision + 1);
        assert_eq!(changed.plan(missed).changes, 2);
        changed.end(2);
    }
}

#[test]
fn settings_are_changed_on_all_nodes() {
    let changed = Changed::new(5, 2);
    changed.create(0).unwrap();
    changed.0.lock().power_cut(0);
    let said = [("flush_enabled", "true"), ("item_eviction_policy", "full_eviction")];
    let said = said.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    for bucket in [NEW, BUCKETS[0]] {
        let cluster = changed.0.lock();
        cluster.node(1).bucket_changes().change(bucket, &said, false).unwrap();
    }
    changed.0.lock().start(0);
    changed.run(15);
    for (index, bucket) in [(0, NEW), (1, NEW), (0, BUCKETS[0]), (1, BUCKETS[0])] {
        let cluster = changed.0.lock();
        let found = cluster.node(index).buckets().get(bucket).unwrap();
        assert!(found.flush_enabled(), "{bucket}");
        assert_eq!(found.bucket().eviction_policy(), EvictionPolicy::Full, "{bucket}");
    }
    changed.end(2);
}

#[test]
fn a_cluster_is_given_a_name_by_any_node_and_who_was_silent_hears_of_it() {
    for (named_on, silent) in [(0, None), (1, Some(0)), (0, Some(1))] {
        let changed = Changed::new(6, 2);
        if let Some(index) = silent {
            changed.0.lock().power_cut(index);
        }
        let name = |name: &str| {
            let cluster = changed.0.lock();
            cluster.node(named_on).membership().set_cluster_name(name)
        };
        assert!(matches!(name("a\nb"), Err(OwnSetupError::Invalid(_))));
        name("mine").unwrap();
        changed.restart(named_on);
        if let Some(index) = silent {
            changed.0.lock().start(index);
        }
        changed.run(15);
        for index in 0..2 {
            let map = changed.0.lock().node(index).membership().cluster_map();
            assert_eq!(map.name, "mine", "{named_on}, {silent:?}: on {index}");
        }
        changed.create(1 - named_on).unwrap();
        assert_eq!(changed.plan(named_on).cluster_name.as_deref(), Some("mine"));
        changed.end(2);
    }
}

#[test]
fn nothing_of_a_deleted_bucket_comes_back_in_another_one_of_its_name() {
    for seed in platform::seeds::seeds(2) {
        let changed = Changed::new(seed, 2);
        changed.create(0).unwrap();
        let mut client = Client::new(&changed.0, NEW);
        keys().iter().for_each(|key| client.write_until_durable(key, b"old"));
        drop(client);
        changed.0.lock().power_cut(1);
        changed.delete(0).unwrap();
        changed.run(1);
        let host = changed.0.lock().machines[1].address.to_string();
        changed.0.lock().others.set_deaf(Some(&host));
        changed.0.lock().start(1);
        // It answers that it could make the bucket, and is not reached any more behind that.
        changed.create(0).unwrap();
        changed.0.lock().others.set_keep_plans(true);
        changed.run(2);
        assert_ne!(changed.uuid(0), changed.uuid(1), "it still has the one that was deleted");
        changed.0.lock().others.set_deaf(None);
        changed.0.lock().others.set_keep_plans(false);
        changed.run(10);
        assert_eq!(changed.uuid(0), changed.uuid(1), "seed {seed}");
        let mut client = Client::new(&changed.0, NEW);
        for key in &keys() {
            assert_eq!(client.get(key), None, "seed {seed}");
            client.write_until_durable(key, b"new");
        }
        drop(client);
        changed.end(2);
    }
}

#[test]
fn scopes_of_a_deleted_bucket_do_not_come_to_another_one_of_its_name() {
    let changed = Changed::new(5, 2);
    let create_scope = |scope: &str| {
        let cluster = changed.0.lock();
        let edit = ManifestEdit::CreateScope { scope };
        cluster.node(0).membership().edit_manifest(NEW, edit).unwrap();
    };
    let scopes = |index: usize| -> Vec<String> {
        let bucket = changed.0.lock().node(index).buckets().get(NEW).unwrap();
        let manifest = bucket.bucket().manifest();
        manifest.scopes.iter().skip(1).map(|scope| scope.name.clone()).collect()
    };
    changed.create(0).unwrap();
    ["a", "b", "c"].iter().for_each(|scope| create_scope(scope));
    assert_eq!(scopes(1), ["a", "b", "c"]);
    changed.0.lock().power_cut(1);
    changed.delete(0).unwrap();
    changed.run(1);
    let host = changed.0.lock().machines[1].address.to_string();
    changed.0.lock().others.set_deaf(Some(&host));
    changed.0.lock().start(1);
    changed.create(0).unwrap();
    changed.0.lock().others.set_keep_plans(true);
    create_scope("new");
    changed.run(2);
    assert_eq!(scopes(0), ["new"]);
    assert_eq!(scopes(1), ["a", "b", "c"], "it still has the one that was deleted");
    changed.0.lock().others.set_deaf(None);
    changed.0.lock().others.set_keep_plans(false);
    changed.run(15);
    assert_eq!(changed.uuid(0), changed.uuid(1));
    assert_eq!((scopes(0), scopes(1)), (vec!["new".to_owned()], vec!["new".to_owned()]));
    changed.end(2);
}
