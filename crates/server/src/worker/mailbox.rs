//! What other threads tell a worker, and the mailboxes of all of them.

use std::io;
use std::sync::{Arc, mpsc};

use bucket::{Completion, Completions};
use platform::network::{Stream, Waker};
use vbucket::Waiter;

use super::message_queue::{Bell, MessageQueue};
use crate::buckets::BucketPart;
use crate::completed::Completed;
use crate::connection::Parked;
use crate::entrance::Entrance;
use crate::strangers::Stranger;

/// A message for a worker.
pub(super) enum Message {
    /// A connection that is its own from now on.
    Accepted(Stream, Entrance),
    /// What a parked request has waited for.
    Completed(Waiter, Completed),
    /// A connection has something to send that nobody has asked for just now.
    Wake(usize),
    /// More may wait at a door than was accepted in one go.
    AcceptMore(Entrance),
    /// A connection without a login makes room for another, if it still is one.
    GiveWay(Stranger),
    /// Its address has more strangers than it may.
    LeaveCrowd(Stranger),
    /// Connections that have this bucket lose it.
    BucketGone(Arc<BucketPart>),
    /// There is a newer map of the cluster.
    MapChanged,
    /// Give back memory that others have freed.
    ReleaseMemory,
    /// Say that this was taken up, if anybody still waits for it.
    Answer(mpsc::Sender<()>),
    /// Stop: close all connections and end.
    Stop,
}

/// The mailboxes of all workers. A handle: clones lead to the same workers.
#[derive(Clone)]
pub struct Mailboxes(Arc<[MessageQueue<Message, Waker>]>);

impl Bell for Waker {
    fn ring(&self) {
        self.wake();
    }
}

impl Mailboxes {
    /// Mailboxes for `count` workers that do not run yet.
    pub fn for_workers(count: usize) -> Self {
        Self(std::iter::repeat_with(MessageQueue::default).take(count.max(1)).collect())
    }

    /// How many workers there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// From now on `waker` wakes the worker. What has been sent to it before does so at once.
    pub(super) fn open(&self, worker: usize, waker: Waker) -> io::Result<()> {
        if self.0[worker].open(waker) { Ok(()) } else { Err(io::ErrorKind::AlreadyExists.into()) }
    }

    /// Puts a message into a worker's mailbox, and wakes the worker if it does not know that there
    /// are any.
    pub(super) fn send(&self, worker: usize, message: Message) {
        if let Some(queue) = self.0.get(worker) {
            queue.put(message);
        }
    }

    /// Takes all messages of a worker.
    pub(super) fn take(&self, worker: usize) -> Vec<Message> {
        self.0[worker].take_all()
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
