//! What the active node may decide alone, if it is allowed to.

use super::run;

#[test]
fn the_fallback_counts_where_there_are_too_few_nodes_and_nowhere_else() {
    // Enough nodes are waited for.
    run("
        fallback
        topology a b
        sync_set x majority => begun@1 timer 30
        flush
        ack b 1 => commit x@2
    ");
    // Each chain is looked at by itself.
    run("
        fallback
        topology a b | a -
        sync_set x majority => begun@1 timer 30
        ack b 1 => commit x@2
        sync_set y majority => begun@3
        topology a - | a - => commit y@4
    ");
    run("
        fallback
        topology a - | c d
        sync_set x majority => begun@1 timer 30
        ack c 1
        ack d 1 => commit x@2
    ");
    for nodes in ["a -", "a - -", "a - - -", "a b - -"] {
        run(&format!(
            "
            topology {nodes}
            sync_set x majority => DurabilityImpossible
            fallback
            sync_set x majority => begun@1 commit x@2
            sync_delete x majority => begun@3 commit x@4
            "
        ));
    }
}

#[test]
fn what_must_be_persisted_here_is_waited_for() {
    for level in ["active", "persist"] {
        run(&format!(
            "
            fallback
            topology a -
            sync_set x {level} 9 => begun@1 timer 9
            sync_set y majority => begun@2
            flush => commit x@3 commit y@4
            sync_set z {level} 9 => begun@5
            wait 9 => ambiguous z
            "
        ));
    }
}

#[test]
fn writes_wait_on_when_the_fallback_is_taken_away() {
    run("
        fallback
        topology a -
        sync_set x persist 9 => begun@1 timer 9
        replicas_max 2
        sync_set y majority => DurabilityImpossible
        flush
        wait 9 => ambiguous x
        get x => NotFound
    ");
}
