//! The names of the tasks that benchmarks schedule on our pool, as the original's task table has
//! them: the tasks of the one-shot and long-lived benchmarks are item pagers, a NonIO task.

use std::time::Duration;

use executor::{TaskKind, TaskName};

const fn named(name: &'static str, kind: TaskKind, priority: u8) -> TaskName {
    TaskName::new(name, kind).priority(priority).expected(Duration::from_secs(1))
}

/// Scheduled for one run, or woken again and again.
pub(super) static ITEM_PAGER: TaskName = named("ItemPager", TaskKind::NonIo, 1);
/// Runs when its timer fires.
pub(super) static DURABILITY_TIMEOUT: TaskName = named("DurabilityTimeout", TaskKind::NonIo, 1);
/// Runs long, again and again.
static LONG: [TaskName; TaskKind::ALL.len()] = [
    named("LongReader", TaskKind::Reader, 5),
    named("LongWriter", TaskKind::Writer, 5),
    named("LongAuxIo", TaskKind::AuxIo, 5),
    named("LongNonIo", TaskKind::NonIo, 5),
];

/// The long task of `kind`.
pub(super) fn long(kind: TaskKind) -> &'static TaskName {
    &LONG[kind as usize]
}
