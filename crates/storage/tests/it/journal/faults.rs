//! Every file call fails once, at every position, in every way.

use platform::simulated::{Fault, FaultError, SimulatedFiles};

use super::scenarios::{Model, OnError, SCENARIOS};

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
