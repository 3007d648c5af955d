//! What is known about all tasks of one name.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::task::kind::{TaskClass, TaskKind};

/// So many names may exist in a process.
pub(crate) const TASK_NAMES_MAX: usize = 256;
/// Priorities are 0, the most urgent, to this one less 1.
pub(crate) const PRIORITY_COUNT: usize = 16;

/// A row of the table of tasks: statistics are kept, and tasks are ordered, by it. Rows are
/// `static`, one for each name:
///
/// ```text
/// static FLUSHER: TaskName = TaskName::new("FlusherTask", TaskKind::Writer).priority(5);
/// ```
pub struct TaskName {
    name: &'static str,
    kind: TaskKind,
    class: TaskClass,
    priority: u8,
    expected_duration: Duration,
    runs_before_shutdown: bool,
    /// 0 until somebody asks, then the index plus 1.
    index: AtomicU32,
}

impl TaskName {
    /// A normal task of priority 5 whose runs take 100 ms at most and that runs once more before
    /// its owner goes.
    pub const fn new(name: &'static str, kind: TaskKind) -> Self {
        Self {
            name,
            kind,
            class: TaskClass::Normal,
            priority: 5,
            expected_duration: Duration::from_millis(100),
            runs_before_shutdown: true,
            index: AtomicU32::new(0),
        }
    }

    /// Makes it a quick task.
    #[must_use]
    pub const fn quick(mut self) -> Self {
        self.class = TaskClass::Quick;
        self
    }

    /// 0 is the most urgent, 15 the least. Of the tasks that wait for a thread of their kind and
    /// class the most urgent goes first.
    #[must_use]
    pub const fn priority(mut self, priority: u8) -> Self {
        assert!((priority as usize) < PRIORITY_COUNT, "there is no such priority");
        self.priority = priority;
        self
    }

    /// A run that takes longer is logged and counts as slow.
    #[must_use]
    pub const fn expected(mut self, duration: Duration) -> Self {
        self.expected_duration = duration;
        self
    }

    /// Nothing is lost when the task does not run again: a drain destroys it at once.
    #[must_use]
    pub const fn may_be_dropped(mut self) -> Self {
        self.runs_before_shutdown = false;
        self
    }

    /// As statistics print it.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Which threads run it.
    pub fn kind(&self) -> TaskKind {
        self.kind
    }

    /// Whether it may wait behind long tasks.
    pub fn class(&self) -> TaskClass {
        self.class
    }

    /// 0 is the most urgent.
    pub fn urgency(&self) -> u8 {
        self.priority
    }

    /// A run that takes longer counts as slow.
    pub fn expected_duration(&self) -> Duration {
        self.expected_duration
    }

    /// Whether a drain lets it run once more.
    pub fn runs_before_shutdown(&self) -> bool {
        self.runs_before_shutdown
    }

    /// A small number that no other name of this process has.
    pub(crate) fn index(&'static self) -> usize {
        match self.index.load(Ordering::Relaxed) {
            0 => self.assign_index(),
            index => index as usize - 1,
        }
    }

    #[cold]
    fn assign_index(&self) -> usize {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let fresh = NEXT.fetch_add(1, Ordering::Relaxed);
        let index = self.index.compare_exchange(0, fresh, Ordering::Relaxed, Ordering::Relaxed);
        let index = index.map_or_else(|winner| winner, |_| fresh) as usize - 1;
        assert!(index < TASK_NAMES_MAX, "there are too many task names");
        index
    }
}

impl PartialEq for TaskName {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl fmt::Debug for TaskName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}
