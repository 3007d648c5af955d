//! What a start needs does not grow with the journal.

use std::path::Path;
use std::sync::Arc;

use document::Vbid;
use platform::simulated::{Fault, FaultError, SimulatedFiles};
use platform::{Clock, Entropy, Files, WallTime};
use storage::{JournalOptions, Store, StoreOptions};

use crate::batches::{DIRECTORY, batch, commit, item, scan};

const OPTIONS: JournalOptions = JournalOptions {
    segment_bytes: 16 << 10,
    bytes_max: 4 << 20,
    group_bytes_max: 8 << 10,
    portion_bytes: 4096,
};
const VBUCKETS: u64 = 8;

fn start(files: &SimulatedFiles) -> Store {
    let clock = Clock::simulated(WallTime(1));
    let options =
        StoreOptions { entropy: Entropy::real(), clock, open_files_max: 2, journal: Some(OPTIONS) };
    Store::open(Arc::new(files.clone()), Path::new(DIRECTORY), options).unwrap().0
}

/// A journal with so many commits, a group each, of several vBuckets, that no file has; and the
/// number of its segments.
fn journal(commits: u64) -> (SimulatedFiles, usize) {
    let files = SimulatedFiles::new();
    let store = start(&files);
    for number in 0..commits {
        let vbid = Vbid(u16::try_from(number % VBUCKETS).unwrap());
        let seqno = number / VBUCKETS + 1;
        let items = vec![item(&format!("key-{seqno}"), seqno, &[b'x'; 3000])];
        commit(&store, batch(vbid, items)).unwrap();
    }
    drop(store);
    let names = files.list(&Path::new(DIRECTORY).join("journal")).unwrap();
    let live = names.iter().filter(|name| name.starts_with("j."));
    (files, live.count())
}

#[test]
fn a_start_holds_as_few_files_open_however_many_segments_there_are() {
    let opened = [8, 64, 400].map(|commits| {
        let (files, segments) = journal(commits);
        files.power_cut(0);
        files.take_open_count_max();
        let store = start(&files);
        let opened = files.take_open_count_max();
        for vbid in 0..VBUCKETS {
            let expected = usize::try_from(commits / VBUCKETS).unwrap();
            assert_eq!(scan(&store, Vbid(u16::try_from(vbid).unwrap())).len(), expected);
        }
        (segments, opened)
    });
    let [(few, least), _, (many, most)] = opened;
    assert!(many > 20 * few, "{opened:?}");
    assert_eq!(least, most, "{opened:?}");
    assert!(most <= 4, "{opened:?}");
}

/// Whether a store has what [`journal`] has committed.
fn has_everything(store: &Store, commits: u64) -> bool {
    let expected = usize::try_from(commits / VBUCKETS).unwrap();
    let vbids = (0..VBUCKETS).map(|vbid| Vbid(u16::try_from(vbid).unwrap()));
    vbids.into_iter().all(|vbid| scan(store, vbid).len() == expected)
}

#[test]
fn a_start_replays_no_more_than_a_segment_or_one_vbucket_at_a_time() {
    for (commits, pass_count) in [(8, 2), (64, 8), (400, 8)] {
        let (files, _) = journal(commits);
        files.power_cut(0);
        let clock = Clock::simulated(WallTime(1));
        let options = StoreOptions {
            entropy: Entropy::real(),
            clock,
            open_files_max: 2,
            journal: Some(OPTIONS),
        };
        let opened = Store::open(Arc::new(files), Path::new(DIRECTORY), options).unwrap();
        let (store, report) = opened;
        assert_eq!(report.journal.unwrap().pass_count, pass_count, "{commits}");
        assert_eq!(store.backlog().vbuckets, 0);
        assert!(has_everything(&store, commits));
    }
}

#[test]
fn a_start_that_is_cut_off_between_portions_is_begun_again() {
    const COMMITS: u64 = 32;
    let (files, _) = journal(COMMITS);
    files.power_cut(0);
    let before = files.calls().total();
    drop(start(&files));
    let calls = files.calls().total() - before;
    for number in (1..=calls).step_by(3) {
        let (files, _) = journal(COMMITS);
        files.power_cut(0);
        let error = FaultError::Io;
        files.fail(Fault { call: None, number, error, from_then_on: true });
        let clock = Clock::simulated(WallTime(1));
        let options = StoreOptions {
            entropy: Entropy::real(),
            clock,
            open_files_max: 2,
            journal: Some(OPTIONS),
        };
        drop(Store::open(Arc::new(files.clone()), Path::new(DIRECTORY), options));
        files.heal();
        files.power_cut(number);
        assert!(has_everything(&start(&files), COMMITS), "call {number}");
    }
}
