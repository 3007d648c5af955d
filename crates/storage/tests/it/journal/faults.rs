//! Every file call fails once, at every position, in every way.

use std::path::Path;

use platform::Files;
use platform::simulated::{Call, Fault, FaultError, SimulatedFiles};

use super::model::try_open;
use super::scenarios::{Model, OnError, SCENARIOS, Scenario};
use crate::batches::DIRECTORY;

#[test]
fn every_call_fails_once_and_nothing_is_lost() {
    for scenario in SCENARIOS {
        let counted = SimulatedFiles::new();
        let mut model = Model::default();
        scenario.run(&counted, &mut model, OnError::Retry, "no fault").unwrap();
        assert_eq!(model.failures, 0, "{}", scenario.name);
        let errors =
            [FaultError::Io, FaultError::NoSpace, FaultError::TooManyOpen, FaultError::ShortWrite];
        for error in errors {
            for number in 1..=counted.calls().total() {
                let files = SimulatedFiles::new();
                let mut model = Model::default();
                files.fail(Fault { call: None, number, error, from_then_on: false });
                let at = format!("call {number}, {error:?}");
                scenario.run(&files, &mut model, OnError::Retry, &at).unwrap();
                files.heal();
                files.power_cut(number);
                scenario.check_after_power_cut(&files, &mut model, &at);
            }
        }
    }
}

/// A disk on which a scenario has come to its end, and then the power was cut.
fn left_by(scenario: &Scenario<'_>) -> (SimulatedFiles, Model) {
    let (files, mut model) = (SimulatedFiles::new(), Model::default());
    scenario.run(&files, &mut model, OnError::Stop, "no fault").unwrap();
    files.power_cut(0);
    (files, model)
}

/// Opens the journal, as far as that goes, and appends to it once there is room and nothing fails
/// any more.
fn go_on(
    scenario: &Scenario<'_>,
    files: &SimulatedFiles,
    model: &mut Model,
    at: &str,
) -> Option<()> {
    let journal = scenario.open(files, model, OnError::Stop, at);
    files.heal();
    files.set_capacity(1 << 30);
    let journal = journal?;
    for _ in 0..2 {
        let batches = model.new_batches(1, 700);
        scenario.append(&journal, model, batches, OnError::Stop).expect("nothing fails now");
    }
    Some(())
}

/// The last group cannot be copied then, and is made sure where it is.
#[test]
fn a_start_without_room_fails_at_any_call_and_nothing_is_lost() {
    let mut in_place = 0;
    for scenario in SCENARIOS {
        let names =
            |files: &SimulatedFiles| files.list(&Path::new(DIRECTORY).join("journal")).unwrap();
        let (counted, mut model) = left_by(scenario);
        counted.set_capacity(0);
        let (before, calls) = (names(&counted), counted.calls().total());
        drop(scenario.open(&counted, &mut model, OnError::Stop, "a full disk").unwrap());
        in_place += usize::from(names(&counted) == before);
        let calls = counted.calls().total() - calls;
        for error in [FaultError::Io, FaultError::ShortWrite] {
            for number in 1..=calls {
                for (from_then_on, seed) in [(false, 0), (true, 0), (true, number)] {
                    let at = format!("call {number}, {error:?}, {from_then_on}, seed {seed}");
                    let (files, mut model) = left_by(scenario);
                    files.set_capacity(0);
                    files.fail(Fault { call: None, number, error, from_then_on });
                    drop(try_open(&files, scenario.options));
                    files.heal();
                    files.power_cut(seed);
                    let started = go_on(scenario, &files, &mut model, &at);
                    assert!(started.is_some(), "{}, {at}: it starts without room", scenario.name);
                    files.power_cut(seed);
                    scenario.check_after_power_cut(&files, &mut model, &at);
                }
            }
        }
    }
    assert!(in_place >= 2, "{in_place} of the scenarios leave no room that was made before");
}

/// Both attempts to copy the last group fail for want of room, here and there, and perhaps what
/// they leave cannot be removed.
#[test]
fn nothing_comes_back_of_a_copy_that_had_no_room() {
    let mut started = 0;
    for scenario in SCENARIOS {
        let (counted, mut model) = left_by(scenario);
        let before = counted.calls();
        drop(scenario.open(&counted, &mut model, OnError::Stop, "no fault"));
        for call in [Call::Write, Call::Sync] {
            let count = counted.calls().of(call) - before.of(call);
            for (number, gap) in (1..=count).flat_map(|number| [(number, 1), (number, 2)]) {
                for (removals_fail, seed) in
                    [false, true].into_iter().flat_map(|fail| (0..6).map(move |seed| (fail, seed)))
                {
                    let at = format!("{call:?} {number}, {gap}, {removals_fail}, seed {seed}");
                    let (files, mut model) = left_by(scenario);
                    let error = FaultError::NoSpace;
                    for number in [number, number + gap] {
                        let call = Some(call);
                        files.fail(Fault { call, number, error, from_then_on: false });
                    }
                    if removals_fail {
                        let (call, error) = (Some(Call::Remove), FaultError::Io);
                        files.fail(Fault { call, number: 1, error, from_then_on: true });
                    }
                    started += usize::from(go_on(scenario, &files, &mut model, &at).is_some());
                    files.power_cut(seed);
                    scenario.check_after_power_cut(&files, &mut model, &at);
                }
            }
        }
    }
    assert!(started > 100, "{started} starts have succeeded");
}

/// Nobody was told of the last group, and its sync has failed: a start that finds it makes it sure,
/// also where it is.
#[test]
fn what_a_start_without_room_replays_after_a_failed_sync_stays_when_the_power_goes_later() {
    for scenario in SCENARIOS {
        let counted = SimulatedFiles::new();
        scenario.run(&counted, &mut Model::default(), OnError::Stop, "no fault").unwrap();
        for number in 1..=counted.calls().of(Call::Sync) {
            for seed in 0..6 {
                let at = format!("sync {number}, seed {seed}");
                let (files, mut model) = (SimulatedFiles::new(), Model::default());
                let (call, error) = (Some(Call::Sync), FaultError::Io);
                files.fail(Fault { call, number, error, from_then_on: true });
                scenario.run(&files, &mut model, OnError::Stop, &at);
                files.heal();
                files.set_capacity(0);
                let journal = scenario.open(&files, &mut model, OnError::Stop, &at);
                assert!(journal.is_some(), "{}, {at}: it starts without room", scenario.name);
                drop(journal);
                files.set_capacity(1 << 30);
                files.power_cut(seed);
                scenario.check_after_power_cut(&files, &mut model, &at);
            }
        }
    }
}
