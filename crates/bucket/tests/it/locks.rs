//! How long a lock holds.

use std::time::Duration;

use bucket::Refused;
use document::limits::{LOCK_SECONDS_DEFAULT, LOCK_SECONDS_MAX};

use crate::support::{Machine, VBID, answered, key};

#[test]
fn a_lock_holds_as_long_as_asked_or_the_default() {
    assert_eq!((LOCK_SECONDS_DEFAULT, LOCK_SECONDS_MAX), (15, 30));
    for (asked, holds) in [(0, 15), (1, 1), (15, 15), (29, 29), (30, 30), (31, 15), (u32::MAX, 15)]
    {
        let mut machine = Machine::new();
        machine.set(VBID, "key", b"value").unwrap();
        let locked = machine.bucket.lock(&mut machine.session, VBID, key("key").as_key(), asked);
        let locked = answered(locked).unwrap();
        let just_before = Duration::from_secs(holds) - Duration::from_millis(1);
        machine.advance(just_before);
        let refused = machine.set(VBID, "key", b"refused").unwrap_err();
        assert_eq!(refused, Refused::Locked, "{asked} s");
        machine.advance(Duration::from_millis(1));
        let late =
            machine.bucket.unlock(&mut machine.session, VBID, key("key").as_key(), locked.cas);
        assert_eq!(late, Err(Refused::NotLocked), "{asked} s");
        machine.set(VBID, "key", b"let in").unwrap();
    }
}
