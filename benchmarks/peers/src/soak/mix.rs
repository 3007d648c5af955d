//! What is asked for next: a mixed load that leaves as much data as it finds.

use std::collections::VecDeque;
use std::time::Duration;

use platform::Random;

use super::ledger::{Action, Ledger};
use crate::zipf::Zipf;

/// Of a hundred requests, in the order of [`Action::ALL`].
const PERCENTS: [u64; 6] = [70, 20, 5, 3, 1, 1];
/// Of a hundred reads, how many are of sessions.
const SESSION_READS_PERCENT: u64 = 10;
/// Of so many lasting documents one may be deleted; then the one deleted first is written again.
const DELETED_PART: usize = 50;
/// Seconds that a session lasts, at least and at most.
const SESSION_SECONDS: (u64, u64) = (30, 120);

/// A request that is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What it does.
    pub action: Action,
    /// To which document.
    pub index: usize,
    /// After which time that expires, if it does.
    pub lifetime: Option<Duration>,
}

impl Plan {
    /// One of something that does not expire.
    pub fn lasting(action: Action, index: usize) -> Self {
        Self { action, index, lifetime: None }
    }
}

/// The source of requests.
pub struct Mix {
    random: Random,
    zipf: Zipf,
    /// Documents that were to be deleted, in that order. Some have been written again since.
    deleted: VecDeque<usize>,
    next_session: usize,
}

impl Mix {
    /// Over so many lasting documents.
    pub fn new(lasting: usize) -> Self {
        let (random, zipf) = (Random::from_seed(11), Zipf::new(lasting));
        Self { random, zipf, deleted: VecDeque::new(), next_session: 0 }
    }

    /// A request to a document that no other one is about.
    pub fn next(&mut self, ledger: &Ledger) -> Plan {
        let action = self.action();
        let lasting = ledger.documents().lasting();
        let index = match action {
            Action::Get if self.random.below(100) < SESSION_READS_PERCENT => {
                let sessions = ledger.documents().sessions();
                let session = lasting + self.random.below(sessions as u64) as usize;
                idle_from(session, (lasting, sessions), ledger)
            }
            Action::Get | Action::SetDurably => self.popular(ledger),
            Action::Set => match self.deleted_first(ledger) {
                Some(index) => index,
                None => self.popular(ledger),
            },
            Action::SetExpiring => return self.session(ledger),
            Action::Delete => {
                let index = self.random.below(lasting as u64) as usize;
                let next = |index| if index + 1 < lasting { index + 1 } else { 0 };
                let index = first_in_circle(index, next, |index| {
                    ledger.is_idle(index) && ledger.is_stored(index)
                });
                self.deleted.push_back(index);
                index
            }
            Action::Mutate => {
                let documents = ledger.documents();
                let object = documents.object_before(self.zipf.draw(&mut self.random));
                let next = |object| documents.object_after(object);
                first_in_circle(object, next, |index| {
                    ledger.is_idle(index) && ledger.is_stored(index)
                })
            }
        };
        Plan::lasting(action, index)
    }

    fn action(&mut self) -> Action {
        let mut rest = self.random.below(PERCENTS.iter().sum());
        for (action, percent) in Action::ALL.into_iter().zip(PERCENTS) {
            match rest.checked_sub(percent) {
                Some(left) => rest = left,
                None => return action,
            }
        }
        unreachable!("the sum of all is more than any rest")
    }

    fn popular(&mut self, ledger: &Ledger) -> usize {
        let index = self.zipf.draw(&mut self.random);
        idle_from(index, (0, ledger.documents().lasting()), ledger)
    }

    /// The document that was deleted first, if there are enough of them.
    fn deleted_first(&mut self, ledger: &Ledger) -> Option<usize> {
        while self.deleted.len() > ledger.documents().lasting() / DELETED_PART {
            let index = self.deleted.pop_front()?;
            if ledger.is_absent(index) && ledger.is_idle(index) {
                return Some(index);
            }
        }
        None
    }

    fn session(&mut self, ledger: &Ledger) -> Plan {
        let (lasting, sessions) = (ledger.documents().lasting(), ledger.documents().sessions());
        let index = idle_from(lasting + self.next_session, (lasting, sessions), ledger);
        self.next_session = (index - lasting + 1) % sessions;
        let (shortest, longest) = SESSION_SECONDS;
        let seconds = shortest + self.random.below(longest - shortest + 1);
        let lifetime = Some(Duration::from_secs(seconds));
        Plan { action: Action::SetExpiring, index, lifetime }
    }
}

/// The first idle document from `index` on, in the circle of so many behind a first one.
fn idle_from(index: usize, (first, count): (usize, usize), ledger: &Ledger) -> usize {
    let next = |index| if index + 1 < first + count { index + 1 } else { first };
    first_in_circle(index, next, |index| ledger.is_idle(index))
}

fn first_in_circle(
    start: usize,
    next: impl Fn(usize) -> usize,
    is_fit: impl Fn(usize) -> bool,
) -> usize {
    let mut index = start;
    while !is_fit(index) {
        index = next(index);
        assert!(index != start, "fewer requests are under way than there are documents");
    }
    index
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::documents::Documents;
    use super::super::ledger::Flight;
    use super::*;

    const LASTING: usize = 3200;

    /// The node does what it is told.
    fn carry_out(ledger: &mut Ledger, plan: Plan) {
        let now = Instant::now();
        let Plan { action, index, lifetime } = plan;
        let version = ledger.next_version();
        ledger.begin(index);
        if action != Action::Get {
            let flight = Flight { action, index, version, lifetime, due: now, sent: now };
            ledger.settle(&flight, 0, &[], now);
        }
    }

    fn full() -> Ledger {
        let mut ledger = Ledger::new(Documents::new(LASTING, 640));
        (0..LASTING).for_each(|index| carry_out(&mut ledger, Plan::lasting(Action::Set, index)));
        ledger
    }

    #[test]
    fn requests_come_in_their_shares_and_leave_as_much_data_as_they_find() {
        let (mut ledger, mut mix) = (full(), Mix::new(LASTING));
        let mut counts = [0_u64; 6];
        for _ in 0..20_000 {
            let plan = mix.next(&ledger);
            let place = Action::ALL.iter().position(|action| *action == plan.action);
            counts[place.expect("all are there")] += 1;
            assert_eq!(
                plan.lifetime.is_some(),
                plan.index >= LASTING && plan.action != Action::Get
            );
            if plan.action != Action::Get {
                carry_out(&mut ledger, plan);
            }
        }
        for (count, percent) in counts.into_iter().zip(PERCENTS) {
            let expected = percent * 200;
            assert!(count.abs_diff(expected) < expected / 5 + 20, "{counts:?}");
        }
        let deleted = (0..LASTING).filter(|&index| ledger.is_absent(index)).count();
        assert!((40..=LASTING / DELETED_PART + 1).contains(&deleted), "{deleted}");
    }

    #[test]
    fn a_document_with_a_request_under_way_is_left_alone() {
        let (mut ledger, mut mix) = (full(), Mix::new(LASTING));
        // Reads are never answered here, so that their documents stay busy.
        for _ in 0..1_000 {
            let plan = mix.next(&ledger);
            assert!(ledger.is_idle(plan.index), "{plan:?}");
            carry_out(&mut ledger, plan);
        }
    }
}
