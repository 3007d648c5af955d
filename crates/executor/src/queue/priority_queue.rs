//! Tasks that wait, the most urgent first.

use std::collections::VecDeque;
use std::sync::Arc;

use platform::Instant;

use crate::task::name::PRIORITY_COUNT;

/// Of so many tasks taken, one is the one that has waited longest, whatever its priority: urgent
/// tasks without end delay the others, but do not starve them.
const OLDEST_EVERY: u32 = 32;

/// What waits in a queue.
pub(crate) trait Waiting {
    /// 0 is the most urgent; below [`PRIORITY_COUNT`].
    fn urgency(&self) -> u8;
    /// When it was pushed last.
    fn queued_at(&self) -> Instant;
}

/// One queue for each priority. Tasks of one priority keep their order.
///
/// Two threads on different CPUs hand this to each other with every task: what each of them
/// touches is kept together, and the rest elsewhere.
#[derive(Debug)]
pub(crate) struct PriorityQueue<T: ?Sized> {
    /// A task that was pushed when there was no other: older than all of them. Often the only one.
    first: Option<Arc<T>>,
    levels: Box<[VecDeque<Arc<T>>; PRIORITY_COUNT]>,
    len: u32,
    /// Tasks taken by priority since the oldest one was taken.
    urgent_in_a_row: u32,
    /// Bit n: level n is not empty.
    occupied: u16,
}

impl<T: ?Sized> Default for PriorityQueue<T> {
    fn default() -> Self {
        Self { first: None, levels: Box::default(), len: 0, urgent_in_a_row: 0, occupied: 0 }
    }
}

impl<T: Waiting + ?Sized> PriorityQueue<T> {
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn push(&mut self, task: Arc<T>) {
        self.len += 1;
        if self.len == 1 {
            self.first = Some(task);
            return;
        }
        let level = usize::from(task.urgency());
        self.levels[level].push_back(task);
        self.occupied |= 1 << level;
    }

    pub(crate) fn pop(&mut self) -> Option<Arc<T>> {
        if self.len == 0 {
            return None;
        }
        let first_level = self.first.as_ref().map(|task| usize::from(task.urgency()));
        let urgent_level = self.occupied.trailing_zeros() as usize;
        if self.occupied == 0 || first_level.is_some_and(|level| level <= urgent_level) {
            return self.pop_first();
        }
        // With one level occupied the most urgent task and the oldest one are the same.
        if first_level.is_none() && self.occupied.is_power_of_two() {
            return self.pop_level(urgent_level);
        }
        if self.urgent_in_a_row < OLDEST_EVERY - 1 {
            self.urgent_in_a_row += 1;
            return self.pop_level(urgent_level);
        }
        self.urgent_in_a_row = 0;
        if first_level.is_some() { self.pop_first() } else { self.pop_level(self.oldest_level()) }
    }

    fn pop_first(&mut self) -> Option<Arc<T>> {
        let task = self.first.take()?;
        self.len -= 1;
        Some(task)
    }

    fn pop_level(&mut self, level: usize) -> Option<Arc<T>> {
        let task = self.levels[level].pop_front()?;
        self.took(level, 1);
        Some(task)
    }

    /// Takes out all tasks for which `is_unwanted`.
    pub(crate) fn extract(
        &mut self,
        is_unwanted: impl Fn(&T) -> bool,
        extracted: &mut Vec<Arc<T>>,
    ) {
        if self.first.as_ref().is_some_and(|task| is_unwanted(task)) {
            extracted.extend(self.pop_first());
        }
        for level in 0..PRIORITY_COUNT {
            let before = extracted.len();
            for task in std::mem::take(&mut self.levels[level]) {
                if is_unwanted(&task) {
                    extracted.push(task);
                } else {
                    self.levels[level].push_back(task);
                }
            }
            self.took(level, (extracted.len() - before) as u32);
        }
    }

    /// All tasks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.first.iter().chain(self.levels.iter().flatten())
    }

    fn took(&mut self, level: usize, count: u32) {
        self.len -= count;
        if self.levels[level].is_empty() {
            self.occupied &= !(1 << level);
        }
    }

    /// When the task was pushed that has waited longest.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        match &self.first {
            Some(first) => Some(first.queued_at()),
            None => self.heads().map(|(queued, _)| queued).min(),
        }
    }

    fn oldest_level(&self) -> usize {
        self.heads().min().map_or(0, |(_, level)| level)
    }

    /// The first task of each level.
    fn heads(&self) -> impl Iterator<Item = (Instant, usize)> {
        let levels = self.levels.iter().enumerate();
        levels.filter_map(|(level, tasks)| Some((tasks.front()?.queued_at(), level)))
    }
}
