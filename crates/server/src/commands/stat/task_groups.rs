//! Groups about background tasks.

use super::timing_groups::emit;
use super::{Emitter, NoGroup};

const NANOS_PER_MICRO: u64 = 1000;

/// Group "scheduler": how long tasks waited for a thread.
pub(super) fn scheduler(emitter: &mut Emitter<'_, '_>, _argument: &str) -> Result<(), NoGroup> {
    for task in emitter.turn.shared.pool.statistics() {
        emit(emitter, task.name.name, &task.queue_time_ns, NANOS_PER_MICRO);
    }
    Ok(())
}

/// Group "runtimes": how long tasks ran.
pub(super) fn runtimes(emitter: &mut Emitter<'_, '_>, _argument: &str) -> Result<(), NoGroup> {
    for task in emitter.turn.shared.pool.statistics() {
        emit(emitter, task.name.name, &task.run_time_ns, NANOS_PER_MICRO);
    }
    Ok(())
}

/// Group "tasks": how often tasks ran.
pub(super) fn tasks(emitter: &mut Emitter<'_, '_>, _argument: &str) -> Result<(), NoGroup> {
    for task in emitter.turn.shared.pool.statistics() {
        emitter.emit(&format!("{}:num_runs", task.name.name), task.run_time_ns.count());
        emitter.emit(&format!("{}:num_slow_runs", task.name.name), task.slow_runs);
        emitter.emit(&format!("{}:kind", task.name.name), task.name.kind.pool_name());
    }
    Ok(())
}
