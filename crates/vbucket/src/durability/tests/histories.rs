//! Long and odd histories, and what a file makes of them.

use super::run;
use super::script::Bench;

#[test]
fn many_writes_of_few_documents_end_one_after_the_other() {
    for level in ["majority", "active", "persist"] {
        for (timeout, is_committed) in [(30, true), (1, false)] {
            let mut bench = Bench::new();
            bench.act("topology a b");
            bench.act("set k");
            bench.act("set other");
            let mut visible = "k@1".to_owned();
            for round in 0..30 {
                let is_deletion = round % 3 == 2 && is_committed;
                let verb = if is_deletion { "sync_delete" } else { "sync_set" };
                let prepare = bench.vbucket.high_seqno().0 + 1;
                let begun = bench.act(&format!("{verb} k {level} {timeout}"));
                assert!(begun.starts_with(&format!("begun@{prepare}")), "{level}: {begun}");
                if round % 2 == 0 {
                    bench.act("set other");
                }
                bench.act("flush");
                let ended = match is_committed {
                    true => bench.act(&format!("ack b {prepare}")),
                    false => bench.act("wait 1"),
                };
                let expected = if is_committed { "commit k" } else { "ambiguous k" };
                assert!(ended.starts_with(expected), "{level}, round {round}: {ended}");
                if is_committed {
                    visible =
                        if is_deletion { "NotFound".to_owned() } else { format!("k@{prepare}") };
                }
                assert_eq!(bench.act("get k"), visible, "{level}, round {round}");
            }
            let status = bench.vbucket.durability_status();
            assert_eq!((status.tracked_count, bench.vbucket.prepare_count()), (0, 0));
            let statistics = bench.vbucket.statistics();
            let ended = (statistics.sync_writes_committed, statistics.sync_writes_aborted);
            assert_eq!(ended, if is_committed { (30, 0) } else { (0, 30) });
            bench.act("flush");
            bench.act("crash");
            assert_eq!(bench.act("get k"), visible, "{level}");
            assert_eq!(bench.vbucket.prepare_count(), 0);
        }
    }
}

/// What happens to `k`, and what is there after a crash: the document, and whether a prepare is.
const HISTORIES: [(&str, &str, usize); 10] = [
    ("prepare", "NotFound", 1),
    ("prepare commit", "first", 0),
    ("prepare abort", "NotFound", 0),
    ("prepare abort prepare", "NotFound", 1),
    ("prepare abort prepare abort", "NotFound", 0),
    ("prepare abort prepare commit", "last", 0),
    ("prepare commit prepare", "first", 1),
    ("prepare commit prepare abort", "first", 0),
    ("prepare commit prepare commit", "last", 0),
    ("prepare abort set prepare commit prepare", "second", 1),
];

#[test]
fn a_file_has_what_the_log_had_wherever_flushes_end() {
    for level in ["majority", "active", "persist"] {
        for (history, expected, prepare_count) in HISTORIES {
            for flushes_each in [false, true] {
                let case = format!("{level}: {history}, flushed each: {flushes_each}");
                let mut bench = Bench::new();
                bench.act("topology a b");
                let mut prepares = Vec::new();
                for word in history.split(' ') {
                    match word {
                        "prepare" => {
                            prepares.push(bench.vbucket.high_seqno().0 + 1);
                            bench.act(&format!("sync_set k {level} 9"));
                        }
                        "commit" => {
                            bench.act(&format!("ack b {}", prepares.last().unwrap()));
                            if bench.vbucket.prepare_count() > 0 {
                                bench.act("flush");
                            }
                        }
                        "abort" => {
                            bench.act("wait 9");
                        }
                        _ => {
                            bench.act("set k");
                        }
                    }
                    if flushes_each {
                        bench.act("flush");
                    }
                }
                bench.act("flush");
                let expected = match expected {
                    "first" => format!("k@{}", prepares[0]),
                    "second" => format!("k@{}", prepares[1]),
                    "last" => format!("k@{}", prepares.last().unwrap()),
                    other => other.to_owned(),
                };
                assert_eq!(bench.act("get k"), expected, "{case}");
                bench.act("crash");
                assert_eq!(bench.vbucket.prepare_count(), prepare_count, "{case}");
                assert_eq!(bench.act("get_replica k"), "NotActive");
                if prepare_count == 0 {
                    assert_eq!(bench.act("get k"), expected, "{case}");
                } else {
                    assert_eq!(bench.act("get k"), "RecommitInProgress", "{case}");
                    bench.act("ack b 99");
                    let last = format!("k@{}", prepares.last().unwrap());
                    assert_eq!(bench.act("get k"), last, "{case}");
                }
            }
        }
    }
}

