//! What a task is: a kind, a body, and what the body answers when it has run.

pub(crate) mod cell;
pub(crate) mod id;
pub(crate) mod name;
pub(crate) mod state;

use std::time::Duration;

use platform::Instant;

use crate::task::cell::TaskHandle;

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

/// What happens to a task after a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It is done: the task is destroyed.
    Finished,
    /// It has more to do and queues up behind the others of its kind.
    Again,
    /// It sleeps until it is woken. A deadline that was set by a snooze during the run stays.
    Sleep,
    /// It sleeps until it is woken or the time has passed, whichever comes first. Of this deadline
    /// and one that was set by a snooze during the run, the earlier one holds.
    SleepFor(Duration),
}

/// The work of a background task. Closures that take a context and answer [`Next`] are tasks.
pub trait Task: Send {
    /// Does a bounded amount of work and says what comes next.
    fn run(&mut self, context: &TaskContext<'_>) -> Next;

    /// What it is doing, for statistics and logs; its name when there is nothing to add. Asked
    /// between runs.
    fn describe(&self) -> Option<String> {
        None
    }
}

impl<F: FnMut(&TaskContext<'_>) -> Next + Send> Task for F {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        self(context)
    }
}

/// What a task knows while it runs.
#[derive(Debug)]
pub struct TaskContext<'a> {
    pub(crate) handle: &'a TaskHandle,
    pub(crate) started: Instant,
    pub(crate) is_shutting_down: bool,
}

impl TaskContext<'_> {
    /// The running task, for waking it later.
    pub fn handle(&self) -> &TaskHandle {
        self.handle
    }

    /// When this run began.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Whether the owner is being drained. Unless it answers [`Next::Again`], the task is destroyed
    /// after this run.
    pub fn is_shutting_down(&self) -> bool {
        self.is_shutting_down
    }
}
