//! How tasks are told apart: by what they wait for, and by how long they may keep others waiting.

use std::time::Duration;

/// Which threads run a task: what it waits for decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskKind {
    /// Reads files because a client waits.
    Reader,
    /// Writes files behind the clients' backs. Lowest OS priority.
    Writer,
    /// Reads and writes files for nobody in particular: compaction, backfill. Lowest OS priority.
    AuxIo,
    /// Only computes.
    NonIo,
}

impl TaskKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Reader, Self::Writer, Self::AuxIo, Self::NonIo];

    /// The kind in statistics and settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reader => "Reader",
            Self::Writer => "Writer",
            Self::AuxIo => "AuxIO",
            Self::NonIo => "NonIO",
        }
    }

    /// The kind's threads carry this name and a number.
    pub fn pool_name(self) -> &'static str {
        match self {
            Self::Reader => "ReaderPool",
            Self::Writer => "WriterPool",
            Self::AuxIo => "AuxIoPool",
            Self::NonIo => "NonIoPool",
        }
    }

    /// A task of this kind that waits longer for a thread is logged: there are too few threads,
    /// or a task blocks them. The kinds that clients wait for have no limit of their own, their
    /// requests have.
    pub fn slow_schedule_limit(self) -> Option<Duration> {
        match self {
            Self::NonIo => Some(Duration::from_secs(1)),
            Self::AuxIo => Some(Duration::from_secs(10)),
            Self::Reader | Self::Writer => None,
        }
    }

    /// Whether the kind's threads run at the lowest OS priority.
    pub fn is_low_priority(self) -> bool {
        matches!(self, Self::Writer | Self::AuxIo)
    }
}

/// How long a task may keep others of its kind waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskClass {
    /// Runs for microseconds and somebody waits for it: goes ahead of normal tasks, and has
    /// threads of its own where [`crate::ThreadCounts::quick`] says so.
    Quick,
    /// Everything else.
    Normal,
}

impl TaskClass {
    /// The class in statistics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Normal => "normal",
        }
    }
}
