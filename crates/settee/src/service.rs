//! What the service manager hears that has started the process, where there is one: that the node
//! serves, what it does, that it lives, and that a start or a stop needs more time.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use node::Node;
use platform::process::{Termination, file_traffic_bytes};
use platform::service_manager::{ServiceNews, is_listening, tell, watchdog_patience};

/// How often is looked whether a start or a stop goes on.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// What it is given then, from that moment on.
const MORE_TIME: Duration = Duration::from_secs(60);
/// What has to be read and written in between, bytes. Looking takes a few itself.
const TRAFFIC_BYTES_MIN: u64 = 4096;
/// Times that a node is looked at while a watchdog waits.
const LOOKS_OF_WATCHDOG: u32 = 3;

/// Tells the service manager, if there is one.
pub(crate) fn report(news: ServiceNews<'_>) {
    if let Err(error) = tell(news) {
        tracing::warn!(%error, ?news, "the service manager does not hear of the node");
    }
}

/// Waits for the signal that ends the node, and has a watchdog wait as long as the node lives: as
/// long as each of its front-end threads answers.
pub(crate) fn watch_until_signal(node: &Node, termination: &Termination) -> &'static str {
    let Some(patience) = watchdog_patience() else { return termination.wait() };
    let interval = patience / LOOKS_OF_WATCHDOG;
    loop {
        // A look takes an interval at most: the watchdog hears of it in two.
        if node.answers_within(interval) {
            report(ServiceNews::Alive);
        } else {
            tracing::error!(
                patience_ms = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX),
                "a front-end thread does not answer: unless it does, the service manager ends \
                 this process"
            );
        }
        if let Some(signal) = termination.wait_for(interval) {
            return signal;
        }
    }
}

/// As long as this value lives, the service manager gives a start or a stop more time that goes on:
/// that reads or writes files. What hangs is ended by the manager's own limits.
pub(crate) struct MoreTime {
    /// `None` where nobody listens.
    looking: Option<(Sender<()>, JoinHandle<()>)>,
}

impl MoreTime {
    /// Begins to look. Without a thread for it nothing is looked at: neither a start nor a stop is
    /// kept from going on.
    pub(crate) fn begin() -> Self {
        if !is_listening() {
            return Self { looking: None };
        }
        let (end, ended) = channel();
        match platform::threads::spawn("MoreTime", move || look_until(&ended)) {
            Ok(thread) => Self { looking: Some((end, thread)) },
            Err(error) => {
                tracing::warn!(%error, "the service manager is not asked for more time");
                Self { looking: None }
            }
        }
    }
}

impl Drop for MoreTime {
    fn drop(&mut self) {
        let Some((end, thread)) = self.looking.take() else { return };
        drop(end);
        if thread.join().is_err() {
            tracing::error!("the thread that asks for more time has panicked");
        }
    }
}

fn look_until(ended: &Receiver<()>) {
    let mut before = file_traffic_bytes();
    while ended.recv_timeout(LOOK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
        let now = file_traffic_bytes();
        if now.saturating_sub(before) >= TRAFFIC_BYTES_MIN {
            report(ServiceNews::NeedsTime(MORE_TIME));
        }
        before = now;
    }
}
