//! Which call fails, and how.

use std::io;

use rustix::io::Errno;

/// The kinds of calls that can be counted and can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Opening or creating a file.
    Open,
    /// A positioned read.
    Read,
    /// A positioned write, or a change of size.
    Write,
    /// A sync of a file.
    Sync,
    /// A rename.
    Rename,
    /// A removal.
    Remove,
    /// A sync of a directory.
    SyncDirectory,
}

/// How many kinds of calls there are.
const CALL_KINDS: usize = 7;

/// What a failing call says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultError {
    /// `EIO`.
    Io,
    /// `ENOSPC`.
    NoSpace,
    /// `EMFILE`.
    TooManyOpen,
    /// A write stops half way; any other call fails with `EIO`.
    ShortWrite,
    /// A rename has its effect and says `EIO`; any other call fails with `EIO`.
    LateRename,
}

/// A plan to fail.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Counts only these calls; `None` counts all.
    pub call: Option<Call>,
    /// Which of the counted calls fails: 1 is the next.
    pub number: u64,
    /// How it fails.
    pub error: FaultError,
    /// Whether all counted calls after it fail too.
    pub from_then_on: bool,
}

/// How many calls there were, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounts([u64; CALL_KINDS]);

/// The plans and what has been counted.
#[derive(Default)]
pub(super) struct Faults {
    /// Each plan with the calls that it has counted.
    armed: Vec<(Fault, u64)>,
    counts: CallCounts,
}

impl CallCounts {
    /// Calls of one kind.
    pub fn of(&self, call: Call) -> u64 {
        self.0[call as usize]
    }

    /// Calls of all kinds.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl Faults {
    pub(super) fn arm(&mut self, fault: Fault) {
        assert!(fault.number > 0, "calls are numbered from 1");
        self.armed.push((fault, 0));
    }

    pub(super) fn disarm(&mut self) {
        self.armed.clear();
    }

    pub(super) fn counts(&self) -> CallCounts {
        self.counts
    }

    /// Counts a call and fails it if a plan says so.
    pub(super) fn check(&mut self, call: Call) -> io::Result<()> {
        match self.count(call) {
            None => Ok(()),
            Some(FaultError::Io | FaultError::ShortWrite | FaultError::LateRename) => {
                Err(Errno::IO.into())
            }
            Some(FaultError::NoSpace) => Err(Errno::NOSPC.into()),
            Some(FaultError::TooManyOpen) => Err(Errno::MFILE.into()),
        }
    }

    /// The half of a write that happens, if the coming write is to stop half way. Counts the call
    /// only then.
    pub(super) fn short_write<'a>(&mut self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let is_next = self.armed.iter().any(|(fault, counted)| {
            fault.error == FaultError::ShortWrite && fault.strikes(Call::Write, counted + 1)
        });
        is_next.then(|| {
            self.count(Call::Write);
            &bytes[..bytes.len() / 2]
        })
    }

    /// Whether the coming rename is to have its effect although it fails. Does not count the call.
    pub(super) fn is_rename_late(&self) -> bool {
        self.armed.iter().any(|(fault, counted)| {
            fault.error == FaultError::LateRename && fault.strikes(Call::Rename, counted + 1)
        })
    }

    fn count(&mut self, call: Call) -> Option<FaultError> {
        self.counts.0[call as usize] += 1;
        let mut error = None;
        for (fault, counted) in &mut self.armed {
            if fault.call.is_none_or(|counts| counts == call) {
                *counted += 1;
                if fault.strikes(call, *counted) {
                    error = error.or(Some(fault.error));
                }
            }
        }
        error
    }
}

impl Fault {
    fn strikes(&self, call: Call, counted: u64) -> bool {
        self.call.is_none_or(|counts| counts == call)
            && (counted == self.number || (self.from_then_on && counted > self.number))
    }
}
