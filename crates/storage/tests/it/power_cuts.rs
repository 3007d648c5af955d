//! The power is cut, and calls fail, at every call of whatever a store goes through, with a journal
//! and without: nothing acknowledged is lost, and nothing that was given up comes back.

mod content;
mod model;
mod scenarios;

use platform::simulated::{Fault, FaultError, SimulatedFiles};

use model::{Life, OnError};
use scenarios::{SCENARIOS, Scenario};

const ERRORS: [FaultError; 4] =
    [FaultError::Io, FaultError::NoSpace, FaultError::TooManyOpen, FaultError::ShortWrite];

/// Each scenario in each of the ways of keeping files in which it makes sense.
fn everywhere(mut check: impl FnMut(&Scenario, bool, u64)) {
    for scenario in SCENARIOS {
        for is_journal in [true, false] {
            if is_journal || !scenario.needs_journal {
                let files = SimulatedFiles::new();
                let mut life = Life::new(files.clone(), is_journal, OnError::Stop);
                let at = format!("{}, journal {is_journal}", scenario.name);
                assert!(life.run(scenario.steps, &at), "{at}: nothing fails");
                let calls = files.calls().total();
                life.check(&at);
                check(scenario, is_journal, calls);
            }
        }
    }
}

#[test]
fn after_a_power_cut_at_any_call_everything_acknowledged_is_there_and_nothing_else() {
    everywhere(|scenario, is_journal, calls| {
        for number in 1..=calls {
            for seed in [0, number] {
                let files = SimulatedFiles::new();
                let error = FaultError::ShortWrite;
                files.fail(Fault { call: None, number, error, from_then_on: true });
                let mut life = Life::new(files.clone(), is_journal, OnError::Stop);
                let name = scenario.name;
                let at = format!("{name}, journal {is_journal}, call {number}, seed {seed}");
                life.run(scenario.steps, &at);
                files.heal();
                files.power_cut(seed);
                life.check(&at);
            }
        }
    });
}

#[test]
fn whatever_call_fails_nothing_acknowledged_is_lost_and_the_store_goes_on() {
    everywhere(|scenario, is_journal, calls| {
        for number in 1..=calls {
            let error = ERRORS[usize::try_from(number).unwrap() % ERRORS.len()];
            for from_then_on in [false, true] {
                // Who is told of a failure tries again, or goes on without that commit.
                for on_error in [OnError::Retry, OnError::Skip] {
                    let files = SimulatedFiles::new();
                    files.fail(Fault { call: None, number, error, from_then_on });
                    let mut life = Life::new(files.clone(), is_journal, on_error);
                    let name = scenario.name;
                    let at = format!(
                        "{name}, journal {is_journal}, call {number}, {error:?}, then on \
                         {from_then_on}, {on_error:?}"
                    );
                    assert!(life.run(scenario.steps, &at), "{at}");
                    files.heal();
                    // A commit that failed may have left its bytes.
                    files.power_cut(number % 3);
                    life.check(&at);
                }
            }
        }
    });
}
