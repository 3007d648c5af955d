//! vBuckets that take up roles, are rolled back, deleted and made anew.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bucket::{
    BucketConfig, CompactionOrder, Completion, DamageKind, EvictionConfig, LifeError, NewRole,
    Refused,
};
use document::{
    Cas, DurabilityLevel, FailoverEntry, Item, ItemBuilder, ItemMeta, Operation, RevSeqno, Seqno,
    VbUuid, Vbid, VbucketState,
};
use platform::seeds::seeds;
use platform::simulated::{Call, Fault, FaultError, SimulatedFiles};
use platform::{Clock, Entropy, Files, Random, WallTime};
use storage::{FlushBatch, Store, StoreOptions, VbucketRecord};
use vbucket::Waiter;
use vbucket::eviction::EvictionPolicy;

use crate::eviction::finish;
use crate::support::{DIRECTORY, Machine, No, OTHER, VBID, Waits, config, files_config, key};

/// Values by name; `None` for a tombstone.
type Model = BTreeMap<String, Option<Vec<u8>>>;

const POLICIES: [EvictionPolicy; 2] = [EvictionPolicy::ValueOnly, EvictionPolicy::Full];

fn with_policy(policy: EvictionPolicy) -> BucketConfig {
    let eviction = EvictionConfig { policy, ..EvictionConfig::default() };
    BucketConfig { eviction, ..config() }
}

fn become_role(machine: &Machine, vbid: Vbid, state: VbucketState) {
    machine.bucket.set_vbucket_state(vbid, state, None).unwrap();
}

fn role(machine: &Machine, vbid: Vbid) -> Option<VbucketState> {
    let mut state = None;
    machine.bucket.with_vbucket(vbid, |vbucket| state = Some(vbucket.state()));
    state
}

/// Writes a random history, flushing now and then; gives what there was at each flush, and at the
/// end.
fn history(machine: &mut Machine, random: &mut Random) -> (Vec<(Seqno, Model)>, Model) {
    let (mut model, mut states) = (Model::new(), Vec::new());
    for number in 0..120_u64 {
        let name = format!("key-{}", random.below(60));
        let is_there = model.get(&name).is_some_and(Option::is_some);
        let before = (machine.high_seqno(VBID), model.clone());
        if is_there && random.below(4) == 0 {
            finish(machine, |machine| machine.delete(VBID, &name)).unwrap();
            model.insert(name, None);
        } else {
            let value = format!("value-{number}").into_bytes();
            finish(machine, |machine| machine.set(VBID, &name, &value)).unwrap();
            model.insert(name, Some(value));
        }
        if machine.persisted(VBID) == before.0 && before.0 > Seqno(0) {
            // The write had to wait for the file, and what was before it was flushed meanwhile.
            states.push(before);
        }
        if random.below(6) == 0 {
            machine.run();
            states.push((machine.persisted(VBID), model.clone()));
            if let Some(name) = model.keys().nth(usize::try_from(random.below(20)).unwrap()) {
                machine.evict(VBID, name).ok();
            }
        }
    }
    (states, model)
}

/// What a vBucket has, compared with what it should have.
fn check(machine: &mut Machine, model: &Model, at: &str) {
    for number in 0..60 {
        let name = format!("key-{number}");
        let wanted = model.get(&name).cloned().flatten().ok_or(No(Refused::NotFound));
        assert_eq!(machine.get(VBID, &name), wanted, "{at}: {name}");
    }
    let wanted = model.values().flatten().count();
    let mut count = 0;
    machine.bucket.with_vbucket(VBID, |vbucket| count = vbucket.document_count());
    assert_eq!(count, wanted, "{at}");
}

