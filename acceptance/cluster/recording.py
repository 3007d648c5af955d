"""Clients that remember what they sent, what was acknowledged and what they read, while nodes fail.

Each writer has keys of its own and writes rising numbers with durable writes; each reader reads
everybody's. A number that was acknowledged, or read, must never be followed by a smaller one.
"""

import contextlib
import hashlib
import threading
import time

from cluster_run import NOT_MY_VBUCKET
from mcbp import GET, KEY_NOT_FOUND, SUCCESS, durable_set, request
from router import Router

SYNC_WRITE_STATUSES = {0xA1, 0xA2, 0xA3, 0xA4}
DURABILITY_IMPOSSIBLE, AMBIGUOUS = 0xA1, 0xA3
TEMPORARY_FAILURE = 0x86
# How long writes wait for a majority, in turn: some give up while there is none, others outlast it.
WRITE_MILLISECONDS = (100, 500, 2000)
PAUSE_SECONDS = 0.01


def spread(name):
    """A key with this name. CRCs of names that differ in a digit lie in few vBuckets, of one parity
    for all writers alike; a digest makes them differ."""
    return f"{name}-{hashlib.sha256(name.encode()).hexdigest()[:8]}".encode()


class Record:
    """What is known of a key. `floor` is the smallest number that may be read from now on."""

    def __init__(self):
        self.lock = threading.Lock()
        self.sent = 0
        self.acknowledged = 0
        self.floor = 0

    def raise_floor(self, number):
        """The number was acknowledged, or read."""
        with self.lock:
            self.floor = max(self.floor, number)


class Clients:
    """Writers and readers, each a thread."""

    def __init__(self, cluster, writers=8, readers=2, keys=4, levels=(1, 2, 3), prefix="k"):
        self.cluster = cluster
        self.records = {spread(f"{prefix}-{writer}-{key}"): Record()
                        for writer in range(writers) for key in range(keys)}
        names = list(self.records)
        self.levels = levels
        self.problems = []
        self.acknowledged_count = 0
        self.refused_count = 0
        self.read_count = 0
        self._outage = None
        self._counting = threading.Lock()
        self._stop = threading.Event()
        owned = [names[writer * keys:(writer + 1) * keys] for writer in range(writers)]
        self._threads = (
            [threading.Thread(target=self._guard, args=(self._write, mine)) for mine in owned]
            + [threading.Thread(target=self._guard, args=(self._read, names))
               for _ in range(readers)])

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    @contextlib.contextmanager
    def without_majority(self):
        """Meanwhile no durable write can be begun and succeed."""
        self._outage = object()
        yield
        self._outage = None

    def _guard(self, body, keys):
        try:
            body(Router(self.cluster), keys)
        except Exception as error:  # a thread's failure is the case's
            self.problems.append(f"{type(error).__name__}: {error}")

    def _write(self, router, keys):
        turn = 0
        while not self._stop.is_set():
            turn += 1
            key, level = keys[turn % len(keys)], self.levels[turn % len(self.levels)]
            patience = WRITE_MILLISECONDS[turn // len(self.levels) % len(WRITE_MILLISECONDS)]
            record = self.records[key]
            record.sent += 1
            number, outage = record.sent, self._outage
            response = router.ask(
                key, lambda vbucket, key=key, number=number, level=level, patience=patience:
                durable_set(key, str(number).encode(), level, patience, vbucket))
            if response is not None and response.status == SUCCESS:
                if outage is not None and outage is self._outage:
                    self.problems.append(f"{key}: {number} was acknowledged without a majority")
                record.acknowledged = number
                record.raise_floor(number)
                self._count("acknowledged_count")
            else:
                self._check_failure(response)
                time.sleep(PAUSE_SECONDS)

    def _check_failure(self, response):
        expected = SYNC_WRITE_STATUSES | {NOT_MY_VBUCKET, TEMPORARY_FAILURE}
        if response is not None and response.status not in expected:
            self.problems.append(f"a durable write got status {response.status:#x}")
        if response is not None and response.status in (DURABILITY_IMPOSSIBLE, AMBIGUOUS):
            self._count("refused_count")

    def _count(self, name):
        with self._counting:
            setattr(self, name, getattr(self, name) + 1)

    def _read(self, router, keys):
        turn = 0
        while not self._stop.is_set():
            turn += 1
            if self.read(router, keys[turn % len(keys)]) is None:
                time.sleep(PAUSE_SECONDS)

    def read(self, router, key):
        """Reads a key and checks it; nothing if it cannot be read now."""
        record = self.records[key]
        with record.lock:
            floor = record.floor
        response = router.ask(key, lambda vbucket: request(GET, key=key, vbucket=vbucket))
        if response is None or response.status not in (SUCCESS, KEY_NOT_FOUND):
            return None
        number = int(response.value) if response.status == SUCCESS else 0
        if number < floor:
            self.problems.append(f"{key} went back from {floor} to {number}")
        if number > record.sent:
            self.problems.append(f"{key} has {number}, which nobody has sent")
        record.raise_floor(number)
        self._count("read_count")
        return number

    def check_all(self, seconds=30):
        """Reads every key: what was acknowledged last, or something later, must be there."""
        router = Router(self.cluster)
        deadline = time.monotonic() + seconds
        for key, record in self.records.items():
            while (number := self.read(router, key)) is None:
                if time.monotonic() > deadline:
                    self.problems.append(f"{key} cannot be read")
                    return
                time.sleep(PAUSE_SECONDS)
            if number < record.acknowledged:
                self.problems.append(
                    f"{key}: {record.acknowledged} was acknowledged, {number} is there")
