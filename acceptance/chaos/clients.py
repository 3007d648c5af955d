"""Clients that remember what was sent, acknowledged and read, and which of it may be lost.

Each writer has keys of its own and one level of durability; it writes rising numbers. Counters are
such writers that let the node count. Readers read everybody's keys. A number that was acknowledged,
or read, must never be followed by a smaller one, unless an event may have lost it: while the key
is *exposed* nothing is expected of it, and afterwards it begins anew.
"""

import contextlib
import struct
import threading
import time

from cluster_run import HOST, NOT_MY_VBUCKET, PASSWORD, USER, BUCKET
from mcbp import (GET, KEY_NOT_FOUND, SUCCESS, Connection, ConnectionLost, durable_request,
                  request, vbucket_of)
from router import Router

SET, INCREMENT, GET_REPLICA = 0x01, 0x05, 0x83
NO_MEMORY, TEMPORARY_FAILURE = 0x82, 0x86
# What a write may be answered while something is wrong: no majority in time, another node's vBucket,
# no memory or disk for now.
REFUSALS = {0xA0, 0xA1, 0xA2, 0xA3, 0xA4, NOT_MY_VBUCKET, TEMPORARY_FAILURE, NO_MEMORY}
# The shortest one runs out under a flood, whose backlog is ahead of each write.
WRITE_MILLISECONDS = (4000, 1000, 4000, 200, 4000)
# Longer than any node hangs: a write that is given up earlier might come after the next one.
ANSWER_SECONDS = 40
PAUSE_SECONDS = 0.02
# After a refusal: a flood that tries at once takes the room that comes free.
RETRY_SECONDS = 0.004
KEYS_OF_A_WRITER = 4
READERS = 2


class Record:
    """What is known of a key. Its fields are guarded by the lock."""

    def __init__(self, key, level, is_counter, padding):
        self.key, self.level, self.is_counter, self.padding = key, level, is_counter, padding
        self.lock = threading.Lock()
        self.sent = 0
        self.acknowledged = 0
        # The smallest number that may be read from now on.
        self.floor = 0
        # How many acknowledgements there were, and how many refusals of each status since the last.
        self.count = 0
        self.refusals_since = {}
        # Raised when what was known before counts no more; answers to older questions say nothing.
        self.epoch = 0
        self.is_exposed = False
        self.is_read_freely = False

    def note(self, number, epoch, is_acknowledged):
        """The number was acknowledged, or read, by a question of that epoch."""
        with self.lock:
            self.count += is_acknowledged
            if is_acknowledged:
                self.refusals_since = {}
            if epoch == self.epoch and not self.is_exposed:
                self.floor = max(self.floor, number)
                if is_acknowledged:
                    self.acknowledged = max(self.acknowledged, number)

    def expose(self):
        """From now on anything may become of it."""
        with self.lock:
            self.is_exposed = True

    def set_read_freely(self, is_read_freely):
        """Whether reads may be older than others. Questions of before say nothing."""
        with self.lock:
            self.is_read_freely = is_read_freely
            self.epoch += 1

    def begin_anew(self):
        """What comes from now on counts again."""
        with self.lock:
            self.is_exposed = False
            self.epoch += 1
            self.floor = self.acknowledged = 0


