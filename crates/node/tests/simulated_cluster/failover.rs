//! A node is given up by whoever manages the cluster, who asks the members over the network how far
//! they are.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context;
use cluster::{ClusterPlan, PlannedNode};
use document::VbUuid;
use node::{COPIES_GROUP, Copies, Members, Replicas, ask_replicas, ask_replicas_behind, copies_of};
use platform::simulated::{Call, Fault, FaultError};
use protocol::client::Request;
use protocol::{Opcode, Status};

use crate::{BUCKETS, Client, Cluster, Outcome, PATIENCE, Shared, name_of, vbucket_of};

/// How often a flush looks whether replicas have followed that follow.
const WAITS_MAX: usize = 3000;

/// The machine that is lost, and the one that is silent meanwhile.
const LOST: usize = 0;
const SILENT: usize = 2;

/// Who manages the cluster.
pub(crate) struct Manager {
    pub(crate) cluster: Shared,
}

impl Members for Manager {
    /// Nobody hears it: the machine has no power.
    fn say_farewell(&self, _: &ClusterPlan) {}

    fn hand_over(&self, plan: &ClusterPlan, member: usize) -> anyhow::Result<()> {
        let cluster = self.cluster.lock();
        match &cluster.machines[cluster.machine_of(member)].running {
            Some(running) => {
                running.node.carry_out(plan).map_err(anyhow::Error::msg)?;
                let unsettled = running.node.membership().unsettled();
                anyhow::ensure!(unsettled.is_empty(), "{}", unsettled.join("; "));
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn copies(&self, bucket: &str, member: usize) -> anyhow::Result<Copies> {
        let index = self.cluster.lock().machine_of(member);
        let name = name_of(&self.cluster.lock().machines[index]);
        let asked = self.cluster.connect(index, bucket);
        let told = asked.and_then(|mut connection| connection.statistics(COPIES_GROUP));
        Ok(copies_of(&told.context(name)?))
    }
}

impl Manager {
    /// Gives a member up as an operator does.
    pub(crate) fn give_up(&self, member: usize) -> anyhow::Result<()> {
        let mut plan = self.cluster.lock().plan();
        let replicas = Replicas::of(&plan, member);
        // What is refused now has changed nothing.
        ask_replicas(&replicas, false, self)?;
        let fence = plan.without(member)?;
        plan.revision = fence.revision;
        let standing = ask_replicas_behind(&fence, &replicas, false, self)?;
        let choose = |bucket: &str, vbid, replicas: &[usize]| {
            standing.furthest(bucket, vbid, replicas).expect("everybody has answered")
        };
        let promoted = plan.failed_over(member, choose)?;
        self.cluster.lock().adopted = Some(promoted.clone());
        (0..promoted.nodes.len()).try_for_each(|member| self.hand_over(&promoted, member))
    }

    /// The maps that the machines with power carry out.
    fn maps(&self) -> Vec<ClusterPlan> {
        let cluster = self.cluster.lock();
        let running = cluster.machines.iter().filter_map(|machine| machine.running.as_ref());
        running.map(|running| running.node.membership().plan()).collect()
    }
}

/// Waits until a document can be read: what its node has inherited ends first.
pub(crate) fn wait_until_read(client: &mut Client, key: &[u8]) {
    let begun = client.cluster.lock().clock.now();
    while client.get(key).is_none() {
        let mut cluster = client.cluster.lock();
        assert!(cluster.clock.now().since(begun) < PATIENCE, "{key:?} is not served");
        cluster.run(Duration::from_millis(50));
    }
}

/// A machine is lost while another one is silent. Nobody guesses which replica is the furthest;
/// when the silent one is back the failover is carried out, and nothing that was acknowledged as
/// durable is lost.
fn run(seed: u64) -> Outcome {
    let cluster = Shared(Arc::new(Mutex::new(Cluster::new(seed, &BUCKETS[..1], 3))));
    let mut client = Client::new(&cluster, BUCKETS[0]);
    let keys: Vec<Vec<u8>> = (0..24_u8).map(|number| vec![b'k', number]).collect();
    keys.iter().for_each(|key| client.write_until_durable(key, b"first"));
    cluster.lock().power_cut(SILENT);
    for key in &keys {
        // Two of three copies make a majority, where the active one is among them.
        let _status: Option<Status> = client.set(key, b"second", true);
    }
    cluster.lock().power_cut(LOST);
    client.connections.clear();
    let manager = Manager { cluster: cluster.clone() };
    let before = manager.maps();
    let refused = format!("{:#}", manager.give_up(LOST).expect_err("a replica is silent"));
    let silent = name_of(&cluster.lock().machines[SILENT]);
    for said in ["nothing is changed", silent.as_str(), "bring them back"] {
        assert!(refused.contains(said), "{said}: {refused}, seed {seed}");
    }
    assert!(manager.maps() == before, "nothing is changed, seed {seed}");
    cluster.lock().start(SILENT);
    manager.give_up(LOST).unwrap();
    keys.iter().for_each(|key| wait_until_read(&mut client, key));
    client.check();
    keys.iter().for_each(|key| client.write_until_durable(key, b"third"));
    client.check();
    drop(client);
    let mut cluster = cluster.lock();
    let outcome = Outcome { ended: cluster.clock.now(), disks: cluster.disks() };
    [1, SILENT].into_iter().for_each(|index| cluster.power_cut(index));
    outcome
}

/// Empties the bucket on all nodes, as the management port of one does, which waits so often.
fn try_to_flush(cluster: &Shared, waits_max: usize) -> Result<(), String> {
    let membership = Arc::clone(cluster.lock().node(1).membership());
    let here = cluster.lock().node(1).buckets().get(BUCKETS[0]).unwrap();
    let mut waits = 0;
    let pause = || {
        waits += 1;
        cluster.lock().run(Duration::from_millis(20));
        waits < waits_max
    };
    let empty = || here.bucket().flush_all().map_err(|error| error.to_string());
    membership.flush_everywhere(BUCKETS[0], empty, pause)?;
    assert!(waits > 0, "replicas follow behind");
    Ok(())
}

fn flush_everywhere(client: &mut Client) {
    try_to_flush(&client.cluster, WAITS_MAX).unwrap();
}

/// The histories of a bucket's vBuckets that a machine has, by vBucket.
fn histories(cluster: &Cluster, index: usize) -> BTreeMap<u16, VbUuid> {
    let mut found = BTreeMap::new();
    let bucket = cluster.node(index).buckets().get(BUCKETS[0]).unwrap();
    bucket.bucket().for_each_vbucket(|vbid, vbucket| {
        found.insert(vbid.0, vbucket.uuid());
    });
    found
}

/// Has FLUSH empty the bucket.
fn enable_flush(cluster: &mut Cluster) {
    let enable = vec![("flush_enabled".to_owned(), "true".to_owned())];
    cluster.node(1).bucket_changes().change(BUCKETS[0], &enable, false).unwrap();
    cluster.adopted = Some(cluster.node(1).membership().plan());
}

/// Empties the bucket on one node after the other, as clients of the data port do.
fn flush_each(client: &mut Client) {
    let cluster = client.cluster.clone();
    enable_flush(&mut cluster.lock());
    for index in 0..3 {
        let before = histories(&cluster.lock(), index);
        let answer = client.connection(index).unwrap().call(&Request::new(Opcode::Flush));
        assert_eq!(answer.unwrap().status(), Some(Status::Success));
        let cluster = cluster.lock();
        let copies: Vec<_> = (0..3).map(|index| histories(&cluster, index)).collect();
        for (vbid, chain) in (0..).zip(&cluster.plan().buckets[BUCKETS[0]].chains) {
            if chain[0] == Some(index) {
                assert_ne!(copies[index][&vbid], before[&vbid], "it begins anew");
                let is_same = copies.iter().all(|copy| copy[&vbid] == copies[index][&vbid]);
                assert!(is_same, "replicas have followed: {copies:?}");
            }
        }
    }
}

#[test]
fn a_failover_behind_a_flush_brings_nothing_back() {
    let ways: [fn(&mut Client); 2] = [flush_everywhere, flush_each];
    for (seed, flush) in platform::seeds::seeds(3).flat_map(|seed| ways.map(|way| (seed, way))) {
        let cluster = Shared(Arc::new(Mutex::new(Cluster::new(seed, &BUCKETS[..1], 3))));
        let mut client = Client::new(&cluster, BUCKETS[0]);
        (0..24_u8).for_each(|number| client.write_until_durable(&[b'k', number], b"value"));
        flush(&mut client);
        cluster.lock().power_cut(LOST);
        client.connections.clear();
        Manager { cluster: cluster.clone() }.give_up(LOST).unwrap();
        let mut cluster = cluster.lock();
        cluster.run(Duration::from_secs(5));
        for index in [1, SILENT] {
            let bucket = cluster.node(index).buckets().get(BUCKETS[0]).unwrap();
            bucket.bucket().for_each_vbucket(|vbid, vbucket| {
                let count = vbucket.default_collection_count();
                assert_eq!(count, 0, "{vbid:?} of machine {index}, seed {seed}");
            });
        }
        [1, SILENT].into_iter().for_each(|index| cluster.power_cut(index));
    }
}

/// Two nodes with documents, each active for half of them and a replica of the rest.
fn two_nodes() -> (Shared, Client) {
    let cluster = Shared(Arc::new(Mutex::new(Cluster::new(1, &BUCKETS[..1], 2))));
    let mut client = Client::new(&cluster, BUCKETS[0]);
    (0..24_u8).for_each(|number| client.write_until_durable(&[b'k', number], b"value"));
    (cluster, client)
}

fn cut_power_of_both(cluster: &Shared) {
    (0..2).for_each(|index| cluster.lock().power_cut(index));
}

#[test]
fn a_flush_waits_for_replicas_for_which_their_own_node_waits_no_more() {
    let (cluster, client) = two_nodes();
    cluster.lock().others.0.lock().unwrap().have_late_replicas = true;
    try_to_flush(&cluster, WAITS_MAX).unwrap();
    for index in 0..2 {
        let copies = histories(&cluster.lock(), index);
        assert_eq!(copies, histories(&cluster.lock(), 0), "all have followed");
        let bucket = cluster.lock().node(index).buckets().get(BUCKETS[0]).unwrap();
        bucket.bucket().for_each_vbucket(|vbid, vbucket| {
            assert_eq!(vbucket.default_collection_count(), 0, "{vbid:?} of machine {index}");
        });
    }
    drop(client);
    cut_power_of_both(&cluster);
}

#[test]
fn a_flush_that_is_not_done_names_the_node_and_the_vbucket() {
    let (cluster, client) = two_nodes();
    let others = cluster.lock().others.clone();
    others.0.lock().unwrap().have_late_replicas = true;
    let behind = try_to_flush(&cluster, 0).unwrap_err();
    for said in ["The bucket is empty", "n@10.0.0.", "vBucket 0", "8 copies"] {
        assert!(behind.contains(said), "{said}: {behind}");
    }
    others.set_deaf(Some("10.0.0.1"));
    let before = histories(&cluster.lock(), 0);
    let left = try_to_flush(&cluster, 0).unwrap_err();
    for said in ["n@10.0.0.1 has not emptied its part", "4 of its vBuckets", "it empties nothing"] {
        assert!(left.contains(said), "{said}: {left}");
    }
    let cut = histories(&cluster.lock(), 0);
    assert_eq!(cut, before, "it has said what is true");
    drop(client);
    cut_power_of_both(&cluster);
}

#[test]
fn a_flush_empties_nothing_while_a_replica_is_silent() {
    let cluster = Shared(Arc::new(Mutex::new(Cluster::new(1, &BUCKETS[..1], 2))));
    let mut client = Client::new(&cluster, BUCKETS[0]);
    let keys: Vec<Vec<u8>> = (0..8_u8).map(|number| vec![b'k', number]).collect();
    keys.iter().for_each(|key| client.write_until_durable(key, b"value"));
    enable_flush(&mut cluster.lock());
    cluster.lock().power_cut(1);
    client.connections.clear();
    let answer = client.connection(0).unwrap().call(&Request::new(Opcode::Flush)).unwrap();
    assert_eq!(answer.status(), Some(Status::Etmpfail));
    let plan = cluster.lock().plan();
    let is_served = |key: &&Vec<u8>| plan.buckets[BUCKETS[0]].chain(vbucket_of(key))[0] == Some(0);
    let served: Vec<&Vec<u8>> = keys.iter().filter(is_served).collect();
    assert!(!served.is_empty());
    for key in served {
        assert_eq!(client.get(key).as_deref(), Some(&b"value"[..]));
    }
    drop(client);
    cluster.lock().power_cut(0);
}

/// A machine takes writes that nobody else gets, is given up, and comes back while the one that has
/// taken its place has no power: the one that this is is returned, as a member of the map.
fn lose_a_successor(client: &mut Client, keys: &[Vec<u8>], are_durable: bool) -> usize {
    let cluster = client.cluster.clone();
    let manager = Manager { cluster: cluster.clone() };
    let others = 1..cluster.lock().machines.len();
    keys.iter().for_each(|key| client.write_until_durable(key, b"first"));
    others.clone().for_each(|index| cluster.lock().power_cut(index));
    for key in keys {
        for _ in 0..5 {
            assert_eq!(client.set(key, b"abandoned", false), Some(Status::Success));
        }
        assert_ne!(client.set(key, b"abandoned", true), Some(Status::Success));
    }
    cluster.lock().power_cut(LOST);
    client.connections.clear();
    others.for_each(|index| cluster.lock().start(index));
    manager.give_up(LOST).unwrap();
    for key in keys {
        wait_until_read(client, key);
        match are_durable {
            true => client.write_until_durable(key, b"second"),
            false => assert_eq!(client.set(key, b"second", false), Some(Status::Success)),
        }
    }

    let mut cluster = cluster.lock();
    let plan = cluster.plan();
    let successor = plan.buckets[BUCKETS[0]].chain(vbucket_of(&keys[0]))[0].unwrap();
    let without_power = cluster.machine_of(successor);
    cluster.power_cut(without_power);
    cluster.start(LOST);
    let name = name_of(&cluster.machines[LOST]);
    let mut back = plan.nodes[0].clone();
    back.address.host = cluster.machines[LOST].address.to_string();
    let back = plan.joined(PlannedNode { name, ..back }).unwrap();
    cluster.adopted = Some(back.clone());
    drop(cluster);
    client.connections.clear();
    (0..back.nodes.len()).for_each(|member| manager.hand_over(&back, member).unwrap());
    client.cluster.lock().run(Duration::from_secs(2));
    successor
}

/// Keys of vBuckets that are active on the machine that is lost.
fn keys_of_lost(cluster: &Shared) -> Vec<Vec<u8>> {
    let plan = cluster.lock().plan();
    let is_of_lost =
        |key: &Vec<u8>| plan.buckets[BUCKETS[0]].chain(vbucket_of(key))[0] == Some(LOST);
    (0..24_u8).map(|number| vec![b'k', number]).filter(is_of_lost).collect()
}

#[test]
fn a_branch_that_was_given_up_does_not_win_over_what_was_acknowledged_since() {
    for seed in platform::seeds::seeds(3) {
        let cluster = Shared(Arc::new(Mutex::new(Cluster::new(seed, &BUCKETS[..1], 3))));
        let mut client = Client::new(&cluster, BUCKETS[0]);
        let keys = keys_of_lost(&cluster);
        let successor = lose_a_successor(&mut client, &keys, true);
        let manager = Manager { cluster: cluster.clone() };
        let replicas = Replicas::of(&cluster.lock().plan(), successor);
        let standing = ask_replicas(&replicas, false, &manager).unwrap();
        assert!(standing.in_doubt(&replicas).is_empty(), "one has followed, seed {seed}");
        manager.give_up(successor).unwrap();
        keys.iter().for_each(|key| wait_until_read(&mut client, key));
        client.check();
        drop((client, manager));
        let mut cluster = cluster.lock();
        for index in 0..3 {
            if cluster.machines[index].running.is_some() {
                cluster.power_cut(index);
            }
        }
    }
}

#[test]
fn a_branch_that_was_given_up_is_not_promoted_unless_somebody_insists() {
    let cluster = Shared(Arc::new(Mutex::new(Cluster::new(1, &BUCKETS[..1], 2))));
    let mut client = Client::new(&cluster, BUCKETS[0]);
    let keys = keys_of_lost(&cluster);
    let successor = lose_a_successor(&mut client, &keys, false);
    let manager = Manager { cluster: cluster.clone() };
    let replicas = Replicas::of(&cluster.lock().plan(), successor);
    let standing = ask_replicas(&replicas, false, &manager).unwrap();
    let in_doubt = standing.in_doubt(&replicas);
    for key in &keys {
        let vbucket = (BUCKETS[0].to_owned(), vbucket_of(key));
        assert!(in_doubt.contains(&vbucket), "{vbucket:?}: {in_doubt:?}");
    }
    drop((client, manager));
    cluster.lock().power_cut(LOST);
}

/// Behind a crash it would follow the lost node again, which may serve on where nobody sees it, and
/// hold what that acknowledges, while somebody else is promoted.
#[test]
fn a_replica_whose_disk_does_not_take_the_first_map_keeps_a_failover_from_going_on() {
    let cluster = Shared(Arc::new(Mutex::new(Cluster::new(1, &BUCKETS[..1], 3))));
    let mut client = Client::new(&cluster, BUCKETS[0]);
    let keys = keys_of_lost(&cluster);
    keys.iter().for_each(|key| client.write_until_durable(key, b"first"));
    cluster.lock().power_cut(LOST);
    client.connections.clear();
    let manager = Manager { cluster: cluster.clone() };
    let files = cluster.lock().machines[SILENT].files.clone();
    files.fail(Fault {
        call: Some(Call::Rename),
        number: 1,
        error: FaultError::Io,
        from_then_on: true,
    });
    let refused = manager.give_up(LOST).expect_err("it may follow the lost node again");
    assert!(format!("{refused:#}").contains("its disk does not take the map"), "{refused:#}");
    cluster.lock().power_cut(SILENT);
    files.heal();
    cluster.lock().start(SILENT);
    let before = cluster.lock().node(SILENT).membership().plan();
    assert!(before.index_of("n@10.0.0.1").is_some(), "it follows the lost one again");
    manager.give_up(LOST).unwrap();
    keys.iter().for_each(|key| wait_until_read(&mut client, key));
    client.check();
    drop((client, manager));
    [1, SILENT].into_iter().for_each(|index| cluster.lock().power_cut(index));
}

#[test]
fn nobody_guesses_about_a_silent_member_and_the_failover_goes_on_when_it_answers() {
    let seeds = platform::seeds::seeds(3);
    let outcomes: Vec<(u64, Outcome)> = seeds.map(|seed| (seed, run(seed))).collect();
    let (seed, first) = &outcomes[0];
    assert!(*first == run(*seed), "a seed decides every byte: {seed}");
    assert!(outcomes.iter().skip(1).all(|(_, other)| other.disks != first.disks));
}
