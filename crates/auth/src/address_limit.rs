//! Addresses from which too many logins fail.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use platform::network::counted_address;
use platform::{Instant, Seldom};

/// Addresses that are remembered.
const ADDRESSES_MAX: usize = 10_000;
const MINUTE_NS: u64 = 60 * 1_000_000_000;
/// Log lines about addresses that are refused come at most as often.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Counts failed logins by address, of all doors of a node.
///
/// Its lock is taken for logins alone, and not at all where nothing is limited.
#[derive(Debug)]
pub(crate) struct AddressLimit {
    /// Logins that may fail in a minute; `None` for any number.
    failures_per_minute_max: Option<u32>,
    failures: Mutex<BTreeMap<IpAddr, Failures>>,
    log: Seldom,
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    minute: u64,
    count: u32,
}

impl AddressLimit {
    pub(crate) fn new(failures_per_minute_max: Option<u32>) -> Self {
        let (failures, log) = (Mutex::default(), Seldom::every(LOG_INTERVAL));
        Self { failures_per_minute_max, failures, log }
    }

    /// How long logins from there are refused without being looked at, if they are: for the rest of
    /// this minute.
    pub(crate) fn refusal(&self, address: IpAddr, now: Instant) -> Option<Duration> {
        let most = self.failures_per_minute_max?;
        // The minute is compared here: entries of earlier ones stay until there is no room.
        let failures = self.lock().get(&counted_address(address)).copied()?;
        let is_refused = failures.minute == minute_of(now) && failures.count >= most;
        is_refused.then(|| Duration::from_nanos(MINUTE_NS - now.0 % MINUTE_NS))
    }

    /// A login from there has failed.
    pub(crate) fn note_failure(&self, address: IpAddr, now: Instant) {
        let Some(most) = self.failures_per_minute_max else { return };
        let (minute, mut failures) = (minute_of(now), self.lock());
        let network = counted_address(address);
        if failures.len() >= ADDRESSES_MAX && !failures.contains_key(&network) {
            failures.retain(|_, failures| failures.minute == minute);
            // Whoever has that many addresses is not kept out by counting them.
            if failures.len() >= ADDRESSES_MAX {
                return;
            }
        }
        let entry = failures.entry(network).or_insert(Failures { minute, count: 0 });
        if entry.minute != minute {
            *entry = Failures { minute, count: 0 };
        }
        entry.count = entry.count.saturating_add(1);
        let is_refused_now = entry.count == most;
        drop(failures);
        if is_refused_now && let Some(unlogged) = self.log.passes(now) {
            tracing::warn!(
                address = %network,
                unlogged,
                "too many logins from an address have failed (--failed-logins-max): others from \
                 there are refused for the rest of the minute"
            );
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<IpAddr, Failures>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn minute_of(now: Instant) -> u64 {
    now.0 / MINUTE_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_refused_for_the_rest_of_the_minute_and_others_are_not() {
        let limit = AddressLimit::new(Some(2));
        let address = |text: &str| text.parse().unwrap();
        let now = |seconds: u64| Instant(seconds * 1_000_000_000);
        let seconds = |text: &str, at: u64| {
            limit.refusal(address(text), now(at)).map(|refusal| refusal.as_secs())
        };
        for text in ["10.0.0.1", "2001:db8::1"] {
            limit.note_failure(address(text), now(1));
            assert_eq!(seconds(text, 1), None);
            limit.note_failure(address(text), now(2));
            assert_eq!([2, 59, 60].map(|at| seconds(text, at)), [Some(58), Some(1), None]);
        }
        assert_eq!(seconds("10.0.0.2", 2), None);
        assert_eq!(seconds("::ffff:10.0.0.1", 2), Some(58), "the same address");
        assert_eq!(seconds("2001:db8::2", 2), Some(58), "the same network");
        assert_eq!(seconds("2001:db8:0:1::1", 2), None);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_nothing_is_where_nothing_is_limited() {
        let limit = AddressLimit::new(Some(1));
        for number in 0..=u32::try_from(ADDRESSES_MAX).unwrap() {
            limit.note_failure(IpAddr::from(number.to_be_bytes()), Instant(0));
        }
        assert_eq!(limit.lock().len(), ADDRESSES_MAX);
        limit.note_failure(IpAddr::from([255; 4]), Instant(MINUTE_NS));
        assert_eq!(limit.lock().len(), 1, "of minutes before nothing is left");
        let none = AddressLimit::new(None);
        none.note_failure(IpAddr::from([1; 4]), Instant(0));
        assert!(none.lock().is_empty() && none.refusal(IpAddr::from([1; 4]), Instant(0)).is_none());
    }
}