#[test]
fn a_replica_goes_back_to_what_its_file_was_and_on_from_there() {
    for (seed, policy) in seeds(25).flat_map(|seed| POLICIES.map(|policy| (seed, policy))) {
        let mut random = Random::from_seed(seed);
        let mode = if seed % 2 == 0 { config() } else { files_config() };
        let persistence = mode.persistence;
        let mut machine = Machine::with(BucketConfig { persistence, ..with_policy(policy) });
        let (states, _) = history(&mut machine, &mut random);
        let unflushed = machine.bucket.statistics().queued_item_count;
        if random.below(2) == 0 {
            machine.run();
        }
        become_role(&machine, VBID, VbucketState::Replica);
        let high = machine.high_seqno(VBID);
        let to = Seqno(high.0 * (30 + random.below(71)) / 100);
        let at = format!("seed {seed}, {policy:?}, to {to} of {high}, {unflushed} unflushed");
        let came = machine.bucket.rollback(VBID, to).unwrap();
        assert!(came <= to, "{at}");
        let state = states.iter().rfind(|(seqno, _)| *seqno == came);
        let mut model = match state {
            Some((_, model)) => model.clone(),
            None if came == high => continue,
            None => {
                assert_eq!(came, Seqno(0), "{at}: a reset, or one of its states");
                Model::new()
            }
        };
        assert_eq!(role(&machine, VBID), Some(VbucketState::Replica), "{at}");
        assert_eq!(machine.persisted(VBID), came, "{at}");
        let statistics = machine.bucket.statistics();
        assert_eq!(statistics.rollbacks, 1);
        assert_eq!(statistics.vbuckets.rollback_items, high.0 - came.0, "{at}");
        if random.below(2) == 0 {
            machine = machine.power_cut(seed);
        }
        machine.run();
        assert_eq!(role(&machine, VBID), Some(VbucketState::Replica), "{at}");
        assert_eq!(machine.high_seqno(VBID), came, "{at}");
        become_role(&machine, VBID, VbucketState::Active);
        check(&mut machine, &model, &at);
        for number in 0..10 {
            let (name, value) = (format!("key-{}", number * 3), b"later".to_vec());
            let written = finish(&mut machine, |machine| machine.set(VBID, &name, &value)).unwrap();
            assert_eq!(written.seqno, Seqno(came.0 + number + 1), "{at}");
            model.insert(name, Some(value));
        }
        machine.run();
        check(&mut machine, &model, &at);
        let mut machine = machine.restart();
        machine.run();
        check(&mut machine, &model, &at);
    }
}

#[test]
fn branches_that_began_later_are_given_up_and_no_cas_is_given_twice() {
    let mut machine = Machine::new();
    let mut last_cas = Cas(0);
    for number in 0..10 {
        if number == 8 {
            become_role(&machine, VBID, VbucketState::Dead);
            become_role(&machine, VBID, VbucketState::Active);
        }
        last_cas = machine.set(VBID, &number.to_string(), b"v").unwrap().cas;
        machine.run();
    }
    let branches = machine.branches(VBID);
    assert_eq!(branches.len(), 2);
    become_role(&machine, VBID, VbucketState::Pending);
    assert_eq!(machine.bucket.rollback(VBID, Seqno(7)).unwrap(), Seqno(7));
    assert_eq!(machine.branches(VBID), branches[1..]);
    let mut machine = machine.restart();
    machine.run();
    assert_eq!(role(&machine, VBID), Some(VbucketState::Pending));
    assert_eq!(machine.branches(VBID), branches[1..], "no crash begins a branch in it");
    become_role(&machine, VBID, VbucketState::Active);
    assert!(machine.set(VBID, "k", b"v").unwrap().cas > last_cas);
}

#[test]
fn only_those_that_follow_others_are_rolled_back() {
    let mut machine = Machine::new();
    machine.set(VBID, "k", b"v").unwrap();
    for state in [VbucketState::Active, VbucketState::Dead] {
        become_role(&machine, VBID, state);
        let refused = machine.bucket.rollback(VBID, Seqno(0)).unwrap_err();
        assert!(matches!(refused, LifeError::WrongState(refused) if refused == state));
    }
    machine.bucket.delete_vbucket(VBID).unwrap();
    assert!(matches!(machine.bucket.rollback(VBID, Seqno(0)), Err(LifeError::NotHere)));
    assert!(matches!(machine.bucket.rollback(Vbid(4), Seqno(0)), Err(LifeError::NotHere)));
    let machine = machine.restart();
    assert!(matches!(machine.bucket.rollback(VBID, Seqno(0)), Err(LifeError::NotHere)));
}

