//! A part of a pool's timers: a wheel behind a lock of its own.

use std::sync::Arc;

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, lock};
use crate::timers::deadline::{NEVER, Timed};
use crate::timers::wheel::Wheel;

/// Ticks ahead from which on a deadline that was moved to an earlier time is looked at halfway.
const HALFWAY_TICKS_MIN: u64 = 64;

/// Looks at deadlines when it said it would. Takes no other lock while it holds its own.
#[derive(Debug)]
pub(crate) struct TimerShard<T: ?Sized> {
    wheel: Mutex<Wheel<Arc<T>>>,
    /// The tick at which somebody must call [`TimerShard::expire`]; [`NEVER`] while it is empty.
    /// Written under the lock.
    next: AtomicU64,
}

impl<T: Timed + ?Sized> TimerShard<T> {
    pub(crate) fn new() -> Self {
        Self { wheel: Mutex::new(Wheel::new()), next: AtomicU64::new(NEVER) }
    }

    /// When [`TimerShard::expire`] has something to do.
    pub(crate) fn next_tick(&self) -> u64 {
        self.next.load(Ordering::SeqCst)
    }

    /// How many entries the wheel has, those included whose deadline has been cleared and which
    /// leave at their old time.
    pub(crate) fn len(&self) -> usize {
        lock(&self.wheel).len()
    }

    /// Sees to it that the deadline of `timed` is looked at in time, after
    /// [`crate::timers::deadline::Deadline::set`] has asked for it at `now`.
    ///
    /// One that comes before a deadline that it had already is looked at halfway, so that those who
    /// move theirs to and fro, all between 10 and 30 s ahead, take the lock twice and no more,
    /// instead of each time that a deadline is the earliest so far.
    pub(crate) fn arm(&self, timed: &Arc<T>, now: u64) {
        let mut wheel = lock(&self.wheel);
        let deadline = timed.deadline();
        let (due, armed) = (deadline.due(), deadline.armed());
        if due >= armed {
            return;
        }
        let (look_at, timed) = if armed == NEVER {
            (due, timed.clone())
        } else {
            (halfway(now, due), wheel.remove(deadline.entry()))
        };
        deadline.set_armed(look_at);
        deadline.set_entry(wheel.insert(look_at, timed));
        self.publish(&wheel);
    }

    /// Forgets `timed`, which ends. Nobody sets its deadline any more.
    pub(crate) fn remove(&self, timed: &T) {
        timed.deadline().clear();
        if timed.deadline().armed() == NEVER {
            return;
        }
        let mut wheel = lock(&self.wheel);
        if timed.deadline().armed() != NEVER {
            let entry = wheel.remove(timed.deadline().entry());
            timed.deadline().set_armed(NEVER);
            self.publish(&wheel);
            drop(wheel);
            drop(entry);
        }
    }

    /// Appends whoever is due at `now` to `expired`, at most `count_max`. False when there may be
    /// more.
    pub(crate) fn expire(&self, now: u64, count_max: usize, expired: &mut Vec<Arc<T>>) -> bool {
        let mut left_over = Vec::new();
        let mut wheel = lock(&self.wheel);
        let mut is_done = false;
        for _ in 0..count_max {
            let Some(timed) = wheel.pop(now) else {
                is_done = true;
                break;
            };
            match settle(&mut wheel, timed, now) {
                Settled::Expired(timed) => expired.push(timed),
                Settled::Again => {}
                Settled::Gone(timed) => left_over.push(timed),
            }
        }
        self.publish(&wheel);
        drop(wheel);
        drop(left_over);
        is_done
    }

    fn publish(&self, wheel: &Wheel<Arc<T>>) {
        self.next.store(wheel.next_tick().unwrap_or(NEVER), Ordering::SeqCst);
    }
}

/// The tick between `now` and `due`; `due` itself when that is near.
fn halfway(now: u64, due: u64) -> u64 {
    let ahead = due.saturating_sub(now);
    if ahead < HALFWAY_TICKS_MIN { due } else { now + ahead / 2 }
}

/// What became of an entry when its time had come.
enum Settled<T: ?Sized> {
    /// It is due.
    Expired(Arc<T>),
    /// Its deadline had moved: it is in the wheel again.
    Again,
    /// Its deadline had been cleared.
    Gone(Arc<T>),
}

/// Decides about an entry that has left the wheel, until nobody has changed its deadline
/// meanwhile.
fn settle<T: Timed + ?Sized>(wheel: &mut Wheel<Arc<T>>, timed: Arc<T>, now: u64) -> Settled<T> {
    let mut has_expired = false;
    loop {
        let deadline = timed.deadline();
        let due = deadline.due();
        if due <= now {
            has_expired |= deadline.take(due);
            continue;
        }
        deadline.set_armed(due);
        // Whoever sets an earlier deadline from here on sees `armed`, and waits for the lock.
        if deadline.due() < due {
            continue;
        }
        if due != NEVER {
            deadline.set_entry(wheel.insert(due, timed.clone()));
        }
        return match (has_expired, due) {
            (true, _) => Settled::Expired(timed),
            (false, NEVER) => Settled::Gone(timed),
            (false, _) => Settled::Again,
        };
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::timers::deadline::Deadline;

    struct Timer(Deadline);

    impl Timed for Timer {
        fn deadline(&self) -> &Deadline {
            &self.0
        }
    }

    fn due_at(shard: &TimerShard<Timer>, tick: u64) -> usize {
        let mut expired = Vec::new();
        while !shard.expire(tick, 8, &mut expired) {}
        expired.len()
    }

    /// The deadlines set, all at tick 0, and the ticks at which the wheel looks until it is due.
    #[test]
    fn a_deadline_that_moved_to_an_earlier_time_is_looked_at_halfway() {
        let rows: &[(&[u64], &[u64])] = &[
            (&[2000], &[2000]),
            (&[2000, 1500], &[750, 1500]),
            // Halfway is before all that come after it.
            (&[3000, 2000, 1000, 3000, 1001], &[1000, 1001]),
            (&[2000, HALFWAY_TICKS_MIN], &[HALFWAY_TICKS_MIN / 2, HALFWAY_TICKS_MIN]),
            (&[2000, HALFWAY_TICKS_MIN - 1], &[HALFWAY_TICKS_MIN - 1]),
        ];
        for &(deadlines, looks) in rows {
            let (shard, timer) = (TimerShard::new(), Arc::new(Timer(Deadline::never())));
            for &tick in deadlines {
                if timer.0.set(tick) {
                    shard.arm(&timer, 0);
                }
            }
            let (&due, earlier) = looks.split_last().expect("it is due at some time");
            for &look in earlier {
                assert_eq!(timer.0.armed(), look, "{deadlines:?}");
                assert_eq!(due_at(&shard, look), 0, "{deadlines:?}: early at {look}");
            }
            assert_eq!(timer.0.armed(), due, "{deadlines:?}");
            assert_eq!(due_at(&shard, due - 1), 0, "{deadlines:?}: early");
            assert_eq!(due_at(&shard, due), 1, "{deadlines:?}: late");
        }
    }
}
