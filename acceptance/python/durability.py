"""Cases: durable writes, which this server refuses, and what a restarted node still knows."""

import time
from datetime import timedelta

from cases import expect, expect_equal, expect_error, wait_until
from couchbase.durability import DurabilityLevel, ServerDurability
from couchbase.exceptions import (RequestCanceledException, TimeoutException,
                                  UnsupportedOperation)
from couchbase.options import IncrementOptions, RemoveOptions, SignedInt64, UpsertOptions
from couchbase.transcoder import RawBinaryTranscoder

COUNT = 500
AT_ONCE_SECONDS = 1


def declare(cases):
    """In the order of running."""
    for function in (durable_writes_are_refused, restart_keeps_everything,
                     restart_goes_on_in_the_same_branch):
        cases.case(function)


def durable_writes_are_refused(sdk):
    key, before = sdk.stored({"n": 1})
    new = sdk.key()
    for level in (DurabilityLevel.MAJORITY, DurabilityLevel.MAJORITY_AND_PERSIST_TO_ACTIVE,
                  DurabilityLevel.PERSIST_TO_MAJORITY):
        durability = ServerDurability(level)
        for target in (key, new):
            started = time.monotonic()
            expect_error(UnsupportedOperation, sdk.collection.upsert, target, {"n": 2},
                         UpsertOptions(durability=durability))
            expect(time.monotonic() - started < AT_ONCE_SECONDS, f"{level} is refused at once")
        expect_error(UnsupportedOperation, sdk.collection.remove, key,
                     RemoveOptions(durability=durability))
    expect(sdk.is_gone(new), "nothing new is stored")
    expect_equal(sdk.get_json(key), {"n": 1}, "value")
    expect_equal(sdk.collection.get(key).cas, before.cas, "CAS")


def restart_keeps_everything(sdk):
    documents = {f"restart-{number}": {"n": number} for number in range(COUNT)}
    stored = sdk.collection.upsert_multi(documents)
    expect(stored.all_ok, "every document is stored")
    removed, counter, expiring, raw = (sdk.key(name) for name in ("gone", "count", "ttl", "raw"))
    sdk.collection.upsert(removed, {})
    sdk.collection.remove(removed)
    sdk.collection.binary().increment(counter, IncrementOptions(initial=SignedInt64(41)))
    sdk.collection.upsert(expiring, {}, UpsertOptions(expiry=timedelta(seconds=2)))
    binary = RawBinaryTranscoder()
    sdk.collection.upsert(raw, bytes(range(256)) * 4096, UpsertOptions(transcoder=binary))

    sdk.node.restart()

    wait_until(lambda: answers(sdk), 15, "the same SDK object works again")
    for key, result in sdk.collection.get_multi(list(documents)).results.items():
        expect_equal(result.content_as[dict], documents.pop(key), f"value of {key}")
        expect_equal(result.cas, stored.results[key].cas, f"CAS of {key}")
    expect_equal(documents, {}, "documents that were lost")
    expect(sdk.is_gone(removed), "a removed document stays removed")
    expect_equal(sdk.collection.binary().increment(counter).content, 42, "the counter goes on")
    expect_equal(sdk.collection.get(raw, transcoder=binary).value, bytes(range(256)) * 4096,
                 "value of 1 MiB")
    wait_until(lambda: sdk.is_gone(expiring), 4, "the expiry is kept")


def answers(sdk):
    """Whether an operation succeeds within a second."""
    try:
        sdk.collection.exists("restart-0", timeout=timedelta(seconds=1))
    except (TimeoutException, RequestCanceledException):
        return False
    return True


def restart_goes_on_in_the_same_branch(sdk):
    key, before = sdk.stored({"n": 1})
    sdk.node.restart()
    after = sdk.collection.upsert(key, {"n": 2}, UpsertOptions(timeout=timedelta(seconds=10)))
    expect(after.cas > before.cas, "the CAS grows over a restart")
    expect_equal(after.mutation_token().partition_uuid, before.mutation_token().partition_uuid,
                 "an orderly stop begins no new branch")
    expect(after.mutation_token().sequence_number > before.mutation_token().sequence_number,
           "seqnos go on after a restart")
