"""Rounds of one kind of failure: clients load a cluster, something fails, and all is well again.

A round is short because it waits for what its clients have done, not for time: so many durable
writes acknowledged and so many reads, and from there a random time up to the failure.
"""

import contextlib
import os
import random
import time
from dataclasses import dataclass
from typing import Any, Callable

from cases import expect_equal, wait_until
from recording import Clients

# Of a load: what has to be done before it may end, and the random time that follows.
ACKNOWLEDGED_MIN = 50
READ_MIN = 50
LOAD_SECONDS_MAX = 0.3
# Longer than any order and any catching up may take on a machine that has more to do.
PATIENCE_SECONDS = 60


@dataclass
class Kind:
    """What fails, and where."""

    name: str
    # Gives the cluster that all rounds use.
    cluster: Callable[[], Any]
    # One round, between two loads.
    fail: Callable[["Round"], None]
    # Levels of the durable writes: those that promise to outlive this failure.
    levels: tuple = (1, 2, 3)

    def run(self, seed, rounds):
        """All rounds on one cluster, each with keys of its own; keys of earlier ones must last."""
        with self.cluster() as cluster:
            history = []
            for number in range(rounds):
                try:
                    history.append(self._run_one(cluster, seed, number))
                    check(history[-2:-1])
                except Exception as error:
                    raise AssertionError(f"round {number}: {error}") from error
            check(history)
            expect_equal(cluster.unexpected_log_lines(), [], "lines in the nodes' logs")

    def _run_one(self, cluster, seed, number):
        clients = Clients(cluster, levels=self.levels, prefix=f"round-{number}")
        with clients:
            one = Round(cluster, clients, random.Random(f"{seed} {self.name} {number}"), number)
            one.load()
            self.fail(one)
            one.load()
        check([clients])
        cluster.wait_until_replicated(PATIENCE_SECONDS)
        return clients


@dataclass
class Round:
    """What a failure is made with."""

    cluster: Any
    clients: Clients
    random: random.Random
    number: int

    def load(self):
        """The clients do a minimum, and more until a random moment."""
        self.reads()
        acknowledged = self.clients.acknowledged_count + ACKNOWLEDGED_MIN
        self._wait_for(lambda: self.clients.acknowledged_count >= acknowledged,
                       f"{ACKNOWLEDGED_MIN} durable writes are acknowledged")
        self.pause()

    def reads(self):
        """The clients read a minimum."""
        read = self.clients.read_count + READ_MIN
        self._wait_for(lambda: self.clients.read_count >= read, f"{READ_MIN} keys are read")

    def pause(self, share=1.0):
        """A random time, which often is no time."""
        time.sleep(max(0, self.random.uniform(-0.25, 1)) * LOAD_SECONDS_MAX * share)

    @contextlib.contextmanager
    def without_majority(self):
        """Between the failure and its end no durable write may succeed; some have to say so."""
        refused = self.clients.refused_count
        with self.clients.without_majority():
            yield
            self._wait_for(lambda: self.clients.refused_count > refused,
                           "a durable write says that it has no majority")
            self.pause()

    def _wait_for(self, question, what):
        """Waits, unless something has gone wrong already."""
        wait_until(lambda: self.clients.problems or question(), PATIENCE_SECONDS, what)
        expect_equal(self.clients.problems, [], "what should not have happened")


def check(history):
    """What the clients of these rounds have seen, and what is there now, is what the rules allow."""
    for clients in history:
        clients.check_all(PATIENCE_SECONDS)
        expect_equal(clients.problems, [], "what should not have happened")


def wait_until_stopped(process):
    """Waits until no thread of a process that was sent SIGSTOP runs any more."""
    def is_stopped():
        directory = f"/proc/{process}/task"
        for thread in os.listdir(directory):
            with open(f"{directory}/{thread}/stat", encoding="utf-8") as file:
                if file.read().rpartition(")")[2].split()[0] not in "Tt":
                    return False
        return True

    wait_until(is_stopped, PATIENCE_SECONDS, "all threads stand still")
