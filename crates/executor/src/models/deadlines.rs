//! The lazy wheel: deadlines that are moved while the wheel looks at them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shuttle::thread;

use super::{explore_all, explore_some, join};
use crate::timers::deadline::{Deadline, NEVER, Timed};
use crate::timers::shard::TimerShard;

/// More interleavings than any exhaustive model here has.
const INTERLEAVINGS_MAX: usize = 200_000;
const RANDOM_COUNT: usize = 2_000;

/// What a user of a deadline does.
#[derive(Clone, Copy, Debug)]
enum Act {
    Set(u64),
    SetIfEarlier(u64),
    Clear,
}

struct Timer {
    deadline: Deadline,
    /// The earliest tick that anybody has asked for: the observer's.
    earliest: AtomicU64,
    fired: AtomicU64,
}

impl Timed for Timer {
    fn deadline(&self) -> &Deadline {
        &self.deadline
    }
}

fn act(shard: &TimerShard<Timer>, timer: &Arc<Timer>, act: Act) {
    let is_early = match act {
        Act::Set(tick) => {
            timer.earliest.fetch_min(tick, Ordering::SeqCst);
            timer.deadline.set(tick)
        }
        Act::SetIfEarlier(tick) => {
            timer.earliest.fetch_min(tick, Ordering::SeqCst);
            timer.deadline.set_if_earlier(tick)
        }
        Act::Clear => {
            timer.deadline.clear();
            false
        }
    };
    if is_early {
        shard.arm(timer, 0);
    }
}

/// What the timer thread does at `now`. Returns how many times the timer fired.
fn expire(shard: &TimerShard<Timer>, now: u64) -> usize {
    let mut expired = Vec::new();
    if shard.next_tick() <= now {
        while !shard.expire(now, 2, &mut expired) {}
    }
    for timer in &expired {
        assert!(timer.earliest.load(Ordering::SeqCst) <= now, "nobody asked for it that early");
        timer.fired.fetch_add(1, Ordering::SeqCst);
    }
    expired.len()
}

/// Nobody is inside: the wheel comes in time, and neither before nor after the deadline fires.
/// It has been turned to `now` last.
fn check(shard: &TimerShard<Timer>, timer: &Timer, now: u64, is_ever_cleared: bool) {
    let (due, armed) = (timer.deadline.due(), timer.deadline.armed());
    assert!(armed <= due, "the wheel comes at {armed}, too late for {due}");
    assert_eq!(armed == NEVER, shard.len() == 0, "armed is the wheel's entry");
    assert!(shard.next_tick() <= armed.max(now));
    if due != NEVER {
        if due > now {
            assert_eq!(expire(shard, due - 1), 0, "never early");
        }
        assert_eq!(expire(shard, due.max(now)), 1, "never late");
    } else {
        let fired = timer.fired.load(Ordering::SeqCst);
        assert!(is_ever_cleared || fired > 0, "the deadline is gone and has not fired");
    }
    assert_eq!(expire(shard, NEVER - 1), 0, "once");
    assert_eq!(shard.len(), 0, "nothing stays in the wheel");
}

/// First `before`, then the acts of each thread while the wheel is turned to each of `ticks`.
fn race(before: &[Act], threads: &'static [&'static [Act]], ticks: &'static [u64]) {
    let timer = Timer {
        deadline: Deadline::never(),
        earliest: AtomicU64::new(NEVER),
        fired: AtomicU64::new(0),
    };
    let (shard, timer) = (Arc::new(TimerShard::new()), Arc::new(timer));
    before.iter().for_each(|&first| act(&shard, &timer, first));
    let handles: Vec<_> = threads
        .iter()
        .map(|acts| {
            let (shard, timer) = (shard.clone(), timer.clone());
            thread::spawn(move || acts.iter().for_each(|&next| act(&shard, &timer, next)))
        })
        .collect();
    for &tick in ticks {
        expire(&shard, tick);
    }
    join(handles);
    let all = before.iter().chain(threads.iter().flat_map(|acts| acts.iter()));
    let is_ever_cleared = all.into_iter().any(|act| matches!(act, Act::Clear));
    let now = ticks.iter().copied().max().unwrap_or(0);
    if let [acts] = threads
        && let Some(&Act::Set(last)) = acts.last()
        && last > now
    {
        assert_eq!(timer.deadline.due(), last, "the last deadline holds, whatever fired before");
    }
    check(&shard, &timer, now, is_ever_cleared);
}

