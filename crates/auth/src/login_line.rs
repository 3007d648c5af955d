//! Passwords that wait to be checked, as many lines as there are addresses.
//!
//! Addresses take turns, so that nobody waits for all that another one asks. When there is no room
//! the newest of the address with most gives way to somebody from an address with fewer: who fills
//! the line shuts out nobody else.

use std::collections::VecDeque;
use std::net::IpAddr;

/// What waits, of any kind.
pub(crate) struct LoginLine<T> {
    /// The address whose turn comes next is the first. None has an empty line.
    lines: VecDeque<OfAddress<T>>,
    /// In all lines together.
    waiting_count: usize,
    waiting_count_max: usize,
}

struct OfAddress<T> {
    /// `None` where it is not known.
    address: Option<IpAddr>,
    /// The oldest first.
    waiting: VecDeque<T>,
}

/// What becomes of somebody who comes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Entered<T> {
    /// It waits.
    Waits,
    /// It waits, and this one does not any more.
    InPlaceOf(T),
    /// There is no room.
    TurnedAway(T),
}

impl<T> LoginLine<T> {
    /// An empty one with room for so many.
    pub(crate) fn new(waiting_count_max: usize) -> Self {
        assert!(waiting_count_max > 0, "somebody may wait");
        Self { lines: VecDeque::new(), waiting_count: 0, waiting_count_max }
    }

    /// Whether nobody more has room by itself.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting_count >= self.waiting_count_max
    }

    /// Lets somebody in who comes from there, if need be for one who leaves.
    pub(crate) fn enter(&mut self, address: Option<IpAddr>, comer: T) -> Entered<T> {
        if !self.is_full() {
            self.append(address, comer);
            return Entered::Waits;
        }
        let count = self.line_of(address).map_or(0, |line| line.waiting.len());
        let longest = self.lines.iter_mut().max_by_key(|line| line.waiting.len());
        // With one fewer both would take each other's place for ever.
        let longest = longest.filter(|line| line.waiting.len() > count + 1);
        let Some(newest) = longest.and_then(|line| line.waiting.pop_back()) else {
            return Entered::TurnedAway(comer);
        };
        self.waiting_count -= 1;
        self.append(address, comer);
        Entered::InPlaceOf(newest)
    }

    /// Whose turn it is.
    pub(crate) fn next(&mut self) -> Option<T> {
        let mut line = self.lines.pop_front()?;
        let next = line.waiting.pop_front();
        assert!(next.is_some(), "no address has an empty line");
        self.waiting_count -= 1;
        if !line.waiting.is_empty() {
            self.lines.push_back(line);
        }
        next
    }

    /// Lets those go who are not wanted.
    pub(crate) fn retain(&mut self, is_wanted: impl Fn(&T) -> bool) {
        for line in &mut self.lines {
            line.waiting.retain(&is_wanted);
        }
        self.lines.retain(|line| !line.waiting.is_empty());
        self.waiting_count = self.lines.iter().map(|line| line.waiting.len()).sum();
    }

    fn append(&mut self, address: Option<IpAddr>, comer: T) {
        self.waiting_count += 1;
        match self.line_of(address) {
            Some(line) => line.waiting.push_back(comer),
            None => {
                self.lines.push_back(OfAddress { address, waiting: VecDeque::from([comer]) });
            }
        }
    }

    fn line_of(&mut self, address: Option<IpAddr>) -> Option<&mut OfAddress<T>> {
        self.lines.iter_mut().find(|line| line.address == address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u8) -> Option<IpAddr> {
        Some(IpAddr::from([10, 0, 0, number]))
    }

    /// Who waits, in the order of their turns.
    fn order(mut line: LoginLine<&'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| line.next()).collect()
    }

    #[test]
    fn addresses_take_turns_and_each_has_its_oldest_first() {
        let mut line = LoginLine::new(8);
        let comers = [(1, "a1"), (1, "a2"), (1, "a3"), (2, "b1"), (1, "a4"), (3, "c1"), (2, "b2")];
        for (number, comer) in comers {
            assert_eq!(line.enter(address(number), comer), Entered::Waits);
        }
        assert_eq!(order(line), ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]);
    }

    #[test]
    fn who_fills_the_line_gives_way_to_others_and_not_to_itself() {
        let mut line = LoginLine::new(4);
        for comer in ["a1", "a2", "a3", "a4"] {
            assert_eq!(line.enter(address(1), comer), Entered::Waits);
        }
        assert_eq!(line.enter(address(1), "a5"), Entered::TurnedAway("a5"));
        assert_eq!(line.enter(address(2), "b1"), Entered::InPlaceOf("a4"));
        // Of three and one.
        assert_eq!(line.enter(address(2), "b2"), Entered::InPlaceOf("a3"));
        assert_eq!(line.enter(address(2), "b3"), Entered::TurnedAway("b3"));
        assert_eq!(line.enter(None, "c1"), Entered::InPlaceOf("b2"));
        assert_eq!(order(line), ["a1", "b1", "c1", "a2"]);
    }

    #[test]
    fn those_who_leave_make_room() {
        let mut line = LoginLine::new(3);
        for (number, comer) in [(1, "a1"), (2, "b1"), (1, "a2")] {
            assert_eq!(line.enter(address(number), comer), Entered::Waits);
        }
        assert!(line.is_full());
        line.retain(|comer| *comer != "b1");
        assert!(!line.is_full());
        assert_eq!(line.enter(address(3), "c1"), Entered::Waits);
        assert_eq!(order(line), ["a1", "c1", "a2"]);
    }
}
