//! What others hear of a document whose durable write has not ended.

use super::run;
use super::script::Bench;

const OTHERS: [&str; 10] = [
    "set k",
    "add k",
    "replace k",
    "delete k",
    "lock k",
    "unlock k",
    "sync_set k majority",
    "sync_add k active",
    "sync_replace k persist",
    "sync_delete k majority",
];

/// What was there before, what is pending, and what is read meanwhile and afterwards.
const CASES: [(&str, &str, &str, &str); 7] = [
    ("", "sync_set k", "NotFound", "k@1"),
    ("set k", "sync_set k", "k@1", "k@2"),
    ("set k", "sync_replace k", "k@1", "k@2"),
    ("set k", "sync_delete k", "k@1", "NotFound"),
    ("set k; delete k", "sync_set k", "NotFound", "k@3"),
    ("set k; delete k", "sync_add k", "NotFound", "k@3"),
    ("set k; delete k; set k", "sync_delete k", "k@3", "NotFound"),
];

#[test]
fn a_document_takes_one_write_at_a_time() {
    for level in ["majority", "active", "persist"] {
        for (before, pending, meanwhile, afterwards) in CASES {
            let mut bench = Bench::new();
            bench.act("topology a b");
            before.split("; ").filter(|line| !line.is_empty()).for_each(|line| {
                bench.act(line);
            });
            let begun = bench.act(&format!("{pending} {level}"));
            assert!(begun.starts_with("begun"), "{before}: {pending}: {begun}");
            for other in OTHERS {
                let refused = bench.act(other);
                assert_eq!(refused, "SyncWriteInProgress", "{before}: {pending}: {other}");
            }
            assert_eq!(bench.act("get k"), meanwhile, "{before}: {pending}");
            assert!(bench.act("set other").starts_with('@'));
            bench.act("flush");
            assert!(bench.act("ack b 99").starts_with("commit k"), "{before}: {pending}");
            assert_eq!(bench.act("get k"), afterwards, "{before}: {pending}");
            assert!(bench.act("set k").starts_with('@'), "{before}: {pending}");
        }
    }
}

#[test]
fn what_was_aborted_leaves_the_document_as_it_was() {
    // Existence is what it was before.
    run("
        topology a b
        sync_add k majority 1 => begun@1 timer 1
        wait 1 => ambiguous k
        sync_replace k majority => NotFound
        sync_delete k majority => NotFound
        sync_add k majority 1 => begun@3 timer 1
        wait 1 => ambiguous k
        add k => @5
        sync_delete k majority 1 => begun@6 timer 1
        wait 1 => ambiguous k
        get k => k@5
        sync_add k majority => Exists
        sync_replace k majority => begun@8 timer 30
        ack b 8 => commit k@9
        get k => k@8
        log => p1 | a2 | p3 | a4 m5 | p6 | a7 | p8 c9
    ");
}
