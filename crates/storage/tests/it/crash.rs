//! The power is cut at every write and every sync of a scenario of commits.

use document::{Seqno, Vbid};
use platform::simulated::{Call, Fault, FaultError, SimulatedFiles};

use crate::batches::{DIRECTORY, VBID, batch, commit, item, open, scan, try_open};

const OTHER: Vbid = Vbid(8);
const COMMITS: u64 = 5;

/// Commits to two vBuckets in turn, three documents at a time; gives the highest seqno of each
/// that was reported durable.
fn scenario(files: &SimulatedFiles) -> [u64; 2] {
    let mut durable = [0, 0];
    let Ok((store, _)) = try_open(files.clone(), DIRECTORY.as_ref(), 1) else {
        return durable;
    };
    for number in 0..COMMITS {
        for (index, vbid) in [VBID, OTHER].into_iter().enumerate() {
            let (first, value) = (number * 3 + 1, vec![b'x'; 3000]);
            let items = vec![
                item("always", first, b"small"),
                item(&format!("one-{number}"), first + 1, &value),
                item(&format!("two-{number}"), first + 2, b""),
            ];
            if commit(&store, batch(vbid, items)).is_ok() {
                durable[index] = first + 2;
            } else {
                return durable;
            }
        }
    }
    durable
}

#[test]
fn after_a_power_cut_a_prefix_is_there_and_with_it_everything_acknowledged() {
    let counted = SimulatedFiles::new();
    assert_eq!(scenario(&counted), [COMMITS * 3; 2]);
    for call in [Call::Write, Call::Sync, Call::SyncDirectory, Call::Rename] {
        for number in 1..=counted.calls().of(call) {
            for error in [FaultError::Io, FaultError::ShortWrite] {
                // Seed 0 loses all that was not synced, others a part that differs each time.
                for seed in std::iter::once(0).chain((1..=15).map(|seed| seed * 1000 + number)) {
                    let files = SimulatedFiles::new();
                    files.fail(Fault { call: Some(call), number, error, from_then_on: true });
                    let durable = scenario(&files);
                    files.heal();
                    files.power_cut(seed);
                    let at = format!("{call:?} {number}, {error:?}, seed {seed}");
                    check(&files, durable, &at);
                }
            }
        }
    }
}

fn check(files: &SimulatedFiles, durable: [u64; 2], at: &str) {
    let (store, report) = open(files.clone());
    assert!(report.ignored.is_empty(), "{at}: {:?}", report.ignored);
    for (vbid, durable) in [VBID, OTHER].into_iter().zip(durable) {
        let Seqno(high_seqno) = store.high_seqno(vbid).unwrap();
        assert!(high_seqno >= durable, "{at}: {high_seqno} of {durable}");
        assert_eq!(high_seqno % 3, 0, "{at}: commits are whole");
        let seqnos: Vec<_> = scan(&store, vbid).iter().map(|item| item.seqno().0).collect();
        // The document that every commit writes is there in its last version only.
        let overwritten = |seqno: &u64| seqno % 3 == 1 && seqno + 2 < high_seqno;
        let expected: Vec<_> = (1..=high_seqno).filter(|seqno| !overwritten(seqno)).collect();
        assert_eq!(seqnos, expected, "{at}");
        // And history goes on.
        commit(&store, batch(vbid, vec![item("next", high_seqno + 1, b"value")])).unwrap();
        assert_eq!(store.high_seqno(vbid).unwrap(), Seqno(high_seqno + 1));
    }
}