#[test]
fn what_was_read_before_a_rollback_does_not_come_back_after_it() {
    for policy in POLICIES {
        let mut machine = Machine::with(with_policy(policy));
        for number in 0..10 {
            machine.set(VBID, &number.to_string(), b"old").unwrap();
            machine.run();
        }
        machine.set(VBID, "1", b"new").unwrap();
        machine.run();
        machine.evict(VBID, "1").unwrap();
        machine.session.waiter = Waiter(5);
        assert_eq!(machine.find(VBID, "1").unwrap_err(), Waits);
        become_role(&machine, VBID, VbucketState::Replica);
        assert_eq!(machine.bucket.rollback(VBID, Seqno(10)).unwrap(), Seqno(10));
        machine.run();
        assert!(matches!(machine.heard.take()[..], [(5, Completion::Retry(_))]));
        become_role(&machine, VBID, VbucketState::Active);
        assert_eq!(machine.get(VBID, "1").unwrap(), b"old");
        assert_eq!(machine.bucket.statistics().document_count, 10);
    }
}

#[test]
fn a_copy_that_goes_back_further_than_it_was_told_to_is_not_whole_until_somebody_says_so() {
    for config in [config(), files_config()] {
        for (to, came, is_whole) in [(9, 8, false), (8, 8, true), (10, 10, true), (12, 10, true)] {
            let mut machine = Machine::with(config.clone());
            for number in 0..10 {
                machine.set(VBID, &number.to_string(), b"value").unwrap();
                if number % 2 == 1 {
                    machine.run();
                }
            }
            become_role(&machine, VBID, VbucketState::Replica);
            machine.bucket.on_vbucket(VBID, |vbucket, _, effects| {
                vbucket.note_whole_from(Seqno(4), effects);
            });
            machine.bucket.on_vbucket(VBID, |vbucket, _, _| assert!(vbucket.is_whole()));
            machine.run();
            assert_eq!(machine.bucket.rollback(VBID, Seqno(to)).unwrap(), Seqno(came));
            let is_still = |machine: &Machine| {
                machine.bucket.on_vbucket(VBID, |vbucket, _, _| vbucket.is_whole())
            };
            assert_eq!(is_still(&machine), Some(is_whole), "to {to}");
            machine.run();
            let mut machine = machine.power_cut(0);
            machine.run();
            assert_eq!(is_still(&machine), Some(is_whole), "to {to}, started again");
        }
    }
}

#[test]
fn a_vbucket_that_was_rolled_back_knows_what_its_file_has_purged() {
    for config in [config(), files_config()] {
        let mut machine = Machine::with(config);
        machine.set(VBID, "deleted", b"value").unwrap();
        machine.delete(VBID, "deleted").unwrap();
        machine.set(VBID, "kept", b"value").unwrap();
        machine.run();
        let order = CompactionOrder { drop_deletes: true, ..CompactionOrder::default() };
        machine.bucket.compact(VBID, order, |_| {}).unwrap();
        machine.run();
        for name in ["late", "later"] {
            machine.set(VBID, name, b"value").unwrap();
            machine.run();
        }
        become_role(&machine, VBID, VbucketState::Replica);
        assert_eq!(machine.bucket.rollback(VBID, Seqno(4)).unwrap(), Seqno(4));
        let mut purged = Seqno(0);
        machine.bucket.with_vbucket(VBID, |vbucket| purged = vbucket.purge_seqno());
        assert_eq!(purged, Seqno(2));
    }
}

#[test]
fn an_earlier_state_that_is_damaged_is_none_to_go_back_to() {
    const BLOCK: usize = 4096;
    // Two blocks a commit: headers of all earlier states; bodies and nodes of the eighth.
    for damaged in [2 * BLOCK..15 * BLOCK + 100, 14 * BLOCK + 1..14 * BLOCK + 2000] {
        let machine = replica(files_config());
        let path = Path::new(DIRECTORY).join("0.couch.1");
        machine.bucket.shut_down().unwrap();
        let mut content = machine.files.content(&path).unwrap();
        assert_eq!(content.len() / BLOCK, 19, "nine commits of documents, one of the role");
        content[damaged].fill(0x55);
        machine.files.insert(&path, &content);
        let mut machine = machine.restart();
        machine.run();
        assert_eq!(machine.high_seqno(VBID), Seqno(9), "the newest state is whole");
        assert_eq!(machine.bucket.rollback(VBID, Seqno(8)).unwrap(), Seqno(0));
        assert_eq!(role(&machine, VBID), Some(VbucketState::Replica));
        let mut machine = machine.power_cut(0);
        machine.run();
        assert_eq!(machine.high_seqno(VBID), Seqno(0));
        assert_eq!(role(&machine, VBID), Some(VbucketState::Replica));
    }
}

