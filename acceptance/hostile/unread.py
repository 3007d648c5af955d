"""Connections that ask again and again and never read an answer."""

import itertools

from attack import Attack, Endless, member, push_all, stranger
from cases import wait_until
from mcbp import GET, HELLO, SET, SUCCESS, durable_set, open_bucket, request, vbucket_of

MIB = 1 << 20
VBUCKETS = 16
GET_ERROR_MAP = 0xFE
UNORDERED_EXECUTION = 0x0E
PERSIST_TO_MAJORITY = 3
DURABLE_MILLISECONDS = 10_000
TEMPORARY_FAILURE, NO_MEMORY = 0x86, 0x82
STRANGERS = 1500
MEMBERS = 24
WRITERS = 6
COLD_DOCUMENTS = 400
COLD_BYTES = MIB
# As many requests of a connection as the node has waiting at a time.
PARKED = 32


def store(node, key, value):
    """Writes a document, however long the node has no room for it."""
    with open_bucket(node) as connection:
        def is_stored():
            response = connection.call(
                SET, key=key, extras=bytes(8), value=value, vbucket=vbucket_of(key, VBUCKETS))
            if response.status not in (SUCCESS, TEMPORARY_FAILURE, NO_MEMORY):
                raise ValueError(f"storing {key} got status {response.status:#x}")
            return response.status == SUCCESS
        wait_until(is_stored, 60, f"{key} is stored")


def store_large(node):
    """One document of 1 MiB."""
    store(node, b"large", bytes(MIB))


def store_cold(node):
    """More than the memory holds, in documents of which most have left it."""
    for number in range(COLD_DOCUMENTS):
        store(node, b"cold-%d" % number, bytes(COLD_BYTES))


def before_login(node, stop):
    """GET_ERROR_MAP and HELLO of strangers, one small packet after the other."""
    frames = itertools.cycle([
        request(GET_ERROR_MAP, value=b"\0\2"),
        request(HELLO, key=b"hostile", value=b"\0\7\0\x0b") + request(GET_ERROR_MAP, value=b"\0\2"),
    ])
    openers = [lambda ask=next(frames): Endless(stranger(node.port), ask)
               for _ in range(STRANGERS)]
    return push_all(openers, stop)


def after_login(node, stop):
    """GET of the large document."""
    ask = request(GET, key=b"large", vbucket=vbucket_of(b"large", VBUCKETS))
    return push_all([lambda: Endless(member(node), ask)] * MEMBERS, stop)


def parked_writes(node, stop):
    """Durable writes of 1 MiB, as many as may wait at a time."""
    def writes(index):
        keys = [b"durable-%d-%d" % (index, number) for number in range(PARKED)]
        return b"".join(
            durable_set(key, bytes(MIB), PERSIST_TO_MAJORITY, DURABLE_MILLISECONDS,
                        vbucket_of(key, VBUCKETS)) for key in keys)

    return push_all([unordered(node, writes(index)) for index in range(WRITERS)], stop)


def parked_reads(node, stop):
    """Reads of what is on disk, as many as may wait at a time."""
    def reads(index):
        keys = [b"cold-%d" % ((index + number) % COLD_DOCUMENTS) for number in range(PARKED)]
        return b"".join(
            request(GET, key=key, vbucket=vbucket_of(key, VBUCKETS)) for key in keys)

    return push_all([unordered(node, reads(index)) for index in range(MEMBERS)], stop)


def unordered(node, frames):
    """What opens a connection whose requests need not be answered in order."""
    return lambda: Endless(member(node, [UNORDERED_EXECUTION]), frames)


ATTACKS = [
    Attack("answers-nobody-reads", before_login, lets_newcomers_in=True),
    Attack("answers-nobody-reads-after-login", after_login, prepare=store_large),
    Attack("parked-large-reads", parked_reads, prepare=store_cold,
           resident_slack_bytes=128 * MIB),
    Attack("parked-large-writes", parked_writes, stops_writes=True,
           resident_slack_bytes=128 * MIB),
]
