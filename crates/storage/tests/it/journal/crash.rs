//! The power is cut at every call that changes the disk, in every scenario.

use platform::simulated::{Call, Fault, FaultError, SimulatedFiles};

use super::scenarios::{Model, OnError, SCENARIOS, Scenario};

const CHANGES: [Call; 6] =
    [Call::Write, Call::Sync, Call::SyncDirectory, Call::Rename, Call::Remove, Call::Open];

/// Seed 0 loses all that was not synced, others a part that differs each time.
fn power_cut_seeds(number: u64) -> impl Iterator<Item = u64> {
    std::iter::once(0).chain(platform::seeds::seeds(3).map(move |seed| seed * 1000 + number))
}

fn faults_of(call: Call) -> &'static [FaultError] {
    if call == Call::Write { &[FaultError::Io, FaultError::ShortWrite] } else { &[FaultError::Io] }
}

/// Goes through a scenario until the faults stop it, and looks at what is there after a power cut;
/// without a seed only the process ends at first.
fn run_and_check(scenario: &Scenario, faults: &[Fault], seed: Option<u64>) {
    let files = SimulatedFiles::new();
    let mut model = Model::default();
    let at = format!("{faults:?}, seed {seed:?}");
    for fault in faults {
        files.fail(*fault);
    }
    scenario.run(&files, &mut model, OnError::Stop, &at);
    files.heal();
    if let Some(seed) = seed {
        files.power_cut(seed);
    }
    scenario.check_after_power_cut(&files, &mut model, &at);
}

#[test]
fn after_a_power_cut_everything_acknowledged_is_replayed_and_nothing_else() {
    for scenario in SCENARIOS {
        let counted = SimulatedFiles::new();
        let done = scenario.run(&counted, &mut Model::default(), OnError::Stop, "no fault");
        assert!(done.is_some(), "{}", scenario.name);
        for call in CHANGES {
            for number in 1..=counted.calls().of(call) {
                for error in faults_of(call) {
                    let cut = Fault { call: Some(call), number, error: *error, from_then_on: true };
                    for seed in power_cut_seeds(number) {
                        run_and_check(scenario, &[cut], Some(seed));
                    }
                }
            }
        }
    }
}

#[test]
fn after_a_failed_call_and_a_power_cut_later_everything_acknowledged_is_replayed() {
    for scenario in SCENARIOS {
        let counted = SimulatedFiles::new();
        scenario.run(&counted, &mut Model::default(), OnError::Stop, "no fault");
        for call in [Call::Write, Call::Sync, Call::SyncDirectory, Call::Rename] {
            let calls = counted.calls().of(call);
            for number in 1..=calls {
                for later in [1, 2, 3, 5, calls - number + 2] {
                    let failure = Fault {
                        call: Some(call),
                        number,
                        error: FaultError::Io,
                        from_then_on: false,
                    };
                    let cut = Fault { number: number + later, from_then_on: true, ..failure };
                    for seed in [0, number * 10 + later] {
                        run_and_check(scenario, &[failure, cut], Some(seed));
                    }
                }
            }
        }
    }
}

/// What a failed sync should have made durable is still read, and a later sync that succeeds does
/// not change that: the start has to write it anew.
#[test]
fn what_a_start_replays_after_a_failed_sync_stays_when_the_power_goes_later() {
    for scenario in SCENARIOS {
        let counted = SimulatedFiles::new();
        scenario.run(&counted, &mut Model::default(), OnError::Stop, "no fault");
        for call in CHANGES {
            for number in 1..=counted.calls().of(call) {
                for error in faults_of(call) {
                    let stop =
                        Fault { call: Some(call), number, error: *error, from_then_on: true };
                    run_and_check(scenario, &[stop], None);
                }
            }
        }
    }
}