#[test]
fn waits_end_and_parked_requests_are_tried_again_when_their_vbucket_goes_back() {
    let mut machine = Machine::new();
    machine.set(VBID, "k", b"v").unwrap();
    become_role(&machine, VBID, VbucketState::Pending);
    machine.session.waiter = Waiter(1);
    assert_eq!(machine.find(VBID, "k").unwrap_err(), Waits);
    assert_eq!(machine.wait(2, VBID, Seqno(99)), Err(Waits));
    machine.bucket.rollback(VBID, Seqno(0)).unwrap();
    let mut heard = machine.heard.take();
    heard.sort_unstable_by_key(|(waiter, _)| *waiter);
    assert_eq!(heard, [(1, Completion::Retry(None)), (2, Completion::NotPersisted)]);
}

/// A replica with nine persisted documents and one that is not.
fn replica(config: BucketConfig) -> Machine {
    let mut machine = Machine::with(config);
    for number in 1..=9 {
        machine.set(VBID, &number.to_string(), b"v").unwrap();
        machine.run();
    }
    become_role(&machine, VBID, VbucketState::Replica);
    machine
}

/// Fails each call of `action` at a machine that `make` makes, once or for good and with the power
/// going; `check` sees what comes of it, told whether it has to have happened.
fn survives(
    make: impl Fn() -> Machine,
    action: impl Fn(&mut Machine) -> Result<(), LifeError>,
    check: impl Fn(&mut Machine, bool, &str),
) {
    let mut machine = make();
    let before = machine.files.calls().total();
    action(&mut machine).unwrap();
    let calls = machine.files.calls().total() - before;
    assert!(calls > 3, "{calls}");
    for error in [FaultError::Io, FaultError::NoSpace, FaultError::TooManyOpen] {
        for number in 1..=calls {
            for (from_then_on, cut) in [(false, None), (true, None), (true, Some(number))] {
                let at = format!("{error:?} {number} of {calls}, {from_then_on}, cut {cut:?}");
                let mut machine = make();
                machine.files.fail(Fault { call: None, number, error, from_then_on });
                let failed = action(&mut machine).is_err();
                machine.files.heal();
                if let Some(seed) = cut {
                    let mut machine = machine.power_cut(seed);
                    machine.run();
                    check(&mut machine, !failed, &at);
                    continue;
                }
                if failed {
                    action(&mut machine).ok();
                }
                machine.advance(Duration::from_secs(2));
                check(&mut machine, true, &at);
                let mut machine = machine.power_cut(number);
                machine.run();
                check(&mut machine, true, &at);
            }
        }
    }
}

#[test]
fn whatever_call_fails_a_rollback_has_happened_or_not() {
    let modes = [config as fn() -> BucketConfig, files_config];
    for (config, to, came) in modes.into_iter().flat_map(|mode| [(mode, 7, 7), (mode, 3, 0)]) {
        let rollback = |machine: &mut Machine| machine.bucket.rollback(VBID, Seqno(to)).map(drop);
        survives(
            || replica(config()),
            rollback,
            |machine, must, at| {
                assert_eq!(role(machine, VBID), Some(VbucketState::Replica), "{at}");
                let high = machine.high_seqno(VBID).0;
                assert!(high == came || (high == 9 && !must), "{at}: {high}");
                become_role(machine, VBID, VbucketState::Active);
                for number in 1..=9 {
                    let is_there = machine.get(VBID, &number.to_string()).is_ok();
                    assert_eq!(is_there, number <= high, "{at}: {number}");
                }
                become_role(machine, VBID, VbucketState::Replica);
            },
        );
    }
}

