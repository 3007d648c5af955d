//! How soon what writes leave in the log is to be flushed.

use super::run;

#[test]
fn what_nobody_waits_for_is_flushed_when_it_is_convenient() {
    run("
        set x => @1
        asked => deferred
        set y => @2
        asked =>
        flush
        set x => @3
        asked => deferred
    ");
    run("
        role replica
        stream
        memory 1 2
        flush
        asked => awaited
        mutation x 1
        mutation y 2
        asked => deferred
    ");
}

#[test]
fn a_prepare_is_flushed_at_once_and_before_others_where_it_is_held_by_that() {
    for (level, on_active, on_replica) in [
        ("majority", "soon", "soon"),
        ("active", "awaited", "soon"),
        ("persist", "awaited", "awaited"),
    ] {
        run(&format!(
            "
            topology a b
            flush
            asked => awaited
            sync_set x {level} => begun@1 timer 30
            asked => {on_active}
            "
        ));
        let held = if level == "persist" { "" } else { "held 1" };
        run(&format!(
            "
            role replica
            stream
            memory 1 1
            flush
            asked => awaited
            prepare x {level} 1 => {held}
            asked => {on_replica}
            "
        ));
    }
}

#[test]
fn the_end_of_a_snapshot_is_flushed_before_others_where_something_is_held_by_that() {
    for (level, at_first, held, at_end) in
        [("active", "soon", "held 1", ""), ("persist", "awaited", "", "awaited")]
    {
        run(&format!(
            "
            role replica
            stream
            memory 1 3
            flush
            prepare x {level} 1
            flush
            asked => awaited {at_first}
            mutation y 2
            asked => deferred
            mutation z 3 => {held}
            asked => {at_end}
            "
        ));
    }
    run("
        role replica
        stream
        disk 1 2
        flush
        asked => awaited
        prepare x majority 1
        asked => soon
        mutation y 2
        asked => awaited
        flush => held 2
    ");
}

#[test]
fn the_end_of_a_durable_write_is_flushed_when_it_is_convenient() {
    run("
        topology a b
        sync_set x majority => begun@1 timer 30
        flush
        asked => awaited
        ack b 1 => commit x@2
        asked => deferred
        sync_set y persist => begun@3
        asked => awaited
        flush
        wait 30 => ambiguous y
        asked => deferred
        flush
    ");
    run("
        role replica
        stream
        memory 1 2
        flush
        asked => awaited
        prepare x majority 1
        prepare y majority 2 => held 2
        asked => soon
        flush
        memory 3 4
        commit x 1 3
        abort y 2 4
        asked => deferred
    ");
}

#[test]
fn whoever_waits_for_the_end_of_a_durable_write_to_be_persisted_has_it_flushed_at_once() {
    run("
        topology a b
        sync_set x majority => begun@1 timer 30
        flush
        asked => awaited
        ack b 1 => commit x@2
        asked => deferred
        await 2 => false
        asked => awaited
        flush
        await 2 => true
    ");
    run("
        topology a b
        sync_set x majority => begun@1 timer 30
        flush
        await 2 => false
        asked => awaited
        ack b 1 => commit x@2
        asked => awaited
    ");
}

#[test]
fn a_deferred_flush_becomes_urgent_with_what_is_written_next() {
    run("
        topology a b
        sync_set x majority => begun@1 timer 30
        flush
        asked => awaited
        ack b 1 => commit x@2
        set y => @3
        asked => deferred
        sync_set z persist => begun@4
        asked => awaited
    ");
}

#[test]
fn a_deferred_flush_becomes_urgent_when_somebody_asks_how_far_it_has_come() {
    run("
        set x => @1
        asked => deferred
        hurry
        hurry
        asked => awaited
        flush
        hurry
        asked =>
    ");
}
