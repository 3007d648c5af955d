//! How many tasks of a sort may work at the same time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::task::cell::TaskHandle;

/// A semaphore whose waiters are sleeping tasks, served first come, first served. A handle: clones
/// are the same limit.
#[derive(Clone, Debug)]
pub struct ConcurrencyLimit(Arc<Mutex<State>>);

/// Invariant outside of the lock: a permit is free only while nobody waits.
#[derive(Debug)]
struct State {
    capacity: usize,
    /// Permits that are held or granted. Above `capacity` for a while after that was lowered.
    taken: usize,
    next_place: u64,
    /// Places whose tasks sleep, the longest wait first.
    waiters: VecDeque<Waiter>,
    /// Places that have been given a permit which their tasks have not fetched yet.
    granted: Vec<u64>,
}

#[derive(Debug)]
struct Waiter {
    place: u64,
    task: TaskHandle,
}

impl ConcurrencyLimit {
    /// At most `capacity` permits are out at a time; with 0 everybody waits.
    pub fn new(capacity: usize) -> Self {
        let (waiters, granted) = (VecDeque::new(), Vec::new());
        let state = State { capacity, taken: 0, next_place: 0, waiters, granted };
        Self(Arc::new(Mutex::new(state)))
    }

    /// A place to wait at, for one task, which keeps it as part of its body.
    pub fn place(&self) -> LimitPlace {
        let mut state = self.lock();
        let number = state.next_place;
        state.next_place += 1;
        drop(state);
        LimitPlace { limit: self.clone(), number }
    }

    /// Changes the capacity. Permits above a lower one are not called back; they are not given out
    /// again once they return.
    pub fn set_capacity(&self, capacity: usize) {
        let mut state = self.lock();
        state.capacity = capacity;
        let granted: Vec<_> = std::iter::from_fn(|| state.grant_next()).collect();
        drop(state);
        granted.iter().for_each(TaskHandle::wake);
    }

    /// How many permits may be out.
    pub fn capacity(&self) -> usize {
        self.lock().capacity
    }

    /// How many permits are held, or granted to a task that has been woken for them.
    pub fn taken_count(&self) -> usize {
        self.lock().taken
    }

    /// How many tasks wait.
    pub fn waiting_count(&self) -> usize {
        self.lock().waiters.len()
    }

    fn give_back(&self) {
        let mut state = self.lock();
        assert!(state.taken > 0, "a permit that comes back was given out");
        state.taken -= 1;
        let granted = state.grant_next();
        drop(state);
        if let Some(task) = granted {
            task.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn try_acquire(&mut self, place: u64, task: &TaskHandle) -> bool {
        if self.take_grant(place) {
            return true;
        }
        if self.waiters.iter().any(|waiter| waiter.place == place) {
            return false;
        }
        if self.taken < self.capacity {
            assert!(self.waiters.is_empty(), "nobody gets ahead of those who wait");
            self.taken += 1;
            return true;
        }
        self.waiters.push_back(Waiter { place, task: task.clone() });
        false
    }

    /// Whether `place` had been granted a permit, which is then the caller's.
    fn take_grant(&mut self, place: u64) -> bool {
        let index = self.granted.iter().position(|&granted| granted == place);
        index.map(|index| self.granted.swap_remove(index)).is_some()
    }

    /// Gives a free permit to the task that has waited longest and is alive. `None` when there is
    /// no such permit or no such task.
    fn grant_next(&mut self) -> Option<TaskHandle> {
        while self.taken < self.capacity {
            let waiter = self.waiters.pop_front()?;
            if !waiter.task.is_dead() {
                self.taken += 1;
                self.granted.push(waiter.place);
                return Some(waiter.task);
            }
        }
        None
    }
}

/// The right of one task to ask for permits. A task that ends drops it with its body: it leaves
/// the queue then, and a permit that it was woken for and did not fetch goes on to the next.
#[derive(Debug)]
pub struct LimitPlace {
    limit: ConcurrencyLimit,
    /// Unique within the limit.
    number: u64,
}

impl LimitPlace {
    /// A permit, or `None`: then `task`, which owns this place, is woken once it has been granted
    /// one, and asks again. A task that asks early, woken for another reason, keeps its turn.
    pub fn try_acquire(&mut self, task: &TaskHandle) -> Option<Permit> {
        let is_acquired = self.limit.lock().try_acquire(self.number, task);
        is_acquired.then(|| Permit(self.limit.clone()))
    }
}

impl Drop for LimitPlace {
    fn drop(&mut self) {
        let mut state = self.limit.lock();
        let is_granted = state.take_grant(self.number);
        state.waiters.retain(|waiter| waiter.place != self.number);
        drop(state);
        if is_granted {
            self.limit.give_back();
        }
    }
}

/// The right to work. Dropping it passes it on to the next task that waits.
#[derive(Debug)]
pub struct Permit(ConcurrencyLimit);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.give_back();
    }
}
