//! Messages for one thread, which sleeps while there are none.

#[cfg(feature = "model")]
use shuttle::sync::Mutex;
#[cfg(not(feature = "model"))]
use std::sync::Mutex;
use std::sync::{OnceLock, PoisonError};

/// What wakes the thread. A ring while it is awake is kept until it would sleep.
pub(super) trait Bell {
    fn ring(&self);
}

/// Messages of any threads for one. Invariant: when the queue is open and not empty, and no call is
/// under way, the bell has been rung since the owner took messages last. So the owner, which takes
/// all there is whenever the bell wakes it, leaves none behind, and few messages ring.
#[derive(Debug)]
pub(super) struct MessageQueue<M, B> {
    messages: Mutex<Vec<M>>,
    /// Set once, under the lock, when the owner begins.
    bell: OnceLock<B>,
}

impl<M, B> Default for MessageQueue<M, B> {
    fn default() -> Self {
        Self { messages: Mutex::new(Vec::new()), bell: OnceLock::new() }
    }
}

impl<M, B: Bell> MessageQueue<M, B> {
    /// The owner hears `bell` from now on; it rings at once if messages have come already. False,
    /// and nothing is done, if the owner hears another.
    pub(super) fn open(&self, bell: B) -> bool {
        let messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        if self.bell.set(bell).is_err() {
            return false;
        }
        if !messages.is_empty() {
            self.ring();
        }
        true
    }

    /// Puts a message at the end.
    pub(super) fn put(&self, message: M) {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let was_empty = messages.is_empty();
        messages.push(message);
        drop(messages);
        // Whoever put the first one rings, or, if there was no bell yet, the one who brings it.
        if was_empty {
            self.ring();
        }
    }

    /// Takes all messages, in order.
    pub(super) fn take_all(&self) -> Vec<M> {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *messages)
    }

    fn ring(&self) {
        if let Some(bell) = self.bell.get() {
            bell.ring();
        }
    }
}

#[cfg(all(test, feature = "model"))]
mod model {
    //! The protocol between senders and owner, explored by a model checker: a lost wake shows as a
    //! deadlock. `cargo test -p server --features model --lib model` runs it.

    use std::sync::Arc;

    use shuttle::scheduler::{DfsScheduler, PctScheduler, RandomScheduler, Scheduler};
    use shuttle::sync::{Condvar, Mutex};
    use shuttle::{Config, Runner, thread};

    use super::{Bell, MessageQueue};

    /// More interleavings than there are with one sender.
    const INTERLEAVINGS_MAX: usize = 100_000;
    /// Of those with more senders, which are too many, this many are drawn by each scheduler.
    const DRAWN: usize = 10_000;
    /// Switches at which the PCT scheduler breaks its own order.
    const PCT_DEPTH: usize = 3;

    #[derive(Clone, Default)]
    struct Eventfd(Arc<(Mutex<bool>, Condvar)>);

    impl Bell for Eventfd {
        fn ring(&self) {
            *self.0.0.lock().unwrap() = true;
            self.0.1.notify_one();
        }
    }

    impl Eventfd {
        fn sleep(&self) {
            let mut has_rung = self.0.0.lock().unwrap();
            while !*has_rung {
                has_rung = self.0.1.wait(has_rung).unwrap();
            }
            *has_rung = false;
        }
    }

    /// Senders and an owner that begins whenever it does, and takes what is sent.
    fn explore(scheduler: impl Scheduler + 'static, senders: usize) -> usize {
        let model = move || {
            let queue = Arc::new(MessageQueue::default());
            let handles: Vec<_> = (0..senders)
                .map(|message| {
                    let queue = Arc::clone(&queue);
                    thread::spawn(move || queue.put(message))
                })
                .collect();
            let bell = Eventfd::default();
            assert!(queue.open(bell.clone()));
            let mut taken = Vec::new();
            while taken.len() < senders {
                bell.sleep();
                taken.append(&mut queue.take_all());
            }
            for handle in handles {
                handle.join().unwrap();
            }
        };
        Runner::new(scheduler, Config::default()).run(model)
    }

    #[test]
    fn no_message_is_left_behind_whenever_the_owner_begins() {
        let explored = explore(DfsScheduler::new(Some(INTERLEAVINGS_MAX), false), 1);
        assert!(explored < INTERLEAVINGS_MAX, "there are more interleavings than that");
        for senders in [2, 3] {
            explore(RandomScheduler::new(DRAWN), senders);
            explore(PctScheduler::new(PCT_DEPTH, DRAWN), senders);
        }
    }
}
