//! Logins at the REST port that failed.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use platform::redaction::UserData;
use platform::{Clock, Instant, Seldom};

use crate::metric::Metric;

/// Log lines about logins that failed come at most as often.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Logins that failed: all are counted, some are logged.
#[derive(Debug)]
pub(crate) struct FailedLogins {
    clock: Clock,
    count: AtomicU64,
    log: Seldom,
}

impl Default for FailedLogins {
    fn default() -> Self {
        Self { clock: Clock::real(), count: AtomicU64::new(0), log: Seldom::every(LOG_INTERVAL) }
    }
}

impl FailedLogins {
    /// The time by which they are counted.
    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    pub(crate) fn note(&self, user: &str, address: Option<IpAddr>) {
        self.count.fetch_add(1, Ordering::Relaxed);
        if let Some(unlogged) = self.log.passes(self.clock.now()) {
            let (user, peer) = (UserData(user), address.map(tracing::field::display));
            tracing::warn!(%user, peer, unlogged, "a login at the REST port failed");
        }
    }

    pub(crate) fn metric(&self) -> Metric {
        let count = self.count.load(Ordering::Relaxed) as f64;
        Metric::counter("cm_auth_errors_total", "Logins at the REST port that failed", count)
    }
}
