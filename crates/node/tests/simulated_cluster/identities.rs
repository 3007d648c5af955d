//! Nodes keep who they are, and know it of each other.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cluster::Uuid;

use crate::{BUCKETS, Cluster, Shared};

/// What each machine with power says of both.
fn said(cluster: &Shared) -> [[Uuid; 2]; 2] {
    let cluster = cluster.lock();
    let plan = cluster.plan();
    [0, 1].map(|asked| {
        let membership = cluster.node(asked).membership();
        [0, 1].map(|member: usize| membership.uuid_of(&plan.nodes[member].address))
    })
}

fn restart(cluster: &Shared, index: usize, on_new_disk: bool) {
    let mut cluster = cluster.lock();
    cluster.power_cut(index);
    if on_new_disk {
        cluster.replace_disk(index);
    }
    cluster.start(index);
    // The longest pause of who is asked again.
    cluster.run(Duration::from_secs(20));
}

#[test]
fn a_node_is_who_it_was_after_a_restart_and_another_one_on_a_new_disk() {
    let cluster = Shared(Arc::new(Mutex::new(Cluster::new(1, &BUCKETS[..1], 2))));
    cluster.lock().run(Duration::from_secs(20));
    let [by_first, by_second] = said(&cluster);
    let [first, second] = by_first;
    assert_ne!(first, second);
    assert_eq!(by_second, by_first, "they say the same of each other");
    restart(&cluster, 1, false);
    assert_eq!(said(&cluster), [[first, second]; 2], "a start changes nobody");
    restart(&cluster, 1, true);
    let [by_first, by_second] = said(&cluster);
    assert!(by_second[1] != second && by_second[0] == first, "its disk was who it was");
    // Who has answered is asked again when there is another map.
    assert_eq!(by_first, [first, second]);
    let mut plan = cluster.lock().plan();
    plan.revision.revision += 1;
    cluster.lock().node(0).carry_out(&plan).unwrap();
    cluster.lock().run(Duration::from_secs(20));
    assert_eq!(said(&cluster)[0], by_second);
    (0..2).for_each(|index| cluster.lock().power_cut(index));
}

#[test]
fn nodes_hear_what_the_others_have_with_the_map_and_when_they_ask() {
    let cluster = Shared(Arc::new(Mutex::new(Cluster::new(1, &BUCKETS[..1], 2))));
    cluster.lock().run(Duration::from_secs(20));
    let elsewhere = |index| {
        let membership = Arc::clone(cluster.lock().node(index).membership());
        let before = membership.storage_elsewhere().disk_free_bytes;
        // Without the lock: others are asked behind it.
        membership.ask_others();
        (before, membership.storage_elsewhere().disk_free_bytes)
    };
    assert_eq!([elsewhere(0), elsewhere(1)], [(1, 1); 2], "one says what the other has");
    cluster.lock().power_cut(1);
    assert_eq!(elsewhere(0), (1, 1), "what a silent node has said last stays");
    cluster.lock().power_cut(0);
}
