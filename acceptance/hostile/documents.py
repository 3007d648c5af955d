"""Clients with a login that ask for too much, or keep too much."""

import struct

from attack import Attack
from cases import expect
from mcbp import SET, SUCCESS, open_bucket, request, vbucket_of

MIB = 1 << 20
VBUCKETS = 16
OBSERVE, GET_LOCKED = 0x92, 0x94
TOO_BIG, LOCKED = 0x03, 0x09
OBSERVERS = 4
OBSERVED_BYTES = 8 * MIB
LOCK_SECONDS = 30
BATCH = 100
# Their documents and locks take less than half of the quota; then they are asked for again.
LOCKED_MAX = 300_000


def observe(node, stop):
    """OBSERVE of more keys than anybody has."""
    connections = [open_bucket(node) for _ in range(OBSERVERS)]
    entry = struct.pack(">HHc", 0, 1, b"k")
    ask = request(OBSERVE, value=entry * (OBSERVED_BYTES // len(entry)))
    refused = 0
    while not stop.is_set():
        for connection in connections:
            connection.send(ask)
            status = connection.receive().status
            expect(status == TOO_BIG, f"a large OBSERVE is refused, not {status:#x}")
            refused += 1
    return {"refused": refused}


def lock(node, stop):
    """Documents that are locked and never unlocked."""
    asked = 0
    with open_bucket(node) as connection:
        while not stop.is_set():
            keys = [b"locked-%d" % ((asked + number) % LOCKED_MAX) for number in range(BATCH)]
            vbuckets = [vbucket_of(key, VBUCKETS) for key in keys]
            batch = [request(SET, key=key, extras=bytes(8), value=b"x", vbucket=vbucket)
                     for key, vbucket in zip(keys, vbuckets)]
            batch += [request(GET_LOCKED, key=key, extras=struct.pack(">I", LOCK_SECONDS),
                              vbucket=vbucket) for key, vbucket in zip(keys, vbuckets)]
            connection.send(b"".join(batch))
            statuses = {connection.receive().status for _ in batch}
            allowed = {SUCCESS} if asked < LOCKED_MAX else {SUCCESS, LOCKED}
            expect(statuses <= allowed, f"documents are stored and locked, not {statuses}")
            asked += BATCH
    return {"asked": asked, "locked": min(asked, LOCKED_MAX)}


ATTACKS = [
    Attack("observe-everything", observe),
    Attack("locked-keys", lock),
]
