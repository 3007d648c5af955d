"""Cases: many operations at once."""

from concurrent.futures import ThreadPoolExecutor

from cases import expect, expect_equal
from couchbase.exceptions import DocumentNotFoundException
from couchbase.options import IncrementOptions, SignedInt64

COUNT = 1000
PARALLEL = 500


def declare(cases):
    """In the order of running."""
    for function in (multi_operations, multi_get_with_missing, parallel_operations,
                     parallel_increments):
        cases.case(function)


def multi_operations(sdk):
    documents = {f"multi-{number}": {"n": number} for number in range(COUNT)}
    stored = sdk.collection.upsert_multi(documents)
    expect(stored.all_ok, f"every document is stored: {list(stored.exceptions.items())[:3]}")
    read = sdk.collection.get_multi(list(documents))
    expect(read.all_ok, f"every document is read: {list(read.exceptions.items())[:3]}")
    values = {key: result.content_as[dict] for key, result in read.results.items()}
    expect_equal(values, documents, "values")
    removed = sdk.collection.remove_multi(list(documents))
    expect(removed.all_ok, "every document is removed")


def multi_get_with_missing(sdk):
    present, _ = sdk.stored({"n": 1})
    missing = sdk.key()
    read = sdk.collection.get_multi([present, missing])
    expect_equal(list(read.results), [present], "keys that were found")
    expect(isinstance(read.exceptions[missing], DocumentNotFoundException), "the other is missing")


def parallel_operations(sdk):
    def store_and_read(number):
        key, _ = sdk.stored({"n": number})
        return sdk.get_json(key)["n"]

    with ThreadPoolExecutor(32) as threads:
        numbers = list(threads.map(store_and_read, range(PARALLEL)))
    expect_equal(numbers, list(range(PARALLEL)), "values")


def parallel_increments(sdk):
    key = sdk.key()
    options = IncrementOptions(initial=SignedInt64(1))

    def increment(_):
        return sdk.collection.binary().increment(key, options).content

    with ThreadPoolExecutor(32) as threads:
        numbers = list(threads.map(increment, range(PARALLEL)))
    expect_equal(sorted(numbers), list(range(1, PARALLEL + 1)), "every number once")
