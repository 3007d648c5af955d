"""Cases: buckets that keep nothing on disk, and what becomes of compressed values.

Each case starts a node of its own."""

import contextlib
import random
import struct
import time
from datetime import timedelta

from cases import expect, expect_equal, expect_error, wait_until
from couchbase.exceptions import (AmbiguousTimeoutException,
                                  DocumentNotFoundException, TemporaryFailException)
from couchbase.management.buckets import BucketType, EvictionPolicyType
from couchbase.options import UpsertOptions
from couchbase.transcoder import RawBinaryTranscoder
from mcbp import (DATATYPE_SNAPPY, FEATURE_SNAPPY, GET, SEQNO_PERSISTENCE, SET, open_bucket,
                  vbucket_of)
from node import VBUCKETS, Node
from sdk import BUCKET, Sdk

STAT, SET_PARAM = 0x10, 0x82
NOT_SUPPORTED, NO_MEMORY, TEMPORARY_FAILURE = 0x83, 0x82, 0x86
FLUSH_GROUP = struct.pack(">I", 1)

QUOTA = "32MiB"
BODY_BYTES = 16 * 1024
# Four times the quota.
COUNT = 8192
BATCH = 256
FILL_SECONDS_MAX = 60


def declare(cases):
    """In the order of running."""
    for function in (ephemeral_auto_delete, ephemeral_fail_new_data,
                     ephemeral_restart_begins_empty, compression_modes):
        cases.case(function)


@contextlib.contextmanager
def node_of_its_own(name, *flags):
    """An SDK that is connected to another node, which must not log an error."""
    with Node(name, *flags) as node:
        sdk = Sdk(node)
        try:
            yield sdk
        finally:
            sdk.close()
        node.stop()
        expect_equal(node.unexpected_log_lines(), [], "lines in the node's log")


def statistics(node, group=b""):
    """A group of statistics."""
    found = {}
    with open_bucket(node) as connection:
        answer = connection.call_successfully(STAT, key=group)
        while answer.key:
            found[answer.key.decode()] = answer.value.decode()
            answer = connection.receive()
    return found


def set_parameter(node, name, value):
    """Changes a parameter of the bucket."""
    with open_bucket(node) as connection:
        connection.call_successfully(SET_PARAM, extras=FLUSH_GROUP, key=name, value=value)


def expect_settings(sdk, eviction):
    """What the bucket manager of the SDK says about an ephemeral bucket."""
    settings = sdk.cluster.buckets().get_bucket(BUCKET)
    expect_equal(settings.bucket_type, BucketType.EPHEMERAL, "bucket type")
    expect_equal(settings.eviction_policy, eviction, "eviction policy")


def noise(size, seed):
    """Bytes that do not compress."""
    return random.Random(seed).randbytes(size)


def ephemeral_auto_delete(sdk_of_the_suite):
    del sdk_of_the_suite
    with node_of_its_own("auto-delete", "--bucket-type", "ephemeral",
                         "--memory-quota", QUOTA) as sdk:
        expect_settings(sdk, EvictionPolicyType.NOT_RECENTLY_USED)
        options = {"transcoder": RawBinaryTranscoder(), "timeout": timedelta(seconds=30)}
        for first in range(0, COUNT, BATCH):
            batch = {f"auto-{number}": noise(BODY_BYTES, number)
                     for number in range(first, first + BATCH)}
            expect(sdk.collection.upsert_multi(batch, **options).all_ok, "every store succeeds")
        counts = statistics(sdk.node)
        kept, deleted = int(counts["curr_items"]), int(counts["vb_active_auto_delete_count"])
        expect_equal(kept + deleted, COUNT, "documents kept and deleted")
        expect(0 < kept < COUNT / 2, f"{kept} documents are kept")
        expect(int(counts["mem_used"]) <= int(counts["ep_max_size"]), "memory within the quota")
        sdk.collection.upsert("new", {"n": 1})
        expect_equal(sdk.get_json("new"), {"n": 1}, "a new document")
        expect_nothing_persisted(sdk)


def expect_nothing_persisted(sdk):
    """Nobody can wait for a disk that is not there."""
    token = sdk.collection.upsert("observed", {}).mutation_token()
    with open_bucket(sdk.node) as connection:
        answer = connection.call(
            SEQNO_PERSISTENCE, extras=struct.pack(">Q", token.sequence_number),
            vbucket=token.partition_id)
        expect_equal(answer.status, NOT_SUPPORTED, "SEQNO_PERSISTENCE")


