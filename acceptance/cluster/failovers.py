"""Cases: a node is given up under durable writers, and no key is left behind."""

import random
import time

from cases import expect_equal, wait_until
from cluster_run import Cluster
from mcbp import SET, SUCCESS, request
from recording import PAUSE_SECONDS, Clients
from router import Router
from rounds import PATIENCE_SECONDS, check, wait_until_stopped

VBUCKETS = 16
WRITERS, KEYS_EACH = 12, 40
# Of a load: what has to be acknowledged before it may end, and the random time that follows.
ACKNOWLEDGED_MIN = 100
LOAD_SECONDS_MAX = 0.5
# How long a key may answer that its last write is not settled: what has to be on the disk of the
# node that is left goes there. Nobody gives an order meanwhile.
SETTLED_SECONDS = 10


def declare(cases, seed, rounds):
    """With one front-end thread a node, and with four."""
    for threads, suffix in ((1, ""), (4, "-with-four-threads")):
        cases.add(f"failover-leaves-no-key-behind{suffix}",
                  lambda threads=threads: run(seed, rounds, threads))


def run(seed, rounds, threads):
    """All rounds on one cluster, each with keys of its own; keys of earlier ones must last."""
    name = f"left-behind-{threads}"
    flags = [f"--node-argument=--threads={threads}"]
    with Cluster(name, vbuckets=VBUCKETS, flags=flags) as cluster:
        history = []
        for number in range(rounds):
            clients = Clients(cluster, WRITERS, readers=0, keys=KEYS_EACH, prefix=f"{number}")
            try:
                fail_over(cluster, clients, number, random.Random(f"{seed} {name} {number}"))
                check([clients])
            except Exception as error:
                raise AssertionError(f"round {number}: {error}") from error
            history.append(clients)
        check(history)
        expect_equal(cluster.unexpected_log_lines(), [], "lines in the nodes' logs")


def fail_over(cluster, clients, number, chance):
    """One round: a node is killed, or hangs, and is given up. Every key can be read and written
    before it is taken in again."""
    lost, hangs = number % 2, number // 2 % 2 == 1
    with clients:
        wait_until(lambda: clients.problems or clients.acknowledged_count >= ACKNOWLEDGED_MIN,
                   PATIENCE_SECONDS, f"{ACKNOWLEDGED_MIN} durable writes are acknowledged")
        time.sleep(chance.uniform(0, LOAD_SECONDS_MAX))
        cluster.tell("--pause" if hangs else "--kill", lost)
        if hangs:
            wait_until_stopped(cluster.process_id(lost))
        time.sleep(chance.uniform(0, LOAD_SECONDS_MAX))
        cluster.tell("--failover", lost)
    expect_equal(keys_left_behind(cluster, clients), [], "keys that cannot be read and written")
    if hangs:
        cluster.tell("--resume", lost)
    cluster.tell("--recover", lost)
    cluster.wait_until_replicated(PATIENCE_SECONDS)


def keys_left_behind(cluster, clients):
    """Reads and writes every key once; returns those that refuse it for long."""
    router = Router(cluster)
    deadline = time.monotonic() + SETTLED_SECONDS
    return [key for key in clients.records
            if not (is_done(lambda key=key: clients.read(router, key) is not None, deadline)
                    and is_done(lambda key=key: write(router, clients, key), deadline))]


def is_done(attempt, deadline):
    """Whether it succeeds; tried at least once."""
    while not attempt():
        if time.monotonic() > deadline:
            return False
        time.sleep(PAUSE_SECONDS)
    return True


def write(router, clients, key):
    """An ordinary write of the next number."""
    record = clients.records[key]
    number = record.sent + 1
    response = router.ask(key, lambda vbucket: request(
        SET, key=key, extras=bytes(8), value=str(number).encode(), vbucket=vbucket))
    if response is None or response.status != SUCCESS:
        return False
    record.sent = record.acknowledged = number
    record.raise_floor(number)
    return True
