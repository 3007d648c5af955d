//! What users with limits have taken of the node in this minute.
//!
//! A user without limits has no meter: its connections carry `None`, and nothing is counted.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use auth::UserLimits;
use platform::Instant;
use protocol::Status;

const MINUTE_NS: u64 = 60 * 1_000_000_000;
const MIB: u64 = 1 << 20;

/// The meters of all users with limits that are connected, or were in this minute: who comes again
/// has taken what it had. By name. The lock is taken when such a user logs in, and after users have
/// changed; never for a request.
#[derive(Debug, Default)]
pub(crate) struct UserMeters(Mutex<BTreeMap<String, Arc<Meter>>>);

/// What all connections of one user have taken. Counters of a minute that begins are set to zero by
/// whoever notices first; what others count in that moment may be lost.
#[derive(Debug, Default)]
struct Meter {
    connections: AtomicU32,
    minute: AtomicU64,
    requests: AtomicU64,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
}

/// A connection of a user with limits.
#[derive(Debug)]
pub(crate) struct Metered {
    user: String,
    limits: UserLimits,
    meter: Arc<Meter>,
}

/// The user has as many connections as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManyConnections;

impl UserMeters {
    /// One more connection of a user with limits.
    ///
    /// # Errors
    /// It has too many.
    pub(crate) fn enter(
        &self,
        user: &str,
        limits: UserLimits,
        now: Instant,
    ) -> Result<Metered, TooManyConnections> {
        let has_place = |count| limits.connections_max.is_none_or(|most| count < most);
        self.enter_where(user, limits, now, has_place).ok_or(TooManyConnections)
    }

    /// A connection that is there, of a user who has limits from now on.
    pub(crate) fn adopt(&self, user: &str, limits: UserLimits, now: Instant) -> Metered {
        self.enter_where(user, limits, now, |_| true).expect("there is a place for everybody")
    }

    fn enter_where(
        &self,
        user: &str,
        limits: UserLimits,
        now: Instant,
        has_place: impl FnOnce(u32) -> bool,
    ) -> Option<Metered> {
        let mut meters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        meters.retain(|_, meter| meter.is_needed(now));
        let meter = meters.get(user).map_or_else(Arc::default, Arc::clone);
        // Counted up under the lock alone, so that the last place is given once.
        if !has_place(meter.connections.load(Ordering::Relaxed)) {
            return None;
        }
        meter.connections.fetch_add(1, Ordering::Relaxed);
        meters.insert(user.to_owned(), Arc::clone(&meter));
        Some(Metered { user: user.to_owned(), limits, meter })
    }
}

impl Meter {
    /// Whether somebody is connected, or may come again before the minute is over in which it was
    /// used last.
    fn is_needed(&self, now: Instant) -> bool {
        self.connections.load(Ordering::Relaxed) > 0
            || self.minute.load(Ordering::Relaxed) >= minute_of(now)
    }
}

impl Metered {
    /// Whether it is this user's.
    pub(crate) fn is_of(&self, user: &str) -> bool {
        self.user == user
    }

    /// From now on the user has these limits. Connections that there are stay.
    pub(crate) fn set_limits(&mut self, limits: UserLimits) {
        self.limits = limits;
    }

    /// Counts a request of so many bytes, unless the user has taken what it may in this minute: the
    /// status that says which limit it is, and why in words.
    pub(crate) fn admit(&self, bytes: usize, now: Instant) -> Result<(), (Status, &'static str)> {
        self.begin_minute(now);
        let meter = &self.meter;
        let is_over = |taken: &AtomicU64, most: Option<u32>, unit: u64| {
            most.is_some_and(|most| taken.load(Ordering::Relaxed) >= u64::from(most) * unit)
        };
        let UserLimits {
            requests_per_minute_max: requests,
            ingress_mib_per_minute_max: ingress,
            egress_mib_per_minute_max: egress,
            ..
        } = self.limits;
        if is_over(&meter.requests, requests, 1) {
            let why = "the user's requests of this minute are used up; try again in the next one";
            return Err((Status::RateLimitedMaxCommands, why));
        }
        if is_over(&meter.received_bytes, ingress, MIB) {
            let why = "the user may send no more in this minute; try again in the next one";
            return Err((Status::RateLimitedNetworkIngress, why));
        }
        if is_over(&meter.sent_bytes, egress, MIB) {
            let why = "the user may be sent no more in this minute; try again in the next one";
            return Err((Status::RateLimitedNetworkEgress, why));
        }
        meter.requests.fetch_add(1, Ordering::Relaxed);
        meter.received_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(())
    }

