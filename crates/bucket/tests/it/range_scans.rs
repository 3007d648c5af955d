//! Range scans of a bucket: what they see, when they end, and what holds them.

use std::ops::Bound;
use std::time::Duration;

use bucket::{
    ApplyConfig, Attempted, BucketConfig, BucketType, Completion, EvictionConfig, KeyRange,
    PortionEnd, Refused, ScanContent, ScanId, ScanLimits, ScanRefused, ScanRequest, ScanSampling,
    ScanSink, ScanSnapshot,
};
use document::{CollectionId, Item, Seqno, VbUuid, VbucketState};
use vbucket::eviction::EvictionPolicy;
use vbucket::{StoreMode, Waiter};

use crate::collections::{create, drop_collection, set};
use crate::support::{Machine, OTHER, VBID, config, files_config};

const NO_LIMITS: ScanLimits = ScanLimits { items_max: None, bytes_max: None, time_max: None };

/// Results as texts.
#[derive(Default)]
struct Texts(Vec<String>);

impl ScanSink for Texts {
    fn key(&mut self, name: &[u8]) -> usize {
        self.0.push(String::from_utf8(name.to_vec()).unwrap());
        name.len()
    }

    fn document(&mut self, item: &Item) -> usize {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        self.0.push(format!("{}={}", text(item.key().name()), text(item.value())));
        item.value().len()
    }
}

fn request() -> ScanRequest {
    ScanRequest {
        vbid: VBID,
        name: "test".to_owned(),
        collection: CollectionId::DEFAULT,
        range: KeyRange::of_collection(CollectionId::DEFAULT),
        sampling: None,
        content: ScanContent::Documents,
        snapshot: None,
    }
}

fn keys() -> ScanRequest {
    ScanRequest { content: ScanContent::Keys, ..request() }
}

fn from(machine: &Machine, seqno: u64) -> ScanSnapshot {
    let uuid = machine.branches(VBID)[0];
    ScanSnapshot { uuid, seqno: Seqno(seqno), must_exist: false, timeout: Duration::ZERO }
}

/// Goes on with a scan until it pauses or ends.
fn go_on(machine: &Machine, id: ScanId, limits: ScanLimits) -> (Vec<String>, PortionEnd) {
    let mut texts = Texts::default();
    let mut turn = match machine.bucket.continue_range_scan(VBID, id, limits) {
        Ok(turn) => turn,
        Err(refused) => return (Vec::new(), PortionEnd::Ended(refused)),
    };
    loop {
        match turn.read(&mut texts) {
            PortionEnd::Portion => {}
            end => return (texts.0, end),
        }
    }
}

fn all(machine: &Machine, request: &ScanRequest) -> Vec<String> {
    let id = machine.bucket.open_range_scan(request).unwrap();
    let (texts, end) = go_on(machine, id, NO_LIMITS);
    assert_eq!(end, PortionEnd::Complete);
    texts
}

/// A bucket whose files do not follow its journal unasked, one whose do, and one without a journal.
fn configs() -> [BucketConfig; 3] {
    let apply = ApplyConfig { cycle: Duration::from_secs(1_000_000), applier_count: 1 };
    [BucketConfig { apply, ..config() }, config(), files_config()]
}

#[test]
fn a_scan_sees_what_is_persisted_when_it_is_made_and_nothing_else() {
    for config in configs() {
        let mut machine = Machine::with(config);
        for name in ["b", "a", "c"] {
            machine.set(VBID, name, b"1").unwrap();
        }
        machine.set(OTHER, "other", b"1").unwrap();
        assert_eq!(machine.bucket.open_range_scan(&request()), Err(ScanRefused::Empty));
        machine.run();
        let id = machine.bucket.open_range_scan(&request()).unwrap();
        machine.set(VBID, "b", b"2").unwrap();
        machine.set(VBID, "bb", b"2").unwrap();
        machine.delete(VBID, "c").unwrap();
        assert_eq!(all(&machine, &keys()), ["a", "b", "c"]);
        machine.run();
        assert_eq!(all(&machine, &request()), ["a=1", "b=2", "bb=2"]);
        assert_eq!(go_on(&machine, id, NO_LIMITS).0, ["a=1", "b=1", "c=1"]);
        machine = machine.stop_and_start();
        machine.run();
        assert_eq!(all(&machine, &request()), ["a=1", "b=2", "bb=2"]);
        machine = machine.power_cut(1);
        machine.run();
        assert_eq!(all(&machine, &request()), ["a=1", "b=2", "bb=2"]);
        assert_eq!(go_on(&machine, id, NO_LIMITS).1, PortionEnd::Ended(ScanRefused::Unknown));
    }
}

