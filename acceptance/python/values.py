"""Cases: what kinds and sizes of values go in and come back."""

import hashlib
import random
from datetime import timedelta

from cases import expect, expect_equal, expect_error
from couchbase.exceptions import CouchbaseException, DocumentNotFoundException
from couchbase.options import GetOptions, UpsertOptions
from couchbase.transcoder import RawBinaryTranscoder, RawJSONTranscoder, RawStringTranscoder
from mcbp import DATATYPE_SNAPPY, FEATURE_SNAPPY, GET, open_bucket, vbucket_of
from node import VBUCKETS

VALUE_BYTES_MAX = 20 * 1024 * 1024

# The SDK takes seconds of CPU time for the first large value that it reads on a connection.
PATIENCE = timedelta(seconds=30)


def declare(cases):
    """In the order of running."""
    for function in (json_values, json_as_text, string_values, binary_values, empty_value,
                     value_of_1_mib, value_of_20_mib, value_above_20_mib, compressible_value):
        cases.case(function)


def round_trip(sdk, value, transcoder):
    """Stores and reads a value through a transcoder."""
    key = sdk.key()
    sdk.collection.upsert(key, value, UpsertOptions(transcoder=transcoder, timeout=PATIENCE))
    return sdk.collection.get(key, GetOptions(transcoder=transcoder, timeout=PATIENCE)).value


def json_values(sdk):
    values = [{}, [], {"a": {"b": [1, 2, {"c": None}]}}, [True, False, None], "text", "", 0, -1,
              2**53, 1.5, {"\u00e4": "\U0001f6cb\u65e5\u672c"}, {"long": "x" * 10_000}]
    for value in values:
        key, _ = sdk.stored(value)
        expect_equal(sdk.collection.get(key).value, value, "JSON value")


def json_as_text(sdk):
    text = '{"a" : 1,  "b":[ 2 ] }'
    expect_equal(round_trip(sdk, text, RawJSONTranscoder()), text.encode(), "JSON text")


def string_values(sdk):
    for text in ("plain", "\u00e4\u00f6\u00fc \u65e5\u672c\u8a9e \U0001f6cb", "{not json"):
        expect_equal(round_trip(sdk, text, RawStringTranscoder()), text, "string")


def binary_values(sdk):
    everything = bytes(range(256))
    for value in (everything, b"\0", b"\r\n", everything * 100):
        expect_equal(round_trip(sdk, value, RawBinaryTranscoder()), value, "bytes")


def empty_value(sdk):
    key = sdk.key()
    transcoder = RawStringTranscoder()
    sdk.collection.upsert(key, "", UpsertOptions(transcoder=transcoder))
    expect(sdk.collection.exists(key).exists, "a document with an empty value exists")
    value = sdk.collection.get(key, GetOptions(transcoder=transcoder)).value
    expect(not value, "the empty value is read")


def digest_returns(sdk, size):
    """Random bytes, which do not compress, must come back unchanged."""
    value = random.Random(size).randbytes(size)
    read = round_trip(sdk, value, RawBinaryTranscoder())
    expect_equal(len(read), size, "bytes read")
    wanted = hashlib.sha256(value).hexdigest()
    expect_equal(hashlib.sha256(read).hexdigest(), wanted, "digest")


def value_of_1_mib(sdk):
    digest_returns(sdk, 1024 * 1024)


def value_of_20_mib(sdk):
    digest_returns(sdk, VALUE_BYTES_MAX)
    digest_returns(sdk, VALUE_BYTES_MAX - 1)


def value_above_20_mib(sdk):
    key = sdk.key()
    value = random.Random(1).randbytes(VALUE_BYTES_MAX + 1)
    options = UpsertOptions(transcoder=RawBinaryTranscoder(), timeout=PATIENCE)
    error = expect_error(CouchbaseException, sdk.collection.upsert, key, value, options)
    expect("timeout" not in str(error).lower(), f"the refusal is clear: {error}")
    expect_error(DocumentNotFoundException, sdk.collection.get, key)


def compressible_value(sdk):
    text = "to be compressed " * 1000
    key, _ = sdk.stored({"text": text})
    expect_equal(sdk.get_json(key), {"text": text}, "value read by the SDK")
    plain = read_raw(sdk, key, features=())
    compressed = read_raw(sdk, key, features=(FEATURE_SNAPPY,))
    expect(not plain.datatype & DATATYPE_SNAPPY, "who cannot decompress gets the plain value")
    expect(len(plain.value) > len(text), "the plain value is whole")
    expect(compressed.datatype & DATATYPE_SNAPPY, "what was sent compressed is kept compressed")
    expect(len(compressed.value) < len(plain.value) / 2, "a compressed value is small")


def read_raw(sdk, key, features):
    """The answer to a GET of a client with these features."""
    key = key.encode()
    with open_bucket(sdk.node, features=features) as connection:
        return connection.call_successfully(GET, key=key, vbucket=vbucket_of(key, VBUCKETS))
