//! An active vBucket.

use super::run;

#[test]
fn a_write_is_committed_once_a_majority_with_the_active_node_holds_it() {
    run("
        topology a b c
        sync_set k majority => begun@1 timer 30
        get k => NotFound
        ack b 1 => commit k@2
        get k => k@1
        state => hps 1 hcs 1 tracked 0 prepares 0 visible 2
        log => p1 c2
    ");
    // Acknowledgements of nodes, in any order, twice, and of more than is waited for.
    run("
        topology a b c
        sync_set x majority => begun@1 timer 30
        sync_set y majority => begun@2
        sync_set z majority => begun@3
        ack c 2 => commit x@4 commit y@5
        ack c 2
        ack b 1
        ack b 3 => commit z@6
        ack c 3
        state => hps 3 hcs 3 tracked 0 prepares 0 visible 6
    ");
    // Between plain mutations seqnos have gaps, and nodes may acknowledge what is no prepare.
    run("
        topology a b
        set m => @1
        sync_set x majority => begun@2 timer 30
        set n => @3
        sync_set y majority => begun@4
        ack b 1
        ack b 3 => commit x@5
        ack b 5 => commit y@6
    ");
}

#[test]
fn without_replicas_a_write_ends_as_soon_as_it_is_held_here() {
    run("
        topology a
        sync_set k majority => begun@1 commit k@2
        sync_delete k majority => begun@3 commit k@4
        get k => NotFound
        meta k => deleted
        sync_set k persist => begun@5 timer 30
        flush => commit k@6
        sync_set k active => begun@7
        flush => commit k@8
    ");
}

#[test]
fn levels_say_where_a_write_must_be_persisted() {
    run("
        topology a b
        sync_set x active => begun@1 timer 30
        ack b 1
        get x => NotFound
        flush => commit x@2
        sync_set y persist => begun@3
        flush
        ack b 3 => commit y@4
        sync_set z majority => begun@5
        ack b 5 => commit z@6
    ");
    // What must be persisted stands in front of what need not.
    run("
        topology a b
        sync_set x active => begun@1 timer 30
        sync_set y majority => begun@2
        ack b 2
        state => hps 0 hcs 0 tracked 2 prepares 2 visible 0
        flush => commit x@3 commit y@4
    ");
}

#[test]
fn both_chains_have_to_hold_a_write() {
    run("
        topology a b | c d
        sync_set x majority => begun@1 timer 30
        ack b 1
        ack d 1
        ack c 1 => commit x@2
    ");
    run("
        topology a b | b a
        sync_set x majority => begun@1 timer 30
        ack b 1 => commit x@2
    ");
    run("
        topology a b c | a d e
        sync_set x majority => begun@1 timer 30
        ack b 1
        ack c 1
        ack d 1 => commit x@2
    ");
}

#[test]
fn the_active_node_is_always_one_of_those_who_hold_a_write() {
    run("
        topology a b c
        sync_set x persist => begun@1 timer 30
        ack b 1
        ack c 1
        get x => NotFound
        flush => commit x@2
    ");
    // Nobody else says for it what it holds.
    run("
        topology a b c
        sync_set x persist => begun@1 timer 30
        ack a 1
        ack b 1
        state => hps 0 hcs 0 tracked 1 prepares 1 visible 0
    ");
}

#[test]
fn acknowledgements_count_that_come_before_the_topology_or_the_write() {
    run("
        ack b 1
        topology a b
        sync_set x majority => begun@1 commit x@2
    ");
    run("
        topology a b
        ack b 3
        sync_set x majority => begun@1 commit x@2
        sync_set y majority => begun@3 commit y@4
        sync_set z majority => begun@5 timer 30
    ");
    // Of one chain, of the other, of both, and for what is committed already.
    for (before, after) in [("ack c 1", "ack d 1"), ("ack d 1", "ack c 1")] {
        run(&format!(
            "
            topology a b
            sync_set x majority => begun@1 timer 30
            {before}
            topology a b | c d
            ack b 1
            {after} => commit x@2
            "
        ));
    }
    run("
        topology a b
        sync_set x majority => begun@1 timer 30
        ack c 1
        ack d 1
        ack b 1 => commit x@2
        topology a b | c d
        sync_set y majority => begun@3
        ack b 3
    ");
}

#[test]
fn a_node_that_leaves_the_topology_has_to_acknowledge_anew() {
    run("
        topology a b c
        sync_set x persist => begun@1 timer 30
        ack b 1
        topology a c
        topology a b
        flush
        ack b 1 => commit x@2
    ");
    // A node that has lost its memory says where it goes on.
    run("
        topology a b c
        sync_set x persist => begun@1 timer 30
        ack b 1
        restart b 0
        flush
        ack b 1 => commit x@2
    ");
    // Those that stay are counted again, by the new majority.
    run("
        topology a b c d
        replicas_max 3
        sync_set x majority => begun@1 timer 30
        ack b 1
        topology a b c => commit x@2
    ");
}

#[test]
fn a_write_is_refused_that_cannot_be_held() {
    let cases = [
        ("a", "ok"),
        ("a -", "DurabilityImpossible"),
        ("a b", "ok"),
        ("a b -", "ok"),
        ("a - -", "DurabilityImpossible"),
        ("a b c", "ok"),
        ("a b c -", "ok"),
        ("a b c d", "DurabilityImpossible"),
        ("a b | a -", "DurabilityImpossible"),
    ];
    for (nodes, expected) in cases {
        for verb in ["sync_set", "sync_add", "sync_replace", "sync_delete"] {
            let exists = ["sync_replace", "sync_delete"].contains(&verb);
            let mut bench = super::script::Bench::new();
            bench.act(&format!("topology {nodes}"));
            if exists {
                bench.act("set k");
            }
            let answer = bench.act(&format!("{verb} k majority"));
            let is_begun = answer.starts_with("begun");
            assert_eq!(is_begun, expected == "ok", "{nodes}: {verb}: {answer}");
            assert!(is_begun || answer == expected, "{nodes}: {verb}: {answer}");
        }
    }
    run("
        sync_set k majority => NoTopology
        set k => @1
        topology a b b
        sync_set k majority => NoTopology
        topology a b c d
        sync_set k majority => DurabilityImpossible
        replicas_max 3
        sync_set k majority => begun@2 timer 30
        ack b 2
        ack c 2 => commit k@3
    ");
}

#[test]
fn with_the_fallback_the_active_node_is_enough_where_there_are_too_few() {
    run("
        fallback
        topology a -
        sync_set x majority => begun@1 commit x@2
        sync_set y persist => begun@3 timer 30
        flush => commit y@4
        topology a b
        sync_set z majority => begun@5
        topology a - => commit z@6
        topology a b c d
        sync_set z majority => DurabilityImpossible
    ");
    let mut bench = super::script::Bench::new();
    for line in
        ["fallback", "topology a -", "sync_set x majority", "topology a", "sync_set y majority"]
    {
        bench.act(line);
    }
    let statistics = bench.vbucket.statistics();
    assert_eq!(statistics.sync_writes_committed, 2);
    assert_eq!(statistics.sync_writes_committed_not_durable, 1);
}

#[test]
fn writes_that_become_impossible_are_aborted_in_order() {
    run("
        topology a b
        sync_set x majority => begun@1 timer 30
        sync_set y persist => begun@2
        topology a - => ambiguous x ambiguous y
        get x => NotFound
        set x => @5
        log => p1 p2 | a3 a4 m5
    ");
}

#[test]
fn the_first_write_that_is_late_is_aborted_and_others_not_before_it() {
    run("
        topology a b
        sync_set x majority 10 => begun@1 timer 10
        sync_set y majority 5 => begun@2
        sync_set z majority 20 => begun@3
        wait 6 => next 4
        wait 4 => next 10 ambiguous x ambiguous y
        get x => NotFound
        ack b 3 => commit z@6
        wait 10
        state => hps 3 hcs 3 tracked 0 prepares 0 visible 6
    ");
    // What is aborted can be written again, and the acknowledgement that comes late is nothing.
    run("
        topology a b
        set k => @1
        sync_set k majority 1 => begun@2 timer 1
        wait 1 => ambiguous k
        get k => k@1
        ack b 2
        set k => @4
        sync_set k majority 1 => begun@5 timer 1
        ack b 5 => commit k@6
        get k => k@5
    ");
}

#[test]
fn a_timeout_is_asked_for_when_none_is_to_come_in_time() {
    run("
        topology a b
        sync_set x majority 30 => begun@1 timer 30
        ack b 1 => commit x@2
        sync_set x majority 30 => begun@3
        sync_set y majority 9 => begun@4
        ack b 3 => commit x@5 timer 9
        ack b 4 => commit y@6
        sync_set z majority 8 => begun@7 timer 8
        wait 1 => next 7
    ");
}

#[test]
fn while_a_write_is_prepared_others_see_the_version_before_it_and_none_comes_in_between() {
    for verb in ["sync_set k majority", "sync_delete k majority"] {
        run(&format!(
            "
            topology a b
            set k => @1
            {verb} => begun@2 timer 30
            get k => k@1
            meta k => k@1
            observe k => true
            set k => SyncWriteInProgress
            add k => SyncWriteInProgress
            replace k => SyncWriteInProgress
            delete k => SyncWriteInProgress
            lock k => SyncWriteInProgress
            unlock k => SyncWriteInProgress
            sync_set k majority => SyncWriteInProgress
            sync_delete k persist => SyncWriteInProgress
            set other => @3
            "
        ));
    }
    run("
        topology a b
        sync_add k majority => begun@1 timer 30
        sync_add k majority => SyncWriteInProgress
        ack b 1 => commit k@2
        sync_add k majority => Exists
        sync_replace k majority => begun@3
        ack b 3 => commit k@4
        sync_delete k majority => begun@5
        ack b 5 => commit k@6
        sync_replace k majority => NotFound
        sync_delete k majority => NotFound
        sync_add k majority => begun@7
        ack b 7 => commit k@8
    ");
}

#[test]
fn versions_of_a_durable_write_never_meet_in_a_checkpoint() {
    run("
        topology a
        set k => @1
        sync_set k majority => begun@2 commit k@3
        sync_set k majority => begun@4 commit k@5
        set k => @6
        sync_set other majority => begun@7 commit other@8
        log => m1 p2 | c3 p4 | c5 | m6 p7 c8
    ");
    run("
        topology a b
        sync_set k majority 1 => begun@1 timer 1
        wait 1 => ambiguous k
        sync_set k majority 1 => begun@3 timer 1
        wait 1 => ambiguous k
        log => p1 | a2 | p3 | a4
    ");
}
