"""Suites whose cases are a program in another language.

The program is called with `node` or `cluster` and the names of the chosen cases, none for all. It
prints a line a case, and asks for what it cannot do itself: `NODE restart` is answered with
`NODE ready`, and `CLUSTER <order> <node>` with `CLUSTER done`. How to connect it finds in
variables. All is run with one front-end thread a node and with four.
"""

import glob
import os
import shutil
import subprocess
import sys
import threading

import certificates
from cases import report, report_listed, work_directory
from cluster_run import PASSWORD, USER, Cluster
from node import Node

# A small machine for Java's byte code that is soon up.
JAVA = ("java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# Cases, and what they expect.
JAVA_SHARED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "java")
FOUR = "-with-four-threads"
# Of each bucket of a cluster, where nobody says another number.
CLUSTER_VBUCKETS = 64
# How cases of two nodes begin.
CLUSTER_PREFIXES = ("sdk-", "tls-two-")
PROGRAM_SECONDS = 600
# What a program has said is read long before; one that it has left behind may hold the pipe.
REMARKS_SECONDS = 10


def kept_directory(suite):
    """What a suite downloads and builds, kept for the next run."""
    here = os.path.dirname(os.path.abspath(__file__))
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(here, "..", "..", "target"))
    directory = os.path.join(os.path.abspath(target), "acceptance-programs", suite)
    os.makedirs(directory, exist_ok=True)
    return directory


def copy_files(source, directory, names):
    """Copies what differs, so that a build sees what has changed."""
    for name in names:
        old, new = os.path.join(directory, name), os.path.join(source, name)
        if not os.path.exists(old) or read(old) != read(new):
            os.makedirs(os.path.dirname(old), exist_ok=True)
            shutil.copyfile(new, old)


def read(path):
    """The bytes of a file."""
    with open(path, "rb") as file:
        return file.read()


def class_path(suite, wanted):
    """The packages that a `pom.xml` names; downloaded once, and again when they change."""
    directory = kept_directory(suite)
    marker, path = os.path.join(directory, "pom.xml"), os.path.join(directory, "class-path")
    if not os.path.exists(marker) or read(marker) != read(wanted):
        repository = os.path.join(directory, "repository")
        subprocess.run(["mvn", "-q", "-B", "-f", wanted, f"-Dmaven.repo.local={repository}",
                        "dependency:build-classpath", f"-Dmdep.outputFile={path}"], check=True)
        # It leaves its colours without the end of a line.
        print(flush=True)
        shutil.copyfile(wanted, marker)
    return read(path).decode().strip()


def compiled_java(suite, directory, shared=True):
    """The class path of the program in Java that is below `directory` beside its `pom.xml`, with
    what such programs share."""
    packages = class_path(suite, os.path.join(directory, "pom.xml"))
    classes = os.path.join(work_directory(), "classes")
    roots = [os.path.join(directory, "src")] + [JAVA_SHARED] * shared
    sources = [path for root in roots
               for path in sorted(glob.glob(os.path.join(root, "acceptance", "*.java")))]
    subprocess.run(["javac", "-d", classes, "-cp", packages, *sources], check=True)
    return os.pathsep.join((classes, packages))


def run_suite(command, environment=None, node_flags=(), cluster_run=None):
    """Runs the chosen cases, or all; the exit status of the suite."""
    cluster_run = cluster_run or ClusterRun
    runs = [run for threads, suffix in ((1, ""), (4, FOUR))
            for run in (NodeRun(threads, suffix, node_flags), cluster_run(threads, suffix))]
    is_good, names = True, []
    for run in runs:
        chosen = run.chosen(sys.argv[1:])
        if chosen is not None:
            is_good &= run.run(command, chosen, environment or {})
            names += run.names
    if len(sys.argv) < 2:
        is_good &= report_listed(names)
    return 0 if is_good else 1


def told_of(node):
    """How a program connects to a node, as variables."""
    return {"SETTEE_CONNECT": node.connection_string, "SETTEE_USER": node.user,
            "SETTEE_PASSWORD": node.password, "SETTEE_PORT": str(node.port),
            "SETTEE_MANAGEMENT_PORT": str(node.management_port),
            "SETTEE_MEMCACHED_PORT": str(node.memcached_port), **certificates.told_of(node)}