#[test]
fn the_last_visible_seqno_is_that_of_a_document_or_of_a_commit() {
    for flush in ["", "flush"] {
        run(&format!(
            "
            topology a b
            state => hps 0 hcs 0 tracked 0 prepares 0 visible 0
            sync_set x majority => begun@1 timer 30
            {flush}
            state => hps 1 hcs 0 tracked 1 prepares 1 visible 0
            set m => @2
            state => hps 1 hcs 0 tracked 1 prepares 1 visible 2
            ack b 1 => commit x@3
            {flush}
            state => hps 1 hcs 1 tracked 0 prepares 0 visible 3
            sync_delete x majority 1 => begun@4 timer 1
            state => hps 4 hcs 1 tracked 1 prepares 1 visible 3
            wait 1 => ambiguous x
            {flush}
            state => hps 4 hcs 4 tracked 0 prepares 0 visible 3
            delete m => @6
            flush
            file => hps 4 pcs 4 pps 4 visible 6
            crash
            state => hps 4 hcs 4 tracked 0 prepares 0 visible 6
            "
        ));
    }
    for (marker, visible) in [("memory 1 6", 5), ("disk 1 6 1", 5)] {
        run(&format!(
            "
            role replica
            stream
            {marker}
            prepare x majority 1
            state => hps 0 hcs 0 tracked 1 prepares 1 visible 0
            mutation m 2
            abort x 1 3
            deletion n 4
            mutation m 5
            advance 6
            "
        )
        .replace(
            "advance 6",
            if marker.starts_with("memory") { "advance 6 => held 1" } else { "advance 6" },
        ));
        let mut bench = Bench::new();
        for line in ["role replica", "stream", marker, "mutation m 5", "advance 6"] {
            bench.act(line);
        }
        assert_eq!(bench.vbucket.max_visible_seqno().0, visible, "{marker}");
    }
}

#[test]
fn several_snapshots_that_are_persisted_together_are_acknowledged_to_the_last() {
    run("
        role replica
        stream
        memory 1 2
        prepare x persist 1
        mutation m 2
        memory 3 4
        prepare y persist 3
        mutation m 4
        memory 5 9
        prepare z persist 5
        flush => held 3
        mutation m 9
        flush => held 5
    ");
    // The last item of the first snapshot has left the log for a newer version.
    run("
        role replica
        stream
        memory 1 2
        prepare x persist 1
        mutation m 2
        memory 3 3
        mutation m 3
        flush => held 1
        file => hps 1 pcs 0 pps 1 visible 3
        crash
        stream => held 1
    ");
}

#[test]
fn a_first_snapshot_from_a_file_that_was_cut_off_has_its_prepares() {
    for level in ["majority", "active", "persist"] {
        run(&format!(
            "
            role replica
            stream
            disk 1 9 0
            prepare x {level} 2
            mutation y 3
            flush
            file => hps 0 pcs 0 pps 2 visible 3
            crash
            state => hps 0 hcs 0 tracked 1 prepares 1 visible 3
            stream
            disk 1 9 0
            prepare z {level} 9
            flush => held 9
            checkpoint 10 11
            commit x 2 10
            commit z 9 11
            get_replica x => x@2
            get_replica z => z@9
            "
        ));
    }
}
