//! How many threads a pool has.

use std::str::FromStr;

use crate::task::kind::{TaskClass, TaskKind};

/// Threads of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadCounts {
    /// Threads that run any task of the kind.
    pub normal: usize,
    /// Threads that run quick tasks only, so that those never wait for a long one.
    pub quick: usize,
}

/// The threads of a pool, by kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolOptions {
    /// [`TaskKind::Reader`].
    pub reader: ThreadCounts,
    /// [`TaskKind::Writer`].
    pub writer: ThreadCounts,
    /// [`TaskKind::AuxIo`].
    pub aux_io: ThreadCounts,
    /// [`TaskKind::NonIo`].
    pub non_io: ThreadCounts,
    /// The CPUs that the threads may run on, as the system numbers them; all when `None`.
    pub cpus: Option<Vec<usize>>,
    /// Whether a thread that was busy gives the allocator's free memory back to the system, 1, 3,
    /// 7 and 15 seconds after it fell asleep.
    pub gives_memory_back: bool,
}

/// How an operator sets the number of threads of a kind, in the words of the original's settings
/// (docs/specification/engine.md, section 1.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadSetting {
    /// "default", "balanced" or "-1", for readers and writers also "0": what suits clients that
    /// need the CPUs as well.
    #[default]
    Balanced,
    /// "disk_io_optimized": as many threads as fast disks can serve at a time.
    DiskIoOptimized,
    /// So many.
    Exactly(usize),
}

/// Threads that serve files, for each CPU.
const IO_THREADS_PER_CPU: usize = 2;
/// No kind has more threads.
pub const THREADS_MAX: usize = 128;

impl ThreadSetting {
    /// What can be said, for people.
    pub fn range() -> String {
        format!("1 to {THREADS_MAX}, balanced, disk_io_optimized")
    }

    /// The number of normal threads of `kind` on a machine of `cpus` CPUs.
    pub fn normal_threads(self, kind: TaskKind, cpus: usize) -> usize {
        let io_threads = cpus * IO_THREADS_PER_CPU;
        match (self, kind) {
            (Self::Exactly(count), _) => count.min(THREADS_MAX),
            (Self::Balanced, TaskKind::Reader) => cpus.clamp(4, 16),
            (Self::Balanced, TaskKind::Writer) => 4,
            (Self::DiskIoOptimized, TaskKind::Reader | TaskKind::Writer) => {
                io_threads.clamp(4, THREADS_MAX)
            }
            (_, TaskKind::AuxIo) => io_threads.clamp(2, THREADS_MAX),
            (_, TaskKind::NonIo) => (cpus * 3 / 10).clamp(2, 8),
        }
    }
}

impl FromStr for ThreadSetting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "default" | "balanced" | "-1" | "0" => Ok(Self::Balanced),
            "disk_io_optimized" => Ok(Self::DiskIoOptimized),
            _ => match text.parse() {
                Ok(count) if count <= THREADS_MAX => Ok(Self::Exactly(count)),
                _ => Err(format!(
                    "a number of threads is 1 to {THREADS_MAX}, \"balanced\" or \
                     \"disk_io_optimized\", not {text:?}"
                )),
            },
        }
    }
}

impl PoolOptions {
    /// The default for a machine of `cpus` CPUs: the numbers that operators know from the original
    /// (docs/specification/engine.md, section 1.2).
    pub fn for_cpus(cpus: usize) -> Self {
        let normal = |kind| ThreadSetting::Balanced.normal_threads(kind, cpus);
        let counts = |kind| ThreadCounts { normal: normal(kind), quick: 0 };
        Self {
            reader: counts(TaskKind::Reader),
            writer: counts(TaskKind::Writer),
            aux_io: counts(TaskKind::AuxIo),
            non_io: ThreadCounts {
                normal: normal(TaskKind::NonIo),
                quick: (cpus / 10).clamp(1, 4),
            },
            cpus: None,
            gives_memory_back: false,
        }
    }

    /// The threads of `kind`.
    pub fn threads(&self, kind: TaskKind) -> ThreadCounts {
        match kind {
            TaskKind::Reader => self.reader,
            TaskKind::Writer => self.writer,
            TaskKind::AuxIo => self.aux_io,
            TaskKind::NonIo => self.non_io,
        }
    }

    /// Sets the threads of `kind`.
    pub fn set_threads(&mut self, kind: TaskKind, counts: ThreadCounts) {
        match kind {
            TaskKind::Reader => self.reader = counts,
            TaskKind::Writer => self.writer = counts,
            TaskKind::AuxIo => self.aux_io = counts,
            TaskKind::NonIo => self.non_io = counts,
        }
    }
}

impl ThreadCounts {
    /// The number of threads of `class`.
    pub fn of(self, class: TaskClass) -> usize {
        match class {
            TaskClass::Normal => self.normal,
            TaskClass::Quick => self.quick,
        }
    }
}

/// The name of a thread. Linux shows 15 bytes of it.
pub(crate) fn thread_name(kind: TaskKind, class: TaskClass, number: usize) -> String {
    let quick = if class == TaskClass::Quick { "Quick" } else { "" };
    format!("{quick}{}{number}", kind.pool_name())
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_the_numbers_of_the_original() {
        // CPUs, then Reader, Writer, AuxIo, NonIo, quick NonIo.
        let rows = [
            (0, [4, 4, 2, 2, 1]),
            (1, [4, 4, 2, 2, 1]),
            (2, [4, 4, 4, 2, 1]),
            (8, [8, 4, 16, 2, 1]),
            (16, [16, 4, 32, 4, 1]),
            (24, [16, 4, 48, 7, 2]),
            (1_000, [16, 4, 128, 8, 4]),
        ];
        for (cpus, [reader, writer, aux_io, non_io, quick]) in rows {
            let options = PoolOptions::for_cpus(cpus);
            let normal = TaskKind::ALL.map(|kind| options.threads(kind).normal);
            assert_eq!(normal, [reader, writer, aux_io, non_io], "{cpus} CPUs");
            assert_eq!(options.non_io.quick, quick, "{cpus} CPUs");
        }
    }

    #[test]
    fn settings_read_as_the_original_writes_them() {
        let rows = [
            ("default", TaskKind::Reader, 16),
            ("0", TaskKind::Writer, 4),
            ("balanced", TaskKind::Writer, 4),
            ("disk_io_optimized", TaskKind::Reader, 48),
            ("disk_io_optimized", TaskKind::Writer, 48),
            ("-1", TaskKind::AuxIo, 48),
            ("-1", TaskKind::NonIo, 7),
            ("13", TaskKind::NonIo, 13),
        ];
        for (text, kind, threads) in rows {
            let setting: ThreadSetting = text.parse().unwrap();
            assert_eq!(setting.normal_threads(kind, 24), threads, "{text} {kind:?}");
        }
        for text in ["", "many", "-2", "129", "1.5"] {
            assert!(text.parse::<ThreadSetting>().unwrap_err().contains("1 to 128"), "{text}");
        }
    }

    #[test]
    fn thread_names_say_kind_and_class() {
        let names = [
            (TaskKind::Reader, TaskClass::Normal, 0, "ReaderPool0"),
            (TaskKind::NonIo, TaskClass::Quick, 1, "QuickNonIoPool1"),
        ];
        for (kind, class, number, name) in names {
            assert_eq!(thread_name(kind, class, number), name);
        }
    }
}
