//! A vBucket whose file is damaged begins anew by order, and not otherwise.

use bucket::{DamageKind, LifeError};
use document::{Seqno, VbUuid, Vbid, VbucketState};
use platform::simulated::{Fault, FaultError};

use crate::damage::{
    BLOCKED, assert_set_aside, file_of, kinds, role, with_damage_at_run_time, with_damage_at_start,
    with_two_documents,
};
use crate::support::{Machine, OTHER, VBID};

fn branch(machine: &Machine, vbid: Vbid) -> VbUuid {
    let mut uuid = None;
    let look = |vbucket: &vbucket::Vbucket| uuid = Some(vbucket.failover_entries()[0].uuid);
    machine.bucket.with_vbucket(vbid, look);
    uuid.unwrap()
}

/// The vBucket is empty and active, and takes writes that stay.
fn assert_begun_anew(mut machine: Machine, at: &str) -> Machine {
    assert_eq!(role(&machine, VBID), Some(VbucketState::Active), "{at}");
    assert_eq!(machine.high_seqno(VBID), Seqno(0), "{at}");
    machine.set(VBID, "new", b"value").unwrap();
    machine.run();
    let mut machine = machine.power_cut(7);
    machine.run();
    assert_eq!(machine.get(VBID, "new").unwrap(), b"value", "{at}");
    assert_eq!(machine.get(OTHER, "key").unwrap(), b"value", "{at}");
    machine
}

#[test]
fn a_damaged_vbucket_begins_anew_by_order_and_its_file_is_set_aside() {
    for config in kinds() {
        for finds in [with_damage_at_start, with_damage_at_run_time] {
            let at = format!("{:?}", config.persistence);
            let old_branch = branch(&with_two_documents(config.clone()), VBID);
            let (machine, path, damaged) = finds(config.clone());
            machine.bucket.reset_vbucket(VBID, None).unwrap();
            assert!(machine.bucket.damaged_vbuckets().is_empty(), "{at}");
            assert_ne!(branch(&machine, VBID), old_branch, "{at}");
            assert_set_aside(&machine, &path, &damaged, &at);
            assert!(file_of(&machine.files, VBID) > path, "{at}: a higher revision");
            let machine = assert_begun_anew(machine, &at);
            assert_set_aside(&machine, &path, &damaged, &at);
        }
    }
}

#[test]
fn what_would_be_lost_is_told_and_nothing_changes() {
    for config in kinds() {
        let (mut machine, path, damaged) = with_damage_at_start(config.clone());
        let loss = machine.bucket.reset_loss(VBID).unwrap();
        assert_eq!((loss.damage.vbid, loss.damage.kind), (VBID, DamageKind::OutOfService));
        assert_eq!((loss.high_seqno(), loss.document_count()), (Some(Seqno(1)), None));
        assert_eq!(loss.remains.file.as_ref(), Some(&path));
        assert_eq!(loss.remains.file_bytes, damaged.len() as u64);
        let aside = loss.remains.aside.unwrap();
        assert_eq!(aside.file_name().unwrap(), "0.couch.1.damaged");
        assert_eq!(machine.get(VBID, "key").unwrap_err(), BLOCKED);
        assert_eq!(machine.files.content(&path).as_deref(), Some(&damaged[..]));

        let (mut machine, path, damaged) = with_damage_at_run_time(config);
        let loss = machine.bucket.reset_loss(VBID).unwrap();
        assert_eq!(loss.damage.kind, DamageKind::RefusesWrites);
        assert_eq!((loss.high_seqno(), loss.document_count()), (Some(Seqno(2)), Some(1)));
        assert_eq!(machine.get(VBID, "key").unwrap(), b"newer");
        assert_eq!(machine.files.content(&path).as_deref(), Some(&damaged[..]));
    }
}

#[test]
fn what_is_not_damaged_does_not_begin_anew() {
    for config in kinds() {
        let mut machine = with_two_documents(config);
        let refused = machine.bucket.reset_vbucket(VBID, None).unwrap_err();
        assert!(matches!(refused, LifeError::NotDamaged), "{refused:?}");
        assert!(machine.bucket.reset_loss(VBID).is_err());
        assert_eq!(machine.get(VBID, "key").unwrap(), b"value");
        machine.bucket.set_vbucket_state(VBID, VbucketState::Dead, None).unwrap();
        machine.bucket.delete_vbucket(VBID).unwrap();
        let refused = machine.bucket.reset_vbucket(VBID, None).unwrap_err();
        assert!(matches!(refused, LifeError::NotHere), "{refused:?}");
        let refused = machine.bucket.reset_vbucket(Vbid(99), None).unwrap_err();
        assert!(matches!(refused, LifeError::OutOfRange), "{refused:?}");
    }
}

#[test]
fn whenever_the_power_goes_it_is_out_of_service_or_has_begun_anew() {
    for config in kinds() {
        for finds in [with_damage_at_start, with_damage_at_run_time] {
            let mut number = 0;
            loop {
                number += 1;
                let (machine, path, damaged) = finds(config.clone());
                let error = FaultError::Io;
                machine.files.fail(Fault { call: None, number, error, from_then_on: true });
                let is_done = machine.bucket.reset_vbucket(VBID, None).is_ok();
                machine.files.heal();
                let mut machine = machine.power_cut(number);
                machine.run();
                let at = format!("call {number}, {:?}", config.persistence);
                if role(&machine, VBID).is_none() {
                    assert!(!is_done, "{at}");
                    assert_eq!(machine.get(VBID, "key").unwrap_err(), BLOCKED, "{at}");
                    machine.bucket.reset_vbucket(VBID, None).unwrap();
                }
                assert_set_aside(&machine, &path, &damaged, &at);
                if !is_done && machine.high_seqno(VBID) > Seqno(0) {
                    // The journal still had all of it, and without the file nothing contradicts.
                    assert_eq!(machine.get(VBID, "key").unwrap(), b"newer", "{at}");
                    continue;
                }
                let machine = assert_begun_anew(machine, &at);
                assert!(file_of(&machine.files, VBID) > path, "{at}: a higher revision");
                if is_done {
                    break;
                }
            }
            assert!(number > 5, "{number} calls");
        }
    }
}

#[test]
fn an_order_that_failed_can_be_given_again() {
    for config in kinds() {
        let mut number = 0;
        loop {
            number += 1;
            let (mut machine, path, damaged) = with_damage_at_run_time(config.clone());
            let error = FaultError::NoSpace;
            machine.files.fail(Fault { call: None, number, error, from_then_on: true });
            let made = machine.bucket.reset_vbucket(VBID, None);
            machine.files.heal();
            if made.is_ok() {
                break;
            }
            let at = format!("call {number}");
            assert_eq!(machine.get(VBID, "key").unwrap_err(), BLOCKED, "{at}");
            assert_eq!(machine.bucket.damaged_vbuckets()[0].kind, DamageKind::OutOfService);
            machine.bucket.reset_vbucket(VBID, None).unwrap();
            assert_set_aside(&machine, &path, &damaged, &at);
            assert_begun_anew(machine, &at);
        }
        assert!(number > 5, "{number} calls");
    }
}
