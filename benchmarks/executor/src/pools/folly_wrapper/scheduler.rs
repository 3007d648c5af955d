//! The scheduler thread: which tasks there are, which of them sleep, and until when.

use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;
use platform::{Clock, Instant};

use super::cpu_pool::CpuPools;
use super::inbox::Inbox;
use super::wheel::{TICK, TimerIndex, Wheel};
use crate::pools::original_task::{NEVER, OriginalTask};

/// What the thread owns; nobody else sees it.
#[derive(Debug)]
pub(super) struct Scheduler {
    clock: Clock,
    /// When tick 0 of the wheel was.
    started: Instant,
    wheel: Wheel,
    tasks: HashMap<u64, Proxy>,
    cpu_pools: Arc<CpuPools>,
}

/// A task as the scheduler sees it.
#[derive(Debug)]
struct Proxy {
    task: Arc<OriginalTask>,
    timer: TimerIndex,
    /// Queued or running; while it is, its timer stays as it is.
    is_on_cpu_pool: bool,
}

impl Scheduler {
    pub(super) fn new(clock: Clock, cpu_pools: Arc<CpuPools>) -> Self {
        let started = clock.now();
        Self { clock, started, wheel: Wheel::default(), tasks: HashMap::new(), cpu_pools }
    }

    /// The body of the thread.
    pub(super) fn run(mut self, inbox: &Inbox) {
        let mut batch = Vec::new();
        while inbox.take(&mut batch, self.until_next_tick()) {
            for event in batch.drain(..) {
                event(&mut self);
            }
            self.expire();
        }
    }

    /// How long the thread may sleep if nothing is posted.
    fn until_next_tick(&self) -> Option<Duration> {
        let tick = self.wheel.next_tick()?;
        let at = self.started.after(TICK * u32::try_from(tick).unwrap_or(u32::MAX));
        Some(at.since(self.clock.now()))
    }

    fn expire(&mut self) {
        let now = tick_between(self.started, self.clock.now());
        if now == self.wheel.now() {
            return;
        }
        let mut due = Vec::new();
        self.wheel.advance(now, &mut due);
        for id in due {
            if let Some(proxy) = self.tasks.get_mut(&id) {
                proxy.hand_over(&self.cpu_pools);
            }
        }
    }

    /// Adds a task, unless there is one of its number.
    pub(super) fn schedule(&mut self, task: Arc<OriginalTask>) {
        let id = task.id;
        if self.tasks.contains_key(&id) {
            return;
        }
        let timer = self.wheel.add(id);
        self.tasks.insert(id, Proxy { task, timer, is_on_cpu_pool: false });
        self.start_timer(id);
    }

    /// Lets a task run now. One that is on its CPU pool runs again after that.
    pub(super) fn wake(&mut self, id: u64) {
        let Some(proxy) = self.tasks.get(&id) else { return };
        proxy.task.set_wake_time(self.clock.now());
        if !proxy.is_on_cpu_pool {
            self.start_timer(id);
        }
    }

    /// Lets a task run when `delay` has passed.
    pub(super) fn snooze(&mut self, id: u64, delay: Duration) {
        let Some(proxy) = self.tasks.get(&id) else { return };
        proxy.task.set_wake_time(self.clock.now().after(delay));
        if !proxy.is_on_cpu_pool {
            self.start_timer(id);
        }
    }

    /// Decides what comes after a run.
    pub(super) fn after_run(&mut self, id: u64) {
        let Some(proxy) = self.tasks.get_mut(&id) else { return };
        proxy.is_on_cpu_pool = false;
        if proxy.task.is_dead() {
            self.remove(id);
            return;
        }
        proxy.task.wake_not_before(self.clock.now());
        self.start_timer(id);
    }

    /// Forgets a task; its CPU pool drops what may be the last reference.
    fn remove(&mut self, id: u64) {
        if let Some(proxy) = self.tasks.remove(&id) {
            self.wheel.remove(proxy.timer);
            self.cpu_pools.reset(proxy.task);
        }
    }

    /// Ends all tasks by force: those on a CPU pool are forgotten after their run.
    pub(super) fn kill_all(&mut self) {
        for (_, proxy) in self.tasks.drain() {
            proxy.task.kill();
            self.wheel.remove(proxy.timer);
        }
    }

    /// Sees to it that a task that is on no CPU pool runs at its wake time. Less than a millisecond
    /// is now.
    fn start_timer(&mut self, id: u64) {
        let Some(proxy) = self.tasks.get_mut(&id) else { return };
        let wake_time = proxy.task.wake_time();
        if wake_time == NEVER {
            self.wheel.disarm(proxy.timer);
            return;
        }
        let delay = wake_time.since(self.clock.now()).as_millis();
        if delay == 0 {
            self.wheel.disarm(proxy.timer);
            proxy.hand_over(&self.cpu_pools);
            return;
        }
        // Counted from the next tick on, with the delay cut to ticks: less than one tick early.
        let next = tick_between(self.started, self.clock.now()) + 1;
        let ticks = u64::try_from(delay / TICK.as_millis()).unwrap_or(u64::MAX);
        self.wheel.arm(proxy.timer, next.saturating_add(ticks));
    }
}

/// The tick of `now` for a wheel that started at `started`.
fn tick_between(started: Instant, now: Instant) -> u64 {
    let ticks = now.since(started).as_nanos() / TICK.as_nanos();
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

impl Proxy {
    fn hand_over(&mut self, cpu_pools: &CpuPools) {
        self.is_on_cpu_pool = true;
        cpu_pools.run(self.task.clone());
    }
}
