//! Threads that hash passwords, and nothing else.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use platform::network::counted_address;
use platform::threads;

use crate::login_line::{Entered, LoginLine};
use crate::plain::PlainAttempt;
use crate::users::Users;

/// Passwords that wait at a time. Behind them one of the same address waits a second or two.
pub const QUEUE_LENGTH_MAX: usize = 192;
/// The threads' nice value: a crowd of logins takes no more than its share, and on a busy machine
/// somebody who logs in still gets in.
const NICE: i32 = 2;

/// Checks passwords one after the other. Each takes milliseconds on purpose, so that whoever
/// guesses gets few tries: the threads are few, what waits is bounded, and nobody else waits for
/// it.
pub struct PasswordChecker {
    shared: Arc<Shared>,
    /// Whoever asks does the work itself.
    is_at_once: bool,
    threads: Vec<JoinHandle<()>>,
}

/// Whoever asked still wants to know. A check that has not begun when this is dropped is left out.
#[derive(Debug)]
pub struct Asked(Arc<AtomicBool>);

/// Too many passwords wait. Callers have the client try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many logins wait; try again")]
pub struct TooManyLogins;

/// Who the password belongs to; `None` when it was wrong. An error when it was not looked at,
/// because somebody from another address has its place.
pub type Checked = Result<Option<String>, TooManyLogins>;

type Answer = Box<dyn FnOnce(Checked) + Send>;

struct Check {
    attempt: PlainAttempt,
    is_wanted: Arc<AtomicBool>,
    answer: Answer,
}

struct Shared {
    users: Arc<Users>,
    queue: Mutex<Queue>,
    has_more: Condvar,
}

struct Queue {
    checks: LoginLine<Check>,
    is_stopping: bool,
}

