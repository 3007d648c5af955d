"""Cases: versions of documents that came about in another cluster.

What one SDK writes at one node is brought to another with its metadata, as replication between
clusters does, and read there by another SDK."""

import struct

from bucket_kinds import node_of_its_own
from cases import expect, expect_equal
from mcbp import GET, SUCCESS, open_bucket, vbucket_of
from node import VBUCKETS

GET_META, SET_WITH_META, DEL_WITH_META = 0xA0, 0xA2, 0xA8
KEY_EXISTS, INVALID = 0x02, 0x04
# Options.
FORCE_ACCEPT = 0x02


def declare(cases):
    """In the order of running."""
    for function in (versions_are_brought, later_versions_win):
        cases.case(function)


def bring(key, source, target, options=0):
    """Has the target take the version that the source has; the status of its answer."""
    vbucket = vbucket_of(key, VBUCKETS)
    meta = source.call_successfully(GET_META, key=key, vbucket=vbucket)
    deleted, flags, expiry, revision = struct.unpack(">IIIQ", meta.extras)
    opcode = DEL_WITH_META if deleted else SET_WITH_META
    value = b"" if deleted else source.call_successfully(GET, key=key, vbucket=vbucket).value
    extras = struct.pack(">IIQQI", flags, expiry, revision, meta.cas, options)
    return target.call(opcode, key=key, extras=extras, value=value, vbucket=vbucket).status


def versions_are_brought(here):
    with node_of_its_own("elsewhere") as there, \
            open_bucket(here.node) as source, open_bucket(there.node) as target:
        key = here.key("brought")
        name = key.encode()
        stored = here.collection.upsert(key, {"n": 1})
        expect_equal(bring(name, source, target), SUCCESS, "the first version")
        found = there.collection.get(key)
        expect_equal(found.content_as[dict], {"n": 1}, "the document elsewhere")
        expect_equal(found.cas, stored.cas, "its CAS")
        expect_equal(bring(name, source, target), KEY_EXISTS, "the same version again")

        # What has changed more often wins.
        there.collection.upsert(key, {"n": 2})
        here.collection.upsert(key, {"n": 3})
        here.collection.upsert(key, {"n": 4})
        expect_equal(bring(name, target, source), KEY_EXISTS, "the version that loses")
        expect_equal(bring(name, source, target), SUCCESS, "the version that wins")
        expect_equal(there.get_json(key), {"n": 4}, "the winner")

        here.collection.remove(key)
        expect_equal(bring(name, source, target), SUCCESS, "the deletion")
        expect(there.is_gone(key), "it is deleted elsewhere, too")


def later_versions_win(sdk_of_the_suite):
    del sdk_of_the_suite
    flags = ("--conflict-resolution", "lww")
    with node_of_its_own("first", *flags) as here, node_of_its_own("second", *flags) as there, \
            open_bucket(here.node) as source, open_bucket(there.node) as target:
        key, name = "later", b"later"
        for number in range(5):
            here.collection.upsert(key, {"n": number})
        there.collection.upsert(key, {"n": "later"})
        expect_equal(bring(name, source, target), INVALID, "who does not know the bucket")
        expect_equal(bring(name, source, target, FORCE_ACCEPT), KEY_EXISTS, "the earlier version")
        expect_equal(bring(name, target, source, FORCE_ACCEPT), SUCCESS, "the later version")
        expect_equal(here.get_json(key), {"n": "later"}, "the winner")