#[test]
fn values_that_left_memory_and_time_that_is_over_make_no_difference_but_the_right_one() {
    for config in configs() {
        let mut machine = Machine::with(config);
        machine.set(VBID, "a", b"1").unwrap();
        let seconds = machine.clock.wall_time().seconds();
        machine.store(StoreMode::Set, VBID, "b", b"2", seconds + 10).unwrap();
        machine.run();
        // Where the file does not follow, the value stays.
        machine.evict(VBID, "a").ok();
        assert_eq!(all(&machine, &request()), ["a=1", "b=2"]);
        machine.advance(Duration::from_secs(20));
        assert_eq!(all(&machine, &request()), ["a=1"]);
    }
}

#[test]
fn a_scan_goes_on_behind_each_pause() {
    for config in configs() {
        let mut machine = Machine::with(config);
        let names: Vec<String> = (0..500).map(|number| format!("k{number:03}")).collect();
        for name in &names {
            machine.set(VBID, name, name.as_bytes()).unwrap();
        }
        machine.run();
        let limits = [
            ScanLimits { items_max: Some(7), ..NO_LIMITS },
            ScanLimits { bytes_max: Some(1), ..NO_LIMITS },
            ScanLimits { bytes_max: Some(40), ..NO_LIMITS },
            ScanLimits { time_max: Some(Duration::ZERO), ..NO_LIMITS },
            NO_LIMITS,
        ];
        for limits in limits {
            let id = machine.bucket.open_range_scan(&keys()).unwrap();
            let (mut found, mut pauses) = (Vec::new(), 0);
            loop {
                let (more, end) = go_on(&machine, id, limits);
                assert!(end == PortionEnd::Complete || !more.is_empty(), "at least one a time");
                found.extend(more);
                match end {
                    PortionEnd::Paused => pauses += 1,
                    PortionEnd::Complete => break,
                    end => panic!("{end:?}"),
                }
            }
            assert_eq!(found, names, "{limits:?}");
            assert_eq!(pauses > 0, limits != NO_LIMITS, "{limits:?}");
        }
    }
}

#[test]
fn large_scans_are_read_in_portions() {
    let mut machine = Machine::new();
    for number in 0..40 {
        machine.set(VBID, &format!("k{number:02}"), &[b'v'; 10_000]).unwrap();
        machine.run();
    }
    let id = machine.bucket.open_range_scan(&request()).unwrap();
    let mut turn = machine.bucket.continue_range_scan(VBID, id, NO_LIMITS).unwrap();
    let mut portions = 1;
    let mut texts = Texts::default();
    while turn.read(&mut texts) == PortionEnd::Portion {
        portions += 1;
    }
    assert_eq!((texts.0.len(), portions), (40, 3));
}

#[test]
fn a_snapshot_has_what_a_client_has_written_or_is_waited_for() {
    for config in configs() {
        let mut machine = Machine::with(config);
        machine.set(VBID, "a", b"1").unwrap();
        machine.set(VBID, "a", b"2").unwrap();
        let asked = |machine: &mut Machine, snapshot| {
            machine.session.waiter = Waiter(7);
            machine.bucket.await_scan_snapshot(
                &mut machine.session,
                VBID,
                CollectionId::DEFAULT,
                Some(snapshot),
            )
        };
        let snapshot = from(&machine, 2);
        assert_eq!(asked(&mut machine, snapshot).err(), Some(ScanRefused::NotPersisted));
        let other = ScanSnapshot { uuid: VbUuid(1), ..snapshot };
        assert_eq!(asked(&mut machine, other).err(), Some(ScanRefused::OtherHistory));
        let patient = ScanSnapshot { timeout: Duration::from_secs(5), ..snapshot };
        assert!(matches!(asked(&mut machine, patient), Ok(Attempted::Waits)));
        machine.run();
        assert_eq!(machine.heard.take(), [(7, Completion::Persisted)]);
        assert!(matches!(asked(&mut machine, patient), Ok(Attempted::Answered(()))));
        assert_eq!(all(&machine, &ScanRequest { snapshot: Some(snapshot), ..request() }), ["a=2"]);
        let late = ScanSnapshot { seqno: Seqno(3), ..patient };
        assert!(matches!(asked(&mut machine, late), Ok(Attempted::Waits)));
        machine.advance(Duration::from_secs(6));
        assert_eq!(machine.heard.take(), [(7, Completion::NotPersisted)]);
        let opened = |snapshot| {
            machine.bucket.open_range_scan(&ScanRequest { snapshot: Some(snapshot), ..request() })
        };
        assert_eq!(opened(late), Err(ScanRefused::NotPersisted));
        assert_eq!(opened(other), Err(ScanRefused::OtherHistory));
        let existing = |seqno| ScanSnapshot { seqno: Seqno(seqno), must_exist: true, ..snapshot };
        assert_eq!(opened(existing(1)), Err(ScanRefused::NoSuchChange));
        assert!(opened(existing(2)).is_ok());
    }
}

