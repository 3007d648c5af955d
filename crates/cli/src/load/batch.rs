//! The operations that one client has under way.

use std::io;
use std::time::Duration;

use platform::Instant;
use protocol::{Frame, Status};

use super::toolbox::Toolbox;

/// The first wait after a temporary failure; each further one is twice as long.
const BACKOFF_MIN: Duration = Duration::from_millis(1);
const BACKOFF_MAX: Duration = Duration::from_millis(128);

/// A batch. Its memory is used again for the next one.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// By opaque.
    operations: Vec<Operation>,
    /// Sent and not answered.
    outstanding: usize,
    /// To be sent again, by opaque.
    retries: Vec<u32>,
    backoff: Duration,
    started_at: Instant,
    /// When something was last sent.
    sent_at: Instant,
}

/// A read or a write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    pub(super) item: u64,
    pub(super) is_set: bool,
    is_outstanding: bool,
}

impl Batch {
    /// Forgets the batch before.
    pub(super) fn start(&mut self, now: Instant) {
        assert!(self.is_done(), "a batch starts when the one before is done");
        self.operations.clear();
        self.backoff = BACKOFF_MIN;
        self.started_at = now;
        self.sent_at = now;
    }

    /// Adds an operation, which is sent at once. Returns its opaque.
    pub(super) fn add(&mut self, item: u64, is_set: bool) -> u32 {
        assert!(self.outstanding <= self.operations.len(), "what is awaited was asked");
        self.operations.push(Operation { item, is_set, is_outstanding: true });
        self.outstanding += 1;
        u32::try_from(self.operations.len() - 1).expect("batches are small")
    }

    /// Takes one that is to be sent again.
    pub(super) fn take_retry(&mut self, now: Instant) -> Option<(u32, Operation)> {
        let opaque = self.retries.pop()?;
        let operation = &mut self.operations[opaque as usize];
        assert!(!operation.is_outstanding, "what is asked again was answered");
        operation.is_outstanding = true;
        self.outstanding += 1;
        self.sent_at = now;
        Some((opaque, *operation))
    }

    /// When to send again, if there is anything. Each question makes the next wait longer.
    pub(super) fn retry_at(&mut self, now: Instant) -> Option<Instant> {
        if self.retries.is_empty() {
            return None;
        }
        let due = now.after(self.backoff);
        self.backoff = (self.backoff * 2).min(BACKOFF_MAX);
        Some(due)
    }

    /// Gives up what waits to be sent again.
    pub(super) fn forget_retries(&mut self) {
        self.retries.clear();
    }

    /// Operations without an outcome.
    pub(super) fn open_count(&self) -> usize {
        self.outstanding + self.retries.len()
    }

    /// Whether every operation has its outcome.
    pub(super) fn is_done(&self) -> bool {
        self.open_count() == 0
    }

    /// Whether answers have been missing for this long.
    pub(super) fn is_silent_for(&self, timeout: Duration, now: Instant) -> bool {
        self.outstanding > 0 && now.since(self.sent_at) > timeout
    }

    /// Takes a response of node number `node`.
    pub(super) fn complete(
        &mut self,
        frame: &Frame<'_>,
        node: usize,
        now: Instant,
        tools: &mut Toolbox,
    ) -> io::Result<()> {
        let opaque = frame.header.opaque;
        let operation = self.operations.get_mut(opaque as usize);
        let Some(operation) = operation.filter(|operation| operation.is_outstanding) else {
            let text = "the server answered what nobody asked";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        };
        operation.is_outstanding = false;
        self.outstanding -= 1;
        let status = frame.header.vbucket_or_status;
        let elapsed = now.since(self.started_at);
        if status != 0 {
            if status == Status::NotMyVbucket.code() {
                tools.map.learn_from(frame.value, node);
            }
            if is_temporary(status) && elapsed < tools.retry_for {
                tools.counters.count_retry(status);
                // Its time goes on from the start of the batch: what is recorded in the end has the
                // waits in it.
                self.retries.push(opaque);
                return Ok(());
            }
            tools.counters.count_error(status);
        }
        let nanos = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        let Toolbox { counters, .. } = tools;
        if operation.is_set {
            counters.sets.record(nanos)
        } else {
            counters.gets.record(nanos)
        }
        Ok(())
    }
}

/// Failures that pass by themselves, or with a new map.
fn is_temporary(status: u16) -> bool {
    let status = Status::from_code(status);
    matches!(
        status,
        Some(
            Status::Etmpfail
                | Status::Ebusy
                | Status::Enomem
                | Status::Locked
                | Status::SyncWriteInProgress
                | Status::SyncWriteReCommitInProgress
                | Status::NotMyVbucket
        )
    )
}