    /// So many bytes were sent.
    pub(crate) fn note_sent(&self, bytes: usize, now: Instant) {
        self.begin_minute(now);
        self.meter.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn begin_minute(&self, now: Instant) {
        let (meter, minute) = (&self.meter, minute_of(now));
        let before = meter.minute.load(Ordering::Relaxed);
        if before >= minute {
            return;
        }
        let order = Ordering::Relaxed;
        if meter.minute.compare_exchange(before, minute, order, order).is_ok() {
            for counter in [&meter.requests, &meter.received_bytes, &meter.sent_bytes] {
                counter.store(0, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for Metered {
    fn drop(&mut self) {
        let before = self.meter.connections.fetch_sub(1, Ordering::Relaxed);
        assert!(before > 0, "a connection that goes has come");
    }
}

fn minute_of(now: Instant) -> u64 {
    now.0 / MINUTE_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant(5 * MINUTE_NS);
    const NEXT: Instant = Instant(6 * MINUTE_NS);
    const LATER: Instant = Instant(7 * MINUTE_NS);

    fn limits(json: &str) -> UserLimits {
        UserLimits::from_json(&format!("{{\"kv\":{json}}}")).unwrap()
    }

    #[test]
    fn what_a_user_takes_counts_on_all_its_connections_until_the_minute_is_over() {
        let mib = 1 << 20;
        for (json, sent_bytes, admitted, status) in [
            (r#"{"num_ops_per_min":3}"#, 0, 3, Status::RateLimitedMaxCommands),
            (r#"{"ingress_mib_per_min":2}"#, 0, 2, Status::RateLimitedNetworkIngress),
            (r#"{"egress_mib_per_min":5}"#, mib, 5, Status::RateLimitedNetworkEgress),
        ] {
            let meters = UserMeters::default();
            let both = [(); 2].map(|()| meters.enter("bob", limits(json), NOW).unwrap());
            let other = meters.enter("eve", limits(json), NOW).unwrap();
            for turn in 0..admitted {
                let one = &both[turn % 2];
                one.admit(mib, NOW).unwrap();
                one.note_sent(sent_bytes, NOW);
            }
            for one in &both {
                assert_eq!(one.admit(1, NOW).unwrap_err().0, status, "{json}");
            }
            assert!(other.admit(1, NOW).is_ok(), "others have their own");
            assert!(both[0].admit(1, NEXT).is_ok(), "{json}");
        }
    }

    #[test]
    fn connections_are_counted_until_they_go() {
        let meters = UserMeters::default();
        let two = limits(r#"{"num_connections":2}"#);
        let first = meters.enter("bob", two, NOW).unwrap();
        let second = meters.enter("bob", two, NOW).unwrap();
        assert_eq!(meters.enter("bob", two, NOW).unwrap_err(), TooManyConnections);
        assert!(meters.enter("eve", two, NOW).is_ok());
        assert!(meters.adopt("bob", two, NOW).is_of("bob"), "who is there stays");
        drop(first);
        let mut third = meters.enter("bob", two, NOW).unwrap();
        third.set_limits(limits(r#"{"num_ops_per_min":1}"#));
        assert!(third.admit(1, NOW).is_ok() && third.admit(1, NOW).is_err());
        assert!(second.is_of("bob") && second.admit(1, NOW).is_ok(), "its limits are older");
        drop((second, third));
        let again = meters.enter("bob", limits(r#"{"num_ops_per_min":2}"#), NOW).unwrap();
        assert!(again.admit(1, NOW).is_err(), "who comes again has taken what it had");
        assert!(again.admit(1, NEXT).is_ok());
        drop(again);
        let known = |now| {
            meters.enter("eve", two, now).unwrap();
            meters.0.lock().unwrap().len()
        };
        assert_eq!(
            [NEXT, LATER].map(known),
            [2, 1],
            "who is gone leaves nothing behind its minute"
        );
    }
}