#[test]
fn a_rollback_that_failed_in_a_file_that_is_damaged_then_takes_one_vbucket() {
    let roll_back = |machine: &Machine| {
        let before = machine.files.calls().of(Call::Sync);
        let came = machine.bucket.rollback(VBID, Seqno(8));
        (came, machine.files.calls().of(Call::Sync) - before)
    };
    let (came, number) = roll_back(&replica(config()));
    assert_eq!(came.unwrap(), Seqno(8));
    let machine = replica(config());
    let (call, error) = (Some(Call::Sync), FaultError::Io);
    machine.files.fail(Fault { call, number, error, from_then_on: false });
    assert!(matches!(roll_back(&machine).0, Err(LifeError::Storage(_))));
    let path = Path::new(DIRECTORY).join("0.couch.1");
    let size = machine.files.content(&path).unwrap().len();
    machine.files.insert(&path, &vec![0xee; size]);
    let roles = [VBID, OTHER].map(|vbid| {
        let state = if vbid == VBID { VbucketState::Active } else { VbucketState::Replica };
        NewRole { vbid, state, topology: None }
    });
    let left = machine.bucket.set_vbucket_states(roles.into());
    assert!(matches!(left[..], [(VBID, LifeError::NotPersisted)]), "{left:?}");
    assert_eq!(machine.bucket.damage_of(VBID), Some(DamageKind::RefusesWrites));
    assert_eq!(machine.bucket.damage_of(OTHER), None);
}

#[test]
fn whatever_call_fails_a_vbucket_is_deleted_and_made_anew_or_not() {
    deleted_and_made_anew_or_not(config);
    deleted_and_made_anew_or_not(files_config);
}

fn deleted_and_made_anew_or_not(config: fn() -> BucketConfig) {
    let dead = || {
        let machine = replica(config());
        become_role(&machine, VBID, VbucketState::Dead);
        machine
    };
    let delete = |machine: &mut Machine| machine.bucket.delete_vbucket(VBID);
    survives(dead, delete, |machine, must, at| match role(machine, VBID) {
        None => assert_eq!(machine.find(VBID, "1").unwrap_err(), Refused::NotMyVbucket, "{at}"),
        Some(state) => {
            assert_eq!((state, must), (VbucketState::Dead, false), "{at}");
            assert_eq!(machine.high_seqno(VBID), Seqno(9), "{at}");
        }
    });
    let gone = || {
        let machine = dead();
        machine.bucket.delete_vbucket(VBID).unwrap();
        machine
    };
    let create =
        |machine: &mut Machine| machine.bucket.set_vbucket_state(VBID, VbucketState::Pending, None);
    survives(gone, create, |machine, must, at| match role(machine, VBID) {
        None => assert!(!must, "{at}"),
        state => {
            assert_eq!(state, Some(VbucketState::Pending), "{at}");
            assert_eq!(machine.high_seqno(VBID), Seqno(0), "{at}");
        }
    });
}

/// No directory can be synced, once or until the disk is healed.
fn fail_directory_syncs(machine: &Machine, from_then_on: bool) {
    let (call, error) = (Some(Call::SyncDirectory), FaultError::Io);
    machine.files.fail(Fault { call, number: 1, error, from_then_on });
}

#[test]
fn a_vbucket_whose_deletion_was_refused_and_that_goes_on_is_not_deleted_by_a_start() {
    for (from_then_on, is_emptied) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut machine = Machine::new();
        machine.set(VBID, "k", b"v").unwrap();
        machine.run();
        become_role(&machine, VBID, VbucketState::Dead);
        fail_directory_syncs(&machine, from_then_on);
        assert!(matches!(machine.bucket.delete_vbucket(VBID), Err(LifeError::List(_))));
        let activate =
            |machine: &Machine| machine.bucket.set_vbucket_state(VBID, VbucketState::Active, None);
        if from_then_on {
            assert!(matches!(activate(&machine), Err(LifeError::List(_))));
            assert!(matches!(machine.bucket.flush_all(), Err(LifeError::List(_))));
            assert_eq!(role(&machine, VBID), Some(VbucketState::Dead));
            become_role(&machine, OTHER, VbucketState::Replica);
            machine.files.heal();
        }
        if is_emptied {
            machine.bucket.flush_all().unwrap();
        }
        activate(&machine).unwrap();
        machine.set(VBID, "later", b"v").unwrap();
        machine.run();
        let mut machine = machine.restart();
        machine.run();
        assert_eq!(role(&machine, VBID), Some(VbucketState::Active));
        assert_eq!(machine.get(VBID, "k").is_ok(), !is_emptied);
        assert_eq!(machine.get(VBID, "later").unwrap(), b"v");
    }
}

