"""One attack on one node, and what must hold meanwhile and afterwards."""

import base64
import os
import shutil
import threading
import time
import urllib.request

from attack import newcomer
from bystander import ALONE, ATTACKED, OVER, Bystander, percentile
from cases import expect, expect_equal, wait_until
from children import Child
from mcbp import SET, SUCCESS, vbucket_of
from node import HOST, Node

MIB = 1 << 20
QUOTA_BYTES = 256 * MIB
VBUCKETS = 16
# What the process takes beside its documents: code, stacks, buffers of sockets and files, a quarter
# of the quota of what clients have sent and not read.
RESIDENT_BASE_BYTES = 160 * MIB
# The normal client's p99 under attack: a multiple of what it is alone and of what a neighbour of the
# node takes meanwhile, and what the scheduler of a machine with two CPUs adds when attacker, client
# and node share them.
SLOWER_RATIO = 3
NOISE_SECONDS = 0.025
LOOK_SECONDS = 0.05
NEWCOMER_SECONDS = 5
ADMINISTRATOR_SECONDS = 5
STOP_SECONDS = 30
WRITES_AGAIN_SECONDS = 20
ATTACKER_NICE = 10


class TooSlow(AssertionError):
    """The normal client was slower than it may be; everything else held."""


class LimitedNode(Node):
    """A node that may have only so many descriptors."""

    def __init__(self, name, *flags, descriptors=None):
        super().__init__(name, *flags)
        self._descriptors = descriptors

    def arguments(self):
        """The command line, behind the limit."""
        limit = ["prlimit", f"--nofile={self._descriptors}"] if self._descriptors else []
        return limit + super().arguments()


class Visitors(threading.Thread):
    """The administrator and new clients, who come again and again while others attack."""

    def __init__(self, node, administrator_seconds):
        super().__init__()
        self._node, self._administrator_seconds = node, administrator_seconds
        self._over = threading.Event()
        self.problems, self.administrator_times = [], []
        self.newcomers, self.turned_away, self.newcomer_times = 0, 0, []

    def run(self):
        """Visits until told to stop."""
        while not self._over.wait(0.5):
            if self._administrator_seconds is not None:
                self._visit_as_administrator()
            self._visit_as_newcomer()

    def _visit_as_administrator(self):
        began = time.monotonic()
        try:
            rest_status(self._node, "/settee/clusterMap", self._administrator_seconds)
        except OSError as error:
            self.problems.append(f"the administrator got {error}")
        self.administrator_times.append(time.monotonic() - began)

    def _visit_as_newcomer(self):
        began = time.monotonic()
        try:
            newcomer(self._node, NEWCOMER_SECONDS).close()
            self.newcomers += 1
        except Exception:  # told, not judged: who comes under attack may be turned away
            self.turned_away += 1
        self.newcomer_times.append(time.monotonic() - began)

    def stop(self):
        """Ends the visits."""
        self._over.set()
        self.join()


def rest_status(node, path, seconds):
    """The status of the administrator's request."""
    login = base64.b64encode(f"{node.user}:{node.password}".encode()).decode()
    request = urllib.request.Request(f"http://{HOST}:{node.management_port}{path}", headers={
        "Authorization": f"Basic {login}"})
    with urllib.request.urlopen(request, timeout=seconds) as answer:
        answer.read()
        return answer.status


def case(attack, threads, seconds):
    """A case of this attack. What fails by time alone is measured once more."""
    def measure_and_once_more():
        name = f"{attack.name}-{threads}"
        try:
            run(attack, name, threads, seconds)
        except TooSlow as slow:
            print(f"{name}: once more, because {slow}", flush=True)
            run(attack, f"{name}-again", threads, seconds)
    return measure_and_once_more


