//! What the file remembers, and what comes back from it.

use super::run;

#[test]
fn the_file_knows_up_to_where_prepares_have_ended_and_are_held() {
    run("
        topology a b
        set m => @1
        sync_set x majority => begun@2 timer 30
        sync_set y persist => begun@3
        flush
        file => hps 3 pcs 0 pps 3 visible 1
        ack b 3 => commit x@4 commit y@5
        flush
        file => hps 3 pcs 3 pps 3 visible 5
        sync_set x majority 1 => begun@6 timer 1
        wait 1 => ambiguous x
        flush
        file => hps 6 pcs 6 pps 6 visible 5
    ");
    // Of a replica, what is held is known where a snapshot ends.
    run("
        role replica
        stream
        memory 1 2
        prepare x majority 1
        mutation m 2 => held 1
        memory 3 9
        prepare y majority 3
        flush
        file => hps 1 pcs 0 pps 3 visible 2
        mutation n 9 => held 3
        flush
        file => hps 3 pcs 0 pps 3 visible 9
    ");
    // In a part of a disk snapshot ends have no order.
    run("
        role replica
        stream
        memory 1 2
        prepare x majority 1
        prepare y majority 2 => held 2
        disk 3 9 2 2
        abort y 2 4
        flush
        file => hps 2 pcs 0 pps 2 visible 0
        mutation x 9
        flush => held 9
        file => hps 9 pcs 2 pps 2 visible 9
    ");
}

/// The end of the snapshot is a seqno that nobody sends, and is heard of behind the last flush, or
/// in front of it.
#[test]
fn what_was_acknowledged_is_held_after_a_restart_where_a_snapshot_ends_without_an_item() {
    for order in ["flush \n advance 4 => held 1 \n flush", "advance 4 => held 1 \n flush"] {
        run(&format!(
            "
            role replica
            stream
            memory 1 4
            prepare x majority 1
            prepare y persist 2
            {order} => held 2
            file => hps 2 pcs 0 pps 2 visible 0
            crash
            state => hps 2 hcs 0 tracked 2 prepares 2 visible 0
            stream => held 2
            memory 3 6
            commit x 1 5
            "
        ));
    }
    for order in ["flush \n advance 9 \n flush", "advance 9 \n flush"] {
        run(&format!(
            "
            role replica
            stream
            memory 1 2
            prepare x majority 1
            prepare y majority 2 => held 2
            disk 3 9 2
            mutation m 4
            {order} => held 9
            file => hps 9 pcs 2 pps 2 visible 4
            crash
            state => hps 9 hcs 2 tracked 0 prepares 0 visible 4
            stream => held 9
            "
        ));
    }
}

#[test]
fn prepares_that_have_not_ended_come_back_and_end() {
    for level in ["majority", "active", "persist"] {
        run(&format!(
            "
            topology a b
            set x => @1
            sync_set x {level} => begun@2 timer 30
            flush
            crash
            get x => RecommitInProgress
            set x => RecommitInProgress
            state => hps 2 hcs 0 tracked 1 prepares 1 visible 1
            wait 99
            ack b 2
            get x => x@2
            "
        ));
        run(&format!(
            "
            topology a
            sync_set x {level} => begun@1 timer 30
            flush
            crash
            get x => x@1
            "
        )
        .replace(
            "begun@1 timer 30",
            if level == "majority" { "begun@1 commit x@2" } else { "begun@1 timer 30" },
        )
        .replace("flush\n", if level == "majority" { "flush\n" } else { "flush => commit x@2\n" }));
    }
    // What has ended stays ended.
    run("
        topology a b
        sync_set x majority 1 => begun@1 timer 1
        sync_set y majority 9 => begun@2
        wait 1 => next 8 ambiguous x
        ack b 2 => commit y@4
        flush
        crash
        state => hps 2 hcs 2 tracked 0 prepares 0 visible 4
        get y => y@2
        get x => NotFound
        set x => @5
    ");
    // What was not persisted never was.
    run("
        topology a b
        sync_set x majority => begun@1 timer 30
        flush
        ack b 1 => commit x@2
        crash
        get x => RecommitInProgress
        ack b 1
        get x => x@1
    ");
}

#[test]
fn a_replica_that_comes_back_holds_what_its_file_does() {
    run("
        role replica
        stream
        memory 1 2
        prepare x majority 1
        prepare y persist 2 => held 1
        flush => held 2
        memory 3 9
        prepare z majority 3
        flush
        crash
        state => hps 2 hcs 0 tracked 3 prepares 3 visible 0
        stream => held 2
        memory 2 9
        mutation m 9 => held 3
        checkpoint 10 10
        commit x 1 10
        get_replica x => x@1
    ");
    // In the middle of a disk snapshot: the version that has come ends the prepare.
    run("
        role replica
        stream
        memory 1 2
        prepare x majority 1
        prepare y majority 2 => held 2
        flush
        disk 3 9 2
        mutation x 5
        flush
        crash
        state => hps 2 hcs 0 tracked 1 prepares 1 visible 5
        stream => held 2
        disk 3 9 2
        abort y 2 9
        state => hps 2 hcs 2 tracked 0 prepares 0 visible 5
        flush => held 9
    ");
}
