"""One round: a cluster under load, events, and what must hold during and after them."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time

import events
from cases import expect, expect_equal, wait_until, work_directory
from clients import Clients
from cluster_run import BUCKET, Cluster
from damage import mend
from filler import Filler
from mcbp import ConnectionLost

ORDER_SECONDS = 20
STOP_SECONDS = 30
# Two other suites run beside this one, on two CPUs.
DURABLE_AGAIN_SECONDS = 60
ALIKE_SECONDS = 60
SMALL_DISK_MIB = 700
# What a damaged file and a full disk are allowed to log.
EXPECTED_ERRORS = {
    "damage": r"corrupt|damaged|cannot be read|does not serve|out of service|missing|backup"
              r"|journal",
    "disk-full": r"[Nn]o space|disk|room|flush|writes are refused",
}
# What is kept of a node when something does not hold; the first is the general group.
SAVED_STATISTICS = ("", "memory", "vbucket-details", "durability-monitor", "checkpoint", "dcp",
                    "journal", "tasks", "clustermap")
VERIFIER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools",
                        "couchverify.py")


class Chaos:
    """What a round works with. Fails with AssertionError when something does not hold."""

    def __init__(self, plan):
        self.plan = plan
        self.cluster = Cluster(f"seed-{plan.seed}", nodes=plan.nodes, replicas=plan.replicas,
                               vbuckets=plan.vbuckets, flags=plan.flags())
        levels = (0, 1) if plan.is_ephemeral else events.ALL
        self.clients = Clients(self.cluster, plan, levels)
        self.damaged = []
        self.slowest = {}
        self.terminated = 0
        self._began = time.monotonic()

    def say(self, what):
        """A line of the round's story, on standard error."""
        print(f"  {time.monotonic() - self._began:6.1f} s  {what}", file=sys.stderr, flush=True)

    def run(self):
        """The whole round."""
        with contextlib.ExitStack() as stack:
            if self.plan.needs_small_disk:
                for node in range(self.plan.nodes):
                    events.mount_small_disk(self.node_directory(node), SMALL_DISK_MIB)
                    stack.callback(events.unmount, self.node_directory(node))
            stack.enter_context(self.cluster)
            with Filler(self.cluster, self.plan) as filler, self.clients:
                with self._saving_what_the_nodes_say():
                    self._go_through_the_events()
                filler.stop()
                self.clients.stop()
            with self._saving_what_the_nodes_say():
                self._check_copies()
            self.stop()
            self._check_what_is_left()
        shutil.rmtree(self.cluster.directory)

    def _go_through_the_events(self):
        time.sleep(0.5)
        self._wait_for_durable_writes()
        for event in self.plan.events:
            self.say(str(event))
            events.carry_out(event, self)
            self._wait_for_durable_writes()

    @contextlib.contextmanager
    def _saving_what_the_nodes_say(self):
        """When something does not hold, the nodes' statistics are left beside their data."""
        try:
            yield
        except AssertionError:
            for node in range(self.plan.nodes):
                path = os.path.join(self.cluster.directory, f"statistics-n_{node}.txt")
                with open(path, "w", encoding="utf-8") as file:
                    for group in SAVED_STATISTICS:
                        file.write(f"== {group}\n{self._statistics(node, group)}\n")
            raise

    def _statistics(self, node, group):
        try:
            found = self.cluster.statistics(node, group)
        except (ConnectionLost, TimeoutError, OSError) as error:
            return str(error)
        return "\n".join(f"{name} {value}" for name, value in found.items())

    def order(self, order, node):
        """An order to the cluster, which must be carried out in time."""
        began = time.monotonic()
        self.cluster.tell(order, node)
        self._took(order, time.monotonic() - began,
                   ORDER_SECONDS + (STOP_SECONDS if order == "--restart" else 0))

    def stop(self):
        """All nodes stop in order."""
        began = time.monotonic()
        self.cluster.stop()
        self._took("stop", time.monotonic() - began, STOP_SECONDS)

    def terminate(self, node):
        """One node stops in order."""
        began = time.monotonic()
        self.terminated += 1
        events.end_process(self.cluster.process_id(node), STOP_SECONDS)
        self._took("stop", time.monotonic() - began, STOP_SECONDS)

    def _took(self, what, seconds, seconds_max):
        self.say(f"{what} took {seconds:.1f} s")
        self.slowest[what] = max(self.slowest.get(what, 0), seconds)
        expect(seconds <= seconds_max, f"{what} took {seconds:.1f} s, more than {seconds_max}")

    @contextlib.contextmanager
    def losing(self, levels, nodes):
        """Meanwhile keys of these levels whose active copy is on these nodes may lose what they
        hold."""
        with self.clients.exposed(levels, self._active_on(nodes)):
            yield

    @contextlib.contextmanager
    def reading_the_past(self, nodes):
        """Meanwhile reads of keys whose active copy is on these nodes may be older than others."""
        with self.clients.read_freely(self._active_on(nodes)):
            yield

    def _active_on(self, nodes):
        ports = {self.cluster.port(node) for node in nodes}
        return {vbucket for vbucket, chain in enumerate(self.cluster.chains())
                if chain[0] in ports or chain[0] is None}

    def catch_up(self):
        """Waits until all copies, and the active ones' disks, have what the active copies have
        now, while the load goes on."""
        sample = {}

        def has_sample():
            try:
                sample.update(self._sample())
                return True
            except (ConnectionLost, TimeoutError, KeyError):
                return False

        began = time.monotonic()
        wait_until(has_sample, ALIKE_SECONDS, "all active copies say how far they are")
        behind = [None]

        def have_it():
            behind[0] = self._behind(sample)
            return not behind[0]

        try:
            wait_until(have_it, ALIKE_SECONDS, "all copies have what the active ones had")
        except AssertionError as error:
            raise AssertionError(f"{error}: {behind[0]}") from None
        self._took("catching up", time.monotonic() - began, 2 * ALIKE_SECONDS)

    def _seqnos(self):
        return {self.cluster.port(node): self.cluster.statistics(node, "vbucket-seqno")
                for node in range(self.plan.nodes)}

    def _sample(self):
        seqnos = self._seqnos()
        return {vbucket: int(seqnos[chain[0]][f"vb_{vbucket}:abs_high_seqno"])
                for vbucket, chain in enumerate(self.cluster.chains())}

    def _behind(self, sample):
        """The first copy that lacks something of the sample, in words."""
        try:
            seqnos = self._seqnos()
        except (ConnectionLost, TimeoutError) as error:
            return f"a node does not answer: {error}"
        for vbucket, chain in enumerate(self.cluster.chains()):
            if None in chain:
                return f"vBucket {vbucket} has the chain {chain}"
            for port in chain:
                of_port = seqnos[port]
                high = int(of_port.get(f"vb_{vbucket}:abs_high_seqno", -1))
                persisted = int(of_port.get(f"vb_{vbucket}:last_persisted_seqno", -1))
                if high < sample[vbucket]:
                    return f"vBucket {vbucket} on {port} is at {high} of {sample[vbucket]}"
                if not self.plan.is_ephemeral and persisted < sample[vbucket]:
                    return f"vBucket {vbucket} on {port} persisted {persisted} of {sample[vbucket]}"
        return None

    def _wait_for_durable_writes(self):
        """Every key with durable writes has another one acknowledged."""
        before, stuck = self.clients.counts(), []

        def all_go_on():
            if self.clients.problems:
                return True
            now = self.clients.stuck(before)
            stuck[:] = now or stuck
            return not now

        began = time.monotonic()
        try:
            wait_until(all_go_on, DURABLE_AGAIN_SECONDS, "durable writes of every key")
        except AssertionError as error:
            raise AssertionError(f"{error}; stuck: {'; '.join(stuck[:6])}; all refusals "
                                 f"{self.clients.refusals}") from None
        if stuck:
            self.say(f"the last one: {stuck[0]}")
        self._took("durable writes", time.monotonic() - began, DURABLE_AGAIN_SECONDS)
        self._expect_no_problems()

    def _expect_no_problems(self):
        problems = self.clients.problems
        expect(not problems, f"{len(problems)} problems: {'; '.join(problems[:3])}")

    def _check_copies(self):
        began = time.monotonic()
        self.cluster.wait_until_replicated(ALIKE_SECONDS)
        self._took("copies alike", time.monotonic() - began, ALIKE_SECONDS)
        self.clients.check_all(ALIKE_SECONDS)
        self._expect_no_problems()

    def _check_what_is_left(self):
        ended = re.findall("n_[0-9]+ has ended by itself.*", self.cluster.log())
        expect(len(ended) <= self.terminated, f"processes ended by themselves: {ended}")
        kinds = {event.kind for event in self.plan.events}
        expected = [pattern for kind, pattern in EXPECTED_ERRORS.items() if kind in kinds]
        expect_equal(self.cluster.unexpected_log_lines(expected), [], "lines in the nodes' logs")
        if self.plan.is_ephemeral:
            return
        for node, path in self.damaged:
            mend(path)
        tainted = {node for node, _ in self.damaged}
        for node in set(range(self.plan.nodes)) - tainted:
            self._verify(node)

    def _verify(self, node):
        directory = self.node_directory(node)
        done = subprocess.run([os.environ["SETTEE_BINARY"], "verify-file", directory],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        expect(done.returncode == 0, f"n_{node}: {done.stdout.decode()[-400:]}")
        bucket = self.bucket_directory(node)
        files = sorted(os.path.join(bucket, name) for name in os.listdir(bucket)
                       if ".couch." in name)
        sizes = [path for path in files if os.path.getsize(path) < 4 << 20][:2]
        if sizes:
            done = subprocess.run([sys.executable, VERIFIER, *sizes],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            expect(done.returncode == 0, f"n_{node}: {done.stdout.decode()[-400:]}")

    def node_directory(self, node):
        """Where a node keeps its data."""
        return os.path.join(self.cluster.directory, f"n_{node}")

    def bucket_directory(self, node):
        """Where its vBuckets' files are."""
        return os.path.join(self.node_directory(node), "buckets", BUCKET)