def run(attack, name, threads, seconds):
    """Starts a node, has it attacked and asks what became of everybody."""
    flags = ["--memory-quota", str(QUOTA_BYTES), "--vbuckets", str(VBUCKETS),
             "--threads", str(threads), *attack.flags]
    with LimitedNode(name, *flags, descriptors=attack.descriptors) as node:
        if attack.prepare:
            attack.prepare(node)
        bystander = Bystander(node, VBUCKETS, attack.stops_writes)
        with bystander:
            time.sleep(max(1.5, seconds / 10))
            before = resident_bytes(node)
            attacked(attack, node, bystander, seconds)
            bystander.begin(OVER)
            newcomer(node, NEWCOMER_SECONDS).close()
            seconds_to_write = WRITES_AGAIN_SECONDS if attack.stops_writes else NEWCOMER_SECONDS
            wait_until(lambda: takes_writes(node), seconds_to_write, "writes are taken")
            expect_equal(rest_status(node, "/pools", ADMINISTRATOR_SECONDS), 200, "GET /pools")
            times, neighbour_times, failures = bystander.stop()
        peak = resident_bytes(node)
        node.stop(STOP_SECONDS)
        lines = node.unexpected_log_lines(attack.log_lines)
    shutil.rmtree(node.data_directory)
    bound = QUOTA_BYTES + RESIDENT_BASE_BYTES + attack.resident_slack_bytes
    print(f"{name}: resident {before / MIB:.0f} MiB before, at most {peak / MIB:.0f} MiB, bound "
          f"{bound / MIB:.0f} MiB", flush=True)
    judge(name, times, failures, lines)
    expect(peak <= bound, f"{peak} bytes were resident, above {bound}")
    judge_time(name, times, neighbour_times)


def takes_writes(node):
    """Whether a new client's document is taken."""
    with newcomer(node, NEWCOMER_SECONDS) as connection:
        key = b"newcomer"
        vbucket = vbucket_of(key, VBUCKETS)
        stored = connection.call(SET, key=key, extras=bytes(8), value=b"x", vbucket=vbucket)
        return stored.status == SUCCESS


def attacked(attack, node, bystander, seconds):
    """The attack itself."""
    with Child(attack_nicely, attack.attacker, node) as attacker:
        visitors = Visitors(node, attack.administrator_seconds)
        visitors.start()
        bystander.begin(ATTACKED)
        end = time.monotonic() + seconds
        while time.monotonic() < end and not attacker.is_over():
            time.sleep(LOOK_SECONDS)
        visitors.stop()
        report = attacker.stop()
    print(f"{attack.name}: {report}; newcomers {visitors.newcomers}, "
          f"turned away {visitors.turned_away}, slowest {longest(visitors.newcomer_times):.2f} s; "
          f"administrator's slowest {longest(visitors.administrator_times):.2f} s", flush=True)
    expect_equal(visitors.problems, [], "what the administrator met")
    if attack.lets_newcomers_in:
        expect_equal(visitors.turned_away, 0, "newcomers that were turned away")


def attack_nicely(attacker, node, stop):
    """The attacker takes the CPUs that others leave."""
    os.nice(ATTACKER_NICE)
    return attacker(node, stop)


def longest(times):
    """The longest time, or none."""
    return max(times, default=0)


def resident_bytes(node):
    """The most bytes of memory that the process ever had."""
    with open(f"/proc/{node.process.pid}/status", encoding="ascii") as file:
        size = next(line for line in file if line.startswith("VmHWM"))
    return int(size.split()[1]) * 1024


def judge(name, times, failures, lines):
    """Nobody was refused, and nothing is in the log."""
    alone, under = p99s(times)
    print(f"{name}: p99 alone {alone * 1000:.2f} ms, under attack {under * 1000:.2f} ms, longest "
          f"{times[ATTACKED][-1] * 1000:.1f} ms of {len(times[ATTACKED])}", flush=True)
    failures = {phase: failed for phase, failed in failures.items() if failed}
    expect_equal(failures, {}, "failed requests of the normal client, by phase")
    expect_equal(lines, [], "lines in the node's log")


def p99s(times):
    """The normal client's p99 alone and under attack."""
    return [percentile(times[phase], 0.99) for phase in (ALONE, ATTACKED)]


def judge_time(name, times, neighbour_times):
    """Comes last, because what is too slow is measured again. What the machine does to others at
    the moment, it does to the node, too."""
    (alone, under), (_, neighbour) = p99s(times), p99s(neighbour_times)
    bound = SLOWER_RATIO * (alone + neighbour) + NOISE_SECONDS
    print(f"{name}: a neighbour's p99 meanwhile {neighbour * 1000:.2f} ms, bound "
          f"{bound * 1000:.1f} ms", flush=True)
    if under > bound:
        raise TooSlow(f"p99 was {alone * 1000:.2f} ms alone and {under * 1000:.2f} ms under attack")
