//! A replica.

use super::run;

#[test]
fn prepares_are_held_once_their_snapshot_is_whole() {
    run("
        role replica
        stream
        memory 1 3
        prepare x majority 1
        prepare y active 2
        state => hps 0 hcs 0 tracked 2 prepares 2 visible 0
        mutation m 3 => held 2
        get_replica x => NotFound
        checkpoint 4 6
        commit x 1 4
        get_replica x => x@1
        abort y 2 5
        get_replica y => NotFound
        mutation m 6
        state => hps 2 hcs 2 tracked 0 prepares 0 visible 6
        log => p1 p2 m3 | c4 a5 m6
    ");
    // Gaps between seqnos, and snapshots without prepares.
    run("
        role replica
        stream
        memory 1 9
        prepare x majority 4
        prepare y majority 7
        mutation m 9 => held 7
        memory 10 12
        mutation m 12
        memory 13 13
        commit x 4 13
        memory 14 22
        advance 22
        state => hps 7 hcs 4 tracked 1 prepares 1 visible 13
    ");
}

#[test]
fn what_has_to_be_persisted_is_held_once_its_whole_snapshot_is() {
    run("
        role replica
        stream
        memory 1 4
        prepare x majority 1
        prepare y persist 2
        prepare z majority 3
        flush
        mutation m 4 => held 1
        memory 5 5
        prepare w majority 5
        flush => held 5
    ");
    // The end of the snapshot is a seqno that nobody sends.
    run("
        role replica
        stream
        memory 1 4
        prepare y persist 2
        flush
        advance 4
        flush => held 2
    ");
}

#[test]
fn a_disk_snapshot_is_held_at_its_end_once_it_is_persisted() {
    // Prepares that have ended were left out: the end counts, or what the sender says.
    for (marker, held) in [("1 5 0", 5), ("1 5 0 4", 4), ("1 5 0 0", 5)] {
        run(&format!(
            "
            role replica
            stream
            disk {marker}
            mutation m 3
            flush
            mutation n 5
            flush => held {held}
            file => hps {held} pcs 0 pps 0 visible 5
            "
        ));
    }
    run("
        role replica
        stream
        disk 1 5 0
        prepare x majority 3
        flush
        mutation n 5
        memory 6 6
        prepare y majority 6
        state => hps 0 hcs 0 tracked 2 prepares 2 visible 5
        flush => held 6
    ");
    run("
        role replica
        stream
        memory 1 1
        prepare x persist 1
        disk 2 5 0 1
        mutation n 5
        flush => held 1 held 5
    ");
}

#[test]
fn writes_end_in_order_in_memory_snapshots() {
    run("
        role replica
        stream
        memory 1 9
        prepare x majority 1
        prepare y majority 2
        commit y 2 3 => NoSuchPrepare
        abort y 2 3 => NoSuchPrepare
        commit x 2 3 => NoSuchPrepare
        abort z 1 3 => NoSuchPrepare
        commit x 1 3
        commit x 1 4 => NoSuchPrepare
        abort y 2 4
        abort y 2 5 => NoSuchPrepare
        prepare x majority 5
        prepare x majority 6 => UnexpectedPrepare
        mutation x 6 => UnexpectedPrepare
        deletion x 6 => UnexpectedPrepare
        commit x 5 9 => held 5
    ");
}

#[test]
fn in_disk_snapshots_writes_end_in_any_order_and_by_versions_that_stand_for_them() {
    run("
        role replica
        stream
        memory 1 4
        prepare w majority 1
        prepare x majority 2
        prepare y majority 3
        prepare z majority 4 => held 4
        disk 5 12 4
        abort y 3 6
        mutation x 7
        abort other 5 8
        commit gone 5 9
        deletion w 10
        state => hps 4 hcs 0 tracked 4 prepares 1 visible 10
        mutation m 12
        state => hps 4 hcs 4 tracked 0 prepares 0 visible 12
        get_replica x => x@7
        get_replica z => NotFound
        flush => held 12
        file => hps 12 pcs 4 pps 4 visible 12
    ");
    run("
        role replica
        stream
        memory 1 1
        prepare x majority 1 => held 1
        disk 2 6 0
        prepare x majority 4
        mutation m 6
        state => hps 1 hcs 0 tracked 1 prepares 1 visible 6
        flush => held 6
        checkpoint 7 7
        commit x 4 7
        get_replica x => x@4
    ");
}

#[test]
fn what_has_ended_is_remembered_until_it_is_held() {
    run("
        role replica
        stream
        memory 1 1
        prepare x persist 1
        checkpoint 2 2
        commit x 1 2
        state => hps 0 hcs 1 tracked 1 prepares 0 visible 2
        flush => held 1
        state => hps 1 hcs 1 tracked 0 prepares 0 visible 2
    ");
    run("
        role replica
        stream
        memory 1 1
        prepare x persist 1
        checkpoint 2 3
        abort x 1 2
        prepare x majority 3
        state => hps 0 hcs 1 tracked 2 prepares 1 visible 0
        flush => held 3
        state => hps 3 hcs 1 tracked 1 prepares 1 visible 0
    ");
}

#[test]
fn a_new_stream_hears_at_once_what_is_held_and_may_bring_prepares_again() {
    run("
        role replica
        stream
        memory 1 3
        prepare x majority 1
        prepare y majority 2
        advance 3 => held 2
        stream => held 2
        memory 4 6
        prepare x majority 4
        prepare x majority 5 => UnexpectedPrepare
        mutation y 5
        prepare y majority 6 => held 6
        state => hps 6 hcs 0 tracked 2 prepares 2 visible 5
        checkpoint 7 8
        commit x 4 7
        commit y 6 8
        state => hps 6 hcs 6 tracked 0 prepares 0 visible 8
    ");
}

#[test]
fn the_rest_of_a_snapshot_that_was_cut_off_makes_it_whole() {
    run("
        role replica
        stream
        memory 1 9
        prepare x majority 1
        stream
        memory 0 4
        mutation m 4 => held 1
    ");
    run("
        role replica
        stream
        disk 1 9 0
        prepare x majority 1
        flush
        stream
        disk 1 12 0 1
        mutation m 12
        flush => held 1
    ");
}

#[test]
fn checkpoints_of_a_replica_keep_versions_apart_whatever_its_sender_says() {
    run("
        role replica
        stream
        memory 1 9
        mutation k 1
        prepare k majority 2
        commit k 2 3
        prepare k majority 4
        abort k 4 5
        prepare k majority 6
        commit k 6 7
        mutation k 9 => held 6
        log => m1 p2 | c3 p4 | a5 | p6 c7 | m9
    ");
}