impl Default for Queue {
    fn default() -> Self {
        Self { checks: LoginLine::new(QUEUE_LENGTH_MAX), is_stopping: false }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl PasswordChecker {
    /// A checker with this many threads, named after `name`.
    pub fn start(users: Arc<Users>, name: &str, thread_count: usize) -> io::Result<Self> {
        let queue = Mutex::default();
        let shared = Arc::new(Shared { users, queue, has_more: Condvar::new() });
        let mut checker = Self { shared, is_at_once: false, threads: Vec::new() };
        for index in 0..thread_count {
            let shared = Arc::clone(&checker.shared);
            checker.threads.push(threads::spawn(&format!("{name}{index}"), move || shared.run())?);
        }
        Ok(checker)
    }

    /// A checker without threads, where there are none: whoever asks waits for the answer.
    pub fn at_once(users: Arc<Users>) -> Self {
        let queue = Mutex::default();
        let shared = Arc::new(Shared { users, queue, has_more: Condvar::new() });
        Self { shared, is_at_once: true, threads: Vec::new() }
    }

    /// Has a password checked that came from `address`; `answer` is called on another thread,
    /// unless what is returned is dropped before the check begins.
    ///
    /// # Errors
    /// Too many wait, and no other address has more of them. Somebody else may hear that instead,
    /// whose place this one has.
    pub fn check(
        &self,
        attempt: PlainAttempt,
        address: Option<IpAddr>,
        answer: impl FnOnce(Checked) + Send + 'static,
    ) -> Result<Asked, TooManyLogins> {
        if self.is_at_once {
            answer(Ok(attempt.run(&self.shared.users)));
            return Ok(Asked(Arc::new(AtomicBool::new(false))));
        }
        let is_wanted = Arc::new(AtomicBool::new(true));
        let asked = Asked(Arc::clone(&is_wanted));
        let check = Check { attempt, is_wanted, answer: Box::new(answer) };
        let mut queue = self.shared.lock();
        if queue.is_stopping {
            return Err(TooManyLogins);
        }
        if queue.checks.is_full() {
            // Only when there is no room otherwise: the threads pass over those that nobody wants
            // any more.
            queue.checks.retain(|check| check.is_wanted.load(Ordering::Relaxed));
        }
        let entered = queue.checks.enter(address.map(counted_address), check);
        drop(queue);
        match entered {
            Entered::Waits => {}
            Entered::InPlaceOf(other) => (other.answer)(Err(TooManyLogins)),
            Entered::TurnedAway(_) => return Err(TooManyLogins),
        }
        self.shared.has_more.notify_one();
        Ok(asked)
    }
}

impl Drop for PasswordChecker {
    /// Ends the threads. What has not begun is left out.
    fn drop(&mut self) {
        let mut queue = self.shared.lock();
        let left_out = std::mem::take(&mut *queue).checks;
        queue.is_stopping = true;
        drop(queue);
        // Not under the lock: what answers hold is let go of with them, and may be anything.
        drop(left_out);
        self.shared.has_more.notify_all();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread that checks passwords has panicked");
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        if let Err(error) = threads::set_own_nice(NICE) {
            tracing::warn!(%error, "passwords are checked at ordinary priority");
        }
        while let Some(Check { attempt, is_wanted, answer }) = self.next() {
            // Relaxed: to hash once in vain does no harm.
            if is_wanted.load(Ordering::Relaxed) {
                answer(Ok(attempt.run(&self.users)));
            }
        }
    }

    /// The next check, when there is one; `None` at the end.
    fn next(&self) -> Option<Check> {
        let mut queue = self.lock();
        loop {
            if queue.is_stopping {
                return None;
            }
            if let Some(check) = queue.checks.next() {
                return Some(check);
            }
            queue = self.has_more.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use platform::Clock;

    use super::*;
    use crate::users::UsersConfig;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn users() -> Arc<Users> {
        let users = Users::new(UsersConfig::default());
        users.set_password("bob", b"secret");
        Arc::new(users)
    }

    fn attempt(password: &[u8]) -> PlainAttempt {
        PlainAttempt::new("bob", password)
    }

    #[test]
    fn who_asks_hears_whose_password_it_is() {
        let checker = PasswordChecker::start(users(), "Test", 2).unwrap();
        let (answers, heard) = mpsc::channel();
        for (password, expected) in [(&b"secret"[..], Some("bob".to_owned())), (b"other", None)] {
            let answers = answers.clone();
            let answer = move |user| answers.send(user).unwrap();
            let _asked = checker.check(attempt(password), None, answer).unwrap();
            assert_eq!(heard.recv_timeout(PATIENCE).unwrap(), Ok(expected));
        }
    }

    #[test]
    fn what_waits_is_bounded_and_those_who_have_left_make_room() {
        // Without a thread nothing is ever taken out.
        let checker = PasswordChecker::start(users(), "Test", 0).unwrap();
        let ask = || checker.check(attempt(b"x"), None, |_| {});
        let asked: Vec<Asked> = (0..QUEUE_LENGTH_MAX).map(|_| ask().unwrap()).collect();
        assert_eq!(ask().unwrap_err(), TooManyLogins);
        drop(asked);
        assert!(ask().is_ok());
    }

    #[test]
    fn whoever_fills_the_line_hears_that_somebody_from_elsewhere_has_a_place() {
        let checker = PasswordChecker::start(users(), "Test", 0).unwrap();
        let (answers, heard) = mpsc::channel();
        let ask = |number: u8| {
            let (answers, address) = (answers.clone(), IpAddr::from([10, 0, 0, number]));
            checker.check(attempt(b"x"), Some(address), move |checked| {
                answers.send((number, checked)).unwrap();
            })
        };
        let mut filling = Vec::new();
        while let Ok(asked) = ask(1) {
            filling.push(asked);
        }
        assert_eq!(filling.len(), QUEUE_LENGTH_MAX);
        assert!(heard.try_recv().is_err());
        let _other = ask(2).unwrap();
        assert_eq!(heard.try_recv(), Ok((1, Err(TooManyLogins))));
    }

    #[test]
    fn what_was_found_right_meanwhile_is_not_hashed_again() {
        let hashing = UsersConfig { iterations: 200_000, ..UsersConfig::default() };
        let users = Users::new(hashing);
        users.set_password("bob", b"secret");
        let checker = PasswordChecker::start(Arc::new(users), "Test", 1).unwrap();
        let (answers, heard) = mpsc::channel();
        let ask = |number: usize| {
            let answers = answers.clone();
            let answer = move |checked| answers.send((number, checked)).unwrap();
            checker.check(attempt(b"secret"), None, answer).unwrap()
        };
        let mut asked = Vec::new();
        asked.extend((0..QUEUE_LENGTH_MAX).map(ask));
        // Hashed one by one they would take several times as long as is waited for all.
        let last = asked.len() - 1;
        let clock = Clock::real();
        let begun = clock.now();
        let is_late = || clock.now().since(begun) > PATIENCE;
        let mut answered = std::iter::from_fn(|| heard.recv_timeout(PATIENCE).ok());
        let of_last = answered.find(|(number, _)| *number == last || is_late());
        assert_eq!(of_last, Some((last, Ok(Some("bob".to_owned())))));
    }

    #[test]
    fn a_check_that_nobody_wants_is_left_out() {
        let checker = PasswordChecker::start(users(), "Test", 1).unwrap();
        let (answers, heard) = mpsc::channel();
        let ask = |name: &'static str| {
            let answers = answers.clone();
            checker.check(attempt(b"x"), None, move |_| answers.send(name).unwrap()).unwrap()
        };
        let first = ask("first");
        drop(ask("left"));
        let _last = ask("last");
        assert_eq!(heard.recv_timeout(PATIENCE).unwrap(), "first");
        assert_eq!(heard.recv_timeout(PATIENCE).unwrap(), "last");
        drop(first);
    }
}
