"""Cases: replicas are promoted while something is in the way, or not at all."""

import base64
import json
import os
import re
import shutil
import subprocess
import threading
import time
import urllib.request

from cases import expect, expect_equal, wait_until
from cluster_run import BUCKET, HOST, PASSWORD, USER, Cluster
from mcbp import GET, KEY_NOT_FOUND, SUCCESS, durable_set, request, vbucket_of
from rounds import wait_until_stopped
from router import Router

VBUCKETS = 16
COUNT = 2000
MAJORITY, MAJORITY_AND_ACTIVE_DISK = 1, 2
TIMEOUT_MS = 10_000
# A disk may keep one sync for ten seconds while another suite writes.
STORE_TIMEOUT_MS = 60_000
PATIENCE_SECONDS = 30
EPHEMERAL = "--node-argument=--bucket-type=ephemeral"
FILES = ["--node-argument=--persistence=files"]
# What files cannot keep up with where the journal has the smallest size.
LOADS, LOAD_BYTES = 3, 20_000
FULL_WAITS_MIN = 10
COUNTERS, FAILOVERS = 8, 30


def declare(cases):
    """One cluster for each case."""
    for function in (ephemeral_node_restarts_in_order_without_a_loss,
                     ephemeral_node_that_has_lost_its_memory_empties_no_replica,
                     ephemeral_cluster_without_replicas_begins_empty,
                     ephemeral_node_without_its_map_goes_on_with_it,
                     node_that_has_lost_its_disk_empties_no_replica,
                     failover_goes_past_a_damaged_replica_and_names_it,
                     failover_does_not_guess_about_a_silent_member,
                     failover_of_a_node_that_serves_loses_nothing,
                     failover_refuses_a_copy_that_is_not_whole_yet,
                     failover_by_force_loses_what_a_copy_lacks,
                     failover_is_carried_out_while_journals_are_full):
        name = function.__name__.replace("_", "-")
        cases.add(name, lambda function=function, name=name: function(name))


def ephemeral_node_restarts_in_order_without_a_loss(name):
    with Cluster(name, vbuckets=VBUCKETS, flags=[EPHEMERAL]) as cluster:
        store_all(cluster)
        cluster.tell("--restart", 0)
        expect_all_readable(cluster)
        cluster.wait_until_replicated(PATIENCE_SECONDS)
        cluster.tell("--restart", 1)
        expect_all_readable(cluster)


