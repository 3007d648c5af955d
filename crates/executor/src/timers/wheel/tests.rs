//! The wheel against a sorted list.

use std::collections::BTreeSet;

use platform::Random;
use platform::seeds::seeds;

use super::Wheel;

/// Takes out everything that is due until `now`.
fn pop_all(wheel: &mut Wheel<u64>, now: u64) -> Vec<u64> {
    std::iter::from_fn(|| wheel.pop(now)).collect()
}

#[test]
fn an_entry_is_popped_at_its_tick_however_far_it_is() {
    for bit in 0..63 {
        let mut wheel = Wheel::new();
        let tick = (1_u64 << bit) + bit;
        wheel.insert(tick, tick);
        assert!(wheel.next_tick().unwrap() <= tick);
        assert_eq!(wheel.pop(tick - 1), None, "not before tick {tick}");
        assert_eq!(wheel.pop(tick), Some(tick));
        assert_eq!(wheel.next_tick(), None);
        assert_eq!(wheel.len(), 0);
    }
}

#[test]
fn the_last_tick_of_all_can_be_waited_for() {
    let mut wheel = Wheel::new();
    wheel.insert(u64::MAX, 0);
    wheel.insert(u64::MAX - 1, 1);
    assert!(pop_all(&mut wheel, u64::MAX - 2).is_empty());
    assert_eq!(pop_all(&mut wheel, u64::MAX), [1, 0]);
}

#[test]
fn an_entry_that_comes_late_is_due_at_once() {
    let mut wheel = Wheel::new();
    assert_eq!(wheel.pop(5_000), None);
    wheel.insert(3, 3);
    assert!(wheel.next_tick().unwrap() <= 5_000);
    assert_eq!(wheel.pop(5_000), Some(3));
}

#[test]
fn entries_of_one_tick_keep_their_order() {
    let mut wheel = Wheel::new();
    for value in 0..100 {
        wheel.insert(70, value);
    }
    assert_eq!(pop_all(&mut wheel, 70), (0..100).collect::<Vec<_>>());
}

#[test]
fn next_tick_needs_few_visits_for_an_entry_far_away() {
    let mut wheel = Wheel::new();
    wheel.insert(12_345_678, 0);
    let mut visits = 0;
    while let Some(tick) = wheel.next_tick() {
        visits += 1;
        wheel.pop(tick);
    }
    assert_eq!(visits, 4, "one for each level, the last of which pops it");
}

/// Inserts, removes and advances at random; the model is a set of (tick, entry, value).
#[test]
fn the_wheel_agrees_with_a_sorted_set() {
    for seed in seeds(30) {
        let mut random = Random::from_seed(seed);
        let (mut wheel, mut model) = (Wheel::new(), BTreeSet::new());
        let mut now = random.below(1 << 40);
        wheel.pop(now);
        for value in 0..3_000 {
            match random.below(10) {
                0..5 => {
                    let reach = 1 << random.below(30);
                    let tick = now + random.below(reach);
                    let entry = wheel.insert(tick, value);
                    model.insert((tick, value, entry));
                }
                5..7 if !model.is_empty() => {
                    let chosen = random.below(model.len() as u64) as usize;
                    let chosen = *model.iter().nth(chosen).unwrap();
                    model.remove(&chosen);
                    assert_eq!(wheel.remove(chosen.2), chosen.1, "seed {seed}");
                }
                _ => {
                    let step = 1 << random.below(24);
                    now += random.below(step);
                    let due: Vec<_> = model.iter().filter(|(tick, ..)| *tick <= now).collect();
                    let mut expected: Vec<u64> = due.iter().map(|(_, value, _)| *value).collect();
                    model = model.split_off(&(now + 1, 0, 0));
                    let mut popped = pop_all(&mut wheel, now);
                    popped.sort_unstable();
                    expected.sort_unstable();
                    assert_eq!(popped, expected, "seed {seed}");
                }
            }
            assert_eq!(wheel.len(), model.len());
            let first = model.first().map(|(tick, ..)| *tick);
            assert_eq!(wheel.next_tick().is_some(), first.is_some());
            assert!(wheel.next_tick() <= first || first.is_none(), "seed {seed}");
        }
    }
}
