//! Waiting for time to pass.

use std::time::Duration;

use platform::Clock;

/// Returns when so much time has passed.
pub(crate) fn pause(clock: &Clock, time: Duration) {
    let end = clock.now().after(time);
    loop {
        let left = end.since(clock.now());
        if left.is_zero() {
            return;
        }
        // It may return earlier.
        std::thread::park_timeout(left);
    }
}
