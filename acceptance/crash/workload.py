"""Load: writers, and watchers that ask what is persisted, until the node is gone."""

import random
import struct
import threading

from history import DELETED, KeyHistory, state_of
from mcbp import (DELETE, OBSERVE_SEQNO, SEQNO_PERSISTENCE, SET, SUCCESS, ConnectionLost,
                  open_bucket, request, vbucket_of)

WRITERS = 4
KEYS_PER_WRITER = 400
BATCH = 24
DELETE_SHARE = 0.2
SMALL_BYTES_MAX = 1500
LARGE_BYTES = 200_000
LARGE_SHARE = 0.002
SET_EXTRAS = bytes(8)


class Workload:
    """One run of load; threads end when the node closes their connections, or on `stop`."""

    def __init__(self, node, history, uuids, seed):
        self.node = node
        self.history = history
        self.uuids = uuids
        self.seed = seed
        self.complaints = []
        self.mutations = 0
        self._stopping = threading.Event()
        bodies = [(self._write, number) for number in range(WRITERS)]
        bodies += [(self._observe, WRITERS), (self._await_persistence, WRITERS + 1)]
        self._threads = [
            threading.Thread(target=self._run, args=body, daemon=True) for body in bodies]

    def start(self):
        """Starts all threads."""
        for thread in self._threads:
            thread.start()
        return self

    def stop(self):
        """Lets the writers finish their batches; returns when all threads have ended."""
        self._stopping.set()
        self.join()

    def join(self):
        """Waits for all threads."""
        for thread in self._threads:
            thread.join(60)
            if thread.is_alive():
                self.complaints.append("a connection is neither answered nor closed for 60 s")

    def _run(self, body, number):
        try:
            with open_bucket(self.node) as connection:
                body(connection, number, random.Random(f"{self.seed}-{number}"))
        except ConnectionLost:
            pass
        except Exception as error:  # a thread must not die unheard
            self.complaints.append(f"{body.__name__}: {type(error).__name__}: {error}")

    def _write(self, connection, number, chance):
        """Batches of SET and DELETE on the keys of this writer."""
        names = [f"w{number}-{index}".encode() for index in range(KEYS_PER_WRITER)]
        while not self._stopping.is_set():
            batch = [self._next_mutation(chance.choice(names), chance) for _ in range(BATCH)]
            connection.send(b"".join(frame for frame, _, _ in batch))
            acknowledged = {}
            try:
                for _, vbucket, mutation in batch:
                    response = connection.receive()
                    if response.status != SUCCESS:
                        raise ValueError(f"a write got status {response.status:#x}")
                    uuid, mutation.seqno = response.mutation_token()
                    if uuid != self.uuids[vbucket]:
                        raise ValueError(f"vBucket {vbucket} answers with another uuid")
                    acknowledged[vbucket] = mutation.seqno
                    self.mutations += 1
            finally:
                self.history.acknowledge(acknowledged)

    def _next_mutation(self, key, chance):
        """The request, its vBucket, and its place in the history."""
        past = self.history.keys[key]
        if past.last_state() is not DELETED and chance.random() < DELETE_SHARE:
            frame = request(DELETE, key=key, vbucket=past.vbucket)
            return frame, past.vbucket, past.append(DELETED)
        size = LARGE_BYTES if chance.random() < LARGE_SHARE else chance.randrange(SMALL_BYTES_MAX)
        value = f"{self.seed}-{chance.getrandbits(64):x}:".encode() + chance.randbytes(size)
        frame = request(SET, key=key, extras=SET_EXTRAS, value=value, vbucket=past.vbucket)
        return frame, past.vbucket, past.append(state_of(value))

    def _observe(self, connection, _, chance):
        """OBSERVE_SEQNO of vBuckets that were written, whose answers must not go backwards."""
        seen = {}
        while not self._stopping.is_set():
            vbuckets = list(self.history.acknowledged())
            if not vbuckets:
                self._stopping.wait(0.01)
                continue
            chosen = chance.choices(vbuckets, k=BATCH)
            connection.send(b"".join(
                request(OBSERVE_SEQNO, vbucket=vbucket, value=struct.pack(
                    ">Q", self.uuids[vbucket])) for vbucket in chosen))
            for vbucket in chosen:
                persisted, current = self._parse_observed(vbucket, connection.receive())
                if not seen.get(vbucket, 0) <= persisted <= current:
                    raise ValueError(f"vBucket {vbucket}: persisted {persisted} of {current}, "
                                     f"before {seen[vbucket]}")
                seen[vbucket] = persisted
            self.history.report_persisted(seen)

    def _parse_observed(self, vbucket, response):
        if response.status != SUCCESS or response.value[0] != 0:
            raise ValueError(f"OBSERVE_SEQNO got {response}")
        _, answered, uuid, persisted, current = struct.unpack(">BHQQQ", response.value)
        if (answered, uuid) != (vbucket, self.uuids[vbucket]):
            raise ValueError(f"OBSERVE_SEQNO of {vbucket} got {response}")
        return persisted, current

    def _await_persistence(self, connection, _, chance):
        """SEQNO_PERSISTENCE of mutations that were just acknowledged."""
        while not self._stopping.is_set():
            acknowledged = self.history.acknowledged()
            if not acknowledged:
                self._stopping.wait(0.01)
                continue
            vbucket = chance.choice(list(acknowledged))
            seqno = acknowledged[vbucket]
            connection.call_successfully(
                SEQNO_PERSISTENCE, vbucket=vbucket, extras=struct.pack(">Q", seqno))
            self.history.report_persisted({vbucket: seqno})


def declare_keys(history, vbuckets):
    """Enters the keys of all writers into a new history."""
    for number in range(WRITERS):
        for index in range(KEYS_PER_WRITER):
            key = f"w{number}-{index}".encode()
            history.keys[key] = KeyHistory(vbucket_of(key, vbuckets))
