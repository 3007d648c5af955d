//! What the other nodes have: they are asked when somebody wants to know, behind what they said
//! last.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use platform::{Clock, Instant};

use crate::node_view::NodeView;

/// How old what they have said may be.
const AGE_MAX: Duration = Duration::from_secs(10);
/// How long a request waits for what they say now.
const PATIENCE: Duration = Duration::from_millis(500);

/// When the others were asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct OtherNodes {
    /// The end of the last time.
    asked: Arc<Mutex<Option<Instant>>>,
    /// Held by the thread that asks.
    asking: Arc<tokio::sync::Mutex<()>>,
}

impl OtherNodes {
    /// Has them asked, unless they were a moment ago, and waits a little for the answers.
    pub(crate) async fn ask(&self, clock: &Clock, view: &Arc<dyn NodeView>) {
        let last = *self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let is_fresh = last.is_some_and(|last| clock.now().since(last) < AGE_MAX);
        if is_fresh || view.cluster_map().nodes.len() < 2 {
            return;
        }
        // Whoever finds somebody asking waits for the same answers.
        if let Ok(asking) = Arc::clone(&self.asking).try_lock_owned() {
            let (asked, clock, view) = (Arc::clone(&self.asked), clock.clone(), Arc::clone(view));
            let ask = move || {
                view.ask_others();
                *asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(clock.now());
                drop(asking);
            };
            if let Err(error) = platform::threads::spawn("AskOthers", ask) {
                tracing::warn!(%error, "no thread can be started that asks other nodes");
                return;
            }
        }
        drop(tokio::time::timeout(PATIENCE, self.asking.lock()).await);
    }
}