#[test]
fn a_vbucket_that_is_made_twenty_times_never_has_anything_of_an_earlier_one() {
    let mut machine = Machine::new();
    let mut revisions = Vec::new();
    for round in 0..20_u64 {
        for number in 0..=round {
            machine.set(VBID, &format!("{round}-{number}"), b"value").unwrap();
        }
        if round % 3 != 2 {
            machine.run();
        }
        let names = machine.files.list(Path::new(DIRECTORY)).unwrap();
        let revision = names.iter().find_map(|name| name.strip_prefix("0.couch."));
        revisions.extend(revision.map(|text| text.parse::<u64>().unwrap()));
        become_role(&machine, VBID, VbucketState::Dead);
        assert!(matches!(machine.set(VBID, "k", b"v"), Err(No(Refused::NotMyVbucket))));
        machine.bucket.delete_vbucket(VBID).unwrap();
        assert!(matches!(machine.bucket.delete_vbucket(VBID), Err(LifeError::NotHere)));
        if round % 2 == 0 {
            machine =
                if round % 4 == 0 { machine.power_cut(round) } else { machine.stop_and_start() };
            machine.run();
            assert_eq!(role(&machine, VBID), None, "round {round}: it stays away");
        }
        become_role(&machine, VBID, VbucketState::Active);
        if round % 5 == 0 {
            machine = machine.power_cut(round);
            machine.run();
        }
        assert_eq!(machine.high_seqno(VBID), Seqno(0));
        for number in 0..=round {
            let found = machine.get(VBID, &format!("{round}-{number}"));
            assert_eq!(found, Err(No(Refused::NotFound)), "round {round}");
        }
    }
    assert!(revisions.len() >= 13, "{revisions:?}");
    assert!(revisions.is_sorted_by(|left, right| left < right), "{revisions:?}");
    assert!(machine.set(OTHER, "k", b"v").is_ok());
}

#[test]
fn roles_outlast_power_cuts_and_emptying_the_bucket() {
    let mut machine = Machine::new();
    machine.set(VBID, "k", b"v").unwrap();
    let roles = [VbucketState::Pending, VbucketState::Replica, VbucketState::Dead];
    for (vbid, state) in (0..).map(Vbid).zip(roles) {
        become_role(&machine, vbid, state);
    }
    become_role(&machine, Vbid(3), VbucketState::Dead);
    machine.bucket.delete_vbucket(Vbid(3)).unwrap();
    let mut machine = machine.power_cut(0);
    machine.run();
    let expected = [Some(roles[0]), Some(roles[1]), Some(roles[2]), None];
    assert_eq!([0, 1, 2, 3].map(|vbid| role(&machine, Vbid(vbid))), expected);
    machine.bucket.flush_all().unwrap();
    machine.run();
    assert_eq!([0, 1, 2, 3].map(|vbid| role(&machine, Vbid(vbid))), expected);
    let mut machine = machine.power_cut(0);
    machine.bucket.flush_all().unwrap();
    machine.run();
    assert_eq!([0, 1, 2, 3].map(|vbid| role(&machine, Vbid(vbid))), expected);
    assert_eq!(machine.high_seqno(VBID), Seqno(0));
}

#[test]
fn a_role_that_cannot_be_written_is_said_to_be_and_tried_again() {
    // A journal keeps room for it.
    let mut machine = Machine::with(files_config());
    machine.set(VBID, "k", b"v").unwrap();
    machine.run();
    machine.files.set_capacity(0);
    let refused = machine.bucket.set_vbucket_state(VBID, VbucketState::Dead, None).unwrap_err();
    assert!(matches!(refused, LifeError::NotPersisted));
    assert_eq!(role(&machine, VBID), Some(VbucketState::Dead));
    machine.files.set_capacity(u64::MAX);
    machine.advance(Duration::from_secs(2));
    let mut machine = machine.power_cut(0);
    machine.run();
    assert_eq!(role(&machine, VBID), Some(VbucketState::Dead));
}