#[test]
fn one_goes_on_with_a_scan_at_a_time_and_takes_it_along_when_it_is_gone() {
    let mut machine = Machine::new();
    machine.set(VBID, "a", b"1").unwrap();
    machine.run();
    let id = machine.bucket.open_range_scan(&request()).unwrap();
    let turn = machine.bucket.continue_range_scan(VBID, id, NO_LIMITS).unwrap();
    let again = machine.bucket.continue_range_scan(VBID, id, NO_LIMITS);
    assert_eq!(again.err(), Some(ScanRefused::Busy));
    let elsewhere = machine.bucket.continue_range_scan(OTHER, id, NO_LIMITS);
    assert_eq!(elsewhere.err(), Some(ScanRefused::Unknown));
    assert!(machine.bucket.range_scan_statistics().open[0].is_continued);
    drop(turn);
    assert_eq!(go_on(&machine, id, NO_LIMITS).1, PortionEnd::Ended(ScanRefused::Unknown));
    let id = machine.bucket.open_range_scan(&request()).unwrap();
    let mut turn = machine.bucket.continue_range_scan(VBID, id, NO_LIMITS).unwrap();
    assert_eq!(machine.bucket.cancel_range_scan(OTHER, id), Err(ScanRefused::Unknown));
    assert_eq!(machine.bucket.cancel_range_scan(VBID, id), Ok(()));
    let end = turn.read(&mut Texts::default());
    assert_eq!(end, PortionEnd::Ended(ScanRefused::Cancelled));
    assert_eq!(machine.bucket.cancel_range_scan(VBID, id), Err(ScanRefused::Unknown));
    let statistics = machine.bucket.range_scan_statistics();
    assert_eq!((statistics.created, statistics.cancelled, statistics.completed), (2, 2, 0));
    assert!(statistics.open.is_empty());
}

#[test]
fn scans_end_with_the_history_that_they_read() {
    type Change = fn(&Machine);
    let changes: [(&str, Change, ScanRefused); 3] = [
        (
            "another role",
            |machine| {
                machine.bucket.set_vbucket_state(VBID, VbucketState::Replica, None).unwrap();
                machine.bucket.set_vbucket_state(VBID, VbucketState::Active, None).unwrap();
            },
            ScanRefused::Unknown,
        ),
        (
            "a deletion",
            |machine| {
                machine.bucket.set_vbucket_state(VBID, VbucketState::Dead, None).unwrap();
                machine.bucket.delete_vbucket(VBID).unwrap();
            },
            ScanRefused::Vbucket(Refused::NotMyVbucket),
        ),
        ("a flush", |machine| machine.bucket.flush_all().unwrap(), ScanRefused::Unknown),
    ];
    for (what, change, refused) in changes {
        for config in configs() {
            let mut machine = Machine::with(config);
            machine.set(VBID, "a", b"1").unwrap();
            machine.run();
            let idle = machine.bucket.open_range_scan(&request()).unwrap();
            let continued = machine.bucket.open_range_scan(&request()).unwrap();
            let mut turn = machine.bucket.continue_range_scan(VBID, continued, NO_LIMITS).unwrap();
            change(&machine);
            assert!(machine.bucket.range_scan_statistics().open.is_empty(), "{what}");
            let end = turn.read(&mut Texts::default());
            assert_eq!(end, PortionEnd::Ended(ScanRefused::Cancelled), "{what}");
            assert_eq!(go_on(&machine, idle, NO_LIMITS).1, PortionEnd::Ended(refused), "{what}");
        }
    }
}

