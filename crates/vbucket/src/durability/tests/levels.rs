//! Every pair of levels, on an active vBucket and in a replica.

use super::script::Bench;

const LEVELS: [&str; 3] = ["majority", "active", "persist"];

fn held(bench: &Bench) -> u64 {
    bench.vbucket.high_prepared_seqno().0
}

#[test]
fn what_has_to_be_persisted_holds_up_what_follows() {
    for first in LEVELS {
        for second in LEVELS {
            let mut bench = Bench::new();
            bench.act("topology a b");
            bench.act(&format!("sync_set x {first}"));
            bench.act(&format!("sync_set y {second}"));
            let expected = match (first, second) {
                ("majority", "majority") => 2,
                ("majority", _) => 1,
                _ => 0,
            };
            assert_eq!(held(&bench), expected, "active: {first}, {second}");
            bench.act("flush");
            assert_eq!(held(&bench), 2, "active: {first}, {second}");

            let mut bench = Bench::new();
            for line in ["role replica", "stream", "memory 1 2"] {
                bench.act(line);
            }
            bench.act(&format!("prepare x {first} 1"));
            assert_eq!(held(&bench), 0, "replica, half: {first}, {second}");
            bench.act(&format!("prepare y {second} 2"));
            let expected = match (first, second) {
                ("persist", _) => 0,
                (_, "persist") => 1,
                _ => 2,
            };
            assert_eq!(held(&bench), expected, "replica: {first}, {second}");
            bench.act("flush");
            assert_eq!(held(&bench), 2, "replica: {first}, {second}");

            let mut bench = Bench::new();
            for line in ["role replica", "stream", "disk 1 2 0 2"] {
                bench.act(line);
            }
            bench.act(&format!("prepare x {first} 1"));
            bench.act("flush");
            bench.act(&format!("prepare y {second} 2"));
            assert_eq!(held(&bench), 0, "replica, from disk: {first}, {second}");
            bench.act("flush");
            assert_eq!(held(&bench), 2, "replica, from disk: {first}, {second}");
        }
    }
}
