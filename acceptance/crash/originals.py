"""Cases: data directories that the original's server has left."""

import json
import os
import shutil
import struct

import mcbp
from cases import expect, expect_equal, work_directory
from directories import expect_refusal, serve
from files import vbucket_files, verify
from node import Node, free_port

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "../../crates/storage/tests/fixtures/couchstore")
GET, SET, GET_REPLICA, SET_VBUCKET = 0x00, 0x01, 0x83, 0x3d
NOT_MY_VBUCKET = 7
# Documents of the fixtures: the active vBucket 0 and the replica 1 of a bucket of two.
ACTIVE_KEY, REPLICA_KEY = b"K%020d" % 1, b"K%020d" % 0


def declare(cases):
    """In the order of running."""
    for function in (original_directory_is_served, original_magma_is_refused):
        cases.case(function)


def fill(directory):
    """A bucket of the original below `directory`, with other files of it; returns its path."""
    bucket = os.path.join(directory, "data", "travel")
    os.makedirs(os.path.join(directory, "data", "@2i"))
    os.makedirs(bucket)
    for vbucket in (0, 1):
        shutil.copy(os.path.join(FIXTURES, f"{vbucket}.couch.1"), bucket)
    for name in ("access.log.0", "stats.json"):
        with open(os.path.join(bucket, name), "w", encoding="utf-8") as file:
            file.write("{}")
    return bucket


def read_and_write(node, written):
    """Reads what the original has written and what was written before; writes one document more."""
    with mcbp.open_bucket(node, "travel") as connection:
        found = connection.call_successfully(GET, key=ACTIVE_KEY, vbucket=0)
        expect_equal(len(found.value), 300, "bytes of a document of the original")
        refused = connection.call(GET, key=REPLICA_KEY, vbucket=1)
        expect_equal(refused.status, NOT_MY_VBUCKET, "GET of a replica")
        found = connection.call_successfully(GET_REPLICA, key=REPLICA_KEY, vbucket=1)
        expect_equal(len(found.value), 300, "bytes of a document of the replica")
        for key in written:
            found = connection.call_successfully(GET, key=key, vbucket=0)
            expect_equal(found.value, b"written here", "a document written here")
        key = b"new-%d" % len(written)
        connection.call_successfully(SET, key=key, extras=struct.pack(">II", 0, 0), vbucket=0,
                                     value=b"written here")
        written.append(key)


def original_directory_is_served():
    directory = os.path.join(work_directory(), "original-data")
    bucket = fill(directory)
    written = []
    with Node("original", "--bucket", "travel") as node:
        expect_equal(node.data_directory, directory, "the directory of the node")
        read_and_write(node, written)
        node.restart()
        read_and_write(node, written)
        node.kill()
        node.start()
        with mcbp.open_bucket(node, "travel") as connection:
            connection.call_successfully(SET_VBUCKET, extras=b"\x01", vbucket=1)
            found = connection.call_successfully(GET, key=REPLICA_KEY, vbucket=1)
            expect_equal(len(found.value), 300, "bytes of a document of the promoted vBucket")
        node.stop()
    names = os.listdir(bucket)
    for name in ("0.couch.1", "1.couch.1", "access.log.0", "stats.json", "bucket.json"):
        expect(name in names, f"{name} is there: {names}")
    with open(os.path.join(bucket, "bucket.json"), encoding="utf-8") as file:
        expect_equal(json.load(file)["vbucket_count"], 2, "vBuckets, told by documents' names")
    complaints = verify(list(vbucket_files(directory)))
    expect(not complaints, f"the files are sound: {complaints}")


def original_magma_is_refused():
    directory = os.path.join(work_directory(), "magma-data")
    os.makedirs(os.path.join(directory, "default", "magma.0"))
    expect_refusal(serve(directory, free_port()), directory, "Magma")
    expect_equal(os.listdir(os.path.join(directory, "default")), ["magma.0"], "left alone")