#[test]
fn scans_are_bounded_in_number_and_in_idle_time() {
    let config = BucketConfig {
        open_files_max: 8,
        range_scan_idle_time_max: Duration::from_secs(10),
        ..config()
    };
    let mut machine = Machine::with(config);
    machine.set(VBID, "a", b"1").unwrap();
    machine.set(VBID, "b", b"1").unwrap();
    machine.run();
    let scans = [0, 1].map(|_| machine.bucket.open_range_scan(&request()).unwrap());
    assert_eq!(machine.bucket.open_range_scan(&request()), Err(ScanRefused::TooMany));
    assert_eq!(machine.bucket.range_scan_statistics().scans_max, 2);
    machine.advance(Duration::from_secs(6));
    let one = ScanLimits { items_max: Some(1), ..NO_LIMITS };
    assert_eq!(go_on(&machine, scans[0], one).1, PortionEnd::Paused);
    machine.advance(Duration::from_secs(6));
    assert_eq!(machine.bucket.range_scan_statistics().open.len(), 1);
    let turn = machine.bucket.continue_range_scan(VBID, scans[0], one).unwrap();
    machine.advance(Duration::from_secs(60));
    assert_eq!(machine.bucket.range_scan_statistics().open.len(), 1, "it is being continued");
    drop(turn);
    let statistics = machine.bucket.range_scan_statistics();
    assert_eq!((statistics.open.len(), statistics.cancelled, statistics.refused), (0, 2, 1));
}

#[test]
fn a_sample_is_a_part_and_the_same_for_the_same_seed() {
    let mut machine = Machine::new();
    for number in 0..400 {
        machine.set(VBID, &format!("k{number:03}"), b"v").unwrap();
    }
    machine.run();
    machine.advance(Duration::from_secs(1));
    let sampled = |samples, seed| {
        let sampling = Some(ScanSampling { samples, seed });
        all(&machine, &ScanRequest { sampling, ..keys() })
    };
    let first = sampled(100, 1);
    assert!((50..200).contains(&first.len()), "{}", first.len());
    assert_eq!(sampled(100, 1), first);
    assert_ne!(sampled(100, 2), first);
    assert_eq!(sampled(400, 1).len(), 400);
    assert_eq!(sampled(u64::MAX, 1).len(), 400);
}

#[test]
fn keys_are_listed_and_a_document_is_found_by_chance() {
    for config in configs() {
        let mut machine = Machine::with(config);
        let none = machine.bucket.random_document(CollectionId::DEFAULT);
        assert_eq!(none.err(), Some(Refused::NotFound));
        for name in ["b", "a", "c", "d"] {
            machine.set(VBID, name, name.as_bytes()).unwrap();
        }
        machine.delete(VBID, "c").unwrap();
        machine.set(OTHER, "o", b"o").unwrap();
        machine.run();
        let start = Bound::Included(&b"b"[..]);
        let range = KeyRange::between(CollectionId::DEFAULT, start, Bound::Unbounded).unwrap();
        let mut listed = Vec::new();
        let add = |key: document::Key<'_>| {
            listed.push(String::from_utf8(key.name().to_vec()).unwrap());
            std::ops::ControlFlow::Continue(())
        };
        machine.bucket.list_keys(VBID, &range, add).unwrap();
        assert_eq!(listed, ["b", "d"]);
        let mut names: Vec<Vec<u8>> = (0..100)
            .map(|_| machine.bucket.random_document(CollectionId::DEFAULT).unwrap())
            .map(|item| item.key().name().to_vec())
            .collect();
        names.sort_unstable();
        names.dedup();
        let has_both = names.len() >= 2 && names.iter().all(|name| b"abdo".contains(&name[0]));
        assert!(has_both, "{names:?}");
        let unknown = machine.bucket.random_document(CollectionId(8));
        assert_eq!(unknown.err(), Some(Refused::NotFound));
    }
}

#[test]
fn a_document_that_is_not_in_memory_is_found_in_its_file() {
    for policy in [EvictionPolicy::ValueOnly, EvictionPolicy::Full] {
        for config in [config(), files_config()] {
            let eviction = EvictionConfig { policy, ..config.eviction };
            let mut machine = Machine::with(BucketConfig { eviction, ..config });
            machine.set(VBID, "a", b"value").unwrap();
            machine.run();
            machine.evict(VBID, "a").unwrap();
            let found = machine.bucket.random_document(CollectionId::DEFAULT).unwrap();
            assert_eq!((found.key().name(), found.value()), (&b"a"[..], &b"value"[..]));
            machine.delete(VBID, "a").ok();
            machine.run();
            machine.delete(VBID, "a").ok();
            machine.run();
            let none = machine.bucket.random_document(CollectionId::DEFAULT);
            assert_eq!(none.err(), Some(Refused::NotFound), "{policy:?}");
        }
    }
}

