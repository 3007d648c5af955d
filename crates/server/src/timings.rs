//! How long commands take, recorded by each worker for itself.

use std::sync::OnceLock;

use document::histogram::{Histogram, HistogramSnapshot};
use protocol::Opcode;

const OPCODE_COUNT: usize = 256;

/// Durations in nanoseconds, by command. Those that nobody has asked for take no memory.
#[derive(Debug)]
pub(crate) struct CommandTimings {
    by_opcode: Box<[OnceLock<Box<Histogram>>; OPCODE_COUNT]>,
}

/// A family of commands, under the name that operators know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Get,
    Store,
    Arithmetic,
    Stats,
}

/// All families with their names.
const FAMILIES: [(&str, Family); 4] = [
    ("get_cmd", Family::Get),
    ("store_cmd", Family::Store),
    ("arith_cmd", Family::Arithmetic),
    ("get_stats_cmd", Family::Stats),
];

impl Default for CommandTimings {
    fn default() -> Self {
        Self { by_opcode: Box::new([const { OnceLock::new() }; OPCODE_COUNT]) }
    }
}

impl CommandTimings {
    /// A command, quiet or loud, took so long.
    pub(crate) fn record(&self, opcode: u8, nanos: u64) {
        self.by_opcode[usize::from(opcode)].get_or_init(Box::default).record_alone(nanos);
    }

    /// All begin anew.
    pub(crate) fn clear(&self) {
        self.by_opcode.iter().filter_map(OnceLock::get).for_each(|histogram| histogram.clear());
    }

    /// Those of one command, the quiet form apart from the loud one.
    pub(crate) fn of(&self, opcode: Opcode) -> HistogramSnapshot {
        let histogram = self.by_opcode[usize::from(opcode.byte())].get();
        histogram.map_or_else(HistogramSnapshot::default, |histogram| histogram.snapshot())
    }

    /// Those of each family, by name.
    pub(crate) fn by_family(&self) -> [(&'static str, HistogramSnapshot); FAMILIES.len()] {
        FAMILIES.map(|(name, family)| {
            let mut sum = HistogramSnapshot::default();
            let members = Opcode::ALL.iter().filter(|&&opcode| family_of(opcode) == Some(family));
            members.for_each(|&opcode| sum.merge(&self.of(opcode)));
            (name, sum)
        })
    }
}

/// The family of a command, if it has one.
fn family_of(opcode: Opcode) -> Option<Family> {
    match opcode.loud() {
        Opcode::Get | Opcode::Getk | Opcode::Gat | Opcode::GetLocked => Some(Family::Get),
        Opcode::Set
        | Opcode::Add
        | Opcode::Replace
        | Opcode::Append
        | Opcode::Prepend
        | Opcode::Delete
        | Opcode::Touch => Some(Family::Store),
        Opcode::Increment | Opcode::Decrement => Some(Family::Arithmetic),
        Opcode::Stat => Some(Family::Stats),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_timed_by_itself_and_with_its_family() {
        let timings = CommandTimings::default();
        let durations =
            [(Opcode::Get, 5), (Opcode::GetQ, 7), (Opcode::SubdocGet, 9), (Opcode::SetQ, 11)];
        durations.iter().for_each(|(opcode, nanos)| timings.record(opcode.byte(), *nanos));
        for (opcode, nanos) in durations {
            let found = timings.of(opcode);
            assert_eq!((found.count(), found.sum()), (1, nanos), "{opcode:?}");
        }
        assert_eq!(timings.of(Opcode::Set).count(), 0);
        let sums = timings.by_family().map(|(name, sum)| (name, sum.count(), sum.sum()));
        assert_eq!(
            sums,
            [
                ("get_cmd", 2, 12),
                ("store_cmd", 1, 11),
                ("arith_cmd", 0, 0),
                ("get_stats_cmd", 0, 0)
            ]
        );
        timings.clear();
        assert!(timings.by_family().iter().all(|(_, sum)| sum.count() == 0));
    }
}
