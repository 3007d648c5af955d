//! How long the allocator keeps what was freed.
//!
//! What is kept is found again by what is written next, without a fault for each of its pages. But
//! it is counted nowhere: a flood of large documents through a small bucket had the process keep
//! more than twice the bucket's quota. So it is kept while the process has room, and not beyond.

use std::ffi::c_long;
use std::sync::OnceLock;
use std::time::Duration;

use libmimalloc_sys::mi_option_t;

use crate::accounts::{self, Totals};
use crate::process;

/// Freed memory is kept for this long before it goes back to the system, so that what is written
/// next finds it: giving it back sooner costs a page fault for each of its pages, which was two
/// thirds of what making a document took.
pub(super) const KEPT_MS: c_long = 1000;
/// mimalloc 2, `mi_option_e`: milliseconds until parts of a segment go back.
pub(super) const PURGE_DELAY: mi_option_t = 15;
/// mimalloc 2, `mi_option_e`: whole segments are kept this many times as long.
pub(super) const ARENA_PURGE_MULTIPLIER: mi_option_t = 24;

/// Bytes that the process may have beyond what is in use where the buckets' quotas leave no room.
const BEYOND_USED_BYTES: u64 = 128 << 20;

/// What `PURGE_DELAY` was at first: ours, or the environment's.
static DELAY_MS: OnceLock<c_long> = OnceLock::new();

/// Sets how long the allocator keeps freed memory, where `MIMALLOC_PURGE_DELAY` (milliseconds) does
/// not. For the beginning of `main`, before other threads allocate.
pub fn set_up() {
    // SAFETY: the options exist, and the allocator reads them as plain numbers; that another thread
    // reads one of them meanwhile would do no harm but to find the old number.
    let delay_ms = unsafe {
        libmimalloc_sys::mi_option_set_default(PURGE_DELAY, KEPT_MS);
        libmimalloc_sys::mi_option_set_default(ARENA_PURGE_MULTIPLIER, 1);
        libmimalloc_sys::mi_option_get(PURGE_DELAY)
    };
    DELAY_MS.get_or_init(|| delay_ms);
}

/// Looks at what the process has, and decides whether what is freed from now on is kept or goes
/// back at once. For background threads that have freed something, and do so again and again: takes
/// microseconds. Does nothing where [`set_up`] was not called.
pub fn bound_kept() {
    let Some(&delay_ms) = DELAY_MS.get() else { return };
    let has_room = has_room(process::resident_bytes(), accounts::totals());
    let wanted_ms = if has_room { delay_ms } else { 0 };
    // SAFETY: as in `set_up`.
    unsafe {
        if libmimalloc_sys::mi_option_get(PURGE_DELAY) != wanted_ms {
            libmimalloc_sys::mi_option_set(PURGE_DELAY, wanted_ms);
        }
    }
}

/// For how long what is freed from now on is kept; `None` if it never goes back.
pub(crate) fn kept_duration() -> Option<Duration> {
    // SAFETY: as in `set_up`.
    let delay_ms = unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
    u64::try_from(delay_ms).ok().map(Duration::from_millis)
}

/// Whether a process of so many bytes may keep what is freed.
fn has_room(resident_bytes: u64, totals: Totals) -> bool {
    resident_bytes <= totals.quota_bytes.max(totals.used_bytes + BEYOND_USED_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_memory_is_kept_for_a_second() {
        // The allocator numbers its options; by their defaults these are the ones that are meant.
        // SAFETY: reads a number.
        let option = |number| unsafe { libmimalloc_sys::mi_option_get(number) };
        assert_eq!((option(PURGE_DELAY), option(ARENA_PURGE_MULTIPLIER)), (10, 10));
        set_up();
        assert_eq!((option(PURGE_DELAY), option(ARENA_PURGE_MULTIPLIER)), (KEPT_MS, 1));
        let account = accounts::Account::open();
        account.set_quota_bytes(1 << 50);
        bound_kept();
        assert_eq!(option(PURGE_DELAY), KEPT_MS, "there is room");
    }

    #[test]
    fn there_is_room_up_to_the_quotas_and_a_little_beyond_what_is_used() {
        const MIB: u64 = 1 << 20;
        for (resident, used, quota, expected) in [
            (0, 0, 0, true),
            (256, 10, 256, true),
            (257, 10, 256, false),
            (328, 200, 256, true),
            (329, 200, 256, false),
            (128, 0, 0, true),
            (129, 0, 0, false),
        ] {
            let totals = Totals { used_bytes: used * MIB, quota_bytes: quota * MIB };
            assert_eq!(has_room(resident * MIB, totals), expected, "{resident} {used} {quota}");
        }
    }
}