def ephemeral_fail_new_data(sdk_of_the_suite):
    del sdk_of_the_suite
    with node_of_its_own("fail-new-data", "--bucket-type", "ephemeral",
                         "--ephemeral-full-policy", "fail_new_data",
                         "--memory-quota", QUOTA) as sdk:
        expect_settings(sdk, EvictionPolicyType.NO_EVICTION)
        stored = fill(sdk)
        expect(100 < stored < COUNT / 2, f"{stored} documents fit")
        error = expect_error(
            (AmbiguousTimeoutException, TemporaryFailException), sdk.collection.upsert, "k" * 200,
            noise(BODY_BYTES, 1),
            UpsertOptions(transcoder=RawBinaryTranscoder(), timeout=timedelta(seconds=1)))
        expect(error is not None, "the SDK gives up")
        counts = statistics(sdk.node)
        expect_equal(int(counts["curr_items"]), stored, "documents: none was deleted")
        for number in range(10):
            sdk.collection.remove(f"fill-{number}")
        sdk.collection.upsert("new", {"n": 1})
        expect_equal(sdk.get_json("new"), {"n": 1}, "what was removed has made room")


def fill(sdk):
    """Stores documents until the node refuses one for want of memory; how many it took.

    While the log gives memory back the node has its clients try again."""
    deadline = time.monotonic() + FILL_SECONDS_MAX
    with open_bucket(sdk.node) as connection:
        for number in range(COUNT):
            status = TEMPORARY_FAILURE
            while status == TEMPORARY_FAILURE:
                expect(time.monotonic() < deadline, f"{number} documents fill the node in time")
                status = store_noise(connection, number)
            if status:
                expect_equal(status, NO_MEMORY, "status of the refusal")
                return number
    raise AssertionError("the node took four times its quota")


def store_noise(connection, number):
    """The status of a store of one of the documents that fill a node."""
    key = f"fill-{number}".encode()
    return connection.call(SET, key=key, extras=bytes(8), value=noise(BODY_BYTES, number),
                           vbucket=vbucket_of(key, VBUCKETS)).status


def ephemeral_restart_begins_empty(sdk_of_the_suite):
    del sdk_of_the_suite
    with node_of_its_own("begins-empty", "--bucket-type", "ephemeral") as sdk:
        key, before = sdk.stored({"n": 1})
        sdk.node.restart()
        wait_until(lambda: sdk.answers(key), 15, "the same SDK object works again")
        expect_error(DocumentNotFoundException, sdk.collection.get, key)
        after = sdk.collection.upsert(key, {"n": 2})
        expect_equal(sdk.get_json(key), {"n": 2}, "value")
        before, after = before.mutation_token(), after.mutation_token()
        expect_equal(after.sequence_number, 1, "seqno in the new history")
        expect(after.partition_uuid != before.partition_uuid, "the history is another one")
        expect_equal(statistics(sdk.node, b"config")["ep_bucket_type"], "ephemeral", "bucket type")


def compression_modes(sdk_of_the_suite):
    del sdk_of_the_suite
    text = "to be compressed " * 1000
    for mode, kept in (("off", False), ("passive", True), ("active", True)):
        with node_of_its_own(f"compression-{mode}", "--compression", mode) as sdk:
            expect_equal(sdk.cluster.buckets().get_bucket(BUCKET).compression_mode.value, mode,
                         "mode in the bucket manager")
            # The SDK compresses it on its way.
            key, _ = sdk.stored({"text": text})
            expect_equal(is_compressed(sdk, key), kept, f"sent compressed, mode {mode}")
            plain = store_plain(sdk, text)
            if mode == "active":
                wait_until(lambda key=plain, sdk=sdk: is_compressed(sdk, key), 10,
                           "the node compresses what came plain")
            else:
                time.sleep(1)
                expect(not is_compressed(sdk, plain), f"sent plain, mode {mode}")
            expect_equal(sdk.get_json(key), {"text": text}, "value")
            expect_equal(read_raw(sdk, plain).value, text.encode(), "plain value")
            set_parameter(sdk.node, b"compression_mode", b"off")
            expect(not is_compressed(sdk, sdk.stored({"text": text})[0]), "switched off")


def store_plain(sdk, text):
    """Stores a document without compressing it; its key."""
    key = sdk.key("plain")
    name = key.encode()
    with open_bucket(sdk.node) as connection:
        connection.call_successfully(SET, key=name, extras=bytes(8), value=text.encode(),
                                     vbucket=vbucket_of(name, VBUCKETS))
    return key


def is_compressed(sdk, key):
    """Whether the node keeps a value compressed."""
    return bool(read_raw(sdk, key, features=(FEATURE_SNAPPY,)).datatype & DATATYPE_SNAPPY)


def read_raw(sdk, key, features=()):
    """The answer to a GET of a client with these features."""
    key = key.encode()
    with open_bucket(sdk.node, features=features) as connection:
        return connection.call_successfully(GET, key=key, vbucket=vbucket_of(key, VBUCKETS))