#[test]
fn a_search_for_some_document_ends_soon_and_does_not_say_that_there_is_none() {
    let bucket_type = Some(BucketType::Ephemeral);
    let mut machine = Machine::with(BucketConfig { bucket_type, ..config() });
    let past = 1_600_000_000;
    for number in 0..100 {
        machine.store(StoreMode::Set, VBID, &number.to_string(), b"", past).unwrap();
    }
    let none = machine.bucket.random_document(CollectionId::DEFAULT);
    assert_eq!(none.err(), Some(Refused::NotFound), "all were looked at");
    for number in 0..70_000 {
        machine.store(StoreMode::Set, VBID, &number.to_string(), b"", past).unwrap();
    }
    let unclear = machine.bucket.random_document(CollectionId::DEFAULT);
    assert_eq!(unclear.err(), Some(Refused::NotMet));
}

#[test]
fn a_scan_of_a_collection_ends_with_it() {
    let collection = CollectionId(8);
    let unknown = ScanRefused::Vbucket(Refused::UnknownCollection);
    for config in configs() {
        let mut machine = Machine::with(config);
        let range = KeyRange::of_collection(collection);
        let request = ScanRequest { collection, range: range.clone(), ..request() };
        let list = |machine: &Machine| {
            let mut count = 0;
            let add = |_: document::Key<'_>| {
                count += 1;
                std::ops::ControlFlow::Continue(())
            };
            machine.bucket.list_keys(VBID, &range, add).map(|()| count)
        };
        assert_eq!(machine.bucket.open_range_scan(&request), Err(unknown));
        assert_eq!(list(&machine), Err(unknown));
        create(&machine.bucket, "fruit");
        machine.run();
        assert_eq!(machine.bucket.open_range_scan(&request), Err(ScanRefused::Empty));
        machine.set(VBID, "k", b"default").unwrap();
        for key in [b"\x08k", b"\x08l"] {
            set(&mut machine, key).unwrap();
        }
        machine.run();
        assert_eq!(all(&machine, &request), ["k=value", "l=value"]);
        assert_eq!(all(&machine, &self::request()), ["k=default"]);
        assert_eq!(list(&machine), Ok(2));
        let found = machine.bucket.random_document(collection).unwrap();
        assert_eq!(found.key().collection(), collection);
        let id = machine.bucket.open_range_scan(&request).unwrap();
        let limits = ScanLimits { items_max: Some(1), ..NO_LIMITS };
        assert_eq!(go_on(&machine, id, limits).1, PortionEnd::Paused);
        let begun = machine.bucket.open_range_scan(&request).unwrap();
        let mut turn = machine.bucket.continue_range_scan(VBID, begun, NO_LIMITS).unwrap();
        drop_collection(&machine.bucket, "fruit");
        assert_eq!(turn.read(&mut Texts::default()), PortionEnd::Ended(unknown));
        assert_eq!(go_on(&machine, id, NO_LIMITS).1, PortionEnd::Ended(unknown));
        assert_eq!(go_on(&machine, id, NO_LIMITS).1, PortionEnd::Ended(ScanRefused::Unknown));
        assert_eq!(machine.bucket.open_range_scan(&request), Err(unknown));
        assert_eq!(list(&machine), Err(unknown));
        assert!(machine.bucket.random_document(collection).is_err());
    }
}

#[test]
fn without_a_disk_there_are_no_scans() {
    let bucket_type = Some(BucketType::Ephemeral);
    let mut machine = Machine::with(BucketConfig { bucket_type, ..config() });
    machine.set(VBID, "a", b"1").unwrap();
    let refused =
        machine.bucket.await_scan_snapshot(&mut machine.session, VBID, CollectionId::DEFAULT, None);
    assert_eq!(refused.err(), Some(ScanRefused::Vbucket(Refused::Ephemeral)));
    assert!(machine.bucket.random_document(CollectionId::DEFAULT).is_ok());
}