#[test]
fn an_ephemeral_vbucket_is_deleted_made_anew_and_rolled_back_to_nothing() {
    let bucket_type = Some(bucket::BucketType::Ephemeral);
    let mut machine = Machine::with(BucketConfig { bucket_type, ..config() });
    machine.set(VBID, "k", b"v").unwrap();
    become_role(&machine, VBID, VbucketState::Replica);
    assert_eq!(machine.bucket.rollback(VBID, Seqno(1)).unwrap(), Seqno(0));
    assert_eq!(role(&machine, VBID), Some(VbucketState::Replica));
    become_role(&machine, VBID, VbucketState::Dead);
    machine.bucket.delete_vbucket(VBID).unwrap();
    assert_eq!(machine.find(VBID, "k").unwrap_err(), Refused::NotMyVbucket);
    become_role(&machine, VBID, VbucketState::Active);
    assert_eq!(machine.set(VBID, "k", b"v").unwrap().seqno, Seqno(1));
    machine.run();
}

const FIXTURES: [(&str, &[u8]); 2] = [
    ("0.couch.1", include_bytes!("../../../storage/tests/fixtures/couchstore/0.couch.1")),
    ("1.couch.1", include_bytes!("../../../storage/tests/fixtures/couchstore/1.couch.1")),
];

fn original(names: &[(&str, &[u8])]) -> SimulatedFiles {
    let files = SimulatedFiles::new();
    for (name, content) in names {
        files.insert(&Path::new(DIRECTORY).join(name), content);
    }
    files
}

#[test]
fn a_directory_of_the_original_is_taken_over() {
    for policy in POLICIES {
        let files = original(&FIXTURES);
        files.insert(&Path::new(DIRECTORY).join("access.log"), b"kept");
        let mut machine = Machine::begin(files, with_policy(policy)).unwrap();
        machine.run();
        assert_eq!(machine.bucket.config().vbucket_count, 2);
        assert_eq!(role(&machine, VBID), Some(VbucketState::Active));
        assert_eq!(role(&machine, OTHER), Some(VbucketState::Replica));
        let name = |number: u64| format!("K{number:020}");
        assert_eq!(machine.get(VBID, &name(1)).unwrap().len(), 300);
        assert_eq!(machine.find(OTHER, &name(0)).unwrap_err(), Refused::NotMyVbucket);
        assert_eq!(machine.set(VBID, "new", b"value").unwrap().seqno, Seqno(251));
        let mut machine = machine.stop_and_start();
        machine.run();
        assert_eq!(machine.get(VBID, "new").unwrap(), b"value");
        assert_eq!(machine.bucket.rollback(OTHER, Seqno(250)).unwrap(), Seqno(250));
        become_role(&machine, OTHER, VbucketState::Active);
        assert_eq!(machine.get(OTHER, &name(0)).unwrap().len(), 300);
        assert_eq!(machine.bucket.statistics().document_count, 501);
        let kept = machine.files.content(&Path::new(DIRECTORY).join("access.log"));
        assert_eq!(kept.as_deref(), Some(&b"kept"[..]));
    }
}

fn prepare(seqno: u64) -> Item {
    let builder = ItemBuilder::new(key("p").as_key(), ItemMeta::default(), b"new");
    let builder = builder.with_operation(Operation::Prepare(DurabilityLevel::Majority));
    builder.finish(Cas(seqno), Seqno(seqno), RevSeqno(1))
}

