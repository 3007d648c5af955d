//! Groups about background tasks.

use executor::{Owner, TaskStatus, Workload};
use platform::Instant;
use serde_json::{Value, json};

use super::emitter::{Emitter, NoGroup};
use super::timing_groups::emit;
use crate::buckets::BucketPart;

const NANOS_PER_MICRO: u64 = 1000;

/// Group "scheduler": how long tasks waited for a thread.
pub(super) fn scheduler(
    emitter: &mut Emitter<'_, '_>,
    _: &BucketPart,
    _: &str,
) -> Result<(), NoGroup> {
    for task in emitter.turn.shared.pool.statistics() {
        emit(emitter, task.name.name(), &task.queue_time_ns, NANOS_PER_MICRO);
    }
    Ok(())
}

/// Group "runtimes": how long tasks ran.
pub(super) fn runtimes(
    emitter: &mut Emitter<'_, '_>,
    _: &BucketPart,
    _: &str,
) -> Result<(), NoGroup> {
    for task in emitter.turn.shared.pool.statistics() {
        emit(emitter, task.name.name(), &task.run_time_ns, NANOS_PER_MICRO);
    }
    Ok(())
}

/// Group "tasks": the bucket's tasks as a JSON list, and the time that their times refer to.
pub(super) fn tasks(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    _: &str,
) -> Result<(), NoGroup> {
    let owner = part.bucket.task_owner().clone();
    emit_tasks(emitter, &owner);
    Ok(())
}

/// Group "tasks-all": those of all buckets, and of the node itself.
pub(super) fn tasks_all(emitter: &mut Emitter<'_, '_>, _: Option<&BucketPart>) {
    for part in emitter.turn.shared.buckets.all() {
        emit_tasks(emitter, part.bucket.task_owner());
    }
    let owner = emitter.turn.shared.owner.clone();
    emit_tasks(emitter, &owner);
}

fn emit_tasks(emitter: &mut Emitter<'_, '_>, owner: &Owner) {
    let now = emitter.turn.shared.pool.clock().now();
    let tasks: Vec<Value> = owner.tasks().iter().map(|task| to_json(task, owner, now)).collect();
    emitter.emit(&format!("ep_tasks:tasks:{}", owner.name()), Value::from(tasks));
    emitter.emit(&format!("ep_tasks:cur_time:{}", owner.name()), now.0);
}

/// One task in the words of the original (docs/specification/engine.md, section 1.7). Times are
/// nanoseconds of the clock of `cur_time`.
fn to_json(task: &TaskStatus, owner: &Owner, now: Instant) -> Value {
    let nanos = |duration: std::time::Duration| u64::try_from(duration.as_nanos()).unwrap_or(0);
    let waketime = match (task.state, task.due) {
        ("snoozed", Some(due)) => json!(due.0),
        // It sleeps until somebody wakes it.
        ("snoozed", None) => Value::Null,
        _ => json!(task.queued.0),
    };
    let running_since = (task.state == "running").then_some(task.runs.last_started);
    json!({
        "tid": task.id,
        "state": task.state.to_ascii_uppercase(),
        "name": task.name.name(),
        "bucket": owner.name(),
        "type": task.name.kind().name(),
        "class": task.name.class().name(),
        "priority": task.name.urgency(),
        "description": task.description.as_deref().unwrap_or(task.name.name()),
        "waketime_ns": waketime,
        "total_runtime_ns": nanos(task.runs.total_run_time),
        "last_starttime_ns": task.runs.last_started.0,
        "previous_runtime_ns": nanos(task.runs.last_run_time),
        "running_for_ns": running_since.map(|since| nanos(now.since(since))),
        "num_runs": task.runs.run_count,
    })
}

/// Group "workload": threads, and what waits for them.
pub(super) fn workload(
    emitter: &mut Emitter<'_, '_>,
    _: &BucketPart,
    _: &str,
) -> Result<(), NoGroup> {
    let workload = emitter.turn.shared.pool.workload();
    let timers = emitter.turn.shared.pool.timer_count();
    let wakeups = emitter.turn.shared.pool.wakeups();
    for kind in &workload {
        let name = kind.kind.name().to_ascii_lowercase();
        emitter.emit(&format!("ep_workload:num_{name}s"), kind.normal_threads);
        emitter.emit(&format!("ep_workload:num_quick{name}s"), kind.quick_threads);
    }
    let sum = |part: fn(&Workload) -> usize| workload.iter().map(part).sum::<usize>();
    emitter.emit("ep_workload:num_sleepers", sum(|kind| kind.sleeping_threads));
    emitter.emit("ep_workload:ready_tasks", sum(|kind| kind.normal_ready + kind.quick_ready));
    emitter.emit("ep_workload:timers", timers);
    emitter.emit("ep_workload:wakeups", wakeups);
    for kind in &workload {
        let name = kind.kind.name();
        emitter.emit(&format!("ep_workload:Queue_{name}:OutQsize"), kind.normal_ready);
        emitter.emit(&format!("ep_workload:QuickQueue_{name}:OutQsize"), kind.quick_ready);
    }
    Ok(())
}