def ephemeral_node_that_has_lost_its_memory_empties_no_replica(name):
    """The node starts with its map while the other one hangs, so that nobody was promoted."""
    with Cluster(name, vbuckets=VBUCKETS, flags=[EPHEMERAL]) as cluster:
        store_all(cluster)
        cluster.tell("--pause", 1)
        wait_until_stopped(cluster.process_id(1))
        cluster.tell("--kill", 0)
        cluster.tell("--restart", 0, force=True)
        wait_until(lambda: "does not answer" in cluster.answer("--status"), PATIENCE_SECONDS,
                   "the node says for whom it waits")
        cluster.tell("--resume", 1)
        wait_until(lambda: "holds a replica" in cluster.answer("--status"), PATIENCE_SECONDS,
                   "the node says who holds its documents")
        waiting = re.search(r"not active yet: vBuckets ([0-9, ]+):", cluster.answer("--status"))
        expect_equal([int(number) for number in waiting.group(1).split(",")],
                     [vbucket for vbucket, chain in enumerate(cluster.chains())
                      if chain[0] == cluster.port(0)], "vBuckets that wait")
        statistics = cluster.statistics(0, "clustermap")
        expect_equal(statistics["pending_vbuckets"], str(VBUCKETS // 2), "the statistic")
        expect("holds a replica" in statistics["vb_0:reason"], "the statistic has the reason")
        pending = map_of(cluster, 0)["pending"]
        expect_equal({(each["vbucket"], each["wanted"]) for each in pending},
                     {(vbucket, "active") for vbucket in range(0, VBUCKETS, 2)}, "GET")
        cluster.tell("--failover", 0)
        cluster.tell("--recover", 0)
        expect_all_readable(cluster)
        expect_equal(map_of(cluster, 0)["pending"], [], "what is left")


def ephemeral_cluster_without_replicas_begins_empty(name):
    """Nobody else has anything, so that nobody is waited for."""
    with Cluster(name, replicas=0, vbuckets=VBUCKETS, flags=[EPHEMERAL]) as cluster:
        cluster.tell("--restart", 0)
        store_all(cluster)
        expect_all_readable(cluster)


def ephemeral_node_without_its_map_goes_on_with_it(name):
    """A person starts a node and says neither its map nor its name."""
    with Cluster(name, vbuckets=VBUCKETS, flags=[EPHEMERAL]) as cluster:
        store_all(cluster)
        cluster.tell("--kill", 0)
        arguments = [
            os.environ["SETTEE_BINARY"], "serve", "--data-dir", f"{cluster.directory}/n_0",
            "--port", str(cluster.port(0)), "--management-port", str(cluster.management_port(0)),
            "--memory-quota", "128MiB"]
        refused = subprocess.run(arguments, capture_output=True, text=True, check=False,
                                 timeout=PATIENCE_SECONDS)
        expect(refused.returncode != 0 and "--password" in refused.stderr,
               f"the nodes log in to each other: {refused.stderr}")
        log = os.path.join(cluster.directory, "by-hand.log")
        with open(log, "wb") as output:
            node = subprocess.Popen([*arguments, "--password", PASSWORD], stdout=output,
                                    stderr=output, stdin=subprocess.DEVNULL)
        try:
            wait_until(lambda: "holds a replica" in pending_of(cluster, 0), PATIENCE_SECONDS,
                       "the node says who holds its documents")
        finally:
            node.terminate()
            node.wait(PATIENCE_SECONDS)
        cluster.tell("--failover", 0)
        expect_all_readable(cluster)


def node_that_has_lost_its_disk_empties_no_replica(name):
    """It starts with an empty directory and the map that has vBuckets active on it."""
    with Cluster(name, vbuckets=VBUCKETS) as cluster:
        store_all(cluster)
        cluster.wait_until_replicated(PATIENCE_SECONDS)
        cluster.tell("--kill", 0)
        shutil.rmtree(os.path.join(cluster.directory, "n_0"))
        for _ in range(2):
            cluster.tell("--restart", 0)
            wait_until(lambda: "holds a replica" in pending_of(cluster, 0), PATIENCE_SECONDS,
                       "the node says who holds its documents")
        cluster.tell("--failover", 0)
        cluster.tell("--recover", 0)
        expect_all_readable(cluster)
        cluster.wait_until_replicated(PATIENCE_SECONDS)


def pending_of(cluster, node):
    """What of the map is left, as a node that answers says."""
    try:
        return json.dumps(map_of(cluster, node)["pending"])
    except OSError:
        return ""


def failover_goes_past_a_damaged_replica_and_names_it(name):
    """It would be the first to be promoted. What hangs cannot help it meanwhile."""
    with Cluster(name, nodes=3, replicas=2, vbuckets=VBUCKETS, flags=FILES) as cluster:
        damaged = damage_a_replica_of_a_node_that_hangs(cluster)
        cluster.tell("--failover", 0)
        expect_equal(cluster.chains()[damaged][0], cluster.port(2), "who is promoted")
        expect_all_readable(cluster)
        cluster.wait_until_replicated(PATIENCE_SECONDS)
        named = cluster.unexpected_log_lines()
        expect(named and all(f"{damaged}.couch" in line for line in named),
               f"errors name the damaged vBucket, and no other: {named}")


def failover_does_not_guess_about_a_silent_member(name):
    with Cluster(name, nodes=3, replicas=2, vbuckets=VBUCKETS) as cluster:
        store_all(cluster)
        before = cluster.chains()
        cluster.tell("--kill", 0)
        cluster.tell("--pause", 1)
        wait_until_stopped(cluster.process_id(1))
        answer = cluster.answer("--failover", 0, fails=True)
        for said in ("nothing is changed", "n_1", "bring them back", "--force"):
            expect(said in answer, f"the refusal says {said!r}: {answer}")
        expect_equal(cluster.chains(), before, "the map")
        cluster.tell("--resume", 1)
        cluster.tell("--failover", 0)
        expect_all_readable(cluster)


def failover_of_a_node_that_serves_loses_nothing(name):
    """Durable writers go on while one node after the other is given up and taken in again."""
    with Cluster(name, nodes=3, replicas=2, vbuckets=VBUCKETS) as cluster:
        writers = [Counter(cluster, number) for number in range(COUNTERS)]
        try:
            for number in range(FAILOVERS):
                time.sleep(0.1)
                cluster.tell("--failover", number % 3)
                cluster.tell("--recover", number % 3)
        finally:
            for writer in writers:
                writer.stop()
        expect_equal([problem for writer in writers for problem in writer.problems], [],
                     "acknowledged writes that are lost")
        expect(all(writer.acknowledged > FAILOVERS for writer in writers), "writers have written")


class Counter(threading.Thread):
    """Writes higher and higher numbers to one key, each acknowledged by a majority, and reads."""

    def __init__(self, cluster, number):
        super().__init__()
        self._router = Router(cluster, TIMEOUT_MS / 1000)
        self._key = f"counter-{number}".encode()
        self._over = threading.Event()
        self.acknowledged, self.problems = 0, []
        self.start()

    def run(self):
        number = 0
        while not self._over.is_set():
            number += 1
            response = self._router.ask(self._key, lambda vbucket, number=number: durable_set(
                self._key, str(number).encode(), MAJORITY, TIMEOUT_MS, vbucket))
            if response is not None and response.status == SUCCESS:
                self.acknowledged = number
            self._read()

    def _read(self):
        response = self._router.ask(
            self._key, lambda vbucket: request(GET, key=self._key, vbucket=vbucket))
        found = None
        if response is not None and response.status == SUCCESS:
            found = int(response.value)
        elif response is not None and response.status == KEY_NOT_FOUND:
            found = 0
        if found is not None and found < self.acknowledged:
            self.problems.append(f"{self._key}: {found} where {self.acknowledged} was acknowledged")
            self._over.set()

    def stop(self):
        """Ends it."""
        self._over.set()
        self.join()


def failover_refuses_a_copy_that_is_not_whole_yet(name):
    """A replica was damaged and begins anew while the node that has everything hangs."""
    with Cluster(name, vbuckets=VBUCKETS, flags=FILES) as cluster:
        damaged = damage_a_replica_of_a_node_that_hangs(cluster)
        for _ in range(2):
            answer = cluster.answer("--failover", 0, fails=True)
            for said in ("nothing is changed", f"vBuckets {damaged} ", "--restart 0", "--force"):
                expect(said in answer, f"the refusal says {said!r}: {answer}")
            expect_equal(map_of(cluster, 1)["incomplete"], [damaged], "GET")
            expect(f"not whole yet: vBuckets {damaged}" in cluster.answer("--status"), "--status")
            details = cluster.statistics(1, "vbucket-details")
            expect_equal([int(name[3:].partition(":")[0]) for name, value in details.items()
                          if name.endswith(":whole") and value != "true"], [damaged], "STAT")
            # It is remembered.
            cluster.tell("--kill", 1)
            cluster.tell("--restart", 1)
        cluster.tell("--resume", 0)
        wait_until(lambda: map_of(cluster, 1)["incomplete"] == [], PATIENCE_SECONDS, "it is whole")
        cluster.tell("--failover", 0)
        expect_all_readable(cluster)


def failover_by_force_loses_what_a_copy_lacks(name):
    with Cluster(name, vbuckets=VBUCKETS, flags=FILES) as cluster:
        damaged = damage_a_replica_of_a_node_that_hangs(cluster)
        cluster.tell("--failover", 0, force=True)
        expect_equal(states(cluster, 1), dict.fromkeys(range(VBUCKETS), "active"), "what serves")
        expect_equal(map_of(cluster, 1)["incomplete"], [], "what is active is all that there is")
        router = Router(cluster)
        lost = {vbucket_of(key(number), VBUCKETS) for number in range(COUNT)
                if not is_readable(router, number)}
        expect_equal(lost, {damaged}, "vBuckets with documents that are lost")


def damage_a_replica_of_a_node_that_hangs(cluster):
    """The first replica is on n_1, the node that hangs is n_0. Gives the vBucket."""
    # The node that is killed has vBuckets that are active, too.
    store_all(cluster, MAJORITY_AND_ACTIVE_DISK)
    cluster.wait_until_replicated(PATIENCE_SECONDS)
    # What a replica has in memory alone goes with its node.
    wait_until(lambda: is_persisted(cluster, 1), PATIENCE_SECONDS, "the files have everything")
    cluster.tell("--pause", 0)
    wait_until_stopped(cluster.process_id(0))
    cluster.tell("--kill", 1)
    damaged = next(vbucket for vbucket, chain in enumerate(cluster.chains())
                   if chain[:2] == [cluster.port(0), cluster.port(1)])
    overwrite(file_of(cluster, 1, damaged))
    cluster.tell("--restart", 1)
    return damaged


def is_persisted(cluster, node):
    statistics = cluster.statistics(node, "vbucket-seqno")
    return all(statistics[f"vb_{vbucket}:last_persisted_seqno"]
               == statistics[f"vb_{vbucket}:high_seqno"] for vbucket in range(VBUCKETS))


def failover_is_carried_out_while_journals_are_full(name):
    """Writers who never pause write more than files can follow."""
    flags = ["--node-argument=--journal-size=64MiB", "--memory-quota", "256MiB"]
    with Cluster(name, nodes=3, replicas=2, vbuckets=64, flags=flags) as cluster:
        loads = [Load(cluster, number) for number in range(LOADS)]
        try:
            for lost in (2, 1):
                wait_until_journals_fill_again_and_again(cluster)
                started = time.monotonic()
                cluster.tell("--failover", lost)
                expect(time.monotonic() - started < PATIENCE_SECONDS, "the order ends in time")
                active = sum(list(states(cluster, node).values()).count("active")
                             for node in range(3) if node != lost)
                expect_equal(active, 64, "vBuckets that serve")
                cluster.tell("--recover", lost)
        finally:
            for load in loads:
                load.stop()
        expect_equal(cluster.unexpected_log_lines(), [], "lines in the nodes' logs")


class Load:
    """`settee load`, begun again when it ends."""

    def __init__(self, cluster, number):
        self._arguments = [
            os.environ["SETTEE_BINARY"], "load",
            "-U", f"couchbase://{HOST}:{cluster.port(0)}/{BUCKET}",
            "--user", USER, "--password", PASSWORD, "--key-prefix", f"load-{number}-",
            "--num-items", "1000", "--no-population", "--set-pct", "100",
            "--min-size", str(LOAD_BYTES), "--max-size", str(LOAD_BYTES), "--random-body",
            "--num-threads", "8", "--batch-size", "8", "--workers", "1", "--timeout", "5"]
        self._stop = threading.Event()
        self._process = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while not self._stop.wait(0.2):
            self._process = subprocess.Popen(
                self._arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL)
            while self._process.poll() is None and not self._stop.wait(0.1):
                pass
            self._process.terminate()
            self._process.wait()

    def stop(self):
        """Ends it."""
        self._stop.set()
        self._thread.join()


def map_of(cluster, node):
    """What `GET /settee/clusterMap` of a node answers."""
    port = cluster.management_port(node)
    password = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    asked = urllib.request.Request(
        f"http://{HOST}:{port}/settee/clusterMap", headers={"Authorization": f"Basic {password}"})
    with urllib.request.urlopen(asked, timeout=PATIENCE_SECONDS) as answer:
        return json.load(answer)


def wait_until_journals_fill_again_and_again(cluster):
    """From now on each has been full so often that the load, and no start, is the reason."""
    wanted = [waits_for_journal(cluster, node) + FULL_WAITS_MIN for node in range(cluster.nodes)]
    for node, count in enumerate(wanted):
        wait_until(lambda node=node, count=count: waits_for_journal(cluster, node) >= count,
                   2 * PATIENCE_SECONDS, f"the journal of n_{node} is full")


def waits_for_journal(cluster, node):
    """How often something had to wait for room in a node's journal."""
    return int(cluster.statistics(node, "journal")["full_waits"])


def states(cluster, node):
    """The vBuckets of a node, with their states."""
    return {int(name[3:]): state for name, state in cluster.statistics(node, "vbucket").items()}


def file_of(cluster, node, vbucket):
    """The file of a node's vBucket."""
    for directory, _, names in os.walk(os.path.join(cluster.directory, f"n_{node}")):
        for name in names:
            if name.startswith(f"{vbucket}.couch."):
                return os.path.join(directory, name)
    raise AssertionError(f"n_{node} has no file of vBucket {vbucket}")


def overwrite(path):
    """Nothing of the file is left but its size."""
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        file.write(bytes(size))


def key(number):
    """The key of a document."""
    return f"document-{number}".encode()


def store_all(cluster, level=MAJORITY):
    """Documents that a majority holds."""
    router = Router(cluster, STORE_TIMEOUT_MS / 1000)
    for number in range(COUNT):
        response = router.ask(key(number), lambda vbucket, number=number: durable_set(
            key(number), str(number).encode(), level, STORE_TIMEOUT_MS, vbucket))
        expect(response is not None and response.status == SUCCESS, f"{number} is stored")


def expect_all_readable(cluster):
    """Every document is what was stored."""
    router = Router(cluster)
    lost = [number for number in range(COUNT) if not is_readable(router, number)]
    expect_equal(len(lost), 0, "documents that are lost")


def is_readable(router, number):
    """At once, or a moment after the promotion."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        response = router.ask(
            key(number), lambda vbucket: request(GET, key=key(number), vbucket=vbucket))
        if response is not None and response.status == SUCCESS:
            return response.value == str(number).encode()
        if response is not None and response.status == KEY_NOT_FOUND:
            return False
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
