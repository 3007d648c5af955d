//! Changes of role. Source: docs/specification/engine.md, section 5.7.

use super::run;
use super::script::Bench;

#[test]
fn clients_of_a_vbucket_that_ceases_to_be_active_hear_that_nobody_knows() {
    for state in ["replica", "pending", "dead"] {
        run(&format!(
            "
            topology a b
            sync_set x majority => begun@1 timer 30
            sync_set y persist => begun@2
            role {state} => ambiguous x ambiguous y
            ack b 2
            wait 30
            state => hps 1 hcs 0 tracked 2 prepares 2 visible 0
            "
        ));
    }
    run("
        topology a b
        sync_set x majority => begun@1 timer 30
        retire => ambiguous x
    ");
}

#[test]
fn what_may_have_been_committed_elsewhere_is_shown_to_nobody_until_it_is_committed() {
    for state in ["replica", "pending", "dead"] {
        run(&format!(
            "
            topology a b
            set x => @1
            sync_set x majority => begun@2 timer 30
            role {state} => ambiguous x
            role active
            get x => RecommitInProgress
            meta x => RecommitInProgress
            observe x => RecommitInProgress
            set x => RecommitInProgress
            delete x => RecommitInProgress
            lock x => RecommitInProgress
            sync_set x majority => NoTopology
            expire x => false
            set y => @3
            topology a b
            sync_set x majority => RecommitInProgress
            wait 60
            get x => RecommitInProgress
            ack b 2
            get x => x@2
            set x => @5
            "
        ));
    }
}

#[test]
fn a_replica_that_becomes_active_commits_what_it_has_received() {
    for to in ["role active", "role pending\nrole active", "role dead\nrole active"] {
        run(&format!(
            "
            role replica
            stream
            memory 1 3
            mutation x 1
            prepare x majority 2
            prepare y persist 3 => held 2
            {to}
            get x => RecommitInProgress
            sync_set z majority => NoTopology
            ack b 3
            state => hps 2 hcs 0 tracked 2 prepares 2 visible 1
            topology a b
            get x => x@2
            get y => RecommitInProgress
            flush
            get y => y@3
            state => hps 3 hcs 3 tracked 0 prepares 0 visible 5
            sync_set z majority => begun@6 timer 30
            ack b 6 => commit z@7
            "
        ));
    }
    // In the middle of a snapshot, and of one from a file.
    for marker in ["memory 1 9", "disk 1 9 0"] {
        run(&format!(
            "
            role replica
            stream
            {marker}
            prepare x majority 2
            prepare y persist 3
            role active
            state => hps 2 hcs 0 tracked 2 prepares 2 visible 0
            topology a
            get x => x@2
            get y => RecommitInProgress
            flush
            get y => y@3
            "
        ));
    }
}

#[test]
fn what_has_ended_and_is_not_held_yet_does_not_end_again() {
    run("
        role replica
        stream
        memory 1 2
        prepare x persist 1
        prepare y majority 2
        checkpoint 3 3
        commit x 1 3
        role active
        state => hps 2 hcs 1 tracked 1 prepares 1 visible 3
        topology a
        state => hps 2 hcs 2 tracked 0 prepares 0 visible 4
    ");
}

#[test]
fn what_a_node_must_not_abort_holds_up_what_follows_but_not_its_clients() {
    run("
        role replica
        stream
        memory 1 1
        prepare x majority 1 => held 1
        role active
        topology a b
        sync_set y majority 9 => begun@2 timer 9
        sync_set z majority 8 => begun@3
        wait 9 => ambiguous y ambiguous z
        get y => NotFound
        set y => SyncWriteInProgress
        ack b 3
        get x => x@1
        get y => y@2
        state => hps 3 hcs 3 tracked 0 prepares 0 visible 6
    ");
    run("
        role replica
        stream
        memory 1 1
        prepare x majority 1 => held 1
        role active
        topology a b
        sync_set y majority => begun@2 timer 30
        topology a - => ambiguous y
        get x => x@1
        get y => NotFound
        topology a b
        sync_set y majority => begun@5
        ack b 5 => commit y@6
    ");
}

#[test]
fn what_was_inherited_ends_with_the_nodes_that_are_left() {
    for (nodes, ends_alone) in [
        ("a -", true),
        ("a - -", true),
        ("a - | a -", true),
        ("a - | a", true),
        ("a b", false),
        ("a b -", false),
        ("a - | a b", false),
    ] {
        for role in ["replica", "pending"] {
            let mut bench = Bench::new();
            let begin = format!(
                "role {role}\nstream\nmemory 1 4\nprepare x majority 1\nprepare y active 2\n\
                 prepare z persist 3\ndeletion d 4\nrole active\ntopology {nodes}"
            );
            begin.lines().for_each(|line| {
                bench.act(line);
            });
            let case = format!("{role}, {nodes}");
            // What a replica has to persist ends when this node has persisted it, the rest at once.
            for (key, version) in [("x", "x@1"), ("y", "y@2")] {
                let answer = if ends_alone { version } else { "RecommitInProgress" };
                assert_eq!(bench.act(&format!("get {key}")), answer, "{case}");
            }
            assert_eq!(bench.act("get z"), "RecommitInProgress", "{case}");
            bench.act("flush");
            if !ends_alone {
                assert_eq!(bench.act("get z"), "RecommitInProgress", "{case}");
                bench.act("ack b 3");
            }
            for (ask, answer) in [
                ("get x", "x@1"),
                ("get y", "y@2"),
                ("get z", "z@3"),
                ("state", "hps 3 hcs 3 tracked 0 prepares 0 visible 7"),
                ("set x", "@8"),
            ] {
                assert_eq!(bench.act(ask), answer, "{case}");
            }
        }
    }
}

#[test]
fn who_loses_its_replica_ends_what_it_has_inherited_and_gives_up_what_clients_began() {
    run("
        role replica
        stream
        memory 1 1
        prepare x persist 1
        role active
        topology a b
        sync_set y majority => begun@2 timer 30
        topology a - => ambiguous y
        get x => RecommitInProgress
        get y => NotFound
        flush
        get x => x@1
        get y => y@2
    ");
    // What came back from the file, too.
    run("
        topology a b
        sync_set x persist => begun@1 timer 30
        flush
        crash
        get x => RecommitInProgress
        topology a -
        get x => x@1
    ");
}

#[test]
fn acknowledgements_are_counted_from_scratch_by_who_becomes_active() {
    run("
        topology a b
        sync_set x persist => begun@1 timer 30
        ack b 1
        role replica => ambiguous x
        role active
        topology a b
        flush
        get x => RecommitInProgress
        ack b 1
        get x => x@1
    ");
}

#[test]
fn a_vbucket_that_comes_back_as_a_replica_holds_what_it_held() {
    run("
        topology a b
        sync_set x majority => begun@1 timer 30
        sync_set y persist => begun@2
        sync_set z majority => begun@3
        role replica => ambiguous x ambiguous y ambiguous z
        stream => held 1
        flush => held 3
        checkpoint 4 6
        commit x 1 4
        commit y 2 5
        abort z 3 6
        state => hps 3 hcs 3 tracked 0 prepares 0 visible 5
    ");
    run("
        role replica
        stream
        disk 1 5 0
        prepare x majority 3
        mutation m 5
        role dead
        flush
        role replica => held 5
        stream => held 5
    ");
}

#[test]
fn the_same_role_and_topology_twice_change_nothing() {
    run("
        topology a b
        sync_set x majority => begun@1 timer 30
        topology a b
        role active
        ack b 1 => commit x@2
        role replica
        role replica
        role dead
        role dead
    ");
}
