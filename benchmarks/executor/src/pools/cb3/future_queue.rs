//! Tasks by wake time: a binary heap of references, made again when a task in it changes.

use std::sync::Arc;

use platform::Instant;

use crate::pools::original_task::OriginalTask;

/// The earliest wake time is at the front. Wake times of tasks that are in here change through it.
#[derive(Debug, Default)]
pub(super) struct FutureQueue(Vec<Arc<OriginalTask>>);

impl FutureQueue {
    pub(super) fn push(&mut self, task: Arc<OriginalTask>) {
        self.0.push(task);
        self.sift_up(self.0.len() - 1);
    }

    /// When the next task is due.
    pub(super) fn next_wake_time(&self) -> Option<Instant> {
        self.0.first().map(|task| task.wake_time())
    }

    /// Takes the next task, if its time has come.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Arc<OriginalTask>> {
        if self.next_wake_time()? > now {
            return None;
        }
        let due = self.0.swap_remove(0);
        self.sift_down(0);
        Some(due)
    }

    /// Sets the wake time of a task, wherever it is, and puts the heap in order again.
    pub(super) fn update(&mut self, task: &Arc<OriginalTask>, wake_time: Instant) {
        let position = self.0.iter().position(|other| Arc::ptr_eq(other, task));
        task.set_wake_time(wake_time);
        match position {
            None => {}
            Some(last) if last + 1 == self.0.len() => self.sift_up(last),
            Some(_) => self.make_heap(),
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn make_heap(&mut self) {
        for parent in (0..self.0.len() / 2).rev() {
            self.sift_down(parent);
        }
    }

    fn sift_up(&mut self, mut child: usize) {
        while child > 0 {
            let parent = (child - 1) / 2;
            if self.0[parent].wake_time() <= self.0[child].wake_time() {
                return;
            }
            self.0.swap(parent, child);
            child = parent;
        }
    }

    fn sift_down(&mut self, mut parent: usize) {
        loop {
            let left = 2 * parent + 1;
            let earliest = [left, left + 1]
                .into_iter()
                .filter(|&child| child < self.0.len())
                .min_by_key(|&child| self.0[child].wake_time());
            match earliest {
                Some(child) if self.0[child].wake_time() < self.0[parent].wake_time() => {
                    self.0.swap(parent, child);
                    parent = child;
                }
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use executor::TaskKind;
    use platform::{Random, seeds::seeds};

    use super::*;

    #[test]
    fn tasks_leave_in_the_order_of_their_changed_wake_times() {
        for seed in seeds(20) {
            let mut random = Random::from_seed(seed);
            let mut queue = FutureQueue::default();
            let tasks: Vec<_> = (0..1 + random.below(200))
                .map(|id| {
                    let at = Instant(random.below(1_000));
                    Arc::new(OriginalTask::new(id, TaskKind::NonIo, at, |_| false))
                })
                .collect();
            tasks.iter().for_each(|task| queue.push(task.clone()));
            for _ in 0..random.below(300) {
                let task = &tasks[random.below(tasks.len() as u64) as usize];
                queue.update(task, Instant(random.below(1_000)));
            }
            let mut expected: Vec<u64> = tasks.iter().map(|task| task.wake_time().0).collect();
            expected.sort_unstable();
            let left: Vec<u64> =
                std::iter::from_fn(|| queue.pop_due(Instant(1_000)).map(|task| task.wake_time().0))
                    .collect();
            assert_eq!(left, expected, "seed {seed}");
        }
    }

    #[test]
    fn a_task_whose_time_has_not_come_stays() {
        let mut queue = FutureQueue::default();
        queue.push(Arc::new(OriginalTask::new(1, TaskKind::NonIo, Instant(10), |_| false)));
        assert!(queue.pop_due(Instant(9)).is_none());
        assert!(queue.pop_due(Instant(10)).is_some());
    }
}
