//! Collections that are dropped while durable writes of theirs have not ended.

use super::run;

#[test]
fn a_dropped_write_is_forgotten_and_its_client_hears_why() {
    // The only one.
    run("
        topology a b
        set 8:x => @1
        sync_set 8:x majority => begun@2 timer 30
        drop 9
        drop 8 1
        drop 8 2 => dropped 8:x
        drop 8
        state => hps 2 hcs 0 tracked 0 prepares 0 visible 1
        ack b 2
        wait 30
        get 8:x => 8:x@1
        set 8:x => @3
        sync_set y majority => begun@4 timer 30
        ack b 4 => commit y@5
    ");
    // The first one, an acknowledgement before, between and behind.
    for ack in ["ack b 1", "ack b 2", "ack b 3"] {
        run(&format!(
            "
            topology a b c d
            replicas_max 3
            sync_set 8:x majority => begun@1 timer 30
            sync_set y majority => begun@2
            sync_set z majority => begun@3
            {ack}
            drop 8 => dropped 8:x
            state => hps 3 hcs 0 tracked 2 prepares 2 visible 0
            ack b 3
            ack c 3 => commit y@4 commit z@5
            state => hps 3 hcs 3 tracked 0 prepares 0 visible 5
            "
        ));
    }
    // The last one, and one in the middle.
    run("
        topology a b
        sync_set x majority => begun@1 timer 30
        sync_set 8:y majority => begun@2
        sync_set z majority => begun@3
        sync_set 8:w majority => begun@4
        drop 8 => dropped 8:y dropped 8:w
        ack b 1 => commit x@5
        state => hps 4 hcs 1 tracked 1 prepares 1 visible 5
        ack b 3 => commit z@6
        log => p1 p2 p3 p4 c5 c6
    ");
    // Behind one that was committed.
    run("
        topology a b
        sync_set x majority => begun@1 timer 30
        sync_set 8:y majority => begun@2
        ack b 1 => commit x@3
        drop 8 => dropped 8:y
        ack b 2
        state => hps 2 hcs 1 tracked 0 prepares 0 visible 3
    ");
}

#[test]
fn what_waited_behind_a_dropped_write_goes_on() {
    run("
        topology a b
        sync_set 8:x persist => begun@1 timer 30
        sync_set y majority => begun@2
        ack b 2
        get y => NotFound
        drop 8 => dropped 8:x commit y@3
        flush
        state => hps 2 hcs 2 tracked 0 prepares 0 visible 3
    ");
    // Those that are held are not counted twice.
    run("
        topology a b
        sync_set 8:x majority => begun@1 timer 30
        sync_set y majority => begun@2
        sync_set z persist => begun@3
        state => hps 2 hcs 0 tracked 3 prepares 3 visible 0
        drop 8 => dropped 8:x
        sync_set w majority => begun@4
        state => hps 2 hcs 0 tracked 3 prepares 3 visible 0
        ack b 4 => commit y@5
        flush => commit z@6 commit w@7
    ");
    // A client behind one that nobody may abort is the next to be given up.
    run("
        role replica
        stream
        memory 1 2
        prepare 8:x majority 1
        prepare y majority 2 => held 2
        role active
        topology a b
        sync_set z majority 9 => begun@3 timer 9
        drop 8
        wait 9 => ambiguous z
        get y => RecommitInProgress
        ack b 3
        get z => z@3
    ");
    run("
        role replica
        stream
        memory 1 1
        prepare 8:x majority 1 => held 1
        role active
        topology a b
        sync_set z majority 9 => begun@2 timer 9
        drop 8
        wait 9 => ambiguous z
        get z => NotFound
    ");
}

#[test]
fn several_collections_are_dropped_one_by_one_and_come_again() {
    run("
        topology a b
        sync_set 8:x majority => begun@1 timer 30
        sync_set 9:x majority => begun@2
        sync_set x majority => begun@3
        drop 9 => dropped 9:x
        drop 8 => dropped 8:x
        ack b 3 => commit x@4
        sync_set 8:x majority => begun@5
        sync_set 9:x majority => begun@6
        ack b 6 => commit 8:x@7 commit 9:x@8
        log => p1 p2 p3 c4 | p5 p6 c7 c8
    ");
    // The next generation's writes are not meant.
    run("
        topology a b
        sync_set 8:x majority => begun@1 timer 30
        drop 8 => dropped 8:x
        sync_set 8:x majority => begun@2
        drop 8 1
        ack b 2 => commit 8:x@3
    ");
}

#[test]
fn a_replica_forgets_dropped_writes_before_and_behind_what_ends() {
    // The only, the first, the last and one in the middle, before and behind a snapshot's end.
    run("
        role replica
        stream
        memory 1 2
        prepare 8:x majority 1
        drop 8
        state => hps 0 hcs 0 tracked 0 prepares 0 visible 0
        advance 2
        state => hps 0 hcs 0 tracked 0 prepares 0 visible 0
    ");
    run("
        role replica
        stream
        memory 1 5
        prepare 8:x majority 1
        prepare y majority 2
        prepare 8:z majority 3
        prepare w majority 4
        prepare 8:v majority 5 => held 5
        drop 8
        state => hps 5 hcs 0 tracked 2 prepares 2 visible 0
        checkpoint 6 7
        commit y 2 6
        abort w 4 7
        state => hps 5 hcs 4 tracked 0 prepares 0 visible 6
    ");
    run("
        role replica
        stream
        memory 1 9
        prepare 8:x majority 1
        prepare y majority 2
        drop 8
        commit 8:x 1 3 => NoSuchPrepare
        commit y 2 3
        advance 9 => held 2
    ");
    // Behind one that has ended and is not held yet.
    run("
        role replica
        stream
        memory 1 3
        prepare x persist 1
        prepare 8:y persist 2
        prepare z persist 3
        checkpoint 4 4
        commit x 1 4
        drop 8
        state => hps 0 hcs 1 tracked 2 prepares 1 visible 4
        checkpoint 5 5
        commit z 3 5
        state => hps 0 hcs 3 tracked 2 prepares 0 visible 5
        flush => held 3
        state => hps 3 hcs 3 tracked 0 prepares 0 visible 5
    ");
}

#[test]
fn writes_that_ended_out_of_order_behind_a_dropped_one_have_ended() {
    run("
        role replica
        stream
        memory 1 3
        prepare 8:x majority 1
        prepare y majority 2
        prepare z majority 3 => held 3
        disk 4 5 0 3
        abort y 2 4
        drop 8
        mutation m 5
        checkpoint 6 6
        commit z 3 6
        flush => held 5
        state => hps 5 hcs 3 tracked 0 prepares 0 visible 6
    ");
}

#[test]
fn what_a_replica_could_not_hold_is_no_obstacle_once_it_is_dropped() {
    run("
        role replica
        stream
        memory 1 3
        prepare x majority 1
        prepare 8:y persist 2
        prepare z majority 3 => held 1
        drop 8 => held 3
    ");
    run("
        role replica
        stream
        memory 1 2
        prepare x majority 1
        prepare 8:y persist 2 => held 1
        role dead
        drop 8
        role active
        topology a
        get x => x@1
        get 8:y => NotFound
        state => hps 1 hcs 1 tracked 0 prepares 0 visible 3
    ");
    // Of a snapshot from a file nothing is held before its end, whatever is dropped.
    run("
        role replica
        stream
        disk 1 4 0
        prepare 8:x majority 2
        flush
        drop 8
        mutation m 4
        state => hps 0 hcs 0 tracked 0 prepares 0 visible 4
        flush => held 4
    ");
}

#[test]
fn a_dropped_write_comes_back_from_the_file_and_is_dropped_again() {
    run("
        topology a b
        sync_set 8:x majority => begun@1 timer 30
        sync_set y majority => begun@2
        flush
        drop 8 => dropped 8:x
        crash
        state => hps 2 hcs 0 tracked 2 prepares 2 visible 0
        drop 8 1
        ack b 2
        get 8:x => NotFound
        get y => y@2
    ");
}
