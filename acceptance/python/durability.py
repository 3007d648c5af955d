"""Cases: durable writes on one node, and what a restarted node still knows."""

import time
from datetime import timedelta

from cases import expect, expect_equal, expect_error, wait_until
from couchbase.durability import DurabilityLevel, ServerDurability
from couchbase.exceptions import (CasMismatchException, DocumentExistsException,
                                  RequestCanceledException, TimeoutException)
from couchbase.options import (IncrementOptions, InsertOptions, RemoveOptions, ReplaceOptions,
                               SignedInt64, UpsertOptions)
from couchbase.transcoder import RawBinaryTranscoder

COUNT = 500


def declare(cases):
    """In the order of running."""
    for function in (durable_writes_are_committed, restart_keeps_everything,
                     restart_goes_on_in_the_same_branch):
        cases.case(function)


def durable_writes_are_committed(sdk):
    for level in (DurabilityLevel.MAJORITY, DurabilityLevel.MAJORITY_AND_PERSIST_TO_ACTIVE,
                  DurabilityLevel.PERSIST_TO_MAJORITY):
        durability = ServerDurability(level)
        key, count = sdk.key("document"), sdk.key("count")
        collection = sdk.collection
        collection.insert(key, {"n": 1}, InsertOptions(durability=durability))
        second = collection.upsert(key, {"n": 2}, UpsertOptions(durability=durability))
        expect_error(CasMismatchException, collection.replace, key, {"n": 3},
                     ReplaceOptions(durability=durability, cas=second.cas + 1))
        third = collection.replace(key, {"n": 3},
                                   ReplaceOptions(durability=durability, cas=second.cas))
        expect_error(DocumentExistsException, collection.insert, key, {"n": 4},
                     InsertOptions(durability=durability))
        expect_equal(sdk.get_json(key), {"n": 3}, "value")
        expect_equal(collection.get(key).cas, third.cas, "CAS")
        for number in (41, 42):
            options = IncrementOptions(initial=SignedInt64(41), durability=durability)
            counted = collection.binary().increment(count, options)
            expect_equal(counted.content, number, "counter")
        collection.remove(key, RemoveOptions(durability=durability))
        expect(sdk.is_gone(key), f"{level}: removed")


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
