//! Strangers that wait for a turn.

use std::collections::VecDeque;
use std::time::Duration;

/// Turns of strangers between two looks at the clients.
pub(super) const TURNS_MAX: usize = 16;
/// How long those turns may take together, but for the one that is taken then.
pub(super) const TIME_MAX: Duration = Duration::from_micros(200);

/// The connections of a worker whose turn it would be if it were known who they are. They get a few
/// turns whenever the clients have had theirs: a client waits for those few, however many strangers
/// there are and whatever they ask. Every connection waits at most once.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    queue: VecDeque<usize>,
    /// By token, whether it is in the queue.
    is_waiting: Vec<bool>,
}

impl Crowd {
    /// The connection wants a turn.
    pub(super) fn enter(&mut self, token: usize) {
        if token >= self.is_waiting.len() {
            self.is_waiting.resize(token + 1, false);
        }
        if !std::mem::replace(&mut self.is_waiting[token], true) {
            self.queue.push_back(token);
        }
    }

    /// Whose turn it is, who waits no longer. The connection may have gone meanwhile.
    pub(super) fn next(&mut self) -> Option<usize> {
        let token = self.queue.pop_front()?;
        let was_waiting = std::mem::replace(&mut self.is_waiting[token], false);
        assert!(was_waiting, "who is in the queue is known to be: {token}");
        Some(token)
    }

    /// Whether nobody waits.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_waits_once_and_comes_in_turn() {
        let mut crowd = Crowd::default();
        for token in [7, 0, 7, 3, 0] {
            crowd.enter(token);
        }
        assert_eq!((crowd.next(), crowd.next()), (Some(7), Some(0)));
        crowd.enter(7);
        let rest = std::iter::from_fn(|| crowd.next());
        assert_eq!(rest.collect::<Vec<_>>(), [3, 7]);
        assert!(crowd.is_empty());
    }
}
