"""The normal client: reads and writes small documents on a few connections and notes how long each
request takes; and how long a neighbour takes, asked in between, who has nothing to do with the
node."""

import socket
import time

from children import PROCESSES, Child
from mcbp import GET, SET, SUCCESS, open_bucket, vbucket_of
from neighbour import Neighbour, ask
from node import HOST

PHASES = ALONE, ATTACKED, OVER = range(3)
CONNECTIONS = 4
KEYS = 400
VALUE = b"v" * 200
PAUSE_SECONDS = 0.001
PATIENCE_SECONDS = 20
FAILURES_TOLD_MAX = 5


class Bystander:
    """The client's process and its neighbour's, and which phase measurements belong to."""

    def __init__(self, node, vbuckets, reads_only):
        self._phase = PROCESSES.RawValue("i", ALONE)
        self._neighbour = Neighbour()
        port = self._neighbour.port
        self._child = Child(work, node, port, vbuckets, reads_only, self._phase)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._child.__exit__(*error)
        self._neighbour.child.__exit__(*error)

    def begin(self, phase):
        """What is measured from now on belongs to another phase."""
        self._phase.value = phase

    def stop(self):
        """By phase, the times of the node and of the neighbour, sorted, and what failed."""
        report = self._child.stop()
        self._neighbour.child.stop()
        return report


def work(node, neighbour_port, vbuckets, reads_only, phase, stop):
    """Requests one after the other, with a pause behind each."""
    connections = [open_bucket(node, seconds=PATIENCE_SECONDS) for _ in range(CONNECTIONS)]
    keys = [b"bystander-%d" % number for number in range(KEYS)]
    for key in keys:
        connections[0].call_successfully(
            SET, key=key, extras=bytes(8), value=VALUE, vbucket=vbucket_of(key, vbuckets))
    neighbour = socket.create_connection((HOST, neighbour_port), timeout=PATIENCE_SECONDS)
    neighbour.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    times, neighbour_times, failures = by_phase(), by_phase(), by_phase()
    turn = 0
    while not stop.is_set():
        now = phase.value
        key, connection = keys[turn % KEYS], connections[turn % CONNECTIONS]
        is_write = turn % 3 == 0 and not reads_only
        extras, value = (bytes(8), VALUE) if is_write else (b"", b"")
        began = time.monotonic()
        try:
            response = connection.call(
                SET if is_write else GET, key=key, extras=extras, value=value,
                vbucket=vbucket_of(key, vbuckets))
            if response.status != SUCCESS:
                failures[now].append(f"status {response.status:#x}")
        except Exception as error:  # lost, too late or nonsense: all of it is a failed request
            failures[now].append(f"{type(error).__name__}: {error}")
            connections[turn % CONNECTIONS] = open_bucket(node, seconds=PATIENCE_SECONDS)
        times[now].append(time.monotonic() - began)
        time.sleep(PAUSE_SECONDS)
        began = time.monotonic()
        ask(neighbour)
        neighbour_times[now].append(time.monotonic() - began)
        turn += 1
        time.sleep(PAUSE_SECONDS)
    told = {phase: failed[:FAILURES_TOLD_MAX] for phase, failed in failures.items()}
    return ordered(times), ordered(neighbour_times), told


def by_phase():
    """A list for each phase."""
    return {phase: [] for phase in PHASES}


def ordered(times):
    """The times of each phase, sorted."""
    return {phase: sorted(measured) for phase, measured in times.items()}


def percentile(times, share):
    """The time within which this share of the requests was answered."""
    return times[min(len(times) - 1, int(len(times) * share))]
