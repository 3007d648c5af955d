//! One connection's login, message by message. Source: docs/specification/protocol.md, section 8.2.

use platform::Entropy;

use crate::mechanism::{HashAlgorithm, Mechanism};
use crate::plain::PlainAttempt;
use crate::scram::{ClientFirst, ServerScram};
use crate::users::Users;

/// Bytes of a login message. SCRAM repeats the client's nonce in its answers and keeps it until the
/// next message, for whoever has not logged in.
const MESSAGE_BYTES_MAX: usize = 4096;
/// Logins that may fail one behind the other: clients try all mechanisms that there are. Whoever
/// goes on begins with another connection.
const FAILURES_IN_A_ROW_MAX: u8 = 5;
const TOO_LARGE: &str = "a login message has at most 4096 bytes";

/// The login of one connection. Behind one that failed it holds the name that was said.
#[derive(Default)]
pub struct Exchange {
    running: Option<Running>,
    claimed_user: Option<String>,
    failure_count: u8,
}

struct Running {
    algorithm: HashAlgorithm,
    scram: ServerScram,
}

/// What to answer.
#[derive(PartialEq, Eq)]
pub enum Outcome {
    /// AUTH_CONTINUE with this challenge.
    Continue(Vec<u8>),
    /// A password to check, on a thread that has time: SUCCESS when [`PlainAttempt::run`] names a
    /// user, otherwise AUTH_ERROR. Requests behind this one wait.
    Check(PlainAttempt),
    /// SUCCESS with this value: the connection now speaks for the user.
    Done {
        /// The user.
        user: String,
        /// The response's value.
        server_final: Vec<u8>,
    },
    /// AUTH_ERROR, whatever the cause.
    Failed,
    /// EINVAL: the message does not belong here. The login under way, if any, is over.
    OutOfPlace(&'static str),
}

impl Exchange {
    /// SASL_AUTH.
    pub fn start(&mut self, users: &Users, mechanism: &str, data: &[u8]) -> Outcome {
        if self.running.take().is_some() {
            return Outcome::OutOfPlace("another login was under way");
        }
        self.claimed_user = None;
        if data.is_empty() {
            return Outcome::OutOfPlace("the login says nothing");
        }
        if data.len() > MESSAGE_BYTES_MAX {
            return Outcome::OutOfPlace(TOO_LARGE);
        }
        match Mechanism::from_name(mechanism) {
            None => Outcome::Failed,
            Some(Mechanism::Plain) => self.start_plain(users, data),
            Some(Mechanism::Scram(algorithm)) => self.start_scram(users, algorithm, data),
        }
    }

    /// Bytes that a login under way keeps of what the client has said.
    pub fn held_bytes(&self) -> usize {
        let claimed_user = self.claimed_user.as_ref().map_or(0, String::capacity);
        claimed_user + self.running.as_ref().map_or(0, |running| running.scram.held_bytes())
    }

    /// SASL_STEP.
    pub fn step(&mut self, users: &Users, mechanism: &str, data: &[u8]) -> Outcome {
        let Some(Running { algorithm, scram }) = self.running.take() else {
            return Outcome::OutOfPlace("no login is under way");
        };
        if Mechanism::from_name(mechanism) != Some(Mechanism::Scram(algorithm)) {
            return Outcome::OutOfPlace("the login began with another mechanism");
        }
        if data.len() > MESSAGE_BYTES_MAX {
            return Outcome::OutOfPlace(TOO_LARGE);
        }
        match scram.finish(data, |user, known| users.has_credentials(user, known)) {
            Some((user, server_final)) => Outcome::Done { user, server_final },
            None => Outcome::Failed,
        }
    }

    /// Who the last login says that it is: not who it is, and chosen by a stranger.
    pub fn claimed_user(&self) -> Option<&str> {
        self.claimed_user.as_deref()
    }

    /// A login has failed. Returns whether so many have, and none has not, that the connection is
    /// to be closed.
    pub fn note_failure(&mut self) -> bool {
        self.failure_count = self.failure_count.saturating_add(1);
        self.failure_count >= FAILURES_IN_A_ROW_MAX
    }

    /// Whether a SASL_STEP is expected.
    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    fn start_plain(&mut self, users: &Users, data: &[u8]) -> Outcome {
        let Some(attempt) = PlainAttempt::parse(data) else { return Outcome::Failed };
        // Before anything is checked: a login that fails is noted under this name.
        self.claimed_user = Some(attempt.user().to_owned());
        if attempt.is_verified(users) {
            return Outcome::Done { user: attempt.user().to_owned(), server_final: Vec::new() };
        }
        Outcome::Check(attempt)
    }

    fn start_scram(&mut self, users: &Users, algorithm: HashAlgorithm, data: &[u8]) -> Outcome {
        let Some(first) = ClientFirst::parse(data) else { return Outcome::Failed };
        self.claimed_user = Some(first.user.clone());
        let login = users.login(&first.user, algorithm);
        let (scram, challenge) = ServerScram::begin(&first, login, &server_nonce(users.entropy()));
        self.running = Some(Running { algorithm, scram });
        Outcome::Continue(challenge)
    }
}

/// 16 hexadecimal digits, as clients expect.
fn server_nonce(entropy: &Entropy) -> String {
    format!("{:016x}", entropy.next_u64())
}

#[cfg(test)]
mod tests;
