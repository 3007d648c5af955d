//! What other threads tell a worker.

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bucket::{Completion, Completions};
use platform::network::{TcpStream, Waker};
use vbucket::Waiter;

use crate::commands::Completed;
use crate::connection::{Entrance, Parked};

/// A message for a worker.
pub(super) enum Message {
    /// A connection that is its own from now on.
    Accepted(TcpStream, Entrance),
    /// What a parked request has waited for.
    Completed(Waiter, Completed),
    /// A connection has something to send that nobody has asked for just now.
    Wake(usize),
    /// More may wait at a door than was accepted in one go.
    AcceptMore(Entrance),
    /// There is a newer map of the cluster.
    MapChanged,
    /// Give back memory that others have freed.
    ReleaseMemory,
    /// Stop: close all connections and end.
    Stop,
}

/// The mailboxes of all workers. A handle: clones lead to the same workers.
#[derive(Clone)]
pub struct Mailboxes(Arc<[Mailbox]>);

#[derive(Default)]
struct Mailbox {
    messages: Mutex<Vec<Message>>,
    /// Set once, when the worker's loop begins. Until then nobody has anything to say to it.
    waker: OnceLock<Waker>,
}

impl Mailboxes {
    /// Mailboxes for `count` workers that do not run yet.
    pub fn for_workers(count: usize) -> Self {
        Self(std::iter::repeat_with(Mailbox::default).take(count.max(1)).collect())
    }

    /// How many workers there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn open(&self, worker: usize, waker: Waker) -> io::Result<()> {
        self.0[worker].waker.set(waker).map_err(|_| io::ErrorKind::AlreadyExists.into())
    }

    /// Puts a message into a worker's mailbox. Wakes the worker if it was empty: a worker always
    /// takes all there is.
    pub(super) fn send(&self, worker: usize, message: Message) {
        let Some(mailbox) = self.0.get(worker) else { return };
        let mut messages = mailbox.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let was_empty = messages.is_empty();
        messages.push(message);
        drop(messages);
        if was_empty && let Some(waker) = mailbox.waker.get() {
            // The one failure of an eventfd write is a full counter, and then the worker is awake.
            waker.wake().ok();
        }
    }

    /// Takes all messages of a worker.
    pub(super) fn take(&self, worker: usize) -> Vec<Message> {
        let mut messages = self.0[worker].messages.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *messages)
    }

    /// Has a worker give a connection a turn. If that is gone, whoever has its token now gets one.
    pub(crate) fn wake(&self, worker: usize, token: usize) {
        self.send(worker, Message::Wake(token));
    }

    /// Reports what the request that `waiter` names has waited for.
    pub(crate) fn complete_with(&self, waiter: Waiter, completed: Completed) {
        self.send(Parked::worker_of(waiter), Message::Completed(waiter, completed));
    }
}

impl Completions for Mailboxes {
    fn complete(&self, waiter: Waiter, completion: Completion) {
        self.complete_with(waiter, Completed::Bucket(completion));
    }

    fn release_memory(&self) {
        (0..self.count()).for_each(|worker| self.send(worker, Message::ReleaseMemory));
    }
}
