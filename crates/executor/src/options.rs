//! How many threads a pool has.

use crate::task::{TaskClass, TaskKind};

/// Threads of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadCounts {
    /// Threads that run any task of the kind.
    pub normal: usize,
    /// Threads that run quick tasks only, so that those never wait for a long one.
    pub quick: usize,
}

/// The threads of a pool, by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolOptions {
    /// [`TaskKind::Reader`].
    pub reader: ThreadCounts,
    /// [`TaskKind::Writer`].
    pub writer: ThreadCounts,
    /// [`TaskKind::AuxIo`].
    pub aux_io: ThreadCounts,
    /// [`TaskKind::NonIo`].
    pub non_io: ThreadCounts,
}

impl PoolOptions {
    /// The default for a machine of `cpus` CPUs. From four CPUs on these are the numbers that
    /// operators know from the original; below, the front end needs the CPUs itself.
    pub fn for_cpus(cpus: usize) -> Self {
        let normal = |threads| ThreadCounts { normal: threads, quick: 0 };
        if cpus < 4 {
            return Self {
                reader: normal(cpus.max(1)),
                writer: normal(cpus.max(1)),
                aux_io: normal(1),
                non_io: ThreadCounts { normal: 1, quick: 1 },
            };
        }
        Self {
            reader: normal(cpus.clamp(4, 16)),
            writer: normal(4),
            aux_io: normal((cpus * 2).clamp(2, 128)),
            non_io: ThreadCounts {
                normal: (cpus * 3 / 10).clamp(2, 8),
                quick: (cpus / 10).clamp(1, 4),
            },
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

    /// Every thread of the pool: kind, the class it serves, and its name.
    pub(crate) fn thread_names(&self) -> Vec<(TaskKind, TaskClass, String)> {
        let mut names = Vec::new();
        for kind in TaskKind::ALL {
            let counts = self.threads(kind);
            let pool = kind.pool_name();
            for number in 0..counts.normal {
                names.push((kind, TaskClass::Normal, format!("{pool}{number}")));
            }
            for number in 0..counts.quick {
                names.push((kind, TaskClass::Quick, format!("Quick{pool}{number}")));
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(options: &PoolOptions) -> usize {
        options.thread_names().len()
    }

    #[test]
    fn a_small_machine_is_not_oversubscribed() {
        assert_eq!(total(&PoolOptions::for_cpus(1)), 5);
        assert_eq!(total(&PoolOptions::for_cpus(2)), 7);
        assert!(total(&PoolOptions::for_cpus(0)) > 0);
    }

    #[test]
    fn a_large_machine_has_the_numbers_of_the_original() {
        let options = PoolOptions::for_cpus(16);
        assert_eq!(options.reader.normal, 16);
        assert_eq!(options.writer.normal, 4);
        assert_eq!(options.aux_io.normal, 32);
        assert_eq!(options.non_io, ThreadCounts { normal: 4, quick: 1 });
        assert_eq!(PoolOptions::for_cpus(1_000).aux_io.normal, 128);
    }

    #[test]
    fn every_kind_has_a_thread_on_every_machine() {
        for cpus in 0..200 {
            for kind in TaskKind::ALL {
                assert!(PoolOptions::for_cpus(cpus).threads(kind).normal > 0, "{cpus} CPUs");
            }
        }
    }

    #[test]
    fn thread_names_say_the_kind() {
        let names: Vec<String> =
            PoolOptions::for_cpus(1).thread_names().into_iter().map(|(_, _, name)| name).collect();
        let expected =
            ["ReaderPool0", "WriterPool0", "AuxIoPool0", "NonIoPool0", "QuickNonIoPool0"];
        assert_eq!(names, expected);
    }
}
