//! The power is cut at every call that changes the disk, in every scenario.

use platform::Random;
use platform::simulated::{Call, Fault, FaultError, SimulatedFiles};
use storage::journal::JournalOptions;

use super::model::OPTIONS;
use super::scenarios::{Model, OnError, SCENARIOS, Scenario, Step};

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
fn run_and_check(scenario: &Scenario<'_>, faults: &[Fault], seed: Option<u64>) {
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

fn random_step(random: &mut Random) -> Step {
    let size = match random.below(20) {
        0 => 70_000,
        1..5 => 12_000,
        _ => usize::try_from(random.below(3000)).unwrap(),
    };
    match random.below(12) {
        0 => Step::Delete,
        1 | 2 => Step::Release(random.below(6)),
        3 => Step::Prepare,
        4 => Step::Reopen,
        5 if random.below(4) == 0 => Step::Seal,
        _ => Step::Append(random.below(12) + 1, size),
    }
}

fn random_fault(random: &mut Random, from_then_on: bool) -> Fault {
    let errors =
        [FaultError::Io, FaultError::NoSpace, FaultError::TooManyOpen, FaultError::ShortWrite];
    let index = usize::try_from(random.below(CHANGES.len() as u64)).unwrap();
    Fault {
        call: Some(CHANGES[index]),
        number: random.below(30) + 1,
        error: errors[usize::try_from(random.below(4)).unwrap()],
        from_then_on,
    }
}

/// One disk goes through several lives, each with a few failures and a bad end.
#[test]
fn whatever_happens_to_a_journal_nothing_acknowledged_is_lost() {
    for seed in platform::seeds::seeds(500) {
        let mut random = Random::from_seed(seed);
        let files = SimulatedFiles::new();
        let mut model = Model::default();
        let bytes_max = OPTIONS.segment_bytes * (random.below(8) + 1);
        for life in 0..4 {
            let steps: Vec<_> =
                (0..random.below(12) + 1).map(|_| random_step(&mut random)).collect();
            let options = JournalOptions { bytes_max, ..OPTIONS };
            let scenario = Scenario { name: "random", options, steps: &steps };
            let is_stopped = random.below(2) == 0;
            for _ in 0..random.below(4) {
                files.fail(random_fault(&mut random, false));
            }
            if is_stopped {
                files.fail(random_fault(&mut random, true));
            }
            let on_error = if is_stopped { OnError::Stop } else { OnError::Retry };
            scenario.run(&files, &mut model, on_error, &format!("seed {seed}, life {life}"));
            files.heal();
            match random.below(4) {
                0 => {}
                1 => files.power_cut(0),
                _ => files.power_cut(random.next_u64()),
            }
        }
        let scenario = Scenario { name: "random", options: OPTIONS, steps: &[] };
        scenario.check_after_power_cut(&files, &mut model, &format!("seed {seed}"));
    }
}