type Row = (&'static [Act], &'static [&'static [Act]], &'static [u64]);

/// What there is before, what each user does, the ticks that the wheel is turned to.
#[test]
fn a_user_and_the_wheel_agree_in_every_interleaving() {
    let rows: &[Row] = &[
        (&[Act::Set(5)], &[&[Act::Set(9)]], &[5]),
        (&[Act::Set(5)], &[&[Act::Clear]], &[5]),
        // The wheel comes at 5, finds 20, and must not miss that 7 has come meanwhile.
        (&[Act::Set(5), Act::Set(20)], &[&[Act::Set(7)]], &[5]),
        (&[Act::Set(5), Act::Set(20)], &[&[Act::SetIfEarlier(7)]], &[5]),
        // 400 is looked at halfway, when 300 may have come.
        (&[Act::Set(900), Act::Set(400)], &[&[Act::Set(300)]], &[200]),
        (&[Act::Set(900), Act::Set(400)], &[&[Act::SetIfEarlier(300)]], &[200]),
    ];
    for &(before, threads, ticks) in rows {
        explore_all(INTERLEAVINGS_MAX, move || race(before, threads, ticks));
    }
}

#[test]
fn users_and_the_wheel_agree() {
    let rows: &[Row] = &[
        (&[], &[&[Act::Set(5)]], &[5]),
        (&[Act::Set(5), Act::Clear], &[&[Act::Set(7)]], &[5]),
        (&[Act::Set(5)], &[&[Act::Clear, Act::Set(7)]], &[5]),
        (&[Act::Set(9)], &[&[Act::Set(5), Act::Set(12)]], &[5]),
        (&[Act::Set(9)], &[&[Act::SetIfEarlier(5), Act::SetIfEarlier(7)]], &[5]),
        (&[Act::Set(5), Act::Set(20)], &[&[Act::Set(7)], &[Act::Set(6)]], &[5, 6, 7]),
        (&[Act::Set(5), Act::Set(20)], &[&[Act::Set(7), Act::Set(30)], &[Act::Set(6)]], &[5, 7]),
        (&[], &[&[Act::SetIfEarlier(9)], &[Act::SetIfEarlier(5)]], &[5, 9]),
        (&[Act::Set(9)], &[&[Act::Set(5), Act::Clear], &[Act::SetIfEarlier(7)]], &[5, 7, 9]),
        (&[Act::Set(5)], &[&[Act::Clear], &[Act::Set(8), Act::Set(6)]], &[5, 6, 8]),
        (&[Act::Set(900)], &[&[Act::Set(400), Act::Set(300)], &[Act::Set(600)]], &[150, 300]),
        (&[Act::Set(900), Act::Set(400)], &[&[Act::SetIfEarlier(100)]], &[200]),
    ];
    for &(before, threads, ticks) in rows {
        explore_some(RANDOM_COUNT, move || race(before, threads, ticks));
    }
}

/// A removal comes last, and only once; the wheel may be there at the same time.
#[test]
fn a_removed_deadline_leaves_nothing_and_does_not_fire_afterwards() {
    let rows: &[&[Act]] =
        &[&[Act::Set(5)], &[Act::Set(5), Act::Set(9)], &[Act::Set(5), Act::Clear]];
    for &before in rows {
        explore_some(RANDOM_COUNT, move || {
            let timer = Timer {
                deadline: Deadline::never(),
                earliest: AtomicU64::new(NEVER),
                fired: AtomicU64::new(0),
            };
            let (shard, timer) = (Arc::new(TimerShard::new()), Arc::new(timer));
            before.iter().for_each(|&first| act(&shard, &timer, first));
            let wheel = shard.clone();
            let expiry = thread::spawn(move || expire(&wheel, 5));
            shard.remove(&timer);
            let fired = timer.fired.load(Ordering::SeqCst);
            expiry.join().unwrap();
            assert!(timer.fired.load(Ordering::SeqCst) <= fired + 1);
            assert_eq!((timer.deadline.due(), timer.deadline.armed()), (NEVER, NEVER));
            assert_eq!((shard.len(), shard.next_tick()), (0, NEVER));
            assert_eq!(expire(&shard, NEVER - 1), 0);
            assert_eq!(Arc::strong_count(&timer), 1, "the wheel has let go of it");
        });
    }
}
