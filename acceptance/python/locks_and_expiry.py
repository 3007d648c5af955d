"""Cases: locking documents, and documents that expire."""

import time
from datetime import timedelta

from cases import expect, expect_equal, expect_error, wait_until
from couchbase.exceptions import (CasMismatchException, DocumentLockedException,
                                  DocumentNotFoundException, DocumentNotLockedException,
                                  TimeoutException)
from couchbase.options import GetAndLockOptions, ReplaceOptions, UpsertOptions

LOCK = timedelta(seconds=15)

# The SDK repeats what met a lock until its time is over, then tells of one or the other.
LOCKED = (DocumentLockedException, TimeoutException)
BRIEF = timedelta(milliseconds=500)


def declare(cases):
    """In the order of running."""
    for function in (get_and_lock, locked_write_is_refused, locked_twice_is_refused,
                     locked_is_readable, write_with_lock_cas_unlocks, unlock,
                     unlock_with_wrong_cas, unlock_not_locked, unlock_missing, lock_ends,
                     touch, touch_missing, get_and_touch, expiry, expiry_is_removed_by_upsert,
                     preserve_expiry, expired_can_be_inserted):
        cases.case(function)


def locked(sdk):
    """A new locked document: its key and the lock's CAS."""
    key, stored = sdk.stored({"n": 1})
    result = sdk.collection.get_and_lock(key, LOCK)
    expect_equal(result.content_as[dict], {"n": 1}, "value read with the lock")
    expect(result.cas != stored.cas, "a lock has a CAS of its own")
    return key, result.cas


def get_and_lock(sdk):
    locked(sdk)
    expect_error(DocumentNotFoundException, sdk.collection.get_and_lock, sdk.key(), LOCK)


def locked_write_is_refused(sdk):
    key, _ = locked(sdk)
    expect_error(LOCKED, sdk.collection.upsert, key, {"n": 2}, UpsertOptions(timeout=BRIEF))
    expect_error(LOCKED, sdk.collection.remove, key, timeout=BRIEF)
    expect_equal(sdk.get_json(key), {"n": 1}, "value after the refusals")


def locked_twice_is_refused(sdk):
    key, _ = locked(sdk)
    expect_error(LOCKED, sdk.collection.get_and_lock, key, LOCK, GetAndLockOptions(timeout=BRIEF))


def locked_is_readable(sdk):
    key, cas = locked(sdk)
    result = sdk.collection.get(key)
    expect_equal(result.content_as[dict], {"n": 1}, "value of a locked document")
    expect(result.cas != cas, "a read does not give away the lock")


def write_with_lock_cas_unlocks(sdk):
    key, cas = locked(sdk)
    sdk.collection.replace(key, {"n": 2}, ReplaceOptions(cas=cas))
    sdk.collection.upsert(key, {"n": 3})
    expect_equal(sdk.get_json(key), {"n": 3}, "value")


def unlock(sdk):
    key, cas = locked(sdk)
    sdk.collection.unlock(key, cas)
    sdk.collection.upsert(key, {"n": 2})
    expect_equal(sdk.get_json(key), {"n": 2}, "value")


def unlock_with_wrong_cas(sdk):
    key, cas = locked(sdk)
    expect_error((CasMismatchException, *LOCKED),
                 sdk.collection.unlock, key, cas + 1, timeout=BRIEF)
    sdk.collection.unlock(key, cas)


def unlock_not_locked(sdk):
    key, stored = sdk.stored({"n": 1})
    expect_error(DocumentNotLockedException, sdk.collection.unlock, key, stored.cas)


def unlock_missing(sdk):
    expect_error(DocumentNotFoundException, sdk.collection.unlock, sdk.key(), 1)


def lock_ends(sdk):
    key, stored = sdk.stored({"n": 1})
    sdk.collection.get_and_lock(key, timedelta(seconds=1))
    wait_until(lambda: sdk.collection.get(key).cas == stored.cas, 4, "the lock ends by itself")
    sdk.collection.upsert(key, {"n": 2})


def lives_between(sdk, key, started, low, high):
    """The document, which has just been stored, must be there until `low` seconds after `started`,
    and gone `high` seconds from now.

    Expiry is counted in whole seconds of the clock, so a document may live a second less.
    """
    stored = time.monotonic()
    while True:
        is_gone = sdk.is_gone(key)
        if time.monotonic() >= started + low:
            break
        expect(not is_gone, f"the document lives for at least {low} s")
        time.sleep(0.05)
    wait_until(lambda: sdk.is_gone(key), stored + high - time.monotonic(), f"{key} expires")


def touch(sdk):
    key, stored = sdk.stored({"n": 1})
    started = time.monotonic()
    touched = sdk.collection.touch(key, timedelta(seconds=2))
    expect(touched.cas not in (0, stored.cas), "a new expiry is a mutation")
    lives_between(sdk, key, started, 0.9, 4)


def touch_missing(sdk):
    expect_error(DocumentNotFoundException, sdk.collection.touch, sdk.key(), LOCK)


def get_and_touch(sdk):
    key, _ = sdk.stored({"n": 1})
    started = time.monotonic()
    result = sdk.collection.get_and_touch(key, timedelta(seconds=2))
    expect_equal(result.content_as[dict], {"n": 1}, "value")
    lives_between(sdk, key, started, 0.9, 4)
    expect_error(DocumentNotFoundException, sdk.collection.get_and_touch, key, LOCK)


def expiry(sdk):
    key, _ = sdk.stored({"n": 1}, expiry=timedelta(seconds=2))
    lives_between(sdk, key, time.monotonic(), 0.9, 4)
    expect_error(DocumentNotFoundException, sdk.collection.get, key)
    expect_error(DocumentNotFoundException, sdk.collection.replace, key, {"n": 2})
    expect_error(DocumentNotFoundException, sdk.collection.remove, key)


def expiry_is_removed_by_upsert(sdk):
    brief, _ = sdk.stored({"n": 1}, expiry=timedelta(seconds=1))
    lasting, _ = sdk.stored({"n": 1}, expiry=timedelta(seconds=1))
    sdk.collection.upsert(lasting, {"n": 2})
    wait_until(lambda: sdk.is_gone(brief), 4, "the other document expires")
    expect_equal(sdk.get_json(lasting), {"n": 2}, "value of the lasting document")


def preserve_expiry(sdk):
    started = time.monotonic()
    key, _ = sdk.stored({"n": 1}, expiry=timedelta(seconds=2))
    sdk.collection.upsert(key, {"n": 2}, UpsertOptions(preserve_expiry=True))
    expect_equal(sdk.get_json(key), {"n": 2}, "value")
    lives_between(sdk, key, started, 0.9, 4)


def expired_can_be_inserted(sdk):
    key, _ = sdk.stored({"n": 1}, expiry=timedelta(seconds=1))
    wait_until(lambda: sdk.is_gone(key), 4, "the document expires")
    sdk.collection.insert(key, {"n": 2})
    expect_equal(sdk.get_json(key), {"n": 2}, "value")
