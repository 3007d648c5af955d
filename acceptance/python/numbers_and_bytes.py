"""Cases: the operations of the binary collection."""

from datetime import timedelta

from cases import expect, expect_equal, expect_error
from couchbase.exceptions import (CouchbaseException, DeltaInvalidException,
                                  DocumentNotFoundException)
from couchbase.options import (DecrementOptions, DeltaValue, IncrementOptions, SignedInt64,
                               UpsertOptions)
from couchbase.transcoder import RawBinaryTranscoder

BINARY = RawBinaryTranscoder()


def declare(cases):
    """In the order of running."""
    for function in (append, prepend, append_missing, increment_creates, increment, decrement,
                     decrement_stops_at_zero, increment_missing, increment_not_a_number,
                     counter_is_a_document):
        cases.case(function)


def stored_bytes(sdk, value):
    """A new document of bytes; its key."""
    key = sdk.key()
    sdk.collection.upsert(key, value, UpsertOptions(transcoder=BINARY))
    return key


def get_bytes(sdk, key):
    """The value of a document of bytes."""
    return sdk.collection.get(key, transcoder=BINARY).value


def append(sdk):
    key = stored_bytes(sdk, b"hello")
    sdk.collection.binary().append(key, b" world")
    expect_equal(get_bytes(sdk, key), b"hello world", "value")


def prepend(sdk):
    key = stored_bytes(sdk, b"world")
    sdk.collection.binary().prepend(key, b"hello ")
    expect_equal(get_bytes(sdk, key), b"hello world", "value")


def append_missing(sdk):
    binary = sdk.collection.binary()
    expect_error(DocumentNotFoundException, binary.append, sdk.key(), b"x")
    expect_error(DocumentNotFoundException, binary.prepend, sdk.key(), b"x")


def counter(sdk, initial):
    """A new counter; its key."""
    key = sdk.key()
    options = IncrementOptions(initial=SignedInt64(initial))
    expect_equal(sdk.collection.binary().increment(key, options).content, initial, "initial")
    return key


def increment_creates(sdk):
    key = counter(sdk, 100)
    expect_equal(sdk.collection.get(key).content_as[int], 100, "value of the document")


def increment(sdk):
    key = counter(sdk, 1)
    binary = sdk.collection.binary()
    expect_equal(binary.increment(key).content, 2, "after + 1")
    result = binary.increment(key, IncrementOptions(delta=DeltaValue(40)))
    expect_equal(result.content, 42, "after + 40")
    expect(result.cas != 0, "a counter returns a CAS")


def decrement(sdk):
    key = counter(sdk, 42)
    binary = sdk.collection.binary()
    expect_equal(binary.decrement(key).content, 41, "after - 1")
    expect_equal(binary.decrement(key, DecrementOptions(delta=DeltaValue(40))).content, 1,
                 "after - 40")


def decrement_stops_at_zero(sdk):
    key = counter(sdk, 2)
    binary = sdk.collection.binary()
    expect_equal(binary.decrement(key, DecrementOptions(delta=DeltaValue(10))).content, 0, "floor")


def increment_missing(sdk):
    key = sdk.key()
    options = IncrementOptions(initial=SignedInt64(-1), timeout=timedelta(seconds=5))
    expect_error(DocumentNotFoundException, sdk.collection.binary().increment, key, options)
    expect(sdk.is_gone(key), "a counter without an initial value is not created")


def increment_not_a_number(sdk):
    key = stored_bytes(sdk, b"twelve")
    kinds = (DeltaInvalidException, CouchbaseException)
    expect_error(kinds, sdk.collection.binary().increment, key)
    expect_equal(get_bytes(sdk, key), b"twelve", "value after the refusal")


def counter_is_a_document(sdk):
    key, _ = sdk.stored(41)
    expect_equal(sdk.collection.binary().increment(key).content, 42, "a stored number counts")
    expect_equal(sdk.collection.get(key).content_as[int], 42, "value of the document")
