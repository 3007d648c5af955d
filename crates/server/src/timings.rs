//! How long commands take, recorded by each worker for itself.

use document::histogram::Histogram;
use protocol::Opcode;

/// Durations in nanoseconds, by family, under the names that operators know.
#[derive(Debug, Default)]
pub struct CommandTimings {
    /// Reads.
    pub get: Histogram,
    /// Writes.
    pub store: Histogram,
    /// Counters.
    pub arithmetic: Histogram,
    /// Statistics.
    pub stats: Histogram,
}

impl CommandTimings {
    /// All histograms with their names.
    pub fn all(&self) -> [(&'static str, &Histogram); 4] {
        [
            ("get_cmd", &self.get),
            ("store_cmd", &self.store),
            ("arith_cmd", &self.arithmetic),
            ("get_stats_cmd", &self.stats),
        ]
    }

    /// All begin anew.
    pub(crate) fn clear(&self) {
        self.all().iter().for_each(|(_, histogram)| histogram.clear());
    }

    /// The histogram of a (loud) command, if its family has one.
    pub(crate) fn of(&self, opcode: Opcode) -> Option<&Histogram> {
        match opcode {
            Opcode::Get | Opcode::Getk | Opcode::Gat | Opcode::GetLocked => Some(&self.get),
            Opcode::Set
            | Opcode::Add
            | Opcode::Replace
            | Opcode::Append
            | Opcode::Prepend
            | Opcode::Delete
            | Opcode::Touch => Some(&self.store),
            Opcode::Increment | Opcode::Decrement => Some(&self.arithmetic),
            Opcode::Stat => Some(&self.stats),
            _ => None,
        }
    }
}