class Clients:
    """Writers, counters and readers, each a thread."""

    def __init__(self, cluster, plan, levels):
        self.cluster, self.vbuckets = cluster, plan.vbuckets
        self.problems = []
        self.refusals = {}
        self._stop = threading.Event()
        self._owned = [
            [Record(f"chaos-{writer}-{key}-{plan.seed}".encode(), levels[writer % len(levels)],
                    is_counter=writer % 5 == 4, padding=(0, 100, 3000)[writer % 3])
             for key in range(KEYS_OF_A_WRITER)]
            for writer in range(plan.writers)]
        self.records = [record for records in self._owned for record in records]
        self._threads = [threading.Thread(target=self._guard, args=(self._write, records))
                         for records in self._owned]
        self._threads += [threading.Thread(target=self._guard, args=(self._read_all, self.records))
                          for _ in range(READERS)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Ends all threads."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    @contextlib.contextmanager
    def exposed(self, levels, vbuckets):
        """Meanwhile what keys of these levels in these vBuckets hold may be lost."""
        records = [record for record in self.records
                   if record.level in levels and self.vbucket(record) in vbuckets]
        for record in records:
            record.expose()
        yield
        for record in records:
            record.begin_anew()

    @contextlib.contextmanager
    def read_freely(self, vbuckets):
        """Meanwhile reads of keys in these vBuckets are not compared with others."""
        records = [record for record in self.records if self.vbucket(record) in vbuckets]
        for record in records:
            record.set_read_freely(True)
        yield
        for record in records:
            record.set_read_freely(False)

    def vbucket(self, record):
        """The vBucket of a key."""
        return vbucket_of(record.key, self.vbuckets)

    def counts(self):
        """Acknowledgements of each key that has durable writes."""
        return {record.key: record.count for record in self.records if record.level > 0}

    def stuck(self, before):
        """Keys that have no acknowledgement since these counts, in words."""
        return [f"{record.key.decode()} of vBucket {self.vbucket(record)} at level {record.level}, "
                f"refused {record.refusals_since}"
                for record in self.records if before.get(record.key) == record.count]

    def _guard(self, body, records):
        try:
            body(Router(self.cluster, ANSWER_SECONDS), records)
        except Exception as error:  # a thread's failure is the round's
            self.problems.append(f"{type(error).__name__}: {error}")

    def _write(self, router, records):
        turn = 0
        while not self._stop.is_set():
            record = records[turn % len(records)]
            patience = WRITE_MILLISECONDS[turn // len(records) % len(WRITE_MILLISECONDS)]
            with record.lock:
                record.sent += 1
                number, epoch = record.sent, record.epoch
            response = router.ask(
                record.key, lambda vbucket, record=record, number=number, patience=patience:
                encode(record, number, patience, vbucket))
            if response is not None and response.status == SUCCESS:
                if record.is_counter:
                    number = struct.unpack(">Q", response.value)[0]
                    self._check_counted(record, number, epoch)
                record.note(number, epoch, is_acknowledged=True)
                time.sleep(PAUSE_SECONDS)
                turn += 1
            else:
                self._refused(record, response)
                time.sleep(RETRY_SECONDS)
                turn += not is_to_be_tried_again(response)

    def _check_counted(self, record, number, epoch):
        with record.lock:
            is_current = epoch == record.epoch and not record.is_exposed
            acknowledged, sent = record.acknowledged, record.sent
        if is_current and number <= acknowledged:
            self.problems.append(f"{record.key} counted {number} after {acknowledged}")
        if number > sent:
            self.problems.append(f"{record.key} counted {number} after {sent} increments")

    def _refused(self, record, response):
        if response is None:
            return
        for counts in (self.refusals, record.refusals_since):
            counts[response.status] = counts.get(response.status, 0) + 1
        if response.status not in REFUSALS:
            self.problems.append(
                f"a write of {record.key} at level {record.level} got {response.status:#x}")

    def _read_all(self, router, records):
        turn = 0
        while not self._stop.is_set():
            turn += 1
            self.read(router, records[turn % len(records)])
            time.sleep(PAUSE_SECONDS / 4)

    def read(self, router, record):
        """Reads a key and checks it; nothing if it cannot be read now."""
        with record.lock:
            floor, epoch = record.floor, record.epoch
            is_exposed = record.is_exposed or record.is_read_freely
        response = router.ask(record.key, lambda vbucket: request(
            GET, key=record.key, vbucket=vbucket))
        if response is None or response.status not in (SUCCESS, KEY_NOT_FOUND):
            return None
        number = number_in(response)
        with record.lock:
            is_current = epoch == record.epoch and not is_exposed and not record.is_exposed
            sent = record.sent
        if is_current and number < floor:
            self.problems.append(
                f"{record.key}, level {record.level}, went back from {floor} to {number}")
        if number > sent:
            self.problems.append(f"{record.key} has {number}, which nobody has sent")
        if is_current:
            record.note(number, epoch, is_acknowledged=False)
        return number

    def check_all(self, seconds):
        """Reads every key from its active copy and from its replicas: what was acknowledged last,
        or something later, must be there, and the same in all copies. The writers have stopped."""
        router = Router(self.cluster, ANSWER_SECONDS)
        deadline = time.monotonic() + seconds
        for record in self.records:
            while (number := self.read(router, record)) is None:
                if time.monotonic() > deadline:
                    self.problems.append(f"{record.key} cannot be read within {seconds} s")
                    return
                time.sleep(PAUSE_SECONDS)
            if number < record.acknowledged:
                self.problems.append(
                    f"{record.key}, level {record.level}: {record.acknowledged} was acknowledged, "
                    f"{number} is there")
            self._check_replicas(record, number)

    def _check_replicas(self, record, number):
        vbucket = self.vbucket(record)
        for port in self.cluster.chains()[vbucket][1:]:
            if port is None:
                continue
            try:
                with Connection(HOST, port, 10) as connection:
                    connection.open_bucket(USER, PASSWORD, BUCKET)
                    response = connection.call(GET_REPLICA, key=record.key, vbucket=vbucket)
            except (ConnectionLost, TimeoutError) as error:
                self.problems.append(f"the replica of {record.key} cannot be read: {error}")
                continue
            if response.status not in (SUCCESS, KEY_NOT_FOUND):
                self.problems.append(f"the replica of {record.key} says {response.status:#x}")
            elif number_in(response) != number:
                self.problems.append(
                    f"{record.key} is {number}, its replica has {number_in(response)}")


def is_to_be_tried_again(response):
    """Whether nothing has come of a write for want of room: it is sent again, as SDKs do."""
    return response is not None and response.status == TEMPORARY_FAILURE


def encode(record, number, patience, vbucket):
    """The bytes of a write of a number."""
    if record.is_counter:
        extras, value, opcode = struct.pack(">QQI", 1, 1, 0), b"", INCREMENT
    else:
        extras, opcode = bytes(8), SET
        value = str(number).encode() + b" " * record.padding
    if record.level == 0:
        return request(opcode, key=record.key, extras=extras, value=value, vbucket=vbucket)
    return durable_request(opcode, record.key, extras, value, record.level, patience, vbucket)


def number_in(response):
    """The number that a document holds; 0 if there is none."""
    return int(response.value) if response.status == SUCCESS else 0
