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
        asked => now
        mutation x 1
        mutation y 2
        asked => deferred
    ");
}

#[test]
fn a_prepare_is_flushed_at_once() {
    for level in ["majority", "active", "persist"] {
        run(&format!(
            "
            topology a b
            flush
            asked => now
            sync_set x {level} => begun@1 timer 30
            asked => now
            "
        ));
        let held = if level == "persist" { "" } else { "held 1" };
        run(&format!(
            "
            role replica
            stream
            memory 1 1
            flush
            asked => now
            prepare x {level} 1 => {held}
            asked => now
            "
        ));
    }
}

#[test]
fn the_end_of_a_durable_write_is_flushed_when_it_is_convenient() {
    run("
        topology a b
        sync_set x majority => begun@1 timer 30
        flush
        asked => now
        ack b 1 => commit x@2
        asked => deferred
        sync_set y persist => begun@3
        asked => now
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
        asked => now
        prepare x majority 1
        prepare y majority 2 => held 2
        asked => now
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
        asked => now
        ack b 1 => commit x@2
        asked => deferred
        await 2 => false
        asked => now
        flush
        await 2 => true
    ");
    run("
        topology a b
        sync_set x majority => begun@1 timer 30
        flush
        await 2 => false
        asked => now
        ack b 1 => commit x@2
        asked => now
    ");
}

#[test]
fn a_deferred_flush_becomes_urgent_with_what_is_written_next() {
    run("
        topology a b
        sync_set x majority => begun@1 timer 30
        flush
        asked => now
        ack b 1 => commit x@2
        set y => @3
        asked => deferred
        sync_set z persist => begun@4
        asked => now
    ");
}

#[test]
fn a_deferred_flush_becomes_urgent_when_somebody_asks_how_far_it_has_come() {
    run("
        set x => @1
        asked => deferred
        hurry
        hurry
        asked => now
        flush
        hurry
        asked =>
    ");
}
