"""What a started node says about itself: its branches, its seqnos and its documents."""

import struct
from dataclasses import dataclass

from history import DELETED, state_of
from mcbp import (GET, GET_FAILOVER_LOG, KEY_NOT_FOUND, OBSERVE_SEQNO, SUCCESS, open_bucket,
                  request)

BATCH = 64


@dataclass
class VbucketBranch:
    """The history of a vBucket: its failover log, newest first, and its highest seqno."""

    log: list
    high_seqno: int

    @property
    def uuid(self):
        """The uuid of the branch that is written now."""
        return self.log[0][0]


@dataclass
class ObservedOldBranch:
    """The answer to OBSERVE_SEQNO with a uuid that is not the newest (format 1)."""

    status: int
    format: int
    new_uuid: int = 0
    old_uuid: int = 0
    last_seqno: int = 0


def pipelined(connection, frames):
    """The answers to many requests, of which some are in flight at a time."""
    for start in range(0, len(frames), BATCH):
        batch = frames[start:start + BATCH]
        connection.send(b"".join(batch))
        for _ in batch:
            yield connection.receive()


def read_branches(node, vbuckets):
    """{vbucket: VbucketBranch} of a node without load."""
    vbuckets = list(vbuckets)
    with open_bucket(node) as connection:
        frames = [request(GET_FAILOVER_LOG, vbucket=vbucket) for vbucket in vbuckets]
        logs = [parse_log(answer) for answer in pipelined(connection, frames)]
        frames = [
            request(OBSERVE_SEQNO, vbucket=vbucket, value=struct.pack(">Q", log[0][0]))
            for vbucket, log in zip(vbuckets, logs)]
        seqnos = [parse_seqno(answer) for answer in pipelined(connection, frames)]
    return {vbucket: VbucketBranch(log, seqno)
            for vbucket, log, seqno in zip(vbuckets, logs, seqnos)}


def parse_log(answer):
    """[(uuid, seqno)], newest first (docs/specification/protocol.md, section 14.4)."""
    if answer.status != SUCCESS or not answer.value or len(answer.value) % 16:
        raise ValueError(f"GET_FAILOVER_LOG got {answer}")
    return list(struct.iter_unpack(">QQ", answer.value))


def parse_seqno(answer):
    """The current seqno (docs/specification/protocol.md, section 14.2)."""
    if answer.status != SUCCESS or len(answer.value) != 27:
        raise ValueError(f"OBSERVE_SEQNO got {answer}")
    return struct.unpack(">BHQQQ", answer.value)[4]


def observe_old_branches(node, uuids):
    """{vbucket: ObservedOldBranch} for {vbucket: old uuid}."""
    frames = [request(OBSERVE_SEQNO, vbucket=vbucket, value=struct.pack(">Q", uuid))
              for vbucket, uuid in uuids.items()]
    with open_bucket(node) as connection:
        answers = list(pipelined(connection, frames))
    return dict(zip(uuids, map(parse_old_branch, answers)))


def parse_old_branch(answer):
    """Format 1 of OBSERVE_SEQNO, or what came in its place."""
    if answer.status != SUCCESS or len(answer.value) != 43:
        return ObservedOldBranch(answer.status, answer.value[0] if answer.value else -1)
    kind, _, new_uuid, _, _, old_uuid, last_seqno = struct.unpack(">BHQQQQQ", answer.value)
    return ObservedOldBranch(answer.status, kind, new_uuid, old_uuid, last_seqno)


def read_states(node, keys):
    """{key: state} for {key: KeyHistory}."""
    frames = [request(GET, key=key, vbucket=past.vbucket) for key, past in keys.items()]
    with open_bucket(node) as connection:
        answers = list(pipelined(connection, frames))
    return dict(zip(keys, map(parse_state, answers)))


def parse_state(answer):
    """The state of a key from the answer to its GET."""
    if answer.status == KEY_NOT_FOUND:
        return DELETED
    if answer.status != SUCCESS:
        raise ValueError(f"GET got {answer!r:.200}")
    return state_of(answer.value)
