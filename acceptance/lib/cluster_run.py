"""A cluster under test: `settee cluster-run` and its nodes."""

import json
import os
import re
import socket
import subprocess
import time

from cases import wait_until, work_directory
from mcbp import Connection, ConnectionLost
from node import COLOUR, HOST, UNEXPECTED_LOG_LINE

USER, PASSWORD, BUCKET = "Administrator", "password", "default"
START_SECONDS = 60
NOT_MY_VBUCKET = 0x07


def free_base(count):
    """The first of `count` ports in a row on which nobody listens now. Suites that start together
    have numbers that follow each other, and search apart from each other."""
    for base in range(20000 + os.getpid() % 300 * 40, 32000, count):
        probes = []
        try:
            for port in range(base, base + count):
                probe = socket.socket()
                probes.append(probe)
                probe.bind((HOST, port))
        except OSError:
            continue
        finally:
            for probe in probes:
                probe.close()
        return base
    raise RuntimeError("no ports are free")


def is_replicated(vbucket, copies):
    """Whether what the nodes with the copies of a vBucket say of these is the same seqno. A copy
    that is not whole may have that by chance, in a branch that was given up, and a failover does
    not trust it."""
    return (len({copy.get(f"vb_{vbucket}:high_seqno") for copy in copies}) <= 1
            and all(copy.get(f"vb_{vbucket}:whole") == "true" for copy in copies))


class Cluster:
    """Several nodes with a directory of their own below the suite's work directory."""

    def __init__(self, name, nodes=2, replicas=1, vbuckets=64, flags=()):
        self.directory = os.path.join(work_directory(), name)
        self.nodes, self.vbuckets = nodes, vbuckets
        self.base = free_base(4 * nodes)
        self._process = None
        self._arguments = [
            "--nodes", str(nodes), "--replicas", str(replicas), "--vbuckets", str(vbuckets),
            "--port-base", str(self.base), "--management-port-base", str(self.base + 2 * nodes),
            *flags]
        if "--memory-quota" not in flags:
            self._arguments += ["--memory-quota", "128MiB"]

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Stops all nodes in order, if they run."""
        if self._process.poll() is None:
            self.tell("--stop")
            self._process.wait(60)

    def start(self):
        """Starts all nodes and returns when they serve."""
        os.makedirs(self.directory, exist_ok=True)
        with open(os.path.join(self.directory, "cluster.log"), "ab") as log:
            self._process = subprocess.Popen(
                [os.environ["SETTEE_BINARY"], "cluster-run", "--dir", self.directory,
                 *self._arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS
        while self._tell("--status").returncode != 0:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the cluster does not start: {self.log_end()}")
            time.sleep(0.05)

    def _tell(self, *order):
        return subprocess.run(
            [os.environ["SETTEE_BINARY"], "cluster-run", "--dir", self.directory, *order],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=130, check=False)

    def tell(self, order, node=None, force=False):
        """An order to the running cluster, which must succeed."""
        self.answer(order, node, force)

    def answer(self, order, node=None, force=False, fails=False):
        """What is said to an order, which must succeed, or fail."""
        done = self._tell(order, *([] if node is None else [str(node)]),
                          *(["--force"] if force else []))
        text = done.stdout.decode(errors="replace")
        if (done.returncode != 0) != fails:
            raise RuntimeError(f"{order} {node}: {text}")
        return text

    def port(self, node):
        """The data port of a node."""
        return self.base + 2 * node

    def management_port(self, node):
        """The management port of a node."""
        return self.base + 2 * self.nodes + node

    def process_id(self, node):
        """The process of a node that serves, or did when it was last heard of."""
        with open(os.path.join(self.directory, f"n_{node}.ready"), encoding="utf-8") as file:
            return json.load(file)["pid"]

    @property
    def connection_string(self):
        """For SDKs."""
        seeds = ",".join(f"{HOST}:{self.port(node)}" for node in range(self.nodes))
        return f"couchbase://{seeds}"

    def chains(self):
        """For each vBucket the data ports of its active copy and its replicas, as the map says."""
        with open(os.path.join(self.directory, "map.json"), encoding="utf-8") as file:
            plan = json.load(file)
        ports = [node["kv"] for node in plan["nodes"]]
        return [[None if node is None else ports[node] for node in chain]
                for chain in plan["vbuckets"]]

    def statistics(self, node, group):
        """Statistics of a node, as a dictionary."""
        with Connection(HOST, self.port(node), 10) as connection:
            connection.open_bucket(USER, PASSWORD, BUCKET)
            return connection.statistics(group)

    def wait_until_replicated(self, seconds=30):
        """Waits until every replica has everything that its active copy has, and knows it."""
        wait_until(self._is_replicated, seconds, "the replicas have everything")

    def _is_replicated(self):
        chains = self.chains()
        try:
            details = {self.port(node): self.statistics(node, "vbucket-details")
                       for node in range(self.nodes)
                       if any(self.port(node) in chain for chain in chains)}
        except ConnectionLost:
            return False
        return all(is_replicated(vbucket, [details[port] for port in chain if port is not None])
                   for vbucket, chain in enumerate(chains))

    def log_end(self, size=1500):
        """The end of what the cluster has printed."""
        with open(os.path.join(self.directory, "cluster.log"), "rb") as log:
            return log.read()[-size:].decode(errors="replace")

    def log(self):
        """All that the cluster has printed."""
        with open(os.path.join(self.directory, "cluster.log"), encoding="utf-8") as log:
            return log.read()

    def unexpected_log_lines(self, expected=()):
        """Lines of the nodes' logs that tell of an error."""
        lines = []
        for node in range(self.nodes):
            path = os.path.join(self.directory, f"n_{node}.log")
            with open(path, encoding="utf-8", errors="replace") as log:
                stripped = (COLOUR.sub("", line).strip() for line in log)
                lines += [line for line in stripped if UNEXPECTED_LOG_LINE.search(line)
                          and not any(re.search(pattern, line) for pattern in expected)]
        return lines
