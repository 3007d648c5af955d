"""The normal client: reads and writes small documents on a few connections and notes how long each
request takes."""

import time

from children import PROCESSES, Child
from mcbp import GET, SET, SUCCESS, open_bucket, vbucket_of

PHASES = ALONE, ATTACKED, OVER = range(3)
CONNECTIONS = 4
KEYS = 400
VALUE = b"v" * 200
PAUSE_SECONDS = 0.001
PATIENCE_SECONDS = 20
FAILURES_TOLD_MAX = 5


class Bystander:
    """The client's process, and which phase its measurements belong to."""

    def __init__(self, node, vbuckets, reads_only):
        self._phase = PROCESSES.RawValue("i", ALONE)
        self.child = Child(work, node, vbuckets, reads_only, self._phase)

    def begin(self, phase):
        """What is measured from now on belongs to another phase."""
        self._phase.value = phase

    def stop(self):
        """By phase, the times, sorted, and what failed."""
        return self.child.stop()


def work(node, vbuckets, reads_only, phase, stop):
    """Requests one after the other, with a pause behind each."""
    connections = [open_bucket(node, seconds=PATIENCE_SECONDS) for _ in range(CONNECTIONS)]
    keys = [b"bystander-%d" % number for number in range(KEYS)]
    for key in keys:
        connections[0].call_successfully(
            SET, key=key, extras=bytes(8), value=VALUE, vbucket=vbucket_of(key, vbuckets))
    times, failures = {phase: [] for phase in PHASES}, {phase: [] for phase in PHASES}
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
        turn += 1
        time.sleep(PAUSE_SECONDS)
    told = {phase: failed[:FAILURES_TOLD_MAX] for phase, failed in failures.items()}
    return {phase: sorted(measured) for phase, measured in times.items()}, told


def percentile(times, share):
    """The time within which this share of the requests was answered."""
    return times[min(len(times) - 1, int(len(times) * share))]