def told_of_cluster(cluster):
    """How a program connects to several nodes, as variables."""
    return {"SETTEE_CONNECT": cluster.connection_string, "SETTEE_USER": USER,
            "SETTEE_PASSWORD": PASSWORD, "SETTEE_VBUCKETS": str(cluster.vbuckets),
            **certificates.told_of_cluster(cluster)}


def pass_on(stream):
    """Prints what comes, by whole lines: a case's line begins nowhere else."""
    for line in stream:
        sys.stdout.write(line)
        sys.stdout.flush()


class Run:
    """The cases of one kind with one number of threads."""

    def __init__(self, threads, suffix):
        self.threads, self.suffix = threads, suffix
        self.names = []

    def chosen(self, names):
        """Those of these cases that belong here, as the program calls them; `None` if none do."""
        if not names:
            return []
        mine = [name.removesuffix(FOUR) for name in names
                if name.endswith(FOUR) == bool(self.suffix) and self.has(name)]
        return mine or None

    def follow(self, command, environment, answer):
        """Passes on what the program prints and does what it asks; whether it ended well."""
        process = subprocess.Popen(
            command, env={**os.environ, **environment}, text=True, errors="replace",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        watchdog = threading.Timer(PROGRAM_SECONDS, process.kill)
        watchdog.start()
        remarks = threading.Thread(target=pass_on, args=(process.stderr,), daemon=True)
        remarks.start()
        try:
            for line in process.stdout:
                words = line.split()
                if words[:1] in (["NODE"], ["CLUSTER"]):
                    process.stdin.write(answer(words[1:]) + "\n")
                    process.stdin.flush()
                elif words[:1] == ["CASE"]:
                    self.report(words[1], " ".join(words[2:]))
                else:
                    print(line, end="", flush=True)
            return process.wait(30) == 0
        finally:
            watchdog.cancel()
            if process.poll() is None:
                process.kill()
                process.wait()
            remarks.join(REMARKS_SECONDS)

    def report(self, name, outcome):
        """A case's line, under the name that tells the number of threads."""
        self.names.append(name + self.suffix)
        report(name + self.suffix, outcome)

    def report_log(self, name, lines):
        """Whether the nodes' logs tell of no error."""
        self.report(name, f"FAIL {lines[0]}" if lines else "ok")
        return not lines


class NodeRun(Run):
    """One node of `VBUCKETS` vBuckets, 1024 if nobody says so."""

    def __init__(self, threads, suffix, flags):
        super().__init__(threads, suffix)
        self.flags = flags

    def has(self, name):
        """Whether a case is one of one node."""
        return not name.startswith(CLUSTER_PREFIXES)

    def run(self, command, chosen, environment):
        """Whether all went well."""
        flags = ("--threads", str(self.threads), *self.flags)
        with Node(f"node-{self.threads}", *flags) as node:
            def answer(_):
                node.restart()
                return "NODE ready"
            told = {**environment, **told_of(node)}
            is_good = self.follow([*command, "node", *chosen], told, answer)
            return self.report_log("node-log-is-clean", node.unexpected_log_lines()) and is_good


class ClusterRun(Run):
    """Two nodes with a replica each."""

    def has(self, name):
        """Whether a case is one of a cluster."""
        return name.startswith(CLUSTER_PREFIXES)

    def run(self, command, chosen, environment):
        """Whether all went well."""
        flags = (f"--node-argument=--threads={self.threads}",)
        vbuckets = int(os.environ.get("VBUCKETS", CLUSTER_VBUCKETS))
        name = f"cluster-{self.threads}"
        with Cluster(name, vbuckets=vbuckets, flags=flags) as cluster:
            def answer(words):
                if words[0] == "replicated":
                    cluster.wait_until_replicated()
                else:
                    cluster.tell(f"--{words[0]}", words[1])
                return "CLUSTER done"
            told = {**environment, **told_of_cluster(cluster)}
            return self.follow([*command, "cluster", *chosen], told, answer)
