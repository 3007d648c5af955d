//! A machine comes back with an empty disk and the map by which it is active, while the one that
//! has the replicas is silent.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cluster::PendingVbucket;
use protocol::Status;

use crate::failover::{Manager, wait_until_read};
use crate::{BUCKETS, Client, Cluster, Outcome, PATIENCE, Shared, VBUCKETS, name_of, vbucket_of};

/// The machine whose disk is lost, and the one that is silent meanwhile.
const LOST: usize = 0;
const SILENT: usize = 1;

/// What the machine with the new disk says it waits for.
fn pending(cluster: &Shared) -> Vec<PendingVbucket> {
    let cluster = cluster.lock();
    let running = cluster.machines[LOST].running.as_ref().expect("it has power");
    running.node.membership().pending(BUCKETS[0])
}

fn vbids(pending: &[PendingVbucket]) -> Vec<u16> {
    pending.iter().map(|pending| pending.vbid).collect()
}

/// Waits until these vBuckets alone are pending, and every reason says this.
fn wait_until_pending(cluster: &Shared, vbids_wanted: &[u16], words: &str) {
    let begun = cluster.lock().clock.now();
    loop {
        let pending = pending(cluster);
        let is_said = pending.iter().all(|pending| pending.reason.contains(words));
        if vbids(&pending) == vbids_wanted && is_said {
            return;
        }
        let mut cluster = cluster.lock();
        assert!(cluster.clock.now().since(begun) < PATIENCE, "not {words}: {pending:?}");
        cluster.run(Duration::from_millis(50));
    }
}

/// Half of each node's vBuckets are empty.
fn has_documents(vbid: u16) -> bool {
    vbid % 4 < 2
}

/// No vBucket of the machine with the new disk is served, and it says why, until the silent one
/// answers: then the empty ones are, and the others wait for a map that promotes their replicas,
/// with which everything that was acknowledged is there.
fn run(seed: u64) -> Outcome {
    let cluster = Shared(Arc::new(Mutex::new(Cluster::new(seed, &BUCKETS[..1], 2))));
    let mut client = Client::new(&cluster, BUCKETS[0]);
    let numbers = (0..48_u8).filter(|number| has_documents(u16::from(*number)));
    let keys: Vec<Vec<u8>> = numbers.map(|number| vec![b'k', number]).collect();
    keys.iter().for_each(|key| client.write_until_durable(key, b"value"));
    [LOST, SILENT].into_iter().for_each(|index| cluster.lock().power_cut(index));
    cluster.lock().replace_disk(LOST);
    cluster.lock().start(LOST);
    client.connections.clear();

    let plan = cluster.lock().plan();
    let is_of_lost = |vbid: &u16| plan.buckets[BUCKETS[0]].chain(*vbid)[0] == Some(LOST);
    let of_lost: Vec<u16> = (0..VBUCKETS).filter(is_of_lost).collect();
    let (with_documents, empty): (Vec<u16>, Vec<u16>) =
        of_lost.iter().partition(|vbid| has_documents(**vbid));
    assert!(!with_documents.is_empty() && !empty.is_empty());
    let silent = name_of(&cluster.lock().machines[SILENT]);
    wait_until_pending(&cluster, &of_lost, &format!("{silent}, which may hold a replica"));
    cluster.lock().run(Duration::from_secs(20));
    wait_until_pending(&cluster, &of_lost, "does not answer");
    let keys_of_lost = keys.iter().filter(|key| is_of_lost(&vbucket_of(key)));
    let empty_key = |vbid: &u16| vec![b'e', u8::try_from(*vbid).unwrap()];
    for key in keys_of_lost.cloned().chain(empty.iter().map(empty_key)) {
        let status = client.set(&key, b"guessed", false);
        assert_eq!(status, Some(Status::NotMyVbucket), "{key:?}, seed {seed}");
        assert_eq!(client.get(&key), None, "{key:?}, seed {seed}");
    }

    cluster.lock().start(SILENT);
    wait_until_pending(&cluster, &with_documents, &format!("{silent} holds a replica"));
    for key in empty.iter().map(empty_key) {
        assert_eq!(client.set(&key, b"new", false), Some(Status::Success), "seed {seed}");
    }
    let refused = client.set(&keys[0], b"guessed", false);
    assert_eq!(refused, Some(Status::NotMyVbucket), "seed {seed}");

    let manager = Manager { cluster: cluster.clone() };
    manager.give_up(LOST).unwrap();
    keys.iter().for_each(|key| wait_until_read(&mut client, key));
    client.ambiguous.clear();
    client.check();
    drop((manager, client));
    let mut cluster = cluster.lock();
    let outcome = Outcome { ended: cluster.clock.now(), disks: cluster.disks() };
    [LOST, SILENT].into_iter().for_each(|index| cluster.power_cut(index));
    outcome
}

#[test]
fn a_lost_disk_is_no_empty_one_while_a_member_is_silent_and_the_node_goes_on_when_it_answers() {
    let seeds = platform::seeds::seeds(3);
    let outcomes: Vec<(u64, Outcome)> = seeds.map(|seed| (seed, run(seed))).collect();
    let (seed, first) = &outcomes[0];
    assert!(*first == run(*seed), "a seed decides every byte: {seed}");
    assert!(outcomes.iter().skip(1).all(|(_, other)| other.disks != first.disks));
}