#[test]
fn what_the_original_remembers_and_is_not_used_yet_stays_in_the_file() {
    let files = SimulatedFiles::new();
    let open_store = || {
        let clock = Clock::simulated(WallTime(1));
        let options =
            StoreOptions { entropy: Entropy::real(), clock, open_files_max: 2, journal: None };
        Store::open(Arc::new(files.clone()), Path::new(DIRECTORY), options).unwrap().0
    };
    let mut state = VbucketRecord::new(VbucketState::Active);
    // A majority is placed, so the prepare waits for it.
    let chain = vec![Some("ns_1@a".to_owned()), Some("ns_1@b".to_owned()), None];
    state.replication_topology = Arc::new(vec![chain]);
    let first_branch = FailoverEntry { uuid: VbUuid(77), seqno: Seqno(0) };
    state.failover_table = [first_branch].into();
    state.hlc_epoch = 3;
    state.might_contain_xattrs = true;
    state.completed_seqno = Seqno(4);
    state.prepared_seqno = Seqno(9);
    state.high_prepared_seqno = Seqno(9);
    state.max_visible_seqno = Seqno(8);
    let batch = |items, state| FlushBatch { vbid: VBID, previous_seqno: Seqno(0), items, state };
    open_store().commit(vec![batch(vec![prepare(9)], state.clone())], |_, result| {
        result.unwrap();
    });
    let mut machine = Machine::begin(files.clone(), files_config()).unwrap();
    machine.run();
    assert_eq!(machine.bucket.statistics().document_count, 0, "a prepare is no document yet");
    assert_eq!(machine.set(VBID, "k", b"v").unwrap().seqno, Seqno(10));
    machine.run();
    let read = |machine: &Machine| {
        let record = open_store().state(VBID).unwrap().unwrap();
        let newest = machine.branches(VBID)[0];
        assert_eq!(record.failover_table[0].uuid, newest, "a crash is assumed");
        record
    };
    let found = read(&machine);
    let branch = FailoverEntry { seqno: Seqno(9), ..found.failover_table[0] };
    state.failover_table = [branch, first_branch].into();
    state.max_visible_seqno = Seqno(10);
    (state.snapshot_start, state.snapshot_end) = (Seqno(10), Seqno(10));
    state.max_cas = found.max_cas;
    (state.on_disk_prepares, state.on_disk_prepare_bytes) = (1, found.on_disk_prepare_bytes);
    assert_eq!(found, state);
    assert!(found.on_disk_prepare_bytes > 0);
    // The role changes, the rest does not, nor over a restart.
    become_role(&machine, VBID, VbucketState::Pending);
    let mut machine = machine.stop_and_start();
    machine.run();
    state.state = VbucketState::Pending;
    state.replication_topology = Arc::default();
    state.max_cas = found.max_cas;
    // Who begins to follow is not whole until the active copy has said how far that is.
    state.whole_from_seqno = Seqno(u64::MAX);
    assert_eq!(read(&machine), state);
}

#[test]
fn directories_that_cannot_be_taken_over_are_refused_with_the_reason() {
    let active = FIXTURES[0].1;
    let refused = |files, config| match Machine::begin(files, config) {
        Ok(_) => panic!("it is taken over"),
        Err(error) => error.to_string(),
    };
    let too_many = refused(original(&[("40000.couch.1", active)]), config());
    assert!(too_many.contains("32767"), "{too_many}");
    let magma = refused(original(&[("magma.0/state", b"")]), config());
    assert!(magma.contains("Magma"), "{magma}");
    let bucket_type = Some(bucket::BucketType::Ephemeral);
    let ephemeral = BucketConfig { bucket_type, ..config() };
    let ephemeral = refused(original(&FIXTURES), ephemeral);
    assert!(ephemeral.contains("couchbase"), "{ephemeral}");
}

#[test]
fn a_vbucket_that_gets_no_role_keeps_none_from_theirs() {
    let machine = Machine::new();
    let replica = |vbid| NewRole { vbid: Vbid(vbid), state: VbucketState::Replica, topology: None };
    let left = machine.bucket.set_vbucket_states([9, 0, 8, 1].map(replica).to_vec());
    let left: Vec<u16> = left
        .into_iter()
        .map(|(vbid, error)| {
            assert!(matches!(error, LifeError::OutOfRange), "{error}");
            vbid.0
        })
        .collect();
    assert_eq!(left, [9, 8]);
    for vbid in [VBID, OTHER] {
        let mut state = None;
        machine.bucket.with_vbucket(vbid, |vbucket| state = Some(vbucket.state()));
        assert_eq!(state, Some(VbucketState::Replica));
    }
}

#[test]
fn a_large_write_for_a_vbucket_that_is_not_here_is_dropped_behind_its_lock() {
    let mut machine = Machine::new();
    machine.bucket.set_vbucket_state(VBID, VbucketState::Dead, None).unwrap();
    machine.bucket.delete_vbucket(VBID).unwrap();
    let stored = machine.set(VBID, "key", &[b'x'; 100_000]);
    assert!(matches!(stored, Err(No(Refused::NotMyVbucket))), "{stored:?}");
}
